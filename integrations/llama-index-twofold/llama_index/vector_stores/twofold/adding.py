"""Nodes that are added, and what becomes of vectors that do not fit."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from llama_index.core.schema import BaseNode

from llama_index.vector_stores.twofold.nodes import as_record
from llama_index.vector_stores.twofold.vectors import without_misfits
from twofold import (
    Access,
    AddReport,
    ConfigurationError,
    Degradation,
    DegradationCode,
    HybridStore,
    InvalidVectorError,
)

__all__ = ["added"]

_LOG = logging.getLogger("twofold.llama_index")


def added(
    store: HybridStore,
    nodes: Sequence[BaseNode],
    *,
    namespace: tuple[str, ...],
    access: Access | None,
    batch_size: int | None,
) -> AddReport:
    """What became of ``nodes``: all are stored, those whose vectors are not as long as the store's without them.

    Raises:
        InvalidRecordError: a node cannot be stored. Nothing was written.
        ConfigurationError: the nodes come with vectors, and the store takes none, or those of another model.
    """
    asked: dict[str, Any] = {"access": access}
    if batch_size is not None:
        asked["batch_size"] = batch_size
    records = [as_record(node, namespace) for node in nodes]
    try:
        return store.add_many(records, **asked)
    except (InvalidVectorError, ConfigurationError):
        fitting = without_misfits(store, records)
        misfits = sum(before is not after for before, after in zip(records, fitting, strict=True))
        if not misfits:
            raise
        report = store.add_many(fitting, **asked)
    left_out = f"{misfits} nodes came with vectors that are not as long as the store's; these were left out"
    _LOG.warning("%s: is it the model that the others were embedded with?", left_out)
    trouble = Degradation(DegradationCode.EMBEDDER_BAD_OUTPUT, left_out)
    return replace(report, degradations=(trouble, *report.degradations))
