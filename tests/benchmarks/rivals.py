"""What people use today, over the same data. Needs ``pip install -r tests/benchmarks/requirements.txt``."""

from __future__ import annotations

import warnings
from collections.abc import Callable

from tests.benchmarks.data import Corpus

__all__ = ["ensemble_retriever"]

_BATCH = 1000


def ensemble_retriever(corpus: Corpus, k: int) -> Callable[[int], list[str]]:
    """LangChain's EnsembleRetriever over BM25Retriever and FAISS: gives the texts found for a query's number."""
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    from langchain_classic.retrievers import EnsembleRetriever
    from langchain_community.retrievers import BM25Retriever
    from langchain_community.vectorstores import FAISS
    from langchain_core.embeddings import Embeddings

    class Prepared(Embeddings):
        """Looks vectors up, so that no model is measured."""

        def __init__(self) -> None:
            self.by_query: dict[str, list[float]] = dict(
                zip(corpus.queries, corpus.query_vectors.tolist(), strict=True)
            )

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            raise NotImplementedError

        def embed_query(self, text: str) -> list[float]:
            return self.by_query[text]

    store = None
    for first in range(0, len(corpus.texts), _BATCH):  # it takes lists of numbers, which are large
        vectors = corpus.vectors[first : first + _BATCH].tolist()
        pairs = list(zip(corpus.texts[first : first + _BATCH], vectors, strict=True))
        if store is None:
            store = FAISS.from_embeddings(pairs, Prepared())
        else:
            store.add_embeddings(pairs)
    assert store is not None
    faiss = store.as_retriever(search_kwargs={"k": k})
    keyword = BM25Retriever.from_texts(corpus.texts, k=k)
    ensemble = EnsembleRetriever(retrievers=[keyword, faiss], weights=[0.5, 0.5])
    return lambda number: [document.page_content for document in ensemble.invoke(corpus.queries[number])]
