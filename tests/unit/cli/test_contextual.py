from __future__ import annotations

import inspect

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from twofold import HybridStore
from twofold.cli.app import app

SAID = '{"role": "user", "content": "hello", "at": "2026-03-02T08:01:00Z"}\n\n{"role": "assistant", "content": "hi"}\n'


@pytest.fixture
def notes(run, tmp_path):
    run("add", "a red kettle", "--id", "red", "--embedder", "none")
    run("add", "ann's kettle", "--id", "mine", "--user", "ann", "--embedder", "none")
    (tmp_path / "said.jsonl").write_text(SAID, encoding="utf-8")
    return run


def test_it_prints_the_context_as_text(notes):
    found = notes("context", "which kettle?", "--messages", "said.jsonl", "--zone", "Europe/Berlin")
    assert found.code == 0
    assert found.err == ""
    lines = found.lines
    assert lines[lines.index("<memories>") + 1].endswith(") a red kettle")
    assert lines[-6:] == [
        "<conversation>",
        "[2026-03-02 09:01] user: hello",
        "assistant: hi",
        "</conversation>",
        "",
        "which kettle?",
    ]


def test_it_prints_the_messages(notes):
    system, *others = notes("context", "which kettle?", "--messages", "-", "--as", "messages").json or [None]
    assert (system["role"], others) == ("system", [{"role": "user", "content": "which kettle?"}])


def test_standard_input_gives_the_conversation(notes):
    found = notes("context", "?", "--messages", "-", "--as", "messages", stdin=SAID.encode())
    assert [each["content"] for each in found.json[1:]] == ["[2026-03-02 08:01] hello", "hi", "?"]


def test_json_has_all_of_it(notes):
    found = notes("context", "kettle", "--json", "--user", "ann", "--messages", "said.jsonl", "--last", "1").json
    assert {hit["record"]["id"] for hit in found["memories"]} == {"red", "mine"}
    assert found["left_out"] == {"messages": 0, "memories": 0, "earlier": 1}
    assert (found["budget"], found["degradations"]) == (None, [])
    tight = notes("context", "kettle", "--json", "--user", "ann", "--budget", found["tokens"] - 1).json
    assert tight["tokens"] < found["tokens"]
    assert [each["role"] for each in tight["messages"]] == ["system", "user"]


def test_what_there_was_no_room_for_is_said(notes):
    whole = notes("context", "kettle", "--json", "--messages", "said.jsonl").json["tokens"]
    found = notes("context", "kettle", "--messages", "said.jsonl", "--budget", whole - 1)
    assert found.err == "note: no room for 1 messages and 0 memories\n"


def test_nobody_is_told_what_is_not_theirs(notes):
    assert "ann's kettle" not in notes("context", "kettle", "--user", "ben").out
    assert "ann's kettle" in notes("context", "kettle", "--user", "ann").out


def test_the_template_is_a_file(notes, tmp_path):
    (tmp_path / "butler.txt").write_text("You are a butler. {memories}\n", encoding="utf-8")
    found = notes("context", "kettle", "--template", "butler.txt", "-k", "0")
    assert found.out == "You are a butler.\n\nkettle\n"


def test_options_reach_the_search(notes):
    notes("add", "a pear", "--id", "pear", "--embedder", "none")
    notes("link", "red", "pear")
    assert "a pear" in notes("context", "kettle", "--expand", "1").out
    assert "a pear" not in notes("context", "kettle").out
    assert "a pear" in notes("context", "kettle", "--preset", "muninn").out
    assert "a pear" not in notes("context", "kettle", "--preset", "muninn", "--expand", "0").out
    assert notes("context", "kettle", "--preset", "mine").code == 2
    assert "<memories>" not in notes("context", "kettle", "--where", '{"@id": "pear"}').out
    notes("context", "kettle", "--touch", "--user", "ann")
    assert notes("context", "kettle", "--mode", "vector").code == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--budget", "3"), "give at least"),
        (("--budget", "0"), "at least 1"),
        (("--zone", "Europe"), "there is no time zone 'Europe'"),
        (("--messages", "nowhere.jsonl"), "nowhere.jsonl cannot be read"),
        (("--messages", "bad.jsonl"), "bad.jsonl:2: the role of a message is 'user' or 'assistant', not 'tool'"),
        (("--messages", "worse.jsonl"), "worse.jsonl:1: no valid JSON"),
        (("--template", "bad.txt"), "no slot {memory}"),
        (("--json", "--as", "messages"), "--json has the messages in it"),
        (("--messages", "-", "--template", "-"), "standard input can be read once"),
    ],
)
def test_a_mistake_is_said_in_one_line(notes, tmp_path, arguments, said):
    (tmp_path / "bad.jsonl").write_text('{"role": "user", "content": "x"}\n{"role": "tool", "content": "x"}\n')
    (tmp_path / "worse.jsonl").write_text("{")
    (tmp_path / "bad.txt").write_text("{memory}")
    found = notes("context", "kettle", *arguments)
    assert (found.code, found.out) == (2, "")
    assert said in found.err
    assert len(found.err.splitlines()) == 1


def test_nothing_reaches_the_terminal_but_text(notes, tmp_path):
    (tmp_path / "t.txt").write_text("a\x1b[2Jb\tc\n{memories}", encoding="utf-8")
    notes("add", "kettle \x1b[31m \u202e", "--embedder", "none")
    found = notes("context", "kettle \x1b[31m", "--template", "t.txt")
    assert "\x1b" not in found.out
    assert "\u202e" not in found.out
    assert found.lines[0] == "a\\x1b[2Jb\tc"


@pytest.mark.parametrize("option", ["k", "last", "zone", "mode"])
def test_an_option_has_the_default_of_the_store(option):
    (found,) = (each for each in vars(get_command(app))["commands"]["context"].params if each.name == option)
    assert found.default == inspect.signature(HybridStore.context).parameters[option].default


def test_help_documents_the_json():
    assert "--json:" in CliRunner().invoke(app, ["context", "--help"]).output
