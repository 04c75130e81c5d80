"""Why an answer is less than a full hybrid one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Degradation", "DegradationCode"]


class DegradationCode(StrEnum):
    """The named reasons."""

    VECTORS_PENDING = "vectors_pending"
    """Some of the records that the caller may see have no vector yet."""
    EMBEDDER_UNREACHABLE = "embedder_unreachable"
    """The embedder raised or could not be reached."""
    EMBEDDER_TIMEOUT = "embedder_timeout"
    """The embedder did not answer within its deadline."""
    EMBEDDER_BAD_OUTPUT = "embedder_bad_output"
    """The embedder gave too few, too short, zero or non-finite vectors."""
    SPACE_MISMATCH = "space_mismatch"
    """The stored vectors were made by another embedder; they are not compared."""
    KEYWORD_UNAVAILABLE = "keyword_unavailable"
    """FTS5 is missing, or its index is damaged or out of date."""
    QUERY_TRUNCATED = "query_truncated"
    """The query had more distinct tokens than are searched; the rarest were kept."""
    HYDE_FAILED = "hyde_failed"
    """The HyDE writer raised, took too long or gave no text, or that could not be embedded; the question's own vector
    was used."""
    RERANKER_FAILED = "reranker_failed"
    """The reranker raised, took too long or gave something else than one finite score a text; hits keep the order and
    the scores of the fusion."""
    INDEX_BUILDING = "index_building"
    """The index of very many vectors is still being built in the background; keywords answer alone until then."""
    EXACT_FALLBACK = "exact_fallback"
    """The chosen vector index could not be used; an exact scan gave the same hits."""


@dataclass(frozen=True, slots=True)
class Degradation:
    """One reason why an answer, or a write, is less than it could be."""

    code: DegradationCode
    """What kind of reason."""
    message: str
    """What happened and what helps, in plain words."""

    def __str__(self) -> str:
        return f"{self.code.value}: {self.message}"
