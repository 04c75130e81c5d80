"""A memory block as an object: pickled, copied, closed, dumped."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import BaseMemoryBlock

import twofold
from llama_index.memory.twofold import TwofoldMemoryBlock
from twofold import Access, EmbeddingSettings, HybridStore, StoreSettings

OpenStore = Callable[..., HybridStore]

ANN = Access(user="ann")


def user(text: str) -> ChatMessage:
    return ChatMessage(text, role="user")


def recalled(content: str) -> list[str]:
    """The first lines of the memories in a block, without number and date."""
    return [line.split(") ", 1)[1] for line in content.split("\n") if line.startswith("[")]


@pytest.fixture
def store(open_store: OpenStore) -> HybridStore:
    return open_store(embedder=None)


@pytest.fixture
def block(store: HybridStore) -> TwofoldMemoryBlock:
    return TwofoldMemoryBlock(store=store, access=ANN)


def test_the_base_class() -> None:
    assert BaseMemoryBlock in TwofoldMemoryBlock.__mro__


async def test_a_block_over_a_path_can_be_pickled(tmp_path: Any) -> None:
    block = TwofoldMemoryBlock(path=str(tmp_path / "memory.db"), access=ANN, embed_model=None, k=3)
    await block.aput([user("I prefer green tea.")], session_id="monday")
    twin = pickle.loads(pickle.dumps(block))
    assert (twin.path, twin.access, twin.k) == (block.path, ANN, 3)
    assert recalled(await twin.aget([user("tea?")], session_id="monday")) == ["I prefer green tea."]
    for each in (block, twin):
        each.close()
        each.close()


def test_a_block_over_an_open_store_says_what_to_do_instead(block: TwofoldMemoryBlock) -> None:
    with pytest.raises(TypeError, match="path="):
        pickle.dumps(block)


def test_a_file_that_it_opens_is_not_waited_for_a_minute(tmp_path: Any) -> None:
    with TwofoldMemoryBlock(path=str(tmp_path / "memory.db"), access=ANN) as block:
        assert block.opened().settings.embedding.document_deadline == 5.0
    own = StoreSettings(embedding=EmbeddingSettings(document_deadline=1.0))
    with TwofoldMemoryBlock(path=str(tmp_path / "memory.db"), access=ANN, settings=own) as block:
        assert block.opened().settings is own


async def test_copies_share_the_store(store: HybridStore, block: TwofoldMemoryBlock) -> None:
    store.add("green tea", access=ANN)
    for twin in (copy.copy(block), copy.deepcopy(block), block.model_copy()):
        assert twin.opened() is store
        assert recalled(await twin.aget([user("tea?")])) == ["green tea"]


async def test_a_block_in_a_with_statement_closes_what_it_opened(tmp_path: Any) -> None:
    with TwofoldMemoryBlock(path=str(tmp_path / "memory.db"), access=ANN) as block:
        await block.aput([user("tea")])
        store = block.opened()
    with pytest.raises(twofold.StoreClosedError):
        store.count()


def test_a_dump_holds_no_open_thing(block: TwofoldMemoryBlock) -> None:
    dumped = block.model_dump()
    assert not {"store", "embed_model", "params", "settings", "tokenizer_fn"} & dumped.keys()
    assert "HybridStore" not in repr(block)
