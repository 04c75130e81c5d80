from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

import twofold
from twofold import Access
from twofold.embedders import CallableEmbedder
from twofold.testing import FakeEmbedder

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture
def filled(tmp_path):
    with twofold.open(tmp_path / "twofold.db") as store:
        store.add("old kettle", id="old", created_at=LONG_AGO)
        store.add("new kettle", id="new")
        store.add("mine", id="mine", access=Access(user="u1"), created_at=LONG_AGO)
        store.add("gone", id="gone", expires_at=LONG_AGO)
    return tmp_path / "twofold.db"


def test_prune_lists_first_and_archives_when_it_is_told_to(run, filled):
    listed = run("prune", "--min-retention", "0.01", "--store", filled)
    assert (listed.code, listed.cells) == (0, [["0.0000", "old", "", "global"]])
    assert "1 have faded; nothing was changed, --do-it archives them" in listed.err
    done = run("prune", "--min-retention", "0.01", "--do-it", "--store", filled, "--json")
    assert done.json == {
        "archived": 1,
        "faded": [{"retention": 0.0, "id": "old", "namespace": [], "owner": "global"}],
    }
    assert run("prune", "--min-retention", "0.01", "--user", "u1", "--store", filled).cells[0][1] == "mine"
    assert run("prune", "--min-retention", "2", "--store", filled).code == 2


def test_sweep_says_how_many(run, filled):
    swept = run("sweep", "--store", filled)
    assert (swept.code, swept.err) == (0, "note: 1 deleted\n")
    assert run("sweep", "--archive", "--store", filled, "--json").json == {"swept": 0}


def test_supersede(run, filled):
    done = run("supersede", "old", "new", "--at", "2021-01-01T00:00:00Z", "--store", filled)
    assert (done.code, done.err) == (0, "note: superseded\n")
    assert run("supersede", "old", "new", "--store", filled, "--json").json == {"new": False}
    assert run("search", "kettle", "--store", filled).cells[0][1] == "new"
    assert run("supersede", "old", "new", "--at", "yesterday", "--store", filled).code == 2
    assert run("supersede", "old", "none", "--store", filled).code == 2


def test_consolidate_prints_the_new_id(run, filled):
    done = run(
        "consolidate", "old", "new", "--text", "a kettle", "--tag", "x", "--importance", "0.9", "--store", filled
    )
    assert (done.code, done.err) == (0, "note: 2 archived\n")
    with twofold.open(filled) as store:
        (record,) = store.list()
    assert (record.id, record.text, record.tags, record.importance) == (done.lines[0], "a kettle", ("x",), 0.9)


def test_stats_count_what_the_asker_sees(run, filled):
    said = dict(run("stats", "--store", filled).cells)
    assert (said["records"], said["expired"], said["kind semantic"], said["owner global"]) == ("2", "1", "2", "2")
    assert (said["retained 0.0-0.1"], said["retained 0.9-1.0"]) == ("1", "1")
    mine = run("stats", "--user", "u1", "--store", filled, "--json").json
    assert mine["by_owner"] == {"global": 2, "personal:u1": 1}
    assert mine["oldest"] == "2020-01-01T00:00:00+00:00"
    assert mine["retention"] == [2, 0, 0, 0, 0, 0, 0, 0, 0, 1]


@pytest.fixture
def models(monkeypatch):
    """Stands in for the short form of an embedder."""
    new = FakeEmbedder(8, name="new")
    monkeypatch.setattr("twofold.cli.lifecycle.checked_embedder", lambda value: value)
    monkeypatch.setattr("twofold.store.reembedding.resolve_embedder", lambda value: {"new": new}[value])
    return new


def test_reembed_moves_over(run, filled, models):
    done = run("reembed", "new", "--store", filled)
    assert (done.code, done.cells) == (0, [["yes", "4", "0", "0"]])
    again = run("reembed", "new", "--store", filled, "--json")
    assert again.json == {"done": True, "embedded": 0, "parked": 0, "remaining": 0, "degradations": []}
    with twofold.open(filled, embedder=models) as store:
        assert store.search("kettle", mode="vector")


def test_reembed_that_is_not_done_is_1(run, filled, monkeypatch):
    def fails(texts):
        raise OSError("no such host")

    broken = CallableEmbedder(fails, name="broken")
    monkeypatch.setattr("twofold.cli.lifecycle.checked_embedder", lambda value: value)
    monkeypatch.setattr("twofold.store.reembedding.resolve_embedder", lambda value: broken)
    done = run("reembed", "broken", "--store", filled, "--json")
    assert (done.code, done.json["done"], done.json["remaining"]) == (1, False, 4)
    assert [each["code"] for each in done.json["degradations"]] == ["embedder_unreachable"]


@pytest.mark.parametrize("value", ["auto", "none", "nonsense"])
def test_reembed_wants_to_know_with_what(run, filled, value):
    done = run("reembed", value, "--store", filled)
    assert done.code == 2
    assert value in done.err


def test_a_time_to_live_may_stand_in_a_line_of_json(run, tmp_path):
    lines = json.dumps({"text": "short", "id": "a", "ttl": 60}).encode()
    assert run("add", "--jsonl", "-", "--embedder", "none", stdin=lines).code == 0
    with twofold.open("twofold.db") as store:
        assert timedelta(0) < store.get("a").expires_at - datetime.now(UTC) <= timedelta(seconds=60)
