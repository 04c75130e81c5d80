"""Every example runs from an empty folder and does what its first line says; what it prints is not empty."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.py"))
NEEDS = {
    "import langchain": "langchain_core",
    "from langchain": "langchain_core",
    "from langchain.agents": "langchain",
    "from langgraph": "langgraph",
    "from llama_index": "llama_index",
    'embedder="local"': "wordllama",
    'embed_model="local"': "wordllama",
    "LocalEmbedder()": "wordllama",
}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_an_example_runs(example: Path, tmp_path: Path) -> None:
    code = example.read_text(encoding="utf-8")
    for clue, module in NEEDS.items():
        if clue in code and importlib.util.find_spec(module) is None:
            pytest.skip(f"it needs {module}, which is not installed")
    done = subprocess.run(
        [sys.executable, "-X", "utf8", "-W", "error::ResourceWarning", example],
        cwd=tmp_path,
        check=False,
        capture_output=True,
        text=True,
        encoding="utf-8",
        stdin=subprocess.DEVNULL,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert "Exception ignored" not in done.stderr, done.stderr


def test_there_are_examples() -> None:
    assert {example.stem for example in EXAMPLES} >= {
        "agent_memory",
        "plain",
        "scopes",
        "langchain_chain",
        "llama_index_engine",
        "llama_index_pipeline",
        "llama_index_agent_memory",
        "llama_index_fusion",
        "own_vectors",
        "keyword_only",
    }
