from __future__ import annotations

import json

import pytest


def listed(run, *options):
    return [json.loads(line) for line in run("list", "--json", *options).lines]


def test_a_file_is_one_record_and_its_path_the_source(run, tmp_path):
    (tmp_path / "note.txt").write_text("first line\nsecond line\n", encoding="utf-8")
    assert run("add", "--file", "note.txt", "--embedder", "none").code == 0
    (record,) = listed(run)
    assert (record["text"], record["source"]) == ("first line\nsecond line\n", "note.txt")
    assert record["id"] == "note.txt", "added again, it takes the place of what it was"


def test_standard_input_is_one_record(run):
    assert run("add", "-", "--id", "1", "--embedder", "none", stdin="grüße\nzwei".encode()).code == 0
    assert [(each["id"], each["text"]) for each in listed(run)] == [("1", "grüße\nzwei")]


def test_lines_of_json_are_texts_or_objects_and_options_fill_in(run):
    lines = (
        b'\xef\xbb\xbf"plain"\n\n{"id": "b", "text": "object", "kind": "insight", "event_at": "2025-03-01T12:00:00Z"}'
    )
    assert run("add", "--jsonl", "-", "--kind", "episodic", "--embedder", "none", stdin=lines).code == 0
    by_text = {each["text"]: each for each in listed(run)}
    assert by_text["plain"]["kind"] == "episodic"
    assert by_text["object"]["kind"] == "insight"
    assert by_text["object"]["event_at"] == "2025-03-01T12:00:00+00:00"


def test_what_list_prints_as_json_can_be_added_elsewhere(run):
    run("add", "one\x1b[31m", "zwei é", "--tag", "t", "--namespace", "a/b", "--metadata", '{"n": 1.0}',
        "--embedder", "none")  # fmt: skip
    listing = run("list", "--json").out
    assert run("add", "--jsonl", "-", "--store", "other.db", "--embedder", "none", stdin=listing.encode()).code == 0
    assert listed(run, "--store", "other.db") == [json.loads(line) for line in listing.splitlines()]


def test_adding_the_same_again_says_that_nothing_changed(run):
    line = b'{"id": "1", "text": "one"}'
    run("add", "--jsonl", "-", "--embedder", "none", stdin=line)
    again = run("add", "--jsonl", "-", "--json", stdin=line).json
    assert (again["ids"], again["added"], again["unchanged"]) == (["1"], 0, 1)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"{bad", "no valid JSON: Expecting property name"),
        (b'{"text": NaN}', "NaN is not JSON"),
        (b"[1]", "a line is an object"),
        (b'{"text": "x", "nope": 1}', "unknown names in a record: nope"),
        (b'{"id": "x"}', "give either text=... or fields="),
        (b'{"text": 5}', "text is text, not int"),
        (b'{"fields": [1]}', "fields is a dict, not list"),
        (b'{"text": "x", "importance": 2}', "importance is from 0 to 1"),
        (b'{"text": "x", "created_at": "yesterday"}', "created_at is a time such as"),
        (b'{"text": "x", "created_at": 5}', "created_at is a time such as"),
        (b'{"text": "x", "created_at": "2025-01-01T00:00:00"}', "created_at has no time zone"),
        (b'{"text": "\xff"}', "is not UTF-8"),
        (b"[" * 100_000, "no valid JSON: it is nested too deep"),
        (b'{"text": "x", "importance": ' + b"9" * 5000 + b"}", "no valid JSON"),
        (b'{"text": "\\ud800", "id": "\\ud800"}', "lone surrogate"),
    ],
)
def test_a_bad_line_is_named_and_nothing_is_stored(run, tmp_path, line, says):
    (tmp_path / "many.jsonl").write_bytes(b'{"text": "good"}\n' * 2 + line + b"\n")
    ran = run("add", "--jsonl", "many.jsonl", "--embedder", "none")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("twofold: many.jsonl:3")
    assert says in ran.err
    assert ran.err.count("\n") == 1
    assert not (tmp_path / "twofold.db").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "nothing to add"),
        (("",), "the text is empty"),
        (("-",), "standard input is empty"),
        (("-", "--jsonl", "-"), "standard input can be read once"),
        (("a", "b", "--id", "1"), "--id and --source are of one record"),
        (("--jsonl", "-", "--source", "s"), "--id and --source are of one record"),
        (("--file", "missing.txt"), "missing.txt cannot be read: No such file"),
        (("--jsonl", "missing.jsonl"), "missing.jsonl cannot be read: No such file"),
        (("--file", "."), ". is a folder"),
        (("--jsonl", "."), ". is a folder"),
        (("a", "--metadata", "{"), "--metadata: no valid JSON"),
        (("a", "--metadata", "[]"), "metadata is a dict"),
        (("a", "--namespace", "a//b"), "a word of a namespace is not empty"),
        (("a", "--user", ""), "a user is named by non-empty text"),
    ],
)
def test_a_mistake_is_one_line_and_2(run, arguments, says):
    ran = run("add", *arguments, "--embedder", "none")
    assert (ran.code, ran.out) == (2, "")
    assert says in ran.err
    assert ran.err.count("\n") == 1


def test_a_file_in_another_encoding_is_refused_by_name(run, tmp_path):
    (tmp_path / "latin.txt").write_bytes("Grüße".encode("latin-1"))
    ran = run("add", "--file", "latin.txt")
    assert ran.code == 2
    assert "latin.txt is not UTF-8 (its byte 3 cannot be read)" in ran.err


def test_more_standard_input_than_fits_in_memory_at_once_is_kept_in_a_file(run, monkeypatch):
    monkeypatch.setattr("twofold.cli.reading_input._IN_MEMORY", 100)
    lines = "\n".join(json.dumps({"id": f"{n:04}", "text": f"text {n}"}) for n in range(1200)).encode()
    ran = run("add", "--jsonl", "-", "--json", "--embedder", "none", stdin=lines)
    assert ran.json["ids"] == [f"{n:04}" for n in range(1200)]
