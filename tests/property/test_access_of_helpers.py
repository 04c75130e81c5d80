"""However a search is helped and explained, nobody is told of what is not theirs: not in the answer, its trace, its
context, nor as what a reranker is given to read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import twofold
from twofold import Access, Owner, Scope, SearchParams
from twofold.store import Search
from twofold.testing import FakeEmbedder

WORDS = ("kettle", "teapot", "broker", "pager")
owners = st.sampled_from([Owner.user("u1"), Owner.user("u2"), Owner.room("r1"), Owner.room("r2"), Owner.everybody()])
accesses = st.builds(
    Access,
    user=st.sampled_from((None, "u1", "u2", "u3")),
    rooms=st.lists(st.sampled_from(("r1", "r2")), max_size=2, unique=True).map(tuple),
)
records = st.lists(
    st.tuples(owners, st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join), st.booleans()),
    min_size=1,
    max_size=20,
)
params = st.builds(
    SearchParams,
    fusion=st.sampled_from(("rrf", "calibrated", "alpha")),
    rescore=st.booleans(),
    pool=st.integers(1, 30),
    mmr_lambda=st.none() | st.sampled_from((0.0, 0.5)),
    rerank=st.sampled_from((0, 3, 50)),
    hyde=st.sampled_from(("never", "always")),
    expand=st.integers(0, 5),
    hops=st.integers(1, 3),
    min_score=st.none() | st.just(0.3),
    min_similarity=st.none() | st.just(0.2),
    include_archived=st.booleans(),
    trace=st.just(True),
)
questions = st.sampled_from((*WORDS, "kettle pager", "broker of the teapot"))


class Reads:
    """A reranker that remembers what it was given, and thinks most of what is longest."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def __call__(self, question: str, texts: Sequence[str], /) -> list[float]:
        self.read += texts
        return [len(text) / 100 for text in texts]


def owner_access(owner: Owner) -> Access:
    if owner.scope is Scope.PERSONAL:
        return Access(user=owner.name)
    return Access(rooms=(owner.name,)) if owner.name else Access()


@settings(max_examples=60, deadline=None)
@given(records, accesses, params, questions, st.lists(questions, max_size=3), st.integers(0, 8), st.data())
def test_nothing_of_others_is_told(
    stored: list[tuple[Owner, str, bool]],
    access: Access,
    chosen: SearchParams,
    question: str,
    phrasings: list[str],
    k: int,
    data: Any,
) -> None:
    reads = Reads()
    with twofold.open(
        ":memory:", embedder=FakeEmbedder(8), reranker=reads, hyde=lambda asked: f"what is known of {asked}"
    ) as store:
        for place, (owner, text, _) in enumerate(stored):
            whose = owner_access(owner)
            store.add(f"{text} secret{place}x", id=f"id{place}x", kind=f"kind{place}x", access=whose)
            for other in range(place):
                if whose.can_read(stored[other][0]) and data.draw(st.booleans()):
                    store.link(f"id{place}x", f"id{other}x", access=whose)
        for place, (owner, _, archived) in enumerate(stored):
            if archived:
                store.archive(f"id{place}x", access=owner_access(owner))
        told: list[object] = [
            store.search(question, access=access, params=chosen, phrasings=phrasings, k=k),
            *store.search_many([question, *phrasings], access=access, params=chosen, k=k),
            store.context(question, access=access, params=chosen, phrasings=phrasings, k=k),
            *store.view(access).batch([Search(question, params=chosen, phrasings=phrasings, k=k)]),
        ]
        told += [hit.why for result in told for hit in getattr(result, "hits", ())]
        said = repr((told, reads.read))
        for place, (owner, _, archived) in enumerate(stored):
            if not access.can_read(owner) or (archived and not chosen.include_archived):
                for word in ("secret", "id", "kind"):
                    assert f"{word}{place}x" not in said
        finds = k and chosen.min_score is None and chosen.min_similarity is None
        if finds and any(access.can_read(owner) and not gone for owner, _, gone in stored):
            assert "secret" in said
