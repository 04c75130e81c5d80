"""What ships for the tests of others: embedders without a model, an Ollama server, a clock to turn."""

from twofold.testing.clock import FakeClock
from twofold.testing.embedders import FailingEmbedder, FakeEmbedder, FlakyEmbedder, TableEmbedder
from twofold.testing.ollama import FakeOllama, OllamaFault, OllamaRequest

__all__ = [
    "FailingEmbedder",
    "FakeClock",
    "FakeEmbedder",
    "FakeOllama",
    "FlakyEmbedder",
    "OllamaFault",
    "OllamaRequest",
    "TableEmbedder",
]
