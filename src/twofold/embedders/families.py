"""What is known of models by their names: what their cards say to put before a text, and how long their vectors are.

One model has many names: ``nomic-embed-text:v1.5`` at Ollama is ``nomic-ai/nomic-embed-text-v1.5`` elsewhere. Prefixes
go by how the last part of a name begins; dimensions by the whole name, since sizes of one family differ.
"""

from __future__ import annotations

from typing import Final

from twofold.embedders.protocol import EmbeddingKind

__all__ = ["known_dimension", "prefixes_for"]

_ARCTIC: Final = "Represent this sentence for searching relevant passages: "
_INSTRUCT: Final = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"
_PREFIXES: Final = (
    ("nomic-embed-text", "search_query: ", "search_document: "),
    ("snowflake-arctic-embed2", "query: ", ""),
    ("snowflake-arctic-embed-m-v2", "query: ", ""),
    ("snowflake-arctic-embed-l-v2", "query: ", ""),
    ("snowflake-arctic-embed", _ARCTIC, ""),
    ("mxbai-embed-large", _ARCTIC, ""),
    ("embeddinggemma", "task: search result | query: ", "title: none | text: "),
    ("multilingual-e5-large-instruct", f"{_INSTRUCT} ", ""),
    ("multilingual-e5", "query: ", "passage: "),
    ("e5-", "query: ", "passage: "),
    ("qwen3-embedding", _INSTRUCT, ""),
)
"""How the last part of a name begins, and what goes before a query and a document; the first that fits."""
_DIMENSIONS: Final = {
    # Ollama's library, by name and, where sizes differ, by tag
    "all-minilm": 384,
    "bge-large": 1024,
    "bge-m3": 1024,
    "embeddinggemma": 768,
    "mxbai-embed-large": 1024,
    "nomic-embed-text": 768,
    "paraphrase-multilingual": 768,
    "qwen3-embedding:0.6b": 1024,
    "qwen3-embedding:4b": 2560,
    "qwen3-embedding:8b": 4096,
    "snowflake-arctic-embed:22m": 384,
    "snowflake-arctic-embed:33m": 384,
    "snowflake-arctic-embed:110m": 768,
    "snowflake-arctic-embed:137m": 768,
    "snowflake-arctic-embed:335m": 1024,
    "snowflake-arctic-embed:latest": 1024,
    "snowflake-arctic-embed2": 1024,
    # Hugging Face
    "baai/bge-small-en-v1.5": 384,
    "baai/bge-base-en-v1.5": 768,
    "baai/bge-large-en-v1.5": 1024,
    "baai/bge-m3": 1024,
    "google/embeddinggemma-300m": 768,
    "intfloat/multilingual-e5-small": 384,
    "intfloat/multilingual-e5-base": 768,
    "intfloat/multilingual-e5-large": 1024,
    "mixedbread-ai/mxbai-embed-large-v1": 1024,
    "nomic-ai/nomic-embed-text-v1.5": 768,
    "qwen/qwen3-embedding-0.6b": 1024,
    "sentence-transformers/all-minilm-l6-v2": 384,
    "all-minilm-l6-v2": 384,
    "sentence-transformers/all-mpnet-base-v2": 768,
    "all-mpnet-base-v2": 768,
    # OpenAI
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
    # Voyage
    "voyage-code-3": 1024,
    "voyage-3-large": 1024,
    "voyage-3.5": 1024,
    "voyage-3.5-lite": 1024,
    "voyage-finance-2": 1024,
    "voyage-law-2": 1024,
    "voyage-code-2": 1536,
}


def prefixes_for(model: str, *, query: str | None = None, document: str | None = None) -> dict[EmbeddingKind, str]:
    """What is put before a query and a document of ``model``.

    Args:
        model: its name, with or without who made it and a tag.
        query: what to take for queries instead; None: what the model's card says, nothing if that is not known.
        document: likewise, for documents.
    """
    name = model.lower().rpartition("/")[2]
    known = next((both for begins, *both in _PREFIXES if name.startswith(begins)), ["", ""])
    return {
        "query": known[0] if query is None else query,
        "document": known[1] if document is None else document,
    }


def known_dimension(model: str) -> int | None:
    """How many numbers a vector of ``model`` has; None if that is not known. A tag may be left out or not."""
    name = model.lower()
    found = _DIMENSIONS.get(name)
    if found is None and ":" not in name:
        return _DIMENSIONS.get(f"{name}:latest")
    return _DIMENSIONS.get(name.partition(":")[0]) if found is None else found
