"""A store that is given, or opened here and then closed here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from os import PathLike
from types import TracebackType
from typing import Any, Self, TypeAlias

from twofold import ConfigurationError, HybridStore, StoreSettings

__all__ = ["Holding", "Path", "held", "settings_of"]

Path: TypeAlias = str | PathLike[str]


class Holding:
    """What stands on a twofold store; to be closed, or used in ``with`` or ``async with``."""

    _store: HybridStore
    _opened_here: bool

    @property
    def store(self) -> HybridStore:
        """The twofold store underneath: for links, batches, contexts and all else that LangChain has no word for."""
        return self._store

    def close(self) -> None:
        """Close the store if it was opened here; one that was given is closed by who opened it."""
        if self._opened_here:
            self._store.close()

    async def aclose(self) -> None:
        """Async twin of :meth:`close`."""
        if self._opened_here:
            await self._store.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()


def held(
    store: HybridStore | Path, given: Sequence[str], opened: Callable[[Path], HybridStore]
) -> tuple[HybridStore, bool]:
    """The store, and whether it was opened here.

    Args:
        store: an open one, or a path.
        given: the arguments that are only for a store that is opened here.
        opened: opens a path.

    Raises:
        ConfigurationError: some are given for a store that is open already.
    """
    if not isinstance(store, HybridStore):
        return opened(store), True
    if given:
        raise ConfigurationError(
            f"{', '.join(given)}: the store is open already, with its own; "
            "give them to twofold.open(...), or a path in place of the store"
        )
    return store, False


def settings_of(given: dict[str, Any], *, without: Sequence[str] = ()) -> StoreSettings:
    """The settings of these names.

    Args:
        given: by name.
        without: names of ``StoreSettings`` that are none here.

    Raises:
        ConfigurationError: a name that there is not, or a value that cannot be used.
    """
    known = {each.name for each in fields(StoreSettings)}.difference(without)
    if unknown := sorted(given.keys() - known):
        raise ConfigurationError(
            f"unknown arguments: {', '.join(unknown)}; the settings of a store are {', '.join(sorted(known))}"
        )
    return StoreSettings(**given)
