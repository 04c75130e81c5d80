"""JSON that comes back exactly, and the quick way to write a dict of texts."""

import pytest

from twofold.types.json import dump_json, dump_texts


@pytest.mark.parametrize(
    "texts",
    [
        {},
        {"text": "plain"},
        {"a": 'quote " and \\ and \n and \x00 and \x1f', "b": "é 漢 \U0001f600 \ud800 \u2028"},
        {"a": ("one part", 'quote " \n', "\ud800"), "b": (), "c": "x"},
    ],
)
def test_texts_are_written_as_any_json_is(texts):
    assert dump_texts(texts) == dump_json(texts)
