"""What ``import twofold`` gives is what ``__all__`` says, and every part of it is explained."""

from __future__ import annotations

import ast
import dataclasses
import importlib.metadata
import inspect
import re
import subprocess
import sys
import textwrap
import types
from collections.abc import Iterator

import pytest

import twofold
from twofold import errors
from twofold.store import Delete, Get, HybridStore, ListNamespaces, ListRecords, Search

CLASSES = [getattr(twofold, name) for name in twofold.__all__ if inspect.isclass(getattr(twofold, name))]
DATACLASSES = [
    *(kind for kind in CLASSES if dataclasses.is_dataclass(kind) and kind is not twofold.F),
    Get,
    Search,
    ListNamespaces,
    ListRecords,
    Delete,
]


def test_all_is_exactly_the_public_names() -> None:
    names = {
        name
        for name, value in vars(twofold).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType)
    }
    assert set(twofold.__all__) == names | {"__version__"}


def test_all_is_sorted_and_has_nothing_twice() -> None:
    def place(name: str) -> tuple[bool, str]:  # as ruff sorts them: constants first
        return not (len(name) > 1 and name.isupper()), name

    assert list(twofold.__all__) == sorted(set(twofold.__all__), key=place)


def test_every_error_is_public() -> None:
    assert set(errors.__all__) <= set(twofold.__all__)


def test_the_tree_on_top_of_errors_is_the_real_one() -> None:
    drawn = re.findall(r"^([ │├└─]*)(\w+Error)\b(?: \((\w+)\))?", errors.__doc__ or "", re.MULTILINE)
    path: list[str] = []
    for indent, name, builtin in drawn:
        depth = (len(indent) - 4) // 4
        path[depth:] = [name]
        kind = getattr(errors, name)
        if depth:
            assert kind.__bases__[0].__name__ == path[depth - 1]
        if builtin:
            assert builtin in {base.__name__ for base in kind.__mro__}
    assert {name for _, name, _ in drawn} == set(errors.__all__)


@pytest.mark.parametrize("name", [name for name in twofold.__all__ if name not in ("A", "PRESETS", "__version__")])
def test_a_public_name_has_a_docstring_of_its_own(name: str) -> None:
    value = getattr(twofold, name)
    assert value.__doc__
    assert not value.__doc__.startswith(f"{name}("), "that is what dataclass makes of its fields"


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_its_methods_have_docstrings(kind: type) -> None:
    bare = [
        name
        for name, member in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_") and not inspect.getdoc(member)
    ]
    assert not bare


@pytest.mark.parametrize("kind", DATACLASSES, ids=lambda kind: kind.__name__)
def test_its_fields_have_docstrings(kind: type) -> None:
    public = {field.name for field in dataclasses.fields(kind) if not field.name.startswith("_")}
    assert {name for name, _, text in documented(kind) if text} >= public


@pytest.mark.parametrize(
    "kind", [twofold.SearchParams, twofold.EmbeddingSettings, twofold.StoreSettings, twofold.NewRecord]
)
def test_a_docstring_names_the_default_that_the_code_has(kind: type) -> None:
    for name, default, text in documented(kind):
        if isinstance(default, ast.Constant) and default.value is not None:
            said = re.search(r"Default: ``(\S+?)``|Default: (\d+(?:,\d{3})+|\w+(?:\.\d+)?)", text)
            assert said, f"{name} says no default"
            assert (said[1] or said[2].replace(",", "")).strip('"').casefold() == _plain(default.value), name


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value).casefold()


def documented(kind: type) -> Iterator[tuple[str, ast.expr | None, str]]:
    """Each field's name, default and docstring, as they stand in the source."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(definition, ast.ClassDef)
    for statement, below in zip(definition.body, [*definition.body[1:], None], strict=True):
        if isinstance(statement, ast.AnnAssign):
            text = ""
            if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
                text = str(below.value.value)
            yield ast.unparse(statement.target), statement.value, " ".join(text.split())


@pytest.mark.parametrize(
    ("operation", "method"),
    [
        (Search, HybridStore.search),
        (ListRecords, HybridStore.list),
        (ListNamespaces, HybridStore.namespaces),
        (Get, HybridStore.get),
    ],
)
def test_an_operation_has_the_defaults_of_its_method(operation: type, method: types.FunctionType) -> None:
    parameters = inspect.signature(method).parameters
    for field in dataclasses.fields(operation):
        assert field.name in parameters
        if field.default is not dataclasses.MISSING:
            assert field.default == parameters[field.name].default, field.name


def test_every_call_has_an_async_twin() -> None:
    """Those that only hand something out need none."""
    calls = {name for name, _ in inspect.getmembers(HybridStore, inspect.isfunction) if not name.startswith("_")}
    asynchronous = {name for name in calls if inspect.iscoroutinefunction(getattr(HybridStore, name))}
    plain = calls - asynchronous - {"view"}
    assert {f"a{name}" for name in plain} == asynchronous


def test_the_version_is_that_of_the_distribution() -> None:
    assert twofold.__version__ == importlib.metadata.version("twofold")


def test_importing_it_does_nothing_else() -> None:
    """No optional library, no framework, no thread, no logging set up."""
    script = """
import sys, threading, logging
import twofold
heavy = {"wordllama", "tokenizers", "ollama", "httpx", "faiss", "pysqlite3", "typer", "rich"}
heavy |= {"langchain_core", "llama_index"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
assert threading.active_count() == 1
assert not logging.getLogger().handlers
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
