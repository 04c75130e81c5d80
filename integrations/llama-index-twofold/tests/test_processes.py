"""Pipelines in processes of their own: two at once, and one that is killed."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from llama_index.vector_stores.twofold import TwofoldVectorStore
from twofold.testing import FakeEmbedder

PIPELINE = """
import sys
from llama_index.core import Document
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.node_parser import TokenTextSplitter
from llama_index.embeddings.twofold import NoEmbedding
from llama_index.storage.docstore.twofold import TwofoldDocumentStore
from llama_index.vector_stores.twofold import TwofoldVectorStore
from twofold.testing import FakeEmbedder

path, tag, first, last = sys.argv[1:]
with TwofoldVectorStore(path, embed_model=FakeEmbedder()) as vector_store:
    pipeline = IngestionPipeline(
        transformations=[TokenTextSplitter(chunk_size=60, chunk_overlap=0), NoEmbedding()],
        vector_store=vector_store,
        docstore=TwofoldDocumentStore(vector_store),
    )
    for number in range(int(first), int(last)):
        pipeline.run(documents=[Document(id_=f"{tag}{number}", text=f"zebra {tag}{number} runs over the hill " * 40)])
        print(number, flush=True)
"""


def started(path: Path, tag: str, first: int, last: int) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-c", PIPELINE, str(path), tag, str(first), str(last)]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def assert_whole(path: Path, documents: set[str]) -> None:
    """Each document is there once, all its chunks with their vectors."""
    with TwofoldVectorStore(path, embed_model=FakeEmbedder()) as vectors:
        chunks = Counter(node.ref_doc_id for node in vectors.get_nodes())
        assert set(chunks) == documents
        assert len(set(chunks.values())) == 1  # they are equally long
        assert vectors.store.info().pending == 0
        assert vectors.store.check().damage == ()


def test_two_write_at_once(tmp_path: Path) -> None:
    path = tmp_path / "notes.db"
    both = [started(path, tag, 0, 8) for tag in "ab"]
    for process in both:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
    assert_whole(path, {f"{tag}{number}" for tag in "ab" for number in range(8)})


@pytest.mark.parametrize("after", [0, 3])
def test_one_that_is_killed_is_made_up_for_by_the_next_run(tmp_path: Path, after: int) -> None:
    path = tmp_path / "notes.db"
    process = started(path, "a", 0, 10_000)
    assert process.stdout is not None
    for line in process.stdout:
        if int(line) == after:
            break
    process.kill()  # wherever it is in the documents that follow
    done = max([after, *map(int, process.stdout.read().split())])
    process.communicate(timeout=120)
    again = started(path, "a", 0, done + 3)
    _, errors = again.communicate(timeout=120)
    assert again.returncode == 0, errors
    assert_whole(path, {f"a{number}" for number in range(done + 3)})
