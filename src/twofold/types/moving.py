"""What moving records in and out gives back."""

from __future__ import annotations

from dataclasses import dataclass

from twofold.types.degradation import Degradation

__all__ = ["ExportReport", "ImportProblem", "ImportReport"]


@dataclass(frozen=True, slots=True)
class ExportReport:
    """What an export wrote."""

    records: int = 0
    """How many records."""
    links: int = 0
    """How many links: those of which both ends were written."""
    vectors: int = 0
    """How many of the records were written with their vectors."""


@dataclass(frozen=True, slots=True)
class ImportProblem:
    """A line that could not be imported. It stopped no other."""

    line: int
    """Its number in the file, from 1."""
    reason: str
    """What is wrong with it."""

    def __str__(self) -> str:
        return f"line {self.line}: {self.reason}"


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What became of an import; after a dry run, what would become of it."""

    added: int = 0
    """How many records are new."""
    updated: int = 0
    """How many replaced one of the same id, owner and namespace that differed."""
    unchanged: int = 0
    """How many were there already, equal."""
    skipped: int = 0
    """How many were left as they were because of ``existing="skip"``."""
    links: int = 0
    """How many links were made, given their weight, or there already."""
    vectors: int = 0
    """How many of the records came with vectors that could be used."""
    pending: int = 0
    """How many of them wait for a vector."""
    problems: tuple[ImportProblem, ...] = ()
    """Lines that could not be imported: the first 1,000, in order."""
    failed: int = 0
    """How many lines that were in all."""
    degradations: tuple[Degradation, ...] = ()
    """Why vectors were left out; empty if none were."""
    dry_run: bool = False
    """Whether nothing was written."""

    @property
    def ok(self) -> bool:
        """Whether every line could be imported."""
        return not self.failed
