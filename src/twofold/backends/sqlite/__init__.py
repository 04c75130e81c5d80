"""The embedded default: records, tokens and vectors in one SQLite file, and all the SQL there is for it."""

from __future__ import annotations

from twofold.backends.sqlite.backend import SqliteBackend

__all__ = ["SqliteBackend"]
