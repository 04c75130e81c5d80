"""The façade: ``twofold.open`` makes a :class:`HybridStore`."""

from twofold.store.facade import HybridStore, Info
from twofold.store.marks import Marks
from twofold.store.opening import open_store
from twofold.store.operations import Add, Delete, Get, ListNamespaces, ListRecords, Operation, Search

__all__ = [
    "Add",
    "Delete",
    "Get",
    "HybridStore",
    "Info",
    "ListNamespaces",
    "ListRecords",
    "Marks",
    "Operation",
    "Search",
    "open_store",
]
