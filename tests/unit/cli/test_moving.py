from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import twofold
from twofold import Access, StoreSettings
from twofold.cli.app import app


@pytest.fixture
def notes(run):
    run("add", "a red kettle", "--id", "a", "--embedder", "none")
    run("add", "a pear", "--id", "b", "--embedder", "none")
    run("add", "ann's own secretword", "--id", "own", "--user", "ann", "--embedder", "none")
    run("link", "a", "b", "--weight", "0.5")
    return run


@pytest.mark.parametrize("name", ["export", "import", "backup", "purge"])
def test_help_documents_the_json(name):
    assert "--json:" in CliRunner().invoke(app, [name, "--help"]).output


def test_out_and_in(notes):
    assert notes("export", "out.jsonl", "--everything").err == "note: 3 records, 1 links\n"
    again = notes("export", "out.jsonl")
    assert again.code == 2
    assert "is there already" in again.err
    assert notes("export", "out.jsonl", "--everything", "--overwrite", "--json").json == {
        "records": 3,
        "links": 1,
        "vectors": 0,
    }
    dry = notes("import", "out.jsonl", "--store", "new.db", "--everything", "--dry-run")
    assert (dry.code, dry.err) == (0, "note: would be: 3 added, 1 links\n")
    assert not Path("new.db").exists()
    done = notes("import", "out.jsonl", "--store", "new.db", "--everything")
    assert (done.code, done.out, done.err) == (0, "", "note: 3 added, 1 links\n")
    assert notes("import", "out.jsonl", "--store", "new.db", "--everything", "--skip-existing", "--json").json == {
        "added": 0,
        "updated": 0,
        "unchanged": 3,
        "skipped": 0,
        "links": 1,
        "vectors": 0,
        "pending": 0,
        "failed": 0,
        "problems": [],
        "degradations": [],
        "dry_run": False,
    }
    assert notes("neighbors", "a", "--store", "new.db").cells[0][2] == "b"


def test_in_a_pipe(notes, shell):
    sent = shell("export", "-", "--user", "ann")
    assert sent.code == 0
    kinds = [json.loads(line)["type"] for line in sent.lines]
    assert kinds == ["twofold-export", "record", "record", "record", "link", "end"]
    got = shell("import", "-", "--store", "new.db", "--user", "ann", stdin=sent.out.encode())
    assert got.code == 1
    assert "line 2: this access may not add records for global" in got.err
    assert "1 added, 3 could not be imported" in got.err
    with twofold.open("new.db") as store:
        assert [record.id for record in store.list(access=Access.everything())] == ["own"]


def test_without_more_it_is_what_everybody_sees(notes):
    assert notes("export", "out.jsonl").err == "note: 2 records, 1 links\n"
    assert "secretword" not in Path("out.jsonl").read_text(encoding="utf-8")
    assert notes("export", "one.jsonl", "--where", '{"@id": "a"}').err == "note: 1 records\n"
    with twofold.open("twofold.db") as store:
        store.archive("b")
    assert notes("export", "two.jsonl", "--living").err == "note: 1 records\n"


def test_a_new_store_has_the_fields_of_the_export(run):
    with twofold.open("fields.db", settings=StoreSettings(fields=("title", "body"))) as store:
        store.add(fields={"title": "t"}, id="a")
        store.export_jsonl("out.jsonl")
    run("add", "text", "--store", "text.db", "--embedder", "none")
    refused = run("import", "out.jsonl", "--store", "text.db")
    assert refused.code == 2
    assert "the export has the fields title, body, this store text" in refused.err
    assert run("import", "out.jsonl", "--store", "new.db", "--dry-run").code == 0
    assert run("import", "out.jsonl", "--store", "new.db").code == 0
    with twofold.open("new.db") as store:
        assert store.info().backend.fields == ("title", "body")


def test_lines_that_cannot_be_used(notes):
    notes("export", "out.jsonl")
    lines = Path("out.jsonl").read_text(encoding="utf-8").splitlines()
    lines[1:1] = ["x"] * 30
    Path("out.jsonl").write_text("\n".join(lines), encoding="utf-8")
    said = notes("import", "out.jsonl", "--store", "new.db")
    assert said.code == 1
    assert said.err.splitlines()[0] == "note: line 2: no valid JSON: Expecting value at column 1"
    assert said.err.splitlines()[20:] == [
        "note: and 10 more; --json names them",
        "note: 2 added, 1 links, 30 could not be imported",
    ]
    assert len(notes("import", "out.jsonl", "--store", "new.db", "--json").json["problems"]) == 30
    strict = notes("import", "out.jsonl", "--store", "other.db", "--strict")
    assert strict.code == 2
    assert "line 2: no valid JSON" in strict.err
    assert notes("import", "out.jsonl", "--store", "new.db", "--max-line-mib", "0").code == 2


def test_a_copy(notes):
    copied = notes("backup", "copy.db")
    assert copied.lines == [str(Path("copy.db").resolve())]
    assert notes("backup", "copy.db").code == 2
    assert notes("backup", "copy.db", "--overwrite", "--json").json == {"path": str(Path("copy.db").resolve())}
    assert notes("search", "kettle", "--store", "copy.db").cells[0][1] == "a"


def test_purge_asks_first(notes, monkeypatch):
    refused = notes("purge", "a")
    assert (refused.code, refused.out) == (2, "")
    assert "removes 1 record for good" in refused.err
    assert "say --yes" in refused.err
    for answer, code, left in (("n", 1, 2), ("y", 0, 1)):
        monkeypatch.setattr("twofold.cli.moving._can_ask", lambda: True)
        asked = CliRunner().invoke(app, ["purge", "a"], input=f"{answer}\n")
        assert asked.exit_code == code
        assert "Remove 1 record for good?" in asked.output
        with twofold.open("twofold.db") as store:
            assert store.count() == left


def test_purge(notes):
    assert notes("purge", "own", "--yes", "--json").json == {"purged": 0}
    assert notes("purge", "own", "--yes", "--user", "ann").err == "note: 1 purged\n"
    assert b"secretword" not in Path("twofold.db").read_bytes()
    notes("add", "of the room", "--room", "r", "--embedder", "none")
    assert notes("purge", "--all-of-room", "r", "-y").err == "note: 1 purged\n"
    assert notes("purge", "--all-of-user", "ann", "-y", "--user", "ben").code == 2
    assert notes("purge", "-y").code == 2
    assert notes("purge").code == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("export", "x.jsonl", "--everything", "--user", "u"), "--everything"),
        (("export", "-", "--json"), "name a file"),
        (("export", "."), "is a folder"),
        (("import", "."), "is a folder"),
        (("import", "missing.jsonl"), "missing.jsonl"),
        (("import", "twofold.db"), "no export of twofold"),
        (("backup", "no/such/folder"), "there is no folder"),
        (("purge", "a", "--all-of-user", "u", "--yes"), "exactly one"),
    ],
)
def test_a_mistake_is_said_in_one_line(notes, arguments, said):
    result = notes(*arguments)
    assert (result.code, result.out) == (2, "")
    assert said in result.err
    assert result.err.count("\n") == 1


def test_a_mistake_makes_no_store(run):
    Path("x.jsonl").write_text("nothing of ours", encoding="utf-8")
    for arguments in (("import", "x.jsonl"), ("export", "y.jsonl"), ("backup", "y.db"), ("purge", "a", "--yes")):
        assert run(*arguments).code == 2
    assert [file.name for file in Path().iterdir()] == ["x.jsonl"]
