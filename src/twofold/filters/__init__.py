"""Which records a search may return: a frozen tree of conditions on metadata and attributes.

::

    F("lang") == "en"                       metadata; F("a.b") is nested, F(("a.b", "c")) has a dot in a key
    (A.kind == "insight") & ~F("draft").exists()
    Filter.from_dict({"lang": "en", "year": {"$gte": 2020}, "@kind": {"$in": ["insight", "episodic"]}})

Logic is two-valued: a condition on a key that is missing is false, and so ``!=``, ``not_in`` and ``~`` are true of it.
Types compare strictly: ``True`` is not 1, ``"1"`` is not 1, but 1 is 1.0, inside lists and dicts too. :func:`matches`
says in plain Python what every backend's own compiler must agree with.
"""

from twofold.filters.expression import A, F
from twofold.filters.matching import matches
from twofold.filters.nodes import (
    All,
    And,
    Any,
    Between,
    Contains,
    Eq,
    Exists,
    Filter,
    Ge,
    Gt,
    In,
    IsEmpty,
    Le,
    Like,
    Lt,
    Ne,
    Not,
    NotIn,
    Or,
    Prefix,
    TextMatch,
    TextMatchInsensitive,
)
from twofold.filters.spelling import as_filter

__all__ = [
    "A",
    "All",
    "And",
    "Any",
    "Between",
    "Contains",
    "Eq",
    "Exists",
    "F",
    "Filter",
    "Ge",
    "Gt",
    "In",
    "IsEmpty",
    "Le",
    "Like",
    "Lt",
    "Ne",
    "Not",
    "NotIn",
    "Or",
    "Prefix",
    "TextMatch",
    "TextMatchInsensitive",
    "as_filter",
    "matches",
]
