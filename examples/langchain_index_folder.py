"""Indexes a folder of notes again and again: what has not changed is left alone, what is gone is removed."""

from __future__ import annotations

from pathlib import Path

from langchain_core.documents import Document
from langchain_core.indexing import index

from langchain_twofold import TwofoldRecordManager, TwofoldVectorStore

NOTES = Path("notes")
NOTES.mkdir()
(NOTES / "deploy.txt").write_text("The deploy key lives in the vault.", encoding="utf-8")
(NOTES / "lunch.txt").write_text("Lunch is at noon.", encoding="utf-8")


def documents() -> list[Document]:
    return [
        Document(path.read_text(encoding="utf-8"), metadata={"source": path.name})
        for path in sorted(NOTES.glob("*.txt"))
    ]


with TwofoldVectorStore("index.db") as vector_store:
    manager = TwofoldRecordManager(vector_store)

    def index_again() -> dict[str, int]:
        done = index(documents(), manager, vector_store, cleanup="full", source_id_key="source", key_encoder="sha256")
        print(done)
        return {name: count for name, count in done.items() if count}  # type: ignore[misc]

    assert index_again() == {"num_added": 2}
    assert index_again() == {"num_skipped": 2}

    (NOTES / "deploy.txt").write_text("The deploy key lives in the safe.", encoding="utf-8")
    (NOTES / "lunch.txt").unlink()
    assert index_again() == {"num_added": 1, "num_deleted": 2}
    assert [each.page_content for each in vector_store.similarity_search("deploy key")] == [
        "The deploy key lives in the safe."
    ]
