from __future__ import annotations

import json
import os
import sys

import pytest

from twofold.cli.corpus import standard_library
from twofold.errors import ConfigurationError


@pytest.fixture(scope="module")
def some():
    return {
        record.id: record for record in standard_library(("json", "os", "asyncio", "math", "itertools", "concurrent"))
    }


def test_a_record_is_headed_by_its_name_and_signature_and_tells_where_it_is(some):
    record = some["json.dumps"]
    name_line, _, doc = record.text.partition("\n\n")
    assert name_line.startswith("json.dumps(obj, *, skipkeys=False")
    assert doc.startswith("Serialize ``obj`` to a JSON formatted ``str``.")
    assert (record.source, record.tags) == ("json", ("function",))
    line = record.metadata["line"]
    with open(json.__file__, encoding="utf-8") as source:  # noqa: PTH123
        assert source.readlines()[line - 1].startswith("def dumps(")


def test_names_are_those_that_programs_say(some):
    assert {"asyncio.gather", "os.path.expanduser", "concurrent.futures.as_completed"} <= set(some)
    assert not {"asyncio.tasks.gather", f"{os.path.__name__}.expanduser"} & set(some)


def test_what_is_written_in_c_is_there_too(some):
    assert some["math.gcd"].text.startswith("math.gcd(*integers)\n\n")
    assert "itertools.chain" in some
    assert "os.mkdir" in some


def test_every_type_of_object_is_there_and_nothing_private(some):
    assert {record.metadata["type"] for record in some.values()} == {"module", "class", "function", "method"}
    assert not [id_ for id_ in some if any(part.startswith("_") for part in id_.split("."))]


def test_it_is_the_same_each_time():
    modules = ("json", "math", "shutil")
    assert standard_library(modules) == standard_library(modules)
    assert [record.id for record in standard_library(modules)] == sorted(
        record.id for record in standard_library(modules)
    )


def test_a_module_below_a_package_can_be_asked_for():
    found = standard_library(("json.decoder", "os.path"))
    assert {record.source for record in found} == {"json.decoder", "os.path"}


def test_nothing_is_imported_for_what_has_source():
    before = set(sys.modules)
    standard_library(("wsgiref", "sched"))
    assert not {name for name in set(sys.modules) - before if name.startswith(("wsgiref", "sched"))}


def test_an_unknown_module_is_refused_by_name():
    with pytest.raises(ConfigurationError, match="no public module 'nonesuch'"):
        standard_library(("json", "nonesuch"))


def test_the_whole_is_several_thousand_records_each_with_its_own_id():
    records = standard_library()
    assert len({record.id for record in records}) == len(records) > 4000
    assert all(record.text and record.id for record in records)
