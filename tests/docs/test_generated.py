"""The generated parts of the documentation are those of the code as it is."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

import twofold
from twofold import filters

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = sorted(page for page in DOCS.rglob("*.md") if "<!-- generated:" in page.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", DOCS / "reference" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_a_page_is_up_to_date(page: Path, generate: ModuleType) -> None:
    text = page.read_text(encoding="utf-8")
    assert text == generate.generated(text), "run: python docs/reference/generate.py"
    assert text.count("<!-- generated:") == len(generate._PART.findall(text)), "a part is misspelt or has no end"


def test_pages_with_generated_parts_are_found() -> None:
    assert {page.name for page in PAGES} >= {"settings.md", "errors.md", "api.md", "command.md", "data-model.md"}


def test_every_public_name_stands_in_the_reference() -> None:
    reference = "\n".join(page.read_text(encoding="utf-8") for page in (DOCS / "reference").glob("*.md"))
    missing = [name for name in twofold.__all__ if not re.search(rf"\b{name}\b", reference)]
    assert not missing


def test_every_operator_stands_in_the_reference() -> None:
    page = (DOCS / "reference" / "filters.md").read_text(encoding="utf-8")
    nodes = [getattr(filters, name) for name in filters.__all__ if name != "A"]
    operators = [node.operator for node in nodes if hasattr(node, "operator")]
    assert operators
    assert [operator for operator in operators if f"`{operator}`" not in page] == []
