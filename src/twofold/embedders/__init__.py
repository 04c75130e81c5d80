"""Embedders: what turns texts into vectors, and the guard that a store asks them through."""

from twofold.embedders.breaker import BreakerState, EmbedderState
from twofold.embedders.bridging import calling_loop
from twofold.embedders.callables import CallableEmbedder
from twofold.embedders.checking import degradation_of, embed_checked, embed_documents
from twofold.embedders.fastembed import FastEmbedEmbedder
from twofold.embedders.given import GivenVectors
from twofold.embedders.guard import Guard
from twofold.embedders.local import LocalEmbedder
from twofold.embedders.ollama import OllamaEmbedder
from twofold.embedders.openai import OpenAIEmbedder
from twofold.embedders.protocol import Embedder, EmbeddingKind, Embeddings
from twofold.embedders.resolve import PROVIDERS, SHORT_FORMS, resolve_embedder
from twofold.embedders.sentence_transformers import SentenceTransformersEmbedder
from twofold.embedders.voyage import VoyageEmbedder

__all__ = [
    "PROVIDERS",
    "SHORT_FORMS",
    "BreakerState",
    "CallableEmbedder",
    "Embedder",
    "EmbedderState",
    "EmbeddingKind",
    "Embeddings",
    "FastEmbedEmbedder",
    "GivenVectors",
    "Guard",
    "LocalEmbedder",
    "OllamaEmbedder",
    "OpenAIEmbedder",
    "SentenceTransformersEmbedder",
    "VoyageEmbedder",
    "calling_loop",
    "degradation_of",
    "embed_checked",
    "embed_documents",
    "resolve_embedder",
]
