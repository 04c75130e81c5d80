from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

import twofold
from twofold import Access
from twofold.cli import app as app_module
from twofold.cli.app import app
from twofold.testing import FakeEmbedder

HAS_LOCAL = importlib.util.find_spec("wordllama") is not None
needs_local = pytest.mark.skipif(not HAS_LOCAL, reason="the extra 'local' is not installed")


def test_the_version_is_the_package_s(run):
    assert run("--version").out == f"twofold {twofold.__version__}\n"


def test_help_names_every_command_and_every_exit_code():
    said = CliRunner().invoke(app, ["--help"])
    assert said.exit_code == 0
    for word in ("demo", "add", "search", "list", "info", "check", "130  interrupted"):
        assert word in said.output


@pytest.mark.parametrize("name", ["add", "search", "list", "info", "check"])
def test_help_documents_the_json_of_every_command(name):
    assert "--json:" in CliRunner().invoke(app, [name, "--help"]).output


def test_what_is_added_is_found_and_its_id_is_printed(run):
    added = run("add", "the deploy key lies in the vault", "--embedder", "none")
    assert (added.code, added.err) == (0, "note: 1 added\n")
    found = run("search", "deploy key")
    assert found.code == 0
    assert found.cells == [["1.000", added.lines[0], "the deploy key lies in the vault"]]


def test_nothing_found_is_1_and_prints_nothing(run):
    run("add", "one", "--embedder", "none")
    found = run("search", "zebra")
    assert (found.code, found.out) == (1, "")
    as_json = run("search", "zebra", "--json")
    assert (as_json.code, as_json.json) == (1, {"hits": [], "degradations": []})


def test_why_shows_each_leg_s_rank_and_score(run):
    run("add", "a red apple", "a green pear", "--embedder", "none")
    (row,) = run("search", "apple", "--why").cells
    score, keyword_rank, bm25, vector_rank, cosine, _, text = row
    assert (score, keyword_rank, vector_rank, cosine, text) == ("1.000", "1", "-", "-", "a red apple")
    assert float(bm25) > 0


@needs_local
def test_a_new_file_gets_the_local_model_if_it_is_installed(run):
    run("add", "a red apple", "a green pear")
    said = run("info", "--json").json
    assert said["embedder"] == said["vectors_of"] == twofold.LocalEmbedder().fingerprint
    (first, _) = run("search", "apple", "--why").cells
    assert first[1] == first[3] == "1"  # the rank in both legs
    assert run("search", "apple", "--embedder", "none", "--why").cells[0][3] == "-"


@needs_local
def test_a_file_filled_without_an_embedder_stays_so_until_one_is_asked_for(run):
    run("add", "one", "--embedder", "none")
    run("add", "two")
    said = run("info", "--json").json
    assert (said["mode"], said["embedder"], said["vectors_of"]) == ("keyword", None, None)
    assert "--embedder local" in said["embedder_because"]


def test_without_the_extra_keywords_answer_and_info_says_how_to_get_it(run, monkeypatch):
    monkeypatch.setattr("twofold.cli.opening.has_local_extra", lambda: False)
    with twofold.open("twofold.db"):
        pass
    said = run("info", "--json").json
    assert said["mode"] == "keyword"
    assert "pip install 'twofold[local]'" in said["embedder_because"]


@needs_local
def test_vectors_that_lie_idle_are_spoken_of_on_every_search(run, monkeypatch):
    run("add", "one")
    monkeypatch.setattr("twofold.cli.opening.has_local_extra", lambda: False)
    found = run("search", "one")
    assert (found.code, len(found.lines)) == (0, 1)
    assert "keywords answered alone" in found.err
    assert "twofold[local]" in found.err


def test_vectors_of_a_foreign_embedder_are_neither_used_nor_spoilt(run):
    embedder = FakeEmbedder()
    with twofold.open("twofold.db", embedder=embedder) as store:
        store.add("one", id="1")
    found = run("search", "one", "--why")
    assert [row[-2] for row in found.cells] == ["1"]
    assert embedder.fingerprint in found.err
    assert run("add", "two").code == 0
    assert run("info", "--json").json["pending"] == 1


def test_options_of_a_record_are_kept(run):
    run("add", "text", "--id", "1", "--kind", "insight", "--tag", "a", "--tag", "b", "--source", "s.txt",
        "--project", "p", "--namespace", "x/y", "--metadata", '{"lang": "en"}', "--embedder", "none")  # fmt: skip
    (record,) = [json.loads(line) for line in run("list", "--json").lines]
    assert {name: record[name] for name in ("id", "kind", "tags", "source", "project", "namespace", "metadata")} == {
        "id": "1",
        "kind": "insight",
        "tags": ["a", "b"],
        "source": "s.txt",
        "project": "p",
        "namespace": ["x", "y"],
        "metadata": {"lang": "en"},
    }


def test_users_see_their_own_and_what_is_shared(run):
    run("add", "ann's", "--id", "1", "--user", "ann", "--embedder", "none")
    run("add", "ben's", "--id", "1", "--user", "ben")
    run("add", "the room's", "--id", "2", "--room", "r")
    run("add", "everybody's", "--id", "3")
    ann = run("list", "--user", "ann", "--room", "r", "--order", "id")
    assert [row[-1] for row in ann.cells] == ["ann's", "the room's", "everybody's"]
    assert [row[2] for row in ann.cells] == ["personal:ann", "room:r", "global"]
    assert [row[-1] for row in run("list").cells] == ["everybody's"]
    assert run("info", "--json", "--user", "ben").json["records"] == 2
    assert run("search", "ben's", "--user", "ann", "--mode", "keyword").code == 1


def test_info_does_not_tell_how_many_records_others_have(run):
    run("add", "ann's", "--user", "ann")
    before = run("info", "--user", "ben", "--json").json
    run("add", "also ann's", "--user", "ann")
    after = run("info", "--user", "ben", "--json").json
    assert "file_bytes" not in after  # it grows with what others write
    assert after == before


def test_each_tenant_has_a_file_of_its_own(run, tmp_path):
    run("add", "acme's", "--tenant", "acme", "--store", tmp_path, "--embedder", "none")
    assert [row[-1] for row in run("list", "--tenant", "acme", "--store", tmp_path).cells] == ["acme's"]
    other = run("list", "--tenant", "other", "--store", tmp_path)
    assert (other.code, other.out) == (2, "")


def test_filters_pages_and_orders(run):
    lines = [{"id": str(n), "text": "apple " * (n + 1), "importance": n / 10, "metadata": {"n": n}} for n in range(6)]
    run("add", "--jsonl", "-", "--embedder", "none", stdin="\n".join(map(json.dumps, lines)).encode())
    assert [row[0] for row in run("list", "--order=-importance", "--limit", "3").cells] == ["5", "4", "3"]
    assert [row[0] for row in run("list", "--where", '{"n": {"$lt": 2}}', "--order", "id").cells] == ["0", "1"]
    every = [row[1] for row in run("search", "apple").cells]
    pages = [row[1] for offset in (0, 2, 4) for row in run("search", "apple", "-k", 2, "--offset", offset).cells]
    assert sorted(every) == list("012345")
    assert pages == every


def test_the_store_may_be_named_by_the_environment(shell, tmp_path):
    place = str(tmp_path / "elsewhere.db")
    assert shell("add", "one", "--embedder", "none", TWOFOLD_STORE=place).code == 0
    assert Path(place).exists()
    assert len(shell("list", TWOFOLD_STORE=place).lines) == 1


def test_looking_never_makes_a_file(run, tmp_path):
    for command in (("search", "x"), ("list",), ("info",), ("check",)):
        ran = run(*command)
        assert ran.code == 2
        assert "there is no store at twofold.db" in ran.err
    assert list(tmp_path.iterdir()) == []


def test_check_is_0_if_all_is_well(run):
    run("add", "one", "two", "--embedder", "none")
    checked = run("check", "--json")
    assert checked.code == 0
    assert checked.json == {"ok": True, "records": 2, "damage": [], "skipped": []}


def test_check_is_1_after_damage_and_repair_mends_the_keyword_index(run, tmp_path):
    run("add", "apple", "pear", "--embedder", "none")
    assert _spoil(tmp_path / "twofold.db") == 0
    found = run("check")
    assert found.code == 1
    assert found.cells
    assert "damage found" in found.err
    assert run("check", "--repair").code == 0
    assert run("check").code == 0


def _spoil(path: Path) -> int:
    """Empty the keyword index behind the rows, in another process: no second SQLite may touch the file in this one."""
    code = """
import sqlite3, sys
with sqlite3.connect(sys.argv[1]) as db:
    (name,) = db.execute("select name from sqlite_master where sql like '%using fts5%'").fetchone()
    db.execute(f'insert into "{name}"("{name}") values(?)', ("delete-all",))
"""
    return subprocess.run([sys.executable, "-c", code, str(path)], check=False, timeout=60).returncode


@needs_local
def test_degradations_are_told_on_standard_error(run):
    run("add", "one", "--embedder", "none")
    run("add", "a fruit", "--embedder", "local")
    found = run("search", "fruit")
    assert found.code == 0
    assert "note: vectors_pending: " in found.err
    assert "vectors_pending" not in found.out
    as_json = run("search", "fruit", "--json").json
    assert [each["code"] for each in as_json["degradations"]] == ["vectors_pending"]


def test_an_interrupt_is_130_without_a_traceback(run, monkeypatch):
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(app_module, "opened", interrupted)
    ran = run("list")
    assert (ran.code, ran.out) == (130, "")
    assert "Traceback" not in ran.err


@needs_local
def test_embed_pending_fills_in_what_was_added_without_an_embedder(run):
    run("add", "the deploy key lies in the vault", "tea or coffee", "--embedder", "none")
    done = run("embed-pending", "--embedder", "local")
    assert (done.code, done.out) == (0, "2\t0\t0\n")
    again = run("embed-pending", "--embedder", "local", "--json")
    assert again.json == {"embedded": 0, "parked": 0, "remaining": 0, "elsewhere": 0, "degradations": []}
    refused = run("embed-pending", "--embedder", "none")
    assert refused.code == 2
    assert "embedder" in refused.err


@needs_local
def test_embed_pending_says_what_another_process_is_at_work_on(run):
    run("add", "the deploy key lies in the vault", "--embedder", "local")
    run("add", "tea or coffee", "a kettle", "--embedder", "none")
    with twofold.open("twofold.db") as store, store._backend.write() as writer:
        visible = store._visible(Access.everything())
        now = datetime.now(UTC)
        assert len(writer.claim_pending(visible, 10, now, now + timedelta(hours=1))) == 2
    done = run("embed-pending", "--embedder", "local")
    assert (done.code, done.out) == (1, "0\t0\t2\t2\n")
    assert run("embed-pending", "--embedder", "local", "--json").json["elsewhere"] == 2
