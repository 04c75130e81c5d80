from __future__ import annotations

import io
import json
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twofold.cli import render
from twofold.cli.render import one_line

HOSTILE = "[red]bold[/red]\x1b[31m\x1b]0;title\x07\x9b2J\r\n\ttab\u202egnp.exe\x00"


@given(st.text(st.characters(categories=("C", "Z", "L", "S"))))
def test_no_text_reaches_a_terminal_as_more_than_one_harmless_line(text):
    line = one_line(text)
    assert len((line + "x").splitlines()) == 1
    assert line.isascii() or not set(line) & {chr(code) for code in (*range(0x80, 0xA0), *range(0x202A, 0x202F))}
    assert not any(char < " " or char == "\x7f" for char in line)
    line.encode("utf-8")


def test_a_cut_text_has_the_length_asked_for():
    assert one_line("abcdef", 4) == "abc…"
    assert one_line("abcd", 4) == "abcd"


@pytest.fixture
def hostile(run):
    run("add", "--jsonl", "-", "--embedder", "none", stdin=json.dumps({"id": "[b]i\x1bd", "text": HOSTILE}).encode())


@pytest.mark.usefixtures("hostile")
def test_in_a_pipe_hostile_text_is_one_line_of_plain_cells(shell):
    for command in (("list",), ("search", "bold")):
        ran = shell(*command, PYTHONIOENCODING="utf-8")
        (row,) = ran.cells
        assert row[-1] == r"[red]bold[/red]\x1b[31m\x1b]0;title\x07\x9b2J tab\u202egnp.exe\x00"
        assert "\x1b" not in ran.out + ran.err


@pytest.mark.usefixtures("hostile")
def test_json_gives_the_text_back_exactly_yet_holds_nothing_that_a_terminal_obeys(shell):
    ran = shell("search", "bold", "--json")
    assert ran.json["hits"][0]["record"]["text"] == HOSTILE
    assert not set(ran.out) & {"\x1b", "\x9b", "\x07", "\u202e"}


@pytest.mark.usefixtures("hostile")
@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are of POSIX")
def test_on_a_terminal_hostile_text_stands_in_a_table_as_it_is(command):
    leader, follower = os.openpty()
    environment = {**os.environ, "TERM": "dumb", "COLUMNS": "100", "NO_COLOR": "1"}
    subprocess.run([*command, "search", "bold", "--why"], stdout=follower, env=environment, check=True, timeout=60)
    os.close(follower)
    shown = b""
    try:
        while chunk := os.read(leader, 65536):
            shown += chunk
    except OSError:
        pass  # how Linux says that the other end was closed
    os.close(leader)
    text = shown.decode()
    assert "score" in text
    assert "cosine" in text
    assert "[red]bold[/red]" in text
    assert "[b]i\\x1bd" in text
    assert "\x1b" not in text


def test_a_table_on_a_terminal_has_a_head_and_no_markup(monkeypatch, capsys):
    monkeypatch.setattr(render, "on_terminal", lambda stream=None: True)
    render.print_rows(("score", "text"), [("0.5", "[bold]x[/bold]"), ("1", "y" * 1000)], numbers=("score",))
    shown = capsys.readouterr().out
    assert "score" in shown
    assert "[bold]x[/bold]" in shown
    assert shown.count("y") == 399  # 400 characters, the last of them the mark of the cut


def test_a_reader_that_goes_away_is_no_error(run, command, tmp_path):
    lines = "\n".join(json.dumps("word " * 200) for _ in range(1000)).encode()
    run("add", "--jsonl", "-", "--embedder", "none", stdin=lines)
    process = subprocess.Popen([*command, "list"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    assert (process.wait(60), said) == (141, b"")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")  # noqa: PTH110
def test_a_full_disk_is_one_line(run, command):
    run("add", "one", "--embedder", "none")
    with open("/dev/full", "wb") as full:  # noqa: PTH123
        done = subprocess.run([*command, "list"], stdout=full, stderr=subprocess.PIPE, check=False, timeout=60)
    assert done.returncode == 2
    assert done.stderr.decode().count("\n") == 1
    assert b"No space left" in done.stderr


def test_a_narrow_encoding_is_no_error(shell, run):
    run("add", "grüße", "--embedder", "none")
    ran = shell("list", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert ran.code == 0
    assert "gr\\xfc\\xdfe" in ran.out


@pytest.mark.parametrize(
    "arguments",
    [
        ("search", "x", "--where", "{"),
        ("search", "x", "--where", "[]"),
        ("search", "x", "--where", '{"a": {"$nope": 1}}'),
        ("search", "x", "-k", "-1"),
        ("search", "x", "-k", "many"),
        ("search", "x", "--mode", "psychic"),
        ("search", "x", "--mode", "vector", "--embedder", "none"),
        ("search",),
        ("list", "--order", "nonsense"),
        ("list", "--limit", "-1"),
        ("list", "--store", "no/such/folder.db"),
        ("list", "--store", "garbage.db"),
        ("list", "--store", "."),
        ("info", "--tenant", ""),
        ("frobnicate",),
        ("demo", "--store", "twofold.db"),
        ("demo", "--modules", "no_such_module"),
    ],
)
def test_a_mistake_is_2_without_a_traceback(run, tmp_path, arguments):
    run("add", "x", "--embedder", "none")
    (tmp_path / "garbage.db").write_bytes(b"not a database, but long enough to look at " * 50)
    ran = run(*arguments)
    assert ran.code == 2
    assert ran.err
    assert "Traceback" not in ran.err
    assert ran.out == "" or arguments[0] == "demo"


def test_progress_is_silent_where_standard_error_is_no_terminal(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr", io.StringIO())
    from twofold.types import Progress

    with render.progress_bar("Adding", 10) as step:
        step(Progress(5, 10))
    assert capsys.readouterr().out == ""
