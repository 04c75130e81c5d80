"""Tools with which a model searches and keeps memories.

Whose memories they are is said by the program, for each call if it likes, and never by the model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel, Field

from langchain_twofold.options import as_where
from twofold import (
    Access,
    AccessError,
    ConfigurationError,
    HybridStore,
    InvalidRecordError,
    RecordNotFoundError,
    SearchParams,
    SearchResult,
)

__all__ = ["AccessOf", "create_memory_save_tool", "create_memory_search_tool"]

AccessOf: TypeAlias = Access | Callable[[RunnableConfig], Access]
"""Whose memories: an access, or a function that makes it of the run's config, e.g.
``lambda config: Access(user=config["configurable"]["user_id"])``; it may ask ``langgraph.runtime.get_runtime()``."""

_LINKED = 3

_SEARCH = (
    "Search what is remembered from earlier conversations. Gives memories with their ids and dates, the most fitting "
    "first."
)
_SAVE = (
    "Remember something for later conversations, or correct or forget what is remembered. To add, give content. To "
    "update, give id and content; to delete, give id: ids are shown when memories are searched."
)


class _Query(BaseModel):
    query: str = Field(description="What to look for, in words.")


class _Change(BaseModel):
    action: Literal["add", "update", "delete"] = Field(default="add", description="What to do.")
    content: str | None = Field(default=None, description="The memory, in full: to add or update.")
    id: str | None = Field(default=None, description="Which memory: to update or delete.")


def create_memory_search_tool(
    store: HybridStore,
    *,
    access: AccessOf,
    namespace: Sequence[str] = (),
    k: int = 5,
    params: SearchParams | None = None,
    name: str = "search_memory",
    description: str = _SEARCH,
) -> BaseTool:
    """A tool that shows the memories which fit a query, each with its id and date.

    Args:
        store: where they are.
        access: who asks; the model has no say in it.
        namespace: where they are in it. Default: the root.
        k: how many at most. Default: 5.
        params: how to rank. Default: the store's settings, with up to three linked memories, and what is shown counts
            as used.
        name: the tool's.
        description: what the model is told of it.
    """
    own = replace(store.settings.search, touch=True, expand=_LINKED) if params is None else params
    where = as_where(None, tuple(namespace))

    def search(query: str, config: RunnableConfig) -> str:
        return _shown(store.search(query, access=_asker(access, config), k=k, where=where, params=own))

    async def asearch(query: str, config: RunnableConfig) -> str:
        return _shown(await store.asearch(query, access=_asker(access, config), k=k, where=where, params=own))

    return StructuredTool.from_function(
        search, asearch, name=name, description=description, args_schema=_Query, infer_schema=False
    )


def create_memory_save_tool(
    store: HybridStore,
    *,
    access: AccessOf,
    namespace: Sequence[str] = (),
    name: str = "save_memory",
    description: str = _SAVE,
) -> BaseTool:
    """A tool that adds, updates and deletes memories.

    What is added belongs to the access; what the access may not change stays as it is, and the model is told.

    Args:
        store: where they are.
        access: who writes; the model has no say in it.
        namespace: where they are in it. Default: the root.
        name: the tool's.
        description: what the model is told of it.
    """
    path = tuple(namespace)
    as_where(None, path)  # refuses what is no namespace

    def save(
        config: RunnableConfig,
        action: Literal["add", "update", "delete"] = "add",
        content: str | None = None,
        id: str | None = None,
    ) -> str:
        asker = _asker(access, config)
        if problem := _missing(action, content, id):
            return problem
        try:
            if action == "add":
                return f"Remembered as {store.add(content, access=asker, namespace=path).id}."
            if action == "update":
                store.update(str(id), text=str(content), access=asker, namespace=path)
                return f"Updated {id}."
            return _deleted(id, store.delete(str(id), access=asker, namespace=path))
        except (AccessError, InvalidRecordError, RecordNotFoundError) as error:
            return _refused(id, error)

    async def asave(
        config: RunnableConfig,
        action: Literal["add", "update", "delete"] = "add",
        content: str | None = None,
        id: str | None = None,
    ) -> str:
        asker = _asker(access, config)
        if problem := _missing(action, content, id):
            return problem
        try:
            if action == "add":
                return f"Remembered as {(await store.aadd(content, access=asker, namespace=path)).id}."
            if action == "update":
                await store.aupdate(str(id), text=str(content), access=asker, namespace=path)
                return f"Updated {id}."
            return _deleted(id, await store.adelete(str(id), access=asker, namespace=path))
        except (AccessError, InvalidRecordError, RecordNotFoundError) as error:
            return _refused(id, error)

    return StructuredTool.from_function(
        save, asave, name=name, description=description, args_schema=_Change, infer_schema=False
    )


def _asker(access: AccessOf, config: RunnableConfig) -> Access:
    found: Any = access if isinstance(access, Access) else access(config)
    if not isinstance(found, Access):
        raise ConfigurationError(f"access gives an Access, e.g. Access(user='u1'), not {found!r}")
    return found


def _shown(result: SearchResult) -> str:
    found = (*result.hits, *result.linked)
    if not found:
        return "Nothing is remembered of this."
    return "\n".join(f"[{hit.id}] ({hit.record.created_at:%Y-%m-%d}) {' '.join(hit.text.split())}" for hit in found)


def _missing(action: str, content: str | None, id: str | None) -> str | None:
    if action != "delete" and not (content and content.strip()):
        return f"To {action} a memory, give its content."
    if action != "add" and not id:
        return f"To {action} a memory, give its id; search to see ids."
    return None


def _deleted(id: str | None, count: int) -> str:
    return f"Forgot {id}." if count else f"There is no memory {id}."


def _refused(id: str | None, error: Exception) -> str:
    if isinstance(error, RecordNotFoundError):
        return f"There is no memory {id}."
    return f"Nothing was changed: {error}"
