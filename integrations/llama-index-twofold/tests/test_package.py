"""The package as its users meet it: README, demo, namespaces, imports."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from llama_index.core.base.base_retriever import BaseRetriever

import twofold
from llama_index.retrievers.twofold import TwofoldRetriever
from llama_index.retrievers.twofold.demo import run

ROOT = Path(__file__).parents[1]

OFFLINE_AND_KEYLESS = """
import os, socket, sys
for name in list(os.environ):
    if name.endswith("_API_KEY"):
        del os.environ[name]
def refused(*args, **kwargs):
    raise AssertionError("the network was used")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = refused
import twofold
from llama_index.retrievers.twofold import TwofoldRetriever
from llama_index.retrievers.twofold.demo import run
store = twofold.open(":memory:")
store.add("The deploy key lives in the vault.")
print(TwofoldRetriever(store).retrieve("deploy key")[0].text)
print(run(store, "deploy key"))
print(sorted(name for name in sys.modules if name.split(".")[0] in {"openai", "langchain_core"}
             or name.startswith(("llama_index.llms.openai", "llama_index.embeddings.openai"))))
from llama_index.core import Document, StorageContext, VectorStoreIndex
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.llms import MockLLM
from llama_index.embeddings.twofold import NoEmbedding
from llama_index.memory.twofold import twofold_memory
from llama_index.storage.docstore.twofold import TwofoldDocumentStore
from llama_index.vector_stores.twofold import TwofoldVectorStore
memory = twofold_memory(store, access=twofold.Access(user="ann"))
print(SimpleChatEngine.from_defaults(llm=MockLLM(), memory=memory).chat("deploy key?").response.splitlines()[0])
vector_store = TwofoldVectorStore(store, namespace=("notes",))
storage = StorageContext.from_defaults(vector_store=vector_store, docstore=TwofoldDocumentStore(vector_store))
index = VectorStoreIndex(nodes=[], storage_context=storage, embed_model=NoEmbedding())
print(index.refresh_ref_docs([Document(text="The deploy note.")]))
print(TwofoldRetriever.over(vector_store).as_tool().call(query="deploy note").content)
print(sorted(name for name in sys.modules if name.startswith(("openai", "llama_index.llms.openai"))))
"""


def test_the_first_example_of_the_readme_is_true(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = re.search(
        r"```python\n(.+?)```\s+It prints `(.+?)`", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL
    )
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
    store.add("The deploy key lives\n\nin the vault.", metadata={"team": "ops"})
    assert run(store, "where is the deploy key?") == 'According to note 1 of 1: "The deploy key lives in the vault."'


def test_the_demo_of_an_empty_store_makes_nothing_up(open_store: Callable[..., twofold.HybridStore]) -> None:
    assert run(open_store(), "where is the deploy key?") == "Empty Response"


def test_the_demo_is_found_by_its_entry_point() -> None:
    (point,) = entry_points(group="twofold.demo", name="LlamaIndex")
    assert point.load() is run


def test_no_namespace_is_claimed() -> None:
    claimed = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("llama_index/**/__init__.py"))
    kinds = ("embeddings", "memory", "retrievers", "storage/docstore", "vector_stores")
    assert claimed == [f"llama_index/{kind}/twofold/__init__.py" for kind in kinds]
    assert all((ROOT / path).with_name("py.typed").is_file() for path in claimed)


def test_the_base_class() -> None:
    assert BaseRetriever in TwofoldRetriever.__mro__


def test_20917_neither_openai_nor_a_key_nor_the_network_is_asked_for() -> None:
    """run-llama/llama_index#17434, #20917, #13793."""
    done = subprocess.run([sys.executable, "-c", OFFLINE_AND_KEYLESS], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "The deploy key lives in the vault.",
        'According to note 1 of 1: "The deploy key lives in the vault."',
        "[]",
        "system: <memory>",
        "[True]",
        "[1] The deploy note.",
        "[]",  # llama_index.core.VectorStoreIndex imports langchain_core where it is installed
    ]
