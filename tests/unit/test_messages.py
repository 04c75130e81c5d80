"""What messages tell the user to call is there to be called."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.main import get_command

import twofold
from twofold.backends.sqlite import check
from twofold.cli.app import app

SOURCE = Path(twofold.__file__).parent
COMMANDS = set(vars(get_command(app))["commands"])
_QUOTED = re.compile(r"[`'\"]twofold ([a-z][a-z-]*)")
"""A command line in quotes: `twofold check`, 'twofold add'."""
_SHOWN = re.compile(r"\btwofold ([a-z][a-z-]*) --")
"""A command line with an option behind it."""
_CALL = re.compile(r"(?<![\w.])([a-z_]+)\(\)")


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Every string literal of a module, joined parts and docstrings too, with its line."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def named_commands(text: str) -> set[str]:
    return {*_QUOTED.findall(text), *_SHOWN.findall(text)}


def test_every_command_that_a_text_names_is_one() -> None:
    named = [
        (f"{path.relative_to(SOURCE)}:{line}", word)
        for path in sorted(SOURCE.rglob("*.py"))
        for line, text in texts(path)
        for word in named_commands(text)
    ]
    assert {"check", "add", "search"} <= {word for _, word in named}  # it finds what is there
    assert [each for each in named if each[1] not in COMMANDS] == []


@pytest.mark.parametrize("text", ["run `twofold doctor` on it", "'twofold doctor'", "call twofold doctor --store x"])
def test_the_scan_sees_a_command_however_it_is_written(text: str) -> None:
    assert named_commands(text) == {"doctor"}


def test_every_call_that_a_finding_of_check_names_is_a_method() -> None:
    docstrings = {
        ast.get_docstring(node, clean=False)
        for node in ast.walk(ast.parse(Path(check.__file__).read_text(encoding="utf-8")))
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
    }
    messages = [text for _, text in texts(Path(check.__file__)) if text not in docstrings and "SELECT" not in text]
    named = {word for text in messages for word in _CALL.findall(text)}
    assert {"reindex", "embed_pending", "add"} <= named
    assert {word for word in named if not callable(getattr(twofold.HybridStore, word, None))} == set()
