"""What ships for the tests of others: embedders without a model, servers like Ollama, OpenAI and Voyage, a clock."""

from twofold.testing.clock import FakeClock
from twofold.testing.embedders import FailingEmbedder, FakeEmbedder, FlakyEmbedder, TableEmbedder
from twofold.testing.embedding_api import ApiFault, ApiRequest, FakeOpenAI, FakeVoyage
from twofold.testing.ollama import FakeOllama, OllamaFault, OllamaRequest

__all__ = [
    "ApiFault",
    "ApiRequest",
    "FailingEmbedder",
    "FakeClock",
    "FakeEmbedder",
    "FakeOllama",
    "FakeOpenAI",
    "FakeVoyage",
    "FlakyEmbedder",
    "OllamaFault",
    "OllamaRequest",
    "TableEmbedder",
]
