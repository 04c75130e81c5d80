"""Fill in the generated parts of the documentation from the code.

A page marks such a part with a comment that says what stands there::

    <!-- generated: fields twofold.SearchParams -->
    ...
    <!-- end -->

``python docs/reference/generate.py`` writes every part anew; with ``--check`` it only says which pages are out of date,
and a test does so. The prose around the parts is written by hand.
"""

from __future__ import annotations

import ast
import functools
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from enum import Enum, StrEnum
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from typer.main import get_command

import twofold
from twofold import errors, filters
from twofold.cli.app import app

DOCS = Path(__file__).resolve().parent.parent
_PART = re.compile(r"(<!-- generated: (?P<name>\w+) ?(?P<argument>\S*) -->\n).*?(<!-- end -->)", re.DOTALL)


def generated(page: str) -> str:
    """``page`` with every generated part as the code has it now."""

    def fill(found: re.Match[str]) -> str:
        make = PARTS[found["name"]]
        body = make(found["argument"]) if found["argument"] else make()
        return f"{found[1]}\n{body.strip()}\n\n{found[4]}"

    return _PART.sub(fill, page)


def fields(path: str) -> str:
    """The table of a dataclass's fields: name, type, default and what its docstring says."""
    rows = (
        f"| `{name}` | {_code(kind)} | {'required' if default is None else _code(default)} | {_flat(doc)} |"
        for name, kind, default, doc in fields_of(resolve_name(_target(path)))
    )
    return "\n".join(("| name | type | default | meaning |", "|---|---|---|---|", *rows))


def members(path: str) -> str:
    """The table of an enum's members."""
    kind: type[StrEnum] = resolve_name(_target(path))
    rows = (f"| `{kind[name].value}` | {_flat(doc)} |" for name, _, _, doc in _documented(kind))
    return "\n".join(("| value | meaning |", "|---|---|", *rows))


def tree() -> str:
    """The tree of errors, as drawn on top of its module."""
    drawn = (errors.__doc__ or "").split("::\n", 1)[1].split("\n\nMessages", 1)[0]
    return f"```\n{textwrap.dedent(drawn).strip()}\n```"


def error_table() -> str:
    """Every error with what it means."""
    rows = (
        f"| `{name}` | {', '.join(f'`{base.__name__}`' for base in kind.__bases__)} | {_flat(inspect.getdoc(kind))} |"
        for name, kind in ((name, getattr(errors, name)) for name in errors.__all__)
    )
    return "\n".join(("| error | is also a | meaning |", "|---|---|---|", *rows))


def operators() -> str:
    """The operators of filters: how they are written with ``F`` and ``A``, how in a dict, what they mean."""
    written = {"$eq": "F(x) == v", "$ne": "F(x) != v", "$lt": "F(x) < v", "$lte": "F(x) <= v", "$gt": "F(x) > v"}
    written |= {"$gte": "F(x) >= v", "$in": "F(x).in_([v, …])", "$nin": "F(x).not_in([v, …])"}
    written |= {"$between": "F(x).between(low, high)", "$exists": "F(x).exists()", "$empty": "F(x).is_empty()"}
    rows = []
    for kind in (getattr(filters, name) for name in filters.__all__ if name != "A"):
        operator = getattr(kind, "operator", None)
        if operator is not None:
            call = (
                written.get(operator) or f"F(x).{operator.removeprefix('$')}({'[v, …]' if operator in _LISTS else 'v'})"
            )
            rows.append((list(written).index(operator) if operator in written else 99, operator, call, kind))
    rows.sort(key=lambda row: row[:2])
    lines = (f"| `{call}` | `{operator}` | {_flat(inspect.getdoc(kind))} |" for _, operator, call, kind in rows)
    return "\n".join(("| written | in a dict | true if |", "|---|---|---|", *lines))


def attributes() -> str:
    """The attributes that ``A`` names."""
    names = [name for name in dir(filters.A) if not name.startswith("_")]
    described = {name: doc for name, _, _, doc in fields_of(twofold.Record)}
    rows = (f"| `A.{name}` | {_flat(described.get(name))} |" for name in described if name in names)
    return "\n".join(("| attribute | meaning |", "|---|---|", *rows))


def function(path: str) -> str:
    """A function: its signature and its docstring."""
    return _callable(path, resolve_name(_target(path)), "##")


def methods(path: str) -> str:
    """What a class says of itself, then each of its public methods and properties. Async twins are named, not shown."""
    kind: type = resolve_name(_target(path))
    parts = [_prose(inspect.getdoc(kind) or "")]
    for name in _public_names(kind):
        member = inspect.getattr_static(kind, name)
        if name.startswith("a") and hasattr(kind, name[1:]) and inspect.iscoroutinefunction(getattr(kind, name)):
            continue
        if isinstance(member, property):
            parts.append(f"### `{name}`\n\n{_prose(inspect.getdoc(member) or '')}")
        else:
            parts.append(_callable(name, getattr(kind, name), "###"))
    return "\n\n".join(parts)


def command() -> str:
    """Each subcommand: what it does, its arguments and its options. Made of the parts, not of the help as it is laid
    out, which changes with every release of typer.
    """
    group = get_command(app)
    return "\n\n".join(_subcommand(name, each) for name, each in sorted(vars(group)["commands"].items()))


PARTS: dict[str, Callable[..., str]] = {
    "fields": fields,
    "members": members,
    "tree": tree,
    "errors": error_table,
    "operators": operators,
    "attributes": attributes,
    "function": function,
    "methods": methods,
    "command": command,
}
_LISTS = ("$any", "$all")


@functools.cache
def fields_of(kind: type) -> tuple[tuple[str, str, str | None, str], ...]:
    """Of each public field of a dataclass or NamedTuple: name, type, default as written (None: none) and docstring."""
    return tuple(each for each in _documented(kind) if each[1] and not each[0].startswith("_"))


def _documented(kind: type) -> Iterator[tuple[str, str, str | None, str]]:
    """Names with a docstring below them in the body of a class, in order."""
    body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    assert isinstance(body, ast.ClassDef)  # noqa: S101 - getsource of a class gives one
    for statement, below in zip(body.body, [*body.body[1:], None], strict=True):
        if isinstance(statement, ast.AnnAssign):
            name, type_, value = statement.target, ast.unparse(statement.annotation), statement.value
        elif isinstance(statement, ast.Assign):
            name, type_, value = statement.targets[0], "", statement.value
        else:
            continue
        text = ""
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            text = inspect.cleandoc(str(below.value.value))
        yield ast.unparse(name), type_, _default(value), text


def _default(value: ast.expr | None) -> str | None:
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "field":
        given = {keyword.arg: keyword.value for keyword in value.keywords}
        if "default_factory" in given:
            return {"dict": "{}", "list": "[]"}.get(made := ast.unparse(given["default_factory"]), f"{made}()")
        value = given.get("default")
    return None if value is None else ast.unparse(value)


def _target(path: str) -> str:
    """``twofold.store.HybridStore`` as ``twofold.store:HybridStore``."""
    return ":".join(path.rsplit(".", 1))


def _public_names(kind: type) -> list[str]:
    """In the order of the source, base classes first."""
    names: dict[str, None] = {}
    for base in reversed(kind.__mro__):
        if base.__module__.startswith("twofold"):
            names |= {name: None for name in vars(base) if not name.startswith("_")}
    return list(names)


def _callable(name: str, member: Callable[..., Any], level: str) -> str:
    signature = inspect.signature(member)
    parts: list[str] = []
    for parameter in signature.parameters.values():
        if parameter.name == "self":
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        parts.append(_parameter(parameter))
    returned = signature.return_annotation
    result = "" if inspect.isclass(member) or returned is signature.empty else f" -> {returned}"
    call = f"{name}({', '.join(parts)}){result}"
    if len(call) > 100:
        lines = "".join(f"    {part},\n" for part in parts)
        call = f"{name}(\n{lines}){result}"
    docstrings = [inspect.getdoc(member)]
    if inspect.isclass(member) and "__init__" in vars(member):
        docstrings.append(inspect.getdoc(member.__init__))
    prose = "\n\n".join(_prose(docstring) for docstring in docstrings if docstring)
    return f"{level} `{name}`\n\n```\n{call}\n```\n\n{prose}"


def _parameter(parameter: inspect.Parameter) -> str:
    shown = parameter.name if parameter.annotation is parameter.empty else f"{parameter.name}: {parameter.annotation}"
    if parameter.default is parameter.empty:
        return shown
    default = parameter.default
    return f"{shown} = {f'{type(default).__name__}.{default.name}' if isinstance(default, Enum) else repr(default)}"


def _prose(docstring: str) -> str:
    """A Google-style docstring as Markdown."""
    lines: list[str] = []
    for paragraph in _links(docstring).split("\n\n"):
        first, *rest = paragraph.split("\n")
        if first in ("Args:", "Example:", "Returns:", "Raises:") and rest:
            lines.append(f"**{first.removesuffix(':')}**\n\n{_items(rest)}")
        else:
            lines.append(paragraph)
    return "\n\n".join(lines)


def _items(lines: list[str]) -> str:
    items: list[str] = []
    for line in textwrap.dedent("\n".join(lines)).split("\n"):
        if line.startswith(" ") and items:
            items[-1] += f" {line.strip()}"
        else:
            name, colon, text = line.partition(": ")
            simple = re.fullmatch(r"[\w, ]+", name) is not None and colon
            items.append(f"`{name}`: {text}" if simple else line)
    return "\n".join(f"- {item}" for item in items)


def _links(text: str) -> str:
    """Sphinx's roles and double backticks as plain code."""
    text = re.sub(r":\w+:`~?\.?(?:[\w.]*\.)?([\w]+)`", r"`\1`", text)
    return text.replace("``", "`")


def _flat(docstring: str | None) -> str:
    """A docstring in one cell of a table."""
    text = (docstring or "").split("\n\nRaises:")[0]
    return re.sub(r"\s+", " ", _links(text)).replace("|", "\\|").strip()


def _code(text: str) -> str:
    return f"`{text}`".replace("|", "\\|") if text else ""


def _subcommand(name: str, command: Any) -> str:
    rows = []
    for parameter in command.params:
        is_option = parameter.param_type_name == "option"
        shown = ", ".join(parameter.opts) if is_option else parameter.metavar or parameter.name.upper()
        if is_option and parameter.metavar:
            shown += f" {parameter.metavar}"
        meaning = [_flat(getattr(parameter, "help", None))]
        if parameter.envvar:
            meaning.append(f"Environment: `{parameter.envvar}`.")
        if is_option and parameter.default not in (None, False, [], ()):
            meaning.append(f"Default: `{getattr(parameter.default, 'value', parameter.default)}`.")
        rows.append(f"| `{shown}` | {' '.join(meaning)} |")
    text = _links(inspect.cleandoc(command.help or ""))
    return "\n".join((f"## `twofold {name}`", "", text, "", "| argument or option | meaning |", "|---|---|", *rows))


def main(arguments: list[str]) -> int:
    """Write, or with ``--check`` only compare; 1 if a page is (or was) out of date."""
    stale = []
    for page in sorted(DOCS.rglob("*.md")):
        old = page.read_text(encoding="utf-8")
        new = generated(old)
        if new != old:
            stale.append(page)
            if "--check" not in arguments:
                page.write_text(new, encoding="utf-8")
    for page in stale:
        print(page.relative_to(DOCS), "is out of date" if "--check" in arguments else "written")
    return int(bool(stale) and "--check" in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
