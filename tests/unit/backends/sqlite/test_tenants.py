from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twofold.backends.sqlite.tenants import tenant_file_name
from twofold.errors import ConfigurationError

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200)


@given(TEXTS, TEXTS)
def test_no_two_tenants_share_a_name_whatever_its_case(one, other):
    assert (tenant_file_name(one).lower() == tenant_file_name(other).lower()) == (one == other)


@given(TEXTS)
def test_a_name_is_plain_short_and_stays_in_its_folder(tenant):
    name = tenant_file_name(tenant)
    assert len(name) <= 103
    assert name.endswith(".db")
    assert set(name[:-3]) <= set("abcdefghijklmnopqrstuvwxyz0123456789-_")
    assert not name.startswith("-")


@pytest.mark.parametrize(
    ("tenant", "name"),
    [
        ("acme", "acme.db"),
        ("acme-2", "acme-2.db"),
        ("Acme", "_41cme.db"),
        ("_41cme", "_5f41cme.db"),
        ("../x", "_2e_2e_2fx.db"),
        ("é", "_c3_a9.db"),
        ("e\u0301", "e_cc_81.db"),
        ("a\0b", "a_00b.db"),
        ("-rf", "_2drf.db"),
        ("nul", "_6eul.db"),
        ("com1", "_63om1.db"),
    ],
)
def test_examples(tenant, name):
    assert tenant_file_name(tenant) == name


def test_long_names_that_begin_alike_differ():
    one, other = tenant_file_name("a" * 5000 + "1"), tenant_file_name("a" * 5000 + "2")
    assert one != other
    assert one[:34] == other[:34] == "a" * 32 + "__"


@pytest.mark.parametrize("tenant", ["", "\ud800", 7, b"acme"])
def test_what_is_no_tenant(tenant):
    with pytest.raises(ConfigurationError, match="tenant"):
        tenant_file_name(tenant)
