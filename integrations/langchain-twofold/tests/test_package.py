"""The package as its users meet it: README, demo, imports."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import langchain_twofold
import twofold
from langchain_twofold.demo import run

README = Path(__file__).parents[1] / "README.md"


def test_the_first_example_of_the_readme_is_true(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = README.read_text(encoding="utf-8")
    found = re.search(r"```python\n(.+?)```\s+It prints `(.+?)`", text, re.DOTALL)
    assert found is not None
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(found[1], names)
    store = names["store"]
    assert isinstance(store, twofold.HybridStore)
    store.close()
    assert capsys.readouterr().out.strip() == found[2]


def test_the_demo_answers_from_what_was_found(open_store: Callable[..., twofold.HybridStore]) -> None:
    store = open_store()
    store.add("The deploy key lives\nin the vault.", metadata={"team": "ops"})
    assert run(store, "where is the deploy key?") == 'According to note 1 of 1: "The deploy key lives in the vault."'


def test_the_demo_of_an_empty_store_makes_nothing_up(open_store: Callable[..., twofold.HybridStore]) -> None:
    assert run(open_store(), "where is the deploy key?") == "The notes say nothing of this."


def test_the_demo_is_found_by_its_entry_point() -> None:
    (point,) = entry_points(group="twofold.demo", name="LangChain")
    assert point.load() is run


def test_nothing_but_langchain_core_is_imported() -> None:
    code = (
        "import sys, langchain_twofold, langchain_twofold.demo\n"
        "unwanted = {'langchain', 'langchain_community', 'langchain_classic', 'langgraph', 'llama_index', 'openai'}\n"
        "print(sorted(unwanted & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("name", "missing", "extra"),
    [("TwofoldStore", "langgraph", "langgraph"), ("TwofoldMemoryMiddleware", "langchain", "agents")],
)
def test_without_its_extra_a_name_says_what_to_install(name: str, missing: str, extra: str) -> None:
    code = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "import langchain_twofold\n"
        f"try: langchain_twofold.{name}\n"
        "except ImportError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert f"pip install 'langchain-twofold[{extra}]'" in done.stdout


def test_there_is_no_other_name() -> None:
    with pytest.raises(AttributeError, match="TwofoldStores"):
        langchain_twofold.TwofoldStores  # noqa: B018
