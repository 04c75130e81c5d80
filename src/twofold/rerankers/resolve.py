"""What may stand for a reranker where a store is opened."""

from __future__ import annotations

from typing import Final

from twofold.errors import ConfigurationError
from twofold.rerankers.cross_encoder import CrossEncoderReranker
from twofold.rerankers.protocol import Reranker

__all__ = ["resolve_reranker"]

_SHORT_FORM: Final = "cross-encoder"


def resolve_reranker(value: Reranker | str | None) -> Reranker | None:
    """The reranker that ``value`` stands for.

    Args:
        value: a reranker, ``"cross-encoder"`` for :class:`CrossEncoderReranker` with its default model,
            ``"cross-encoder:<model>"``, or None for none.

    Raises:
        ConfigurationError: it is none of these; the message says what to pass instead.
    """
    if value is None:
        return None
    if isinstance(value, str):
        provider, colon, model = value.partition(":")
        if provider == _SHORT_FORM:
            return CrossEncoderReranker(model) if colon else CrossEncoderReranker()
        raise ConfigurationError(
            f"there is no reranker called {value!r}; pass '{_SHORT_FORM}', '{_SHORT_FORM}:<model>', or a function of "
            "the query and a list of texts that gives one score a text"
        )
    if isinstance(value, type):
        raise ConfigurationError(f"{value.__name__} is a class; pass an instance, e.g. {value.__name__}(...)")
    if not callable(value):
        raise ConfigurationError(
            f"reranker is a function of the query and a list of texts that gives one score a text, not a "
            f"{type(value).__name__}"
        )
    return value
