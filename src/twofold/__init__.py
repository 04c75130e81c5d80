"""twofold: search twice, answer once.

Records in one SQLite file, found by keyword and by meaning, scoped to who asks::

    import twofold

    with twofold.open("memory.db", embedder="local") as store:
        store.add("The deploy key lives in the vault.", tags=("ops",))
        for hit in store.search("where is the deploy key?"):
            print(hit.score, hit.text, hit.why)
"""

from twofold.backends.protocol import CheckReport, Damage, Mark, StoreInfo
from twofold.config import SearchParams, StoreSettings
from twofold.embedders import CallableEmbedder, Embedder, GivenVectors, LocalEmbedder
from twofold.errors import (
    AccessError,
    AmbiguousIdError,
    ConfigurationError,
    CorruptStoreError,
    DriverConflictError,
    EmbedderOutputError,
    EmbedderTimeoutError,
    EmbedderUnreachableError,
    EmbeddingError,
    ForkedStoreError,
    InvalidFilterError,
    InvalidRecordError,
    InvalidVectorError,
    MissingExtraError,
    NewerFormatError,
    NotAStoreError,
    ReadOnlyStoreError,
    RecordNotFoundError,
    SearchUnavailableError,
    StorageFullError,
    StoreBusyError,
    StoreClosedError,
    StoreError,
    TwofoldError,
    UnsupportedFilterError,
    UnsupportedOperationError,
    WrongTenantError,
)
from twofold.filters import A, F, Filter
from twofold.store import HybridStore, Info, Marks
from twofold.store import open_store as open
from twofold.types import (
    Access,
    Added,
    AddReport,
    Degradation,
    DegradationCode,
    Explanation,
    Hit,
    LegScore,
    Mode,
    NewRecord,
    Outcome,
    Owner,
    Progress,
    Record,
    Scope,
    SearchResult,
    Stage,
)

__version__ = "0.1.0"

__all__ = [
    "A",
    "Access",
    "AccessError",
    "AddReport",
    "Added",
    "AmbiguousIdError",
    "CallableEmbedder",
    "CheckReport",
    "ConfigurationError",
    "CorruptStoreError",
    "Damage",
    "Degradation",
    "DegradationCode",
    "DriverConflictError",
    "Embedder",
    "EmbedderOutputError",
    "EmbedderTimeoutError",
    "EmbedderUnreachableError",
    "EmbeddingError",
    "Explanation",
    "F",
    "Filter",
    "ForkedStoreError",
    "GivenVectors",
    "Hit",
    "HybridStore",
    "Info",
    "InvalidFilterError",
    "InvalidRecordError",
    "InvalidVectorError",
    "LegScore",
    "LocalEmbedder",
    "Mark",
    "Marks",
    "MissingExtraError",
    "Mode",
    "NewRecord",
    "NewerFormatError",
    "NotAStoreError",
    "Outcome",
    "Owner",
    "Progress",
    "ReadOnlyStoreError",
    "Record",
    "RecordNotFoundError",
    "Scope",
    "SearchParams",
    "SearchResult",
    "SearchUnavailableError",
    "Stage",
    "StorageFullError",
    "StoreBusyError",
    "StoreClosedError",
    "StoreError",
    "StoreInfo",
    "StoreSettings",
    "TwofoldError",
    "UnsupportedFilterError",
    "UnsupportedOperationError",
    "WrongTenantError",
    "__version__",
    "open",
]
