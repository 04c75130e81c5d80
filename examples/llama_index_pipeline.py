"""An ingestion pipeline while the embedding model is down; the vectors come later, and nothing is inserted twice."""

from __future__ import annotations

from llama_index.core import Document
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.node_parser import TokenTextSplitter

from llama_index.embeddings.twofold import ResilientEmbedding
from llama_index.retrievers.twofold import TwofoldRetriever
from llama_index.storage.docstore.twofold import TwofoldDocumentStore
from llama_index.vector_stores.twofold import TwofoldVectorStore
from twofold import LocalEmbedder


class Model(BaseEmbedding):
    """Stands for your embedding model: a small local one, behind a line that may be cut."""

    model_name: str = "local-by-wire"
    cut: bool = True

    def _embed(self, text: str) -> list[float]:
        if self.cut:
            raise ConnectionError("the model cannot be reached")
        return [float(number) for number in LOCAL.embed([text], "document")[0]]

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._embed(text)

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._embed(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._embed(query)


LOCAL = LocalEmbedder()
DOCUMENTS = [
    Document(id_="deploy", text="The deploy key lives in the vault. Deployments run every Friday at noon."),
    Document(id_="tea", text="Anna prefers green tea to coffee."),
]


def ingest(vector_store: TwofoldVectorStore, model: Model) -> int:
    """Run the pipeline as a new process would: it knows nothing but what is in the file."""
    pipeline = IngestionPipeline(
        transformations=[TokenTextSplitter(), ResilientEmbedding(model)],
        vector_store=vector_store,
        docstore=TwofoldDocumentStore(vector_store),
    )
    return len(pipeline.run(documents=DOCUMENTS))


model = Model()
with TwofoldVectorStore("pipeline.db", embed_model=model) as vector_store:
    print(f"The model is down. Ingested: {ingest(vector_store, model)} nodes")
    print(f"Waiting for a vector: {vector_store.store.info().pending}")

    retriever = TwofoldRetriever.over(vector_store, similarity_top_k=1)
    (found,) = retriever.retrieve("where is the deploy key?")
    assert retriever.last_result is not None
    print(f"By keyword: {found.text}  ({', '.join(each.code for each in retriever.last_result.degradations)})")
    assert found.node.ref_doc_id == "deploy"
    assert retriever.retrieve("What does she like to drink?") == []  # not a word in common

model.cut = False
with TwofoldVectorStore("pipeline.db", embed_model=model) as vector_store:
    print(f"The model is back. Ingested: {ingest(vector_store, model)} nodes")  # they have not changed
    report = vector_store.store.embed_pending()
    print(f"Vectors made: {report.embedded}, waiting: {vector_store.store.info().pending}")

    retriever = TwofoldRetriever.over(vector_store, similarity_top_k=1)
    (found,) = retriever.retrieve("What does she like to drink?")
    print(f"By meaning: {found.text}")
    assert found.node.ref_doc_id == "tea"
    assert retriever.last_result is not None
    assert not retriever.last_result.degraded
    assert len(vector_store.get_nodes()) == len(DOCUMENTS)
