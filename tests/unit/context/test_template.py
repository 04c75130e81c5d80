from __future__ import annotations

import inspect

import pytest

from twofold import ConfigurationError, ContextTemplate
from twofold.context import as_template
from twofold.context.template import DEFAULT_SYSTEM, SLOTS

VALUES = {"memories": "<m>", "now": "2026-03-02 09:05", "weekday": "Monday", "zone": "UTC"}


def test_slots_are_filled():
    assert ContextTemplate("{now}|{weekday}|{zone}|{memories}|{now}").filled(VALUES) == (
        "2026-03-02 09:05|Monday|UTC|<m>|2026-03-02 09:05"
    )


def test_what_fills_a_slot_is_no_template():
    filled = ContextTemplate("{now} {memories}").filled({**VALUES, "memories": "{now} {{x}} {memories} {0}"})
    assert filled == "2026-03-02 09:05 {now} {{x}} {memories} {0}"


def test_without_its_slot_the_block_comes_last():
    assert ContextTemplate("You are a butler.").filled(VALUES) == "You are a butler.\n\n<m>"


@pytest.mark.parametrize(
    ("system", "filled"),
    [
        ("A.", "A."),
        ("A.\n\n{memories}", "A."),
        ("A.\n\n{memories}\n\nB.", "A.\n\nB."),
        ("{memories}\n\nB.", "B."),
        ("{memories}", ""),
    ],
)
def test_with_no_memories_there_is_no_gap(system, filled):
    assert ContextTemplate(system).filled({**VALUES, "memories": ""}) == filled


def test_doubled_braces_are_braces():
    assert ContextTemplate('Answer as {{"a": {now}}}.').filled({**VALUES, "memories": ""}) == (
        'Answer as {"a": 2026-03-02 09:05}.'
    )


@pytest.mark.parametrize(
    ("system", "said"),
    [
        ("{memory}", r"no slot \{memory\}, only \{memories\}, \{now\}, \{weekday\}, \{zone\}"),
        ("{}", "no slot"),
        ("{0}", "no slot"),
        ("{now.__class__}", "no slot"),
        ("{memories[0]}", "no slot"),
        ("{now!r}", "its name alone"),
        ("{now:%Y}", "its name alone"),
        ("{memories} {memories}", "names {memories} once, not 2 times"),
        ("a { b", "single brace"),
        ("a } b", "single brace"),
    ],
)
def test_a_slot_that_there_is_not_is_refused_when_the_template_is_made(system, said):
    with pytest.raises(ConfigurationError, match=said):
        ContextTemplate(system)


@pytest.mark.parametrize("field", ["system", "memories_heading", "messages_heading"])
def test_its_parts_are_text(field):
    with pytest.raises(ConfigurationError, match=f"{field} is text, not NoneType"):
        ContextTemplate(**{field: None})


def test_what_may_be_given_for_one():
    own = ContextTemplate("x")
    assert as_template(own) is own
    assert as_template("x") == own
    assert as_template(None).system == DEFAULT_SYSTEM
    with pytest.raises(ConfigurationError, match="template is a ContextTemplate"):
        as_template(3)


def test_the_docstring_names_every_slot():
    source = inspect.getsource(ContextTemplate)
    assert all(f"``{{{slot}}}``" in source for slot in SLOTS)
