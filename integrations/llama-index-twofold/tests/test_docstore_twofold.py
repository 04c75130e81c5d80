"""``TwofoldDocumentStore``: refreshing, and pipelines that run again."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest
from llama_index.core import Document, StorageContext, VectorStoreIndex
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.node_parser import TokenTextSplitter
from llama_index.core.postprocessor import PrevNextNodePostprocessor
from llama_index.core.schema import BaseNode, NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode
from llama_index.core.storage.docstore import BaseDocumentStore

import twofold
from llama_index.embeddings.twofold import NoEmbedding
from llama_index.retrievers.twofold import TwofoldRetriever
from llama_index.storage.docstore.twofold import TwofoldDocumentStore
from llama_index.vector_stores.twofold import TwofoldVectorStore
from twofold import Access, HybridStore

OpenStore = Callable[..., HybridStore]

LONG = " ".join(f"Sentence number {number} tells of the deploy key." for number in range(20))


def document(id_: str, text: str, **metadata: Any) -> Document:
    return Document(id_=id_, text=text, metadata=metadata)


def chunks(vector_store: TwofoldVectorStore) -> dict[str, list[str]]:
    """By document, the texts of its nodes."""
    found: dict[str, list[str]] = {}
    for node in vector_store.get_nodes():
        assert node.ref_doc_id is not None
        found.setdefault(node.ref_doc_id, []).append(node.get_content())
    return found


def sentences(texts: list[str]) -> list[int]:
    """The numbers of the sentences of ``LONG`` in ``texts``."""
    return sorted(int(number) for text in texts for number in re.findall(r"\d+", text))


def index_of(vector_store: TwofoldVectorStore) -> VectorStoreIndex:
    """As in a new process: nothing is known but what is in the file."""
    storage = StorageContext.from_defaults(vector_store=vector_store, docstore=TwofoldDocumentStore(vector_store))
    return VectorStoreIndex(
        nodes=[],
        storage_context=storage,
        embed_model=NoEmbedding(),
        transformations=[TokenTextSplitter(chunk_size=60, chunk_overlap=0)],
    )


def pipeline_of(vector_store: TwofoldVectorStore, strategy: DocstoreStrategy) -> IngestionPipeline:
    return IngestionPipeline(
        transformations=[TokenTextSplitter(chunk_size=60, chunk_overlap=0), NoEmbedding()],
        vector_store=vector_store,
        docstore=TwofoldDocumentStore(vector_store),
        docstore_strategy=strategy,
    )


@pytest.fixture
def vector_store() -> Iterator[TwofoldVectorStore]:
    with TwofoldVectorStore(":memory:") as opened:
        yield opened


def test_the_base_class() -> None:
    assert BaseDocumentStore in TwofoldDocumentStore.__mro__


# Refreshing


@pytest.mark.parametrize("calls", ["sync", "async"])
async def test_8832_a_second_refresh_leaves_one_copy(vector_store: TwofoldVectorStore, calls: str) -> None:
    """run-llama/llama_index#8832, #9172, #14057, #6186, #16833; #14931: all chunks of a document."""

    async def refresh(*documents: Document) -> list[bool]:
        index = index_of(vector_store)
        if calls == "sync":
            return index.refresh_ref_docs(list(documents))
        return await index.arefresh_ref_docs(list(documents))

    long, short = document("long", LONG), document("short", "Lunch is at noon.", page=1)
    assert await refresh(long, short) == [True, True]
    first = chunks(vector_store)
    assert len(first["long"]) > 3
    assert first["short"] == ["Lunch is at noon."]
    assert await refresh(long, short) == [False, False]
    assert chunks(vector_store) == first
    assert await refresh(document("long", "Now it is short."), short, document("new", "Tea.")) == [True, False, True]
    assert chunks(vector_store) == {"long": ["Now it is short."], "short": first["short"], "new": ["Tea."]}
    assert await refresh(document("short", "Lunch is at noon.", page=2)) == [True]
    assert await refresh(document("short", "Lunch is at noon.", page=2)) == [False]
    assert len(chunks(vector_store)["short"]) == 1
    assert len(TwofoldRetriever.over(vector_store, similarity_top_k=9).retrieve("lunch")) == 1


SCRIPT = """
import sys
from llama_index.core import Document, StorageContext, VectorStoreIndex
from llama_index.embeddings.twofold import NoEmbedding
from llama_index.storage.docstore.twofold import TwofoldDocumentStore
from llama_index.vector_stores.twofold import TwofoldVectorStore
with TwofoldVectorStore(sys.argv[1]) as vector_store:
    storage = StorageContext.from_defaults(vector_store=vector_store, docstore=TwofoldDocumentStore(vector_store))
    index = VectorStoreIndex(nodes=[], storage_context=storage, embed_model=NoEmbedding())
    print(index.refresh_ref_docs([Document(id_="d", text="The deploy key.")]), len(vector_store.get_nodes()))
"""


def test_in_another_process(tmp_path: Any) -> None:
    printed = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT, str(tmp_path / "notes.db")], capture_output=True, text=True, check=True
        ).stdout.strip()
        for _ in range(2)
    ]
    assert printed == ["[True] 1", "[False] 1"]


def test_a_document_whose_insertion_broke_off_is_inserted_anew(open_store: OpenStore) -> None:
    store = open_store(embedder=None)

    class Breaking(TwofoldVectorStore):
        left: int = 3

        def add(self, nodes: Any, **kwargs: Any) -> list[str]:
            self.left -= 1
            if self.left < 0:
                raise ConnectionError("the power went off")
            return super().add(nodes, **kwargs)

    index = index_of(Breaking(store))
    index._insert_batch_size = 1
    with pytest.raises(ConnectionError):
        index.refresh_ref_docs([document("long", LONG)])
    whole = TwofoldVectorStore(store)
    assert len(chunks(whole)["long"]) == 3
    assert index_of(whole).refresh_ref_docs([document("long", LONG)]) == [True]
    assert sentences(chunks(whole)["long"]) == list(range(20))
    assert index_of(whole).refresh_ref_docs([document("long", LONG)]) == [False]


def test_what_was_deleted_is_inserted_again(vector_store: TwofoldVectorStore) -> None:
    documents = [document("one", "The deploy key."), document("two", "Lunch.")]
    index_of(vector_store).refresh_ref_docs(documents)
    vector_store.delete("one")
    index_of(vector_store).delete_ref_doc("two", delete_from_docstore=True)
    assert chunks(vector_store) == {}
    assert index_of(vector_store).refresh_ref_docs(documents) == [True, True]
    assert index_of(vector_store).refresh_ref_docs(documents) == [False, False]
    assert chunks(vector_store) == {"one": ["The deploy key."], "two": ["Lunch."]}


def test_nodes_of_before_the_document_store_are_replaced(vector_store: TwofoldVectorStore) -> None:
    index = VectorStoreIndex.from_vector_store(vector_store, embed_model=NoEmbedding())
    index.insert(document("one", "The deploy key."))
    assert index_of(vector_store).refresh_ref_docs([document("one", "The deploy key.")]) == [True]
    assert index_of(vector_store).refresh_ref_docs([document("one", "The deploy key.")]) == [False]
    assert chunks(vector_store) == {"one": ["The deploy key."]}


def test_users_and_namespaces_have_documents_of_their_own(open_store: OpenStore) -> None:
    store = open_store(embedder=None)
    stores = [
        TwofoldVectorStore(store, access=Access(user=user), namespace=namespace)
        for user in ("ann", "ben")
        for namespace in ((), ("notes",))
    ]
    for number, vector_store in enumerate(stores):
        assert index_of(vector_store).refresh_ref_docs([document("one", f"The deploy key {number}.")]) == [True]
    for number, vector_store in enumerate(stores):
        assert index_of(vector_store).refresh_ref_docs([document("one", f"The deploy key {number}.")]) == [False]
        assert chunks(vector_store) == {"one": [f"The deploy key {number}."]}
        assert list(TwofoldDocumentStore(vector_store).get_all_document_hashes().values()) == ["one"]
    stores[0].delete("one")
    assert [TwofoldDocumentStore(each).get_document_hash("one") is None for each in stores] == [True] + [False] * 3


# Pipelines


@pytest.mark.parametrize("calls", ["sync", "async"])
async def test_13239_a_pipeline_that_runs_again(vector_store: TwofoldVectorStore, calls: str) -> None:
    """run-llama/llama_index#13239, #14931, #22133."""

    async def run(strategy: DocstoreStrategy, *documents: Document) -> int:
        pipeline = pipeline_of(vector_store, strategy)
        made = (
            pipeline.run(documents=list(documents))
            if calls == "sync"
            else await pipeline.arun(documents=list(documents))
        )
        return len(made)

    long, short = document("long", LONG), document("short", "Lunch is at noon.")
    upserts, and_delete = DocstoreStrategy.UPSERTS, DocstoreStrategy.UPSERTS_AND_DELETE
    assert await run(upserts, long, short) > 4
    first = chunks(vector_store)
    assert sentences(first["long"]) == list(range(20))
    assert await run(upserts, long, short) == 0
    assert chunks(vector_store) == first
    assert await run(upserts, document("short", "Lunch is at one.")) == 1
    assert chunks(vector_store) == {**first, "short": ["Lunch is at one."]}
    assert await run(and_delete, document("short", "Lunch is at one."), document("new", "Tea.")) == 1
    assert chunks(vector_store) == {"short": ["Lunch is at one."], "new": ["Tea."]}
    assert await run(DocstoreStrategy.DUPLICATES_ONLY, document("copy", "Tea."), document("other", "Milk.")) == 1
    assert set(chunks(vector_store)) == {"short", "new", "other"}


def test_nodes_without_a_document_are_their_own(vector_store: TwofoldVectorStore) -> None:
    for text, count in (("tea", 1), ("tea", 0), ("milk", 1), ("milk", 0)):
        made = pipeline_of(vector_store, DocstoreStrategy.UPSERTS).run(nodes=[TextNode(id_="n", text=text)])
        assert len(made) == count
    assert len(vector_store.get_nodes()) == 1


# What it answers


async def test_it_answers_of_nodes_and_documents(vector_store: TwofoldVectorStore) -> None:
    docstore = TwofoldDocumentStore(vector_store)
    index_of(vector_store).insert(document("long", LONG, page=1))
    nodes = vector_store.get_nodes()
    ids = [node.node_id for node in nodes]
    assert set(docstore.docs) == set(ids)
    assert docstore.get_nodes(ids) == await docstore.aget_nodes(ids) == nodes
    assert docstore.get_document(ids[0]) == await docstore.aget_document(ids[0]) == nodes[0]
    assert docstore.document_exists(ids[0]) is await docstore.adocument_exists(ids[0]) is True
    assert docstore.document_exists("none") is await docstore.adocument_exists("none") is False
    info = docstore.get_ref_doc_info("long")
    assert info is not None
    assert info == await docstore.aget_ref_doc_info("long")
    assert (set(info.node_ids), info.metadata) == (set(ids), {"page": 1})
    assert docstore.get_all_ref_doc_info() == await docstore.aget_all_ref_doc_info() == {"long": info}
    assert docstore.get_ref_doc_info("none") is await docstore.aget_ref_doc_info("none") is None
    assert docstore.get_document_hash("none") is await docstore.aget_document_hash("none") is None
    assert docstore.get_document_hash("long") == document("long", LONG, page=1).hash
    assert docstore.get_all_document_hashes() == {document("long", LONG, page=1).hash: "long"}
    docstore.add_documents(nodes)
    await docstore.async_add_documents(nodes)
    assert vector_store.get_nodes() == nodes


async def test_what_is_not_there_is_an_error_if_asked_for(vector_store: TwofoldVectorStore) -> None:
    docstore = TwofoldDocumentStore(vector_store)
    assert docstore.get_document("none", raise_error=False) is None
    docstore.delete_document("none", raise_error=False)
    docstore.delete_ref_doc("none", raise_error=False)
    for call in (docstore.get_document, docstore.delete_document, docstore.delete_ref_doc):
        with pytest.raises(ValueError, match="none not found"):
            call("none")
    for acall in (docstore.aget_document, docstore.adelete_document, docstore.adelete_ref_doc):
        with pytest.raises(ValueError, match="none not found"):
            await acall("none")
    vector_store.add([TextNode(id_="a", text="a"), TextNode(id_="b", text="b")])
    docstore.delete_document("a")
    await docstore.adelete_document("b")
    assert docstore.docs == {}


def test_23199_neighbours_come_from_it(vector_store: TwofoldVectorStore) -> None:
    nodes: list[BaseNode] = [TextNode(id_=str(number), text=f"part {number}") for number in range(4)]
    for before, after in pairwise(nodes):
        before.relationships[NodeRelationship.NEXT] = RelatedNodeInfo(node_id=after.node_id)
        after.relationships[NodeRelationship.PREVIOUS] = RelatedNodeInfo(node_id=before.node_id)
    vector_store.add(nodes)
    found = TwofoldRetriever.over(vector_store, similarity_top_k=1, mode="keyword").retrieve("2")
    both = PrevNextNodePostprocessor(docstore=TwofoldDocumentStore(vector_store), num_nodes=1, mode="both")
    shown: list[NodeWithScore] = both.postprocess_nodes(found)
    assert [each.node_id for each in shown] == ["1", "2", "3"]


def test_a_hash_that_is_set_again_takes_the_place_of_the_first(vector_store: TwofoldVectorStore) -> None:
    docstore = TwofoldDocumentStore(vector_store)
    vector_store.add([TextNode(id_='a"\N{SNOWMAN}', text="a")])
    for doc_hash in ("one", "two", "two", "one"):
        docstore.set_document_hash('a"\N{SNOWMAN}', doc_hash)
        assert docstore.get_document_hash('a"\N{SNOWMAN}') == doc_hash
        assert docstore.get_all_document_hashes() == {doc_hash: 'a"\N{SNOWMAN}'}
        assert len(vector_store.store.marks.list(docstore._marked)) == 1
    docstore.set_document_hashes({})


def test_another_vector_store_is_refused() -> None:
    with pytest.raises(twofold.ConfigurationError, match="vector_store"):
        TwofoldDocumentStore("notes.db")  # type: ignore[arg-type]
