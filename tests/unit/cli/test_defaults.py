"""What the command takes where nothing is said is what the store takes."""

from __future__ import annotations

import inspect

import pytest
from typer.main import get_command

from twofold import HybridStore, SearchParams, StoreSettings
from twofold.cli.app import app

COMMANDS = vars(get_command(app))["commands"]
OF_THE_STORE = [
    ("search", "k", HybridStore.search, "k"),
    ("search", "offset", HybridStore.search, "offset"),
    ("search", "mode", HybridStore.search, "mode"),
    ("search", "index", StoreSettings, "index"),
    ("add", "index", StoreSettings, "index"),
    ("info", "index", StoreSettings, "index"),
    ("embed-pending", "index", StoreSettings, "index"),
    ("embed-pending", "retry_parked", HybridStore.embed_pending, "retry_parked"),
    ("list", "limit", HybridStore.list, "limit"),
    ("link", "kind", HybridStore.link, "kind"),
    ("link", "weight", HybridStore.link, "weight"),
    ("neighbors", "hops", HybridStore.neighbors, "hops"),
    ("neighbors", "limit", HybridStore.neighbors, "limit"),
    ("neighbors", "direction", HybridStore.neighbors, "direction"),
]


@pytest.mark.parametrize(("command", "option", "function", "parameter"), OF_THE_STORE)
def test_an_option_has_the_default_of_the_store(command, option, function, parameter):
    (found,) = (each for each in COMMANDS[command].params if each.name == option)
    assert found.default == inspect.signature(function).parameters[parameter].default


@pytest.mark.parametrize(
    ("option", "said"),
    [("expand", f"Default: the preset's, else {SearchParams().expand}."), ("hops", f"Default: {SearchParams().hops}.")],
)
def test_what_a_preset_may_set_is_left_to_the_settings_of_a_search(option, said):
    (found,) = (each for each in COMMANDS["search"].params if each.name == option)
    assert found.default is None
    assert found.help.endswith(said)


def test_help_tells_every_way_to_exit_with_1(run):
    said = " ".join(run("--help").out.split())
    for command in ("search", "neighbors", "check", "embed-pending"):
        assert command in said.partition("Exit codes:")[2].partition(" 2 ")[0]
