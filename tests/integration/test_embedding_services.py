"""A store on each embedding service, through the public names: what it finds, and what it answers when one fails."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import twofold
from twofold import EmbeddingSettings, OpenAIEmbedder, StoreSettings, VoyageEmbedder
from twofold.testing import ApiFault, FakeOpenAI, FakeVoyage

PATIENT = 60.0
KEY = "sk-do-not-show-me-4711"
UNHARMED = {ApiFault.UNORDERED, ApiFault.UNNUMBERED, ApiFault.FLOATS, ApiFault.SLOW, ApiFault.SAME_NUMBER}
"""The right vectors in an unusual way; the same number is right for a single text."""
TIMEOUTS = {ApiFault.WAITS, ApiFault.DRIPS}
UNREACHABLE = {
    ApiFault.BAD_KEY,
    ApiFault.NO_MODEL,
    ApiFault.BAD_REQUEST,
    ApiFault.RATE_LIMITED,
    ApiFault.ERROR,
    ApiFault.BUSY,
    ApiFault.ELSEWHERE,
    ApiFault.DROPPED,
}


def code_of(fault: ApiFault) -> list[str]:
    if fault in UNHARMED:
        return []
    if fault in TIMEOUTS:
        return ["embedder_timeout"]
    return ["embedder_unreachable" if fault in UNREACHABLE else "embedder_bad_output"]


@pytest.fixture(params=["openai", "voyage"])
def server(request: pytest.FixtureRequest) -> Iterator[FakeOpenAI]:
    if request.param == "openai":
        pytest.importorskip("openai", reason="the extra 'openai' is not installed")
    else:
        pytest.importorskip("voyageai", reason="the extra 'voyage' is not installed")
    with FakeOpenAI() if request.param == "openai" else FakeVoyage() as fake:
        yield fake


@pytest.fixture
def opened(server: FakeOpenAI) -> Callable[..., Any]:
    """Opens a store that waits long enough for everything, unless told otherwise."""
    kind = VoyageEmbedder if isinstance(server, FakeVoyage) else OpenAIEmbedder

    def open_store(**embedding: Any) -> Any:
        options = {"query_deadline": PATIENT, "document_deadline": PATIENT, "warm_up": PATIENT, **embedding}
        settings = StoreSettings(embedding=EmbeddingSettings(**options))
        return twofold.open(":memory:", embedder=kind(base_url=server.base_url, api_key=KEY), settings=settings)

    return open_store


def fill(store: Any) -> Any:
    store.add_many(
        [{"id": "key", "text": "The deploy key lives in the vault."}, {"id": "tea", "text": "Anna prefers tea."}]
    )
    return store


@pytest.mark.parametrize("fault", ApiFault)
async def test_a_search_answers_whatever_the_service_does(
    server: FakeOpenAI, opened: Callable[..., Any], fault: ApiFault
) -> None:
    with fill(opened(query_deadline=0.5 if fault in TIMEOUTS else PATIENT, fill_in=False)) as store:
        assert store.info().pending == 0
        server.fault = fault
        result = await store.asearch("deploy key")
        assert (result.ids[0], [each.code.value for each in result.degradations]) == ("key", code_of(fault))
        server.fault = None
        said = f"{result} {store.info()} {store!r}"
        assert KEY not in said


@pytest.mark.parametrize("fault", [ApiFault.SAME_NUMBER, ApiFault.SHORT, ApiFault.BUSY, ApiFault.NAN])
def test_records_are_stored_without_vectors_and_get_them_later(
    server: FakeOpenAI, opened: Callable[..., Any], fault: ApiFault
) -> None:
    """A service that cannot say whose a vector is gives one to nobody, until it is asked for one text alone."""
    with opened(fill_in=False, first_pause=0.01) as store:
        server.fault = lambda texts: fault if fault is not ApiFault.SAME_NUMBER or len(texts) > 1 else None
        fill(store)
        assert store.info().pending == (0 if fault is ApiFault.SAME_NUMBER else 2)
        server.fault = None
        deadline = time.monotonic() + PATIENT
        while store.info().pending:
            assert time.monotonic() < deadline, "the vectors were never made"
            store.embed_pending()
        result = store.search("deploy key")
        assert (result.ids[0], result.degraded) == ("key", False)
        assert set(result[0].explanation.legs) == {"keyword", "vector"}


def test_unordered_answers_reach_the_right_records(server: FakeOpenAI, opened: Callable[..., Any]) -> None:
    server.fault = ApiFault.UNORDERED
    with fill(opened()) as store:
        assert store.search("The deploy key lives in the vault.", mode="vector").ids[0] == "key"
        assert store.search("Anna prefers tea.", mode="vector").ids[0] == "tea"
