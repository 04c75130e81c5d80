"""Namespaces as LangGraph has them: what they may be, and which a listing is asked for."""

from __future__ import annotations

from collections.abc import Sequence

from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    SearchOp,
)

__all__ = ["checked_namespaces", "matching"]


def checked_namespaces(op: Op) -> None:
    """Nothing, if the namespaces in ``op`` are ones: ``batch`` is also called with what no method has looked at.

    Raises:
        InvalidNamespaceError: one is not.
    """
    if isinstance(op, GetOp):
        _checked(op.namespace)
    elif isinstance(op, PutOp):
        _checked(op.namespace)
        if not op.namespace:
            raise InvalidNamespaceError("an item is in a namespace, e.g. ('users', 'u1'), not in ()")
    elif isinstance(op, SearchOp):
        _checked(op.namespace_prefix)
    elif isinstance(op, ListNamespacesOp):
        for condition in op.match_conditions or ():
            _checked(condition.path)


def _checked(namespace: object) -> None:
    if type(namespace) is not tuple and (isinstance(namespace, str) or not isinstance(namespace, Sequence)):
        raise InvalidNamespaceError(f"a namespace is a tuple of words, e.g. ('users', 'u1'), not {namespace!r}")
    for label in namespace:
        if not isinstance(label, str) or not label or "." in label or "\0" in label:
            raise InvalidNamespaceError(f"a word of a namespace is text, not empty, without '.' and NUL, not {label!r}")


def matching(op: ListNamespacesOp, found: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """What ``op`` asks for, of what the store gave: all namespaces where conditions of a kind are several."""
    conditions = op.match_conditions or ()
    kinds = [condition.match_type for condition in conditions]
    if len(set(kinds)) == len(kinds):
        return list(found)
    fitting = [path for path in found if all(_fits(path, condition) for condition in conditions)]
    cut = sorted({path[: op.max_depth] for path in fitting})
    return cut[op.offset : op.offset + op.limit]


def _fits(path: tuple[str, ...], condition: MatchCondition) -> bool:
    wanted = tuple(condition.path)
    if len(wanted) > len(path):
        return False
    words = path[: len(wanted)] if condition.match_type == "prefix" else path[len(path) - len(wanted) :]
    return all(want in ("*", word) for word, want in zip(words, wanted, strict=True))
