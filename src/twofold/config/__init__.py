"""Every setting, its range and its default; each default stands here and nowhere else."""

from twofold.config.search import PRESETS, FusionFunction, SearchParams
from twofold.config.store import (
    DEFAULT_FIELDS,
    DEFAULT_LANGUAGE,
    HYDE_PROMPT,
    INDEXES,
    EmbeddingSettings,
    StoreSettings,
    utc_now,
)

__all__ = [
    "DEFAULT_FIELDS",
    "DEFAULT_LANGUAGE",
    "HYDE_PROMPT",
    "INDEXES",
    "PRESETS",
    "EmbeddingSettings",
    "FusionFunction",
    "SearchParams",
    "StoreSettings",
    "utc_now",
]
