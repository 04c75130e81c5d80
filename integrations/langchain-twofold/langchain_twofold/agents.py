"""Memory for LangChain's agents. Needs the extra ``agents``.

::

    remembering = TwofoldMemoryMiddleware(store, access=lambda runtime: Access(user=runtime.context.user_id))
    agent = create_agent(model, tools, middleware=[remembering], context_schema=Context)
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage
from langgraph.runtime import Runtime

from langchain_twofold.options import as_where
from twofold import (
    Access,
    ConfigurationError,
    ContextBundle,
    ContextTemplate,
    HybridStore,
    SearchParams,
    TwofoldError,
)

__all__ = ["AccessOfRuntime", "Remember", "TwofoldMemoryMiddleware"]

_LOG = logging.getLogger(__name__)
_LINKED = 3

AccessOfRuntime: TypeAlias = Access | Callable[[Any], Access]
"""Whose memories: an access, or a function that makes it of the agent's ``Runtime``."""

Remember: TypeAlias = Callable[[Sequence[AnyMessage]], Sequence[str]]
"""Given an agent's messages when it has ended, the texts to be remembered of them."""


class TwofoldMemoryMiddleware(AgentMiddleware[Any, Any]):
    """Puts the memories that fit the user's last message into the system message of each call of the model.

    The agent's state is left as it is: what was recalled is not said again in the next turn. A store or an embedding
    model that fails breaks no agent: it goes on without memories, and a warning is logged.

    Args:
        store: where the memories are.
        access: whose they are; the model has no say in it.
        namespace: where they are in it. Default: the root.
        k: how many at most. Default: 5.
        params: how they are ranked. Default: the store's settings, with up to three linked memories, and what is
            recalled counts as used.
        template: the words around them. Default: ``ContextTemplate()``.
        zone: the name of the user's time zone. Default: UTC.
        remember: what is remembered when the agent has ended. Default: nothing; the model may have a tool for it, see
            :func:`create_memory_save_tool`.
        name: the middleware's; those of one agent must differ. Default: ``"TwofoldMemoryMiddleware"``.
    """

    def __init__(
        self,
        store: HybridStore,
        *,
        access: AccessOfRuntime,
        namespace: Sequence[str] = (),
        k: int = 5,
        params: SearchParams | None = None,
        template: ContextTemplate | str | None = None,
        zone: str = "UTC",
        remember: Remember | None = None,
        name: str = "TwofoldMemoryMiddleware",
    ) -> None:
        super().__init__()
        self._store = store
        self._access = access
        self._namespace = tuple(namespace)
        self._remember = remember
        self._name = name
        self._asked = {
            "k": k,
            "where": as_where(None, self._namespace),
            "params": replace(store.settings.search, touch=True, expand=_LINKED) if params is None else params,
            "template": template,
            "zone": zone,
        }

    @property
    def name(self) -> str:
        """As given."""
        return self._name

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Recall, then call the model."""
        if (question := _question(request.messages)) is None:
            return handler(request)
        access = self._asker(request.runtime)
        try:
            bundle = self._store.context(question, access=access, **self._asked)  # type: ignore[arg-type]
        except TwofoldError as error:
            _LOG.warning("the agent goes on without memories: %s", error)
            return handler(request)
        return handler(_with(request, bundle))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """Async twin of :meth:`wrap_model_call`."""
        if (question := _question(request.messages)) is None:
            return await handler(request)
        access = self._asker(request.runtime)
        try:
            bundle = await self._store.acontext(question, access=access, **self._asked)  # type: ignore[arg-type]
        except TwofoldError as error:
            _LOG.warning("the agent goes on without memories: %s", error)
            return await handler(request)
        return await handler(_with(request, bundle))

    def after_agent(self, state: Any, runtime: Runtime[Any]) -> None:
        """Remember what ``remember`` says."""
        if texts := self._to_remember(state):
            access = self._asker(runtime)
            try:
                self._store.add_many(texts, access=access, duplicates="skip")
            except TwofoldError as error:
                _LOG.warning("the agent could not remember: %s", error)

    async def aafter_agent(self, state: Any, runtime: Runtime[Any]) -> None:
        """Async twin of :meth:`after_agent`."""
        if texts := self._to_remember(state):
            access = self._asker(runtime)
            try:
                await self._store.aadd_many(texts, access=access, duplicates="skip")
            except TwofoldError as error:
                _LOG.warning("the agent could not remember: %s", error)

    def _asker(self, runtime: Any) -> Access:
        found: Any = self._access if isinstance(self._access, Access) else self._access(runtime)
        if not isinstance(found, Access):
            raise ConfigurationError(f"access gives an Access, e.g. Access(user='u1'), not {found!r}")
        return found

    def _to_remember(self, state: Any) -> list[dict[str, Any]]:
        if self._remember is None:
            return []
        return [{"text": text, "namespace": self._namespace} for text in self._remember(state["messages"])]


def _question(messages: Sequence[AnyMessage]) -> str | None:
    """What the user said last."""
    for message in reversed(messages):
        if isinstance(message, HumanMessage):
            return message.text or None
    return None


def _with(request: ModelRequest[Any], bundle: ContextBundle) -> ModelRequest[Any]:
    """``request`` with the memories in its system message, if there are any."""
    if not bundle.memories:
        return request
    given = request.system_message
    if given is None:
        return request.override(system_message=SystemMessage(bundle.system))
    if isinstance(given.content, str):
        return request.override(system_message=SystemMessage(f"{given.content}\n\n{bundle.system}"))
    return request.override(system_message=SystemMessage([*given.content, {"type": "text", "text": bundle.system}]))
