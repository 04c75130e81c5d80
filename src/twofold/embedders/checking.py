"""The one place where an embedder is asked: whatever it does comes out as checked vectors or a named error.

Every call goes through :func:`checked_rows`. How long one may take, and whether it is made at all, is the guard's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from twofold.embedders.protocol import Embedder, EmbeddingKind
from twofold.errors import (
    ConfigurationError,
    EmbedderOutputError,
    EmbedderTimeoutError,
    EmbedderUnreachableError,
    EmbeddingError,
    InvalidVectorError,
)
from twofold.types import Degradation, DegradationCode
from twofold.vectors import as_vector

__all__ = [
    "checked_rows",
    "degradation_of",
    "embed_checked",
    "embed_documents",
    "name_of",
    "of_one_length",
    "raise_named",
]

_MESSAGE_LIMIT = 300
"""How much of a foreign error's text is handed on, in characters."""
_STATUS_OF_A_TEXT = frozenset({400, 413, 422, 500})
"""HTTP statuses by which servers refuse a batch for the sake of one of its texts, among other reasons."""


def embed_checked(embedder: Embedder, texts: Sequence[str], kind: EmbeddingKind) -> npt.NDArray[np.float32]:
    """Embed ``texts``, all or none.

    Returns:
        Shape (texts, dimension), finite, no row all zero. For no texts the embedder is not called; the shape is
        then (0, its dimension or 0).

    Raises:
        EmbedderUnreachableError: it raised; the original is the cause.
        EmbedderTimeoutError: it raised a time-out.
        EmbedderOutputError: it gave something else than one usable vector a text.
        ConfigurationError: it cannot be used like this at all, whatever is asked.
    """
    if not texts:
        return np.empty((0, embedder.dimension or 0), dtype=np.float32)
    rows: list[npt.NDArray[np.float32]] = []
    for row in checked_rows(embedder, texts, kind):
        if isinstance(row, EmbeddingError):
            raise row
        rows.append(row)
    return np.stack(rows)


def embed_documents(embedder: Embedder, texts: Sequence[str]) -> list[npt.NDArray[np.float32] | EmbeddingError]:
    """Embed ``texts`` as documents; what is wrong with one leaves the others be.

    Returns:
        For each text its vector, shape (dimension,), or the error that it has none for. If the embedder raised or
        gave another number of vectors than texts, nothing tells whose each is: every text gets that error.

    Raises:
        ConfigurationError: it cannot be used like this at all, whatever is asked.
    """
    if not texts:
        return []
    try:
        return checked_rows(embedder, texts, "document")
    except EmbeddingError as error:
        return [error for _ in texts]


def degradation_of(error: EmbeddingError) -> Degradation:
    """What an answer says that lacks vectors because of ``error``."""
    if isinstance(error, EmbedderTimeoutError):
        code = DegradationCode.EMBEDDER_TIMEOUT
    elif isinstance(error, EmbedderOutputError):
        code = DegradationCode.EMBEDDER_BAD_OUTPUT
    else:
        code = DegradationCode.EMBEDDER_UNREACHABLE
    return Degradation(code, str(error))


def checked_rows(
    embedder: Embedder, texts: Sequence[str], kind: EmbeddingKind
) -> list[npt.NDArray[np.float32] | EmbeddingError]:
    """Ask once, and check what comes.

    Returns:
        For each text its vector, shape (dimension,), or the error that it has none for.

    Raises:
        EmbeddingError: what concerns them all; see :func:`embed_checked`.
        ConfigurationError: it cannot be used like this at all, whatever is asked.
    """
    answer, dimension = _asked(embedder, texts, kind)
    name = name_of(embedder)
    if len(answer) != len(texts):
        many = f"more than {len(texts)}" if len(answer) > len(texts) else len(answer)
        raise EmbedderOutputError(
            f"{name} gave {many} vectors for {len(texts)} texts, so none can be told whose it is; "
            "it must give one vector a text, in order"
        )
    rows: list[npt.NDArray[np.float32] | EmbeddingError] = []
    for place, row in enumerate(answer, start=1):
        try:
            rows.append(as_vector(row, dimension, "its vector"))
        except InvalidVectorError as error:
            message = f"{name} gave nothing usable for text {place} of {len(texts)}: {error}"
            rows.append(EmbedderOutputError(message, text_at_fault=True if _is_zero(row) else None))
    return rows if dimension is not None else of_one_length(rows, name)


def _asked(embedder: Embedder, texts: Sequence[str], kind: EmbeddingKind) -> tuple[list[object], int | None]:
    """What the embedder gives, unchecked, and the dimension that it states once it has answered."""
    try:
        answer = embedder.embed([_encodable(text) for text in texts], kind)
        rows = _listed(answer, len(texts) + 1)
        dimension = embedder.dimension
    except (ConfigurationError, EmbeddingError):
        raise  # says already what it is
    except Exception as error:  # noqa: BLE001 - a foreign library may raise anything, and keywords must go on
        raise_named(error, name_of(embedder))
    if rows is None:
        raise EmbedderOutputError(
            f"{name_of(embedder)} gave a {type(answer).__name__}; it must give one vector a text, in order"
        )
    return rows, dimension


def _encodable(text: str) -> str:
    """``text`` with lone surrogates, which no tokenizer and no request can encode, as U+FFFD."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _listed(answer: object, most: int) -> list[object] | None:
    """The elements of ``answer``, ``most`` at most, for some have no end; None if it has none to go through."""
    try:
        elements = iter(answer)  # type: ignore[call-overload]
    except TypeError:
        return None
    return list(islice(elements, most))


def raise_named(error: Exception, name: str) -> NoReturn:
    """Raise what a foreign library raised as an error of this one.

    Raises:
        EmbedderTimeoutError: it was a time-out.
        EmbedderUnreachableError: it was anything else.
    """
    kind = type(error).__name__
    said = f"{kind}: {error}" if str(error) else kind
    said = said if len(said) <= _MESSAGE_LIMIT else f"{said[:_MESSAGE_LIMIT]}…"
    if _is_timeout(error):
        raise EmbedderTimeoutError(
            f"{name} did not answer in time ({said})", summary=f"it did not answer in time, {kind}"
        ) from error
    raise EmbedderUnreachableError(
        f"{name} failed ({said}); check that it runs and can be reached",
        text_at_fault=_text_at_fault(error),
        summary=kind,
    ) from error


def _text_at_fault(error: Exception) -> bool | None:
    """Whether one of the texts may have caused it (None), or surely none has (False)."""
    status = getattr(error, "status_code", None)
    if isinstance(status, int):
        return None if status in _STATUS_OF_A_TEXT else False
    no_connection = isinstance(error, OSError) or any(
        "connect" in each.__name__.lower() for each in type(error).__mro__
    )
    return False if no_connection else None


def _is_timeout(error: Exception) -> bool:
    """HTTP libraries have time-outs of their own, seldom a TimeoutError, always called one."""
    return isinstance(error, TimeoutError) or any("timeout" in each.__name__.lower() for each in type(error).__mro__)


def _is_zero(row: object) -> bool:
    """Whether a model gave the zero vector, as some do for a text of which they know no word."""
    return isinstance(row, (np.ndarray, list, tuple)) and len(row) > 0 and all(number == 0 for number in row)


def of_one_length(
    rows: list[npt.NDArray[np.float32] | EmbeddingError], name: str
) -> list[npt.NDArray[np.float32] | EmbeddingError]:
    """Of an embedder whose dimension nobody knows yet, the vectors of the length that most of them have.

    Raises:
        EmbedderOutputError: two lengths are equally frequent.
    """
    lengths = Counter(row.size for row in rows if not isinstance(row, EmbeddingError)).most_common(2)
    if len(lengths) < 2:
        return rows
    (common, count), (other, others) = lengths
    if count == others:
        raise EmbedderOutputError(
            f"{name} gave vectors of {common} and of {other} numbers; state its dimension to say which is right"
        )
    return [
        row
        if isinstance(row, EmbeddingError) or row.size == common
        else EmbedderOutputError(f"{name} gave a vector of {row.size} numbers beside others of {common}")
        for row in rows
    ]


def name_of(embedder: Embedder) -> str:
    """What errors call it."""
    return f"the embedder {embedder.fingerprint!r}"
