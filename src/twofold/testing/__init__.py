"""What ships for the tests of others: embedders without a model, a clock that a test turns."""

from twofold.testing.clock import FakeClock
from twofold.testing.embedders import FailingEmbedder, FakeEmbedder, FlakyEmbedder, TableEmbedder

__all__ = ["FailingEmbedder", "FakeClock", "FakeEmbedder", "FlakyEmbedder", "TableEmbedder"]
