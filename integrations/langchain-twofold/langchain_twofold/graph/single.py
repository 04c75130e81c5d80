"""Single async operations, without what a batch of one costs: a coroutine and two lists, thousands of times a tick."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

from langgraph.store.base import (
    NOT_PROVIDED,
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    MatchCondition,
    NamespacePath,
    NotProvided,
    Op,
    PutOp,
    SearchItem,
    SearchOp,
)

__all__ = ["SingleOperations"]

_RESERVED: Final = "langgraph"
"""The first word of a namespace that LangGraph keeps for itself."""


class SingleOperations(BaseStore):
    """The async methods for one operation each. They ask for the same as ``BaseStore``'s, and refuse the same."""

    _submit: Callable[[Callable[..., Op], tuple[Any, ...]], asyncio.Future[Any]]
    """Gives the result of an operation, to come, of its kind and its fields; see :meth:`Coalescer.submit`."""

    async def aget(self, namespace: tuple[str, ...], key: str, *, refresh_ttl: bool | None = None) -> Item | None:
        """Async twin of ``get``."""
        found: Item | None = await self._submit(GetOp, (namespace, str(key), self._refreshes(refresh_ttl)))
        return found

    async def asearch(
        self,
        namespace_prefix: tuple[str, ...],
        /,
        *,
        query: str | None = None,
        filter: dict[str, Any] | None = None,
        limit: int = 10,
        offset: int = 0,
        refresh_ttl: bool | None = None,
    ) -> list[SearchItem]:
        """Async twin of ``search``."""
        fields = namespace_prefix, filter, limit, offset, query, self._refreshes(refresh_ttl)
        found: list[SearchItem] = await self._submit(SearchOp, fields)
        return found

    async def aput(
        self,
        namespace: tuple[str, ...],
        key: str,
        value: Mapping[str, Any],
        index: Literal[False] | list[str] | None = None,
        *,
        ttl: float | NotProvided | None = NOT_PROVIDED,
    ) -> None:
        """Async twin of ``put``."""
        if namespace and namespace[0] == _RESERVED:
            raise InvalidNamespaceError(f"the first word of a namespace is not {_RESERVED!r}, as in {namespace!r}")
        if isinstance(ttl, NotProvided):
            ttl = None if self.ttl_config is None else self.ttl_config.get("default_ttl")
        await self._submit(PutOp, (namespace, str(key), value, index, ttl))

    async def adelete(self, namespace: tuple[str, ...], key: str) -> None:
        """Async twin of ``delete``."""
        await self._submit(PutOp, (namespace, str(key), None, None, None))

    async def alist_namespaces(
        self,
        *,
        prefix: NamespacePath | None = None,
        suffix: NamespacePath | None = None,
        max_depth: int | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> list[tuple[str, ...]]:
        """Async twin of ``list_namespaces``."""
        conditions = []
        if prefix:
            conditions.append(MatchCondition("prefix", prefix))
        if suffix:
            conditions.append(MatchCondition("suffix", suffix))
        fields = tuple(conditions), max_depth, limit, offset
        found: list[tuple[str, ...]] = await self._submit(ListNamespacesOp, fields)
        return found

    def _refreshes(self, asked: bool | None) -> bool:  # noqa: FBT001 - as it was asked for
        """Whether what a read finds lives longer for it."""
        if asked is not None:
            return asked
        return self.ttl_config is None or self.ttl_config.get("refresh_on_read", True)
