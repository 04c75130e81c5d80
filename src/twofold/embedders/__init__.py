"""Embedders: what turns texts into vectors, and the guard that checks what comes out."""

from twofold.embedders.bridging import calling_loop
from twofold.embedders.callables import CallableEmbedder
from twofold.embedders.given import GivenVectors
from twofold.embedders.guard import degradation_of, embed_checked, embed_documents
from twofold.embedders.local import LocalEmbedder
from twofold.embedders.protocol import Embedder, EmbeddingKind, Embeddings
from twofold.embedders.resolve import resolve_embedder

__all__ = [
    "CallableEmbedder",
    "Embedder",
    "EmbeddingKind",
    "Embeddings",
    "GivenVectors",
    "LocalEmbedder",
    "calling_loop",
    "degradation_of",
    "embed_checked",
    "embed_documents",
    "resolve_embedder",
]
