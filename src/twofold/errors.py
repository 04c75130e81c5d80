"""Every error that twofold raises on purpose.

::

    TwofoldError
    ├── ConfigurationError (ValueError)      an argument or a setting cannot be used
    │   ├── MissingExtraError (ImportError)  an optional library is not installed
    │   └── BudgetTooSmallError              a context's fixed parts alone have too many tokens
    ├── InvalidRecordError (ValueError)      a record cannot be stored as given
    ├── InvalidVectorError (ValueError)      zero, NaN, infinite or of the wrong length
    ├── InvalidFilterError (ValueError)      a filter cannot be built from what was given
    │   └── UnsupportedFilterError           an operator that does not exist
    ├── AccessError (PermissionError)        the caller sees the record but may not write it
    ├── AmbiguousIdError (LookupError)       an id that several owners hold
    ├── RecordNotFoundError (LookupError)    no such record, or none that the caller may see
    ├── SearchUnavailableError               the asked-for leg, or every leg, cannot answer
    ├── UnsupportedOperationError            the backend does not declare this capability
    ├── EmbeddingError                       an embedder did not give usable vectors
    │   ├── EmbedderUnreachableError         it raised, or no connection could be made
    │   ├── EmbedderTimeoutError             it did not answer within the deadline
    │   └── EmbedderOutputError              wrong count or length, zero or non-finite vectors
    └── StoreError                           the file, or the connection to it
        ├── StoreClosedError                 used after close()
        ├── ForkedStoreError                 used in a child process of the one that opened it
        ├── NotAStoreError                   the file is no database, or another program's
        ├── NewerFormatError                 written by a newer release of twofold
        ├── CorruptStoreError                the database is damaged
        ├── ReadOnlyStoreError               a write to a store opened for reading
        ├── StoreBusyError                   another process held the write lock too long
        ├── StorageFullError                 the disk is full
        ├── WrongTenantError                 the file belongs to another tenant
        └── DriverConflictError              the file is open through another SQLite library

Messages say what to do next, and never name what the caller may not see.
"""

from __future__ import annotations

__all__ = [
    "AccessError",
    "AmbiguousIdError",
    "BudgetTooSmallError",
    "ConfigurationError",
    "CorruptStoreError",
    "DriverConflictError",
    "EmbedderOutputError",
    "EmbedderTimeoutError",
    "EmbedderUnreachableError",
    "EmbeddingError",
    "ForkedStoreError",
    "InvalidFilterError",
    "InvalidRecordError",
    "InvalidVectorError",
    "MissingExtraError",
    "NewerFormatError",
    "NotAStoreError",
    "ReadOnlyStoreError",
    "RecordNotFoundError",
    "SearchUnavailableError",
    "StorageFullError",
    "StoreBusyError",
    "StoreClosedError",
    "StoreError",
    "TwofoldError",
    "UnsupportedFilterError",
    "UnsupportedOperationError",
    "WrongTenantError",
]


class TwofoldError(Exception):
    """Base of all errors that twofold raises on purpose."""


class ConfigurationError(TwofoldError, ValueError):
    """An argument or a setting cannot be used; the message says what can."""


class MissingExtraError(ConfigurationError, ImportError):
    """An optional library is not installed; the message names the extra that brings it."""

    def __init__(self, library: str, extra: str) -> None:
        super().__init__(f"{library} is not installed. Install it with: pip install 'twofold[{extra}]'")
        self.library = library
        self.extra = extra


class BudgetTooSmallError(ConfigurationError):
    """The system text and the current message alone have more tokens than the budget; neither is ever cut."""

    def __init__(self, *, needed: int, budget: int) -> None:
        super().__init__(
            f"the budget is {budget} tokens, and the system text and the current message alone count {needed}: "
            f"give at least {needed}, or a shorter template"
        )
        self.needed = needed
        self.budget = budget


class InvalidRecordError(TwofoldError, ValueError):
    """A record cannot be stored as given; nothing was written."""


class InvalidVectorError(TwofoldError, ValueError):
    """A vector is zero, not finite or of the wrong length; nothing was written."""


class InvalidFilterError(TwofoldError, ValueError):
    """A filter cannot be built from what was given."""


class UnsupportedFilterError(InvalidFilterError):
    """An operator that does not exist. Nothing in a filter is ever ignored."""


class AccessError(TwofoldError, PermissionError):
    """The caller may see the record, or name the scope, but not write there."""


class AmbiguousIdError(TwofoldError, LookupError):
    """Several owners hold this id; pass ``owner=`` to say whose is meant."""


class RecordNotFoundError(TwofoldError, LookupError):
    """There is no such record, or none that the caller may see: the two cannot be told apart."""


class SearchUnavailableError(TwofoldError):
    """The leg that was asked for, or every leg, cannot answer."""


class UnsupportedOperationError(TwofoldError, NotImplementedError):
    """The backend does not declare the capability that this call needs."""


class EmbeddingError(TwofoldError):
    """An embedder did not give usable vectors."""

    def __init__(self, *args: object, text_at_fault: bool | None = None, summary: str | None = None) -> None:
        """Say what happened.

        Args:
            args: the message.
            text_at_fault: whether one of the texts caused it. False: no text did, so asking for fewer is in vain;
                None: unknown, so it is worth asking for fewer at a time.
            summary: the message without what may repeat a text, for those who did not send it. Default: the message.
        """
        super().__init__(*args)
        self.text_at_fault = text_at_fault
        self.summary = str(self) if summary is None else summary


class EmbedderUnreachableError(EmbeddingError):
    """The embedder raised, or no connection to it could be made."""


class EmbedderTimeoutError(EmbeddingError):
    """The embedder did not answer within the deadline."""

    def __init__(self, *args: object, text_at_fault: bool | None = False, summary: str | None = None) -> None:
        """As :class:`EmbeddingError`, but unless said otherwise no text is at fault."""
        super().__init__(*args, text_at_fault=text_at_fault, summary=summary)


class EmbedderOutputError(EmbeddingError):
    """The embedder answered with vectors that cannot be used."""


class StoreError(TwofoldError):
    """The file, or the connection to it."""


class StoreClosedError(StoreError):
    """The store was used after ``close()``."""


class ForkedStoreError(StoreError):
    """The store was opened by a parent process; open it anew in the child."""


class NotAStoreError(StoreError):
    """The file is no SQLite database, or another program's."""


class NewerFormatError(StoreError):
    """The file was written by a newer release of twofold; nothing was read or changed."""


class CorruptStoreError(StoreError):
    """The database is damaged."""


class ReadOnlyStoreError(StoreError):
    """A write was asked of a store that is open for reading only."""


class StoreBusyError(StoreError):
    """Another process held the write lock for longer than the busy time-out."""


class StorageFullError(StoreError):
    """The disk is full; the write was rolled back."""


class WrongTenantError(StoreError):
    """The file belongs to another tenant."""


class DriverConflictError(StoreError):
    """The file is open in this process through another SQLite library."""
