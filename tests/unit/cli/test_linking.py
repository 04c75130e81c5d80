from __future__ import annotations

import pytest
from typer.testing import CliRunner

from twofold.cli.app import app


@pytest.fixture
def notes(run):
    for id_, text in (("hit", "a red kettle"), ("near", "a pear"), ("far", "a fig")):
        run("add", text, "--id", id_, "--embedder", "none")
    run("link", "hit", "near", "--weight", "0.5")
    run("link", "far", "near", "--kind", "mine")
    return run


@pytest.mark.parametrize("name", ["link", "unlink", "neighbors"])
def test_help_documents_the_json(name):
    assert "--json:" in CliRunner().invoke(app, [name, "--help"]).output


def test_a_link_is_made_changed_and_removed(run):
    for id_ in ("a", "b"):
        run("add", f"text {id_}", "--id", id_, "--embedder", "none")
    made = run("link", "a", "b")
    assert (made.code, made.out, made.err) == (0, "", "note: linked\n")
    assert run("link", "a", "b", "--weight", "0.5", "--json").json == {"new": False}
    assert run("link", "a", "b", "--kind", "mine", "--json").json == {"new": True}
    assert run("unlink", "a", "b", "--kind", "mine").err == "note: 1 removed\n"
    assert run("unlink", "a", "b", "--json").json == {"removed": 1}
    assert run("neighbors", "a").code == 1


def test_neighbors_show_the_way(notes):
    found = notes("neighbors", "hit", "--hops", "2")
    assert found.code == 0
    assert found.cells == [
        ["0.250", "hit -[related 0.5]-> near", "near", "a pear"],
        ["0.125", "hit -[related 0.5]-> near, near <-[mine 1]- far", "far", "a fig"],
    ]
    (near,) = notes("neighbors", "hit", "--json").json["neighbors"]
    assert (near["score"], near["record"]["id"]) == (0.25, "near")
    assert near["path"] == [{"start": "hit", "end": "near", "kind": "related", "weight": 0.5, "forward": True}]
    assert notes("neighbors", "hit", "--direction", "in").err == "note: nothing is linked to it\n"
    assert notes("neighbors", "hit", "--kind", "mine", "--json").json == {"neighbors": []}
    where = '{"@id": "far"}'
    assert notes("neighbors", "near", "--where", where, "--limit", "1").cells[0][2] == "far"


def test_a_search_shows_what_is_linked_if_asked(notes):
    plain = notes("search", "kettle")
    assert plain.cells == [["1.000", "hit", "a red kettle"]]
    assert "linked" not in notes("search", "kettle", "--json").json
    found = notes("search", "kettle", "--expand", "1")
    value = 0.5 * 0.5
    assert found.cells == [
        ["1.000", "-", "hit", "a red kettle"],
        [f"{value / (1 + value):.3f}", "hit -[related 0.5]-> near", "near", "a pear"],
    ]
    linked = notes("search", "kettle", "--expand", "5", "--hops", "2", "--json").json["linked"]
    assert [each["record"]["id"] for each in linked] == ["near", "far"]
    assert [len(each["path"]) for each in linked] == [1, 2]
    assert len(notes("search", "kettle", "--expand", "1", "--why").cells[1]) == 8


def test_a_search_counts_uses_if_asked(notes):
    where = '{"@access_count": {"$gte": 1}}'
    notes("search", "kettle", "--expand", "1")
    assert notes("list", "--where", where).out == ""
    notes("search", "kettle", "--expand", "1", "--touch")
    assert {row[0] for row in notes("list", "--where", where).cells} == {"hit", "near"}


def test_namespaces_and_who_asks(run):
    run("add", "mine", "--id", "a", "--namespace", "n/m", "--user", "u1", "--embedder", "none")
    run("add", "shared", "--id", "g", "--embedder", "none")
    made = run("link", "a", "g", "--namespace", "n/m", "--target-namespace", "", "--user", "u1")
    assert made.code == 0, "an empty namespace is the root"
    assert run("unlink", "a", "g", "--namespace", "n/m", "--target-namespace", "", "--user", "u1", "--json").json == {
        "removed": 1
    }
    run("add", "mine too", "--id", "b", "--namespace", "n", "--user", "u1", "--embedder", "none")
    assert run("link", "a", "b", "--namespace", "n/m", "--target-namespace", "n", "--user", "u1").code == 0
    assert run("neighbors", "a", "--namespace", "n/m", "--user", "u1").cells[0][2] == "b"
    hidden = run("neighbors", "a", "--namespace", "n/m", "--user", "u2")
    assert (hidden.code, hidden.out) == (2, "")
    assert "there is no record 'a' here that this access may see" in hidden.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("search", "x", "--hops", "2"), "--expand"),
        (("search", "x", "--expand", "101"), "expand"),
        (("link", "hit", "hit"), "one record"),
        (("link", "hit", "near", "--weight", "2"), "weight"),
        (("link", "hit", "nothing"), "no record"),
        (("neighbors", "hit", "--hops", "9"), "hops"),
    ],
)
def test_a_mistake_is_said_in_one_line(notes, arguments, said):
    result = notes(*arguments)
    assert (result.code, result.out) == (2, "")
    assert said in result.err
    assert result.err.count("\n") == 1
