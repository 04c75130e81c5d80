"""What an adapter adds to a search: a framework's call minus ``store.search``, for the same question."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from tests.benchmarks.data import Corpus
from tests.benchmarks.timing import interleaved

import twofold
from langchain_twofold import TwofoldRetriever as LangChainRetriever
from llama_index.retrievers.twofold import TwofoldRetriever as LlamaIndexRetriever
from twofold import CallableEmbedder, NewRecord

__all__ = ["measure_adapters"]

_K: Final = 4


def measure_adapters(corpus: Corpus, path: Path) -> dict[str, Any]:
    """Figures by name: the median milliseconds of a search, and of what each adapter adds to the same question, whose
    embedding is known already.

    Args:
        corpus: what is stored and asked.
        path: of the file that is made.
    """
    known = dict(zip(corpus.queries, corpus.query_vectors, strict=True))

    def embed(texts: Sequence[str], kind: str) -> list[Any]:
        return [known[text] for text in texts]

    embedder = CallableEmbedder(embed, name="benchmark", dimension=int(corpus.vectors.shape[1]))
    with twofold.open(path, embedder=embedder) as store:
        records = zip(corpus.texts, corpus.vectors, strict=True)
        store.add_many((NewRecord(text=text, vector=vector) for text, vector in records), batch_size=1000)
        langchain = LangChainRetriever(store=store, k=_K)
        llama_index = LlamaIndexRetriever(store, similarity_top_k=_K)
        contestants: dict[str, Callable[[int], object]] = {
            "store.search": lambda number: store.search(corpus.queries[number], k=_K),
            "LangChain": lambda number: langchain.invoke(corpus.queries[number]),
            "LlamaIndex": lambda number: llama_index.retrieve(corpus.queries[number]),
        }
        numbers = range(len(corpus.queries))
        for number in numbers:  # the store remembers the embeddings
            contestants["store.search"](number)
        times = interleaved(contestants, numbers)
    plain = times.pop("store.search")
    figures: dict[str, Any] = {"store.search, median ms": statistics.median(plain) * 1000}
    for name, taken in times.items():
        added = [whole - bare for whole, bare in zip(taken, plain, strict=True)]
        figures[f"{name} adds, median ms"] = statistics.median(added) * 1000
    return figures
