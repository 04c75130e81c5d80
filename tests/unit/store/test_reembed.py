"""Moving to another embedder."""

from __future__ import annotations

import asyncio
import importlib.util
import threading
from collections.abc import Sequence

import numpy as np
import pytest

import twofold
from twofold import Access, DegradationCode, EmbeddingSettings, GivenVectors, Progress, StoreSettings
from twofold.errors import AccessError, ConfigurationError, EmbedderOutputError, StoreClosedError
from twofold.testing import FailingEmbedder, FakeEmbedder, FlakyEmbedder

OLD, NEW = FakeEmbedder(16, name="old"), FakeEmbedder(24, name="new")
SMALL = StoreSettings(embedding=EmbeddingSettings(batch_size=4, failures_to_open=1000, fill_in=False))


class Watched:
    """An embedder that calls back before each batch and may refuse texts."""

    def __init__(self, inner=NEW, before=lambda texts: None, refused: Sequence[str] = (), dimension=True):
        self.inner, self.before, self.refused = inner, before, refused
        self.fingerprint = inner.fingerprint
        self.dimension = inner.dimension if dimension else None
        self.texts: list[str] = []

    def embed(self, texts, kind):
        self.before(texts)
        if any(word in text for text in texts for word in self.refused):
            raise EmbedderOutputError("refused", text_at_fault=True)
        self.texts += texts
        return self.inner.embed(texts, kind)


def texts(count):
    return [{"id": f"{n}", "text": f"record number {n}"} for n in range(count)]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


@pytest.fixture
def store(path):
    with twofold.open(path, embedder=OLD, settings=SMALL) as store:
        store.add_many(texts(10))
        yield store


def vectors_of(store) -> set[str | None]:
    return {store.info().backend.fingerprint}


def assert_answers_with(store, embedder) -> None:
    """Every record is found by its own text, and with a score that only this embedder's vectors give."""
    for record in store.list():
        result = store.search(record.text, mode="vector", k=1)
        (text,) = embedder.embed([record.text], "document")
        best = np.dot(text, embedder.embed([result[0].text], "document")[0])
        assert result.ids == (record.id,)
        assert result[0].score == pytest.approx(best, abs=1e-5)
        assert not result.degradations


def test_all_is_made_anew_and_the_handle_uses_the_new_embedder(store):
    seen: list[Progress] = []
    report = store.reembed(NEW, progress=seen.append)
    assert (report.done, report.embedded, report.parked, report.remaining) == (True, 10, 0, 0)
    assert seen == [Progress(4, 10), Progress(8, 10), Progress(10, 10)]
    info = store.info()
    assert (info.embedder, info.backend.fingerprint, info.backend.dimension) == ("new:24", "new:24", 24)
    assert info.backend.details["spaces"] == [{"fingerprint": "new:24", "field": "text", "dimension": 24}]
    assert_answers_with(store, NEW)
    store.add("added later", id="later")
    assert_answers_with(store, NEW)
    assert store.view(Access()).search("added later", mode="vector").ids[0] == "later"
    assert store.check().ok


def test_only_text_is_sent_once_each(store):
    watched = Watched()
    store.archive("3")
    store.reembed(watched)
    assert sorted(watched.texts) == sorted(each["text"] for each in texts(10))
    again = store.reembed(watched)
    assert (again.done, again.embedded) == (True, 0)
    assert len(watched.texts) == 10


def test_the_old_vectors_answer_until_all_new_ones_are_there(store):
    answers = []

    def look(_texts):
        result = store.search("record number 7", mode="vector", k=1)
        answers.append((result.ids, result.degradations, store.info().backend.fingerprint))

    store.reembed(Watched(before=look))
    assert answers == [(("7",), (), "old:16")] * 3


def test_what_is_written_meanwhile_is_covered(store):
    rounds = []

    def write(_texts):
        rounds.append(1)
        if len(rounds) == 2:  # the first four are done by now
            store.add("added meanwhile", id="added")
            store.update("0", text="changed meanwhile")
            store.update("9", text="changed before its turn")
            store.delete("1")
            store.delete("8")

    watched = Watched(before=write)
    report = store.reembed(watched)
    assert (report.done, report.remaining) == (True, 0)
    assert {"added meanwhile", "changed meanwhile", "changed before its turn"} <= set(watched.texts)
    assert store.count() == 9
    assert_answers_with(store, NEW)
    assert store.check().ok


def test_what_is_changed_while_it_is_embedded_is_embedded_again(store):
    done = []

    def write(asked):
        if "record number 0" in asked and not done:
            done.append(1)
            store.update("0", text="changed")

    assert store.reembed(Watched(before=write)).done
    assert_answers_with(store, NEW)


@pytest.mark.parametrize("after", [0, 1, 2])
def test_an_embedder_that_fails_leaves_all_as_it_was_and_is_gone_on_with(store, after):
    flaky = FlakyEmbedder(NEW)
    rounds = []

    def down(_texts):
        rounds.append(1)
        flaky.down = len(rounds) > after

    report = store.reembed(Watched(flaky, before=down))
    assert not report.done
    assert (report.embedded, report.remaining) == (4 * after, 10 - 4 * after)
    assert [each.code for each in report.degradations] == [DegradationCode.EMBEDDER_UNREACHABLE]
    assert store.info().embedder == "old:16"
    assert_answers_with(store, OLD)
    assert store.check().ok
    flaky.down = False
    watched = Watched()
    assert store.reembed(watched).embedded == len(watched.texts) == 10 - 4 * after
    assert_answers_with(store, NEW)


def test_a_record_alone_is_no_reason_to_trust_an_embedder_that_answers_nothing(path):
    with twofold.open(path, embedder=OLD, settings=SMALL) as store:
        store.add("x")
        report = store.reembed(FailingEmbedder(dimension=24))
        assert (report.done, report.remaining, len(report.degradations)) == (False, 1, 1)
        assert_answers_with(store, OLD)


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("dimension", [True, False])
def test_an_embedder_that_refuses_everything_is_not_gone_over_to(path, count, dimension):
    with twofold.open(path, embedder=OLD, settings=SMALL) as store:
        store.add_many(texts(count))
        report = store.reembed(Watched(refused=[""], dimension=dimension))
        assert (report.done, report.parked, report.remaining) == (False, 0, count)
        assert [each.code for each in report.degradations] == [DegradationCode.EMBEDDER_BAD_OUTPUT]
        assert_answers_with(store, OLD)


@pytest.mark.parametrize("dimension", [True, False])
def test_one_that_refuses_all_records_but_answers_otherwise_is(path, dimension):
    with twofold.open(path, embedder=OLD, settings=SMALL) as store:
        store.add_many(texts(3))
        report = store.reembed(Watched(refused=["record"], dimension=dimension))
        assert (report.done, report.embedded, report.parked) == (True, 0, 3)
        store.add("a kettle", id="kettle")
        assert store.search("a kettle", mode="vector").ids == ("kettle",)
        assert store.check().ok


def test_texts_that_the_new_one_refuses_are_parked(store):
    report = store.reembed(Watched(refused=["number 8", "number 9"]))
    assert (report.done, report.embedded, report.parked, report.remaining) == (True, 8, 2, 2)
    assert store.info().pending == 2
    assert store.search("record number 9").ids[0] == "9", "keywords find it"
    assert store.check().ok


def test_another_handle_with_the_old_embedder_says_so_and_answers_from_keywords(store, path):
    with twofold.open(path, embedder=OLD) as other:
        assert other.search("record number 7", mode="vector", k=1).ids == ("7",)
        store.reembed(NEW)
        result = other.search("record number 7", k=1)
        assert result.ids == ("7",)
        assert result.has("space_mismatch")
        added = other.add("by the other", id="x")
        assert added.pending
        assert [each.code for each in added.degradations] == [DegradationCode.SPACE_MISMATCH]
    assert store.embed_pending().embedded == 1
    assert_answers_with(store, NEW)


def test_a_back_fill_under_way_puts_no_vector_of_the_old_embedder_among_the_new(path):
    same_length = FakeEmbedder(16, name="new")
    flaky = FlakyEmbedder(OLD)
    watched = Watched(flaky)
    with twofold.open(path, embedder=watched, settings=SMALL) as store, twofold.open(path, settings=SMALL) as mover:
        store.add("first")
        flaky.down = True
        assert store.add("waits", id="waits").pending
        flaky.down = False
        watched.before = lambda _: mover.reembed(same_length)
        with pytest.raises(ConfigurationError, match="the file's vectors are of 'new:16'"):
            store.embed_pending()
        assert store.check().ok
    with twofold.open(path, embedder=same_length) as store:
        assert_answers_with(store, same_length)


def test_a_move_under_way_is_gone_on_with_or_given_up(store):
    with pytest.raises(KeyboardInterrupt):
        store.reembed(Watched(before=lambda asked: _interrupt_at(asked, "record number 5")))
    third = FakeEmbedder(8, name="third")
    with pytest.raises(ConfigurationError, match=r"on its way to 'new:24'.*abandon=True"):
        store.reembed(third)
    assert store.check().ok
    report = store.reembed(third, abandon=True)
    assert (report.done, report.embedded) == (True, 10)
    assert_answers_with(store, third)
    assert [space["fingerprint"] for space in store.info().backend.details["spaces"]] == ["third:8"]


def test_given_up_for_good_with_the_embedder_in_use(store):
    with pytest.raises(KeyboardInterrupt):
        store.reembed(Watched(before=lambda asked: _interrupt_at(asked, "record number 5")))
    report = store.reembed(OLD, abandon=True)
    assert (report.done, report.embedded, report.remaining) == (True, 0, 0)
    assert [space["fingerprint"] for space in store.info().backend.details["spaces"]] == ["old:16"]
    assert_answers_with(store, OLD)


def _interrupt_at(asked, text):
    if text in asked:
        raise KeyboardInterrupt


def test_who_is_at_work_when_it_is_given_up_ends_with_a_clear_error(store, path):
    def give_up(asked):
        if "record number 5" in asked:
            with twofold.open(path, settings=SMALL) as other:
                other.reembed(OLD, abandon=True)

    with pytest.raises(ConfigurationError, match="given up meanwhile"):
        store.reembed(Watched(before=give_up))
    assert_answers_with(store, OLD)
    assert store.check().ok


def test_several_share_the_work(path):
    with twofold.open(path, embedder=OLD, settings=SMALL) as store:
        store.add_many(texts(120))
    gate = threading.Barrier(3)
    workers, reports = [Watched() for _ in range(3)], []

    def work(watched):
        with twofold.open(path, settings=SMALL) as store:
            gate.wait()
            reports.append(store.reembed(watched))

    threads = [threading.Thread(target=work, args=(watched,)) for watched in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [report.done for report in reports] == [True] * 3
    assert sum(report.embedded for report in reports) == 120
    with twofold.open(path, embedder=NEW) as store:
        assert_answers_with(store, NEW)
        assert store.check().ok


def test_a_file_without_vectors_gets_some(path):
    with twofold.open(path, settings=SMALL) as store:
        store.add_many(texts(3))
        report = store.reembed(Watched(dimension=False))
        assert (report.done, report.embedded) == (True, 3)
        assert store.info().mode is twofold.Mode.HYBRID
        assert_answers_with(store, NEW)


@pytest.mark.parametrize("dimension", [True, False])
def test_an_empty_file_changes_hands_too(path, dimension):
    with twofold.open(path, embedder=OLD, settings=SMALL) as store:
        store.add("x", id="x")
        store.delete("x")
        assert store.reembed(Watched(dimension=dimension)).done
        store.add("y")
        assert_answers_with(store, NEW)


def test_vectors_that_no_text_stands_behind_are_not_lost_unasked(path):
    with twofold.open(path, embedder=GivenVectors("images", 2), settings=SMALL) as store:
        store.add(fields={}, id="image", vector=[1, 0])
        store.add("a caption", id="caption", vector=[0, 1])
        with pytest.raises(ConfigurationError, match=r"1 records have vectors.*forget_given=True"):
            store.reembed(NEW)
        assert store.search("", vector=[1, 0], k=1).ids == ("image",)
        assert store.reembed(NEW, forget_given=True).embedded == 1
        assert store.search("caption", mode="vector").ids == ("caption",)
        assert store.get("image") is not None
        assert store.check().ok


def test_what_cannot_be_is_refused(store):
    for wrong in (GivenVectors("given", 4), "none of these", None, 5):
        with pytest.raises(ConfigurationError):
            store.reembed(wrong)
    with pytest.raises(ConfigurationError, match="needs another name"):
        store.reembed(_named("old:16", FakeEmbedder(8)))
    for wrong in ({"batch_size": 0}, {"abandon": 1}, {"forget_given": "no"}, {"progress": 3}):
        with pytest.raises(ConfigurationError):
            store.reembed(NEW, **wrong)
    with pytest.raises(AccessError):
        store.view(Access(user="u1")).reembed(NEW)
    assert store.view(Access.everything()).reembed(NEW).done


def _named(fingerprint, inner):
    watched = Watched(inner)
    watched.fingerprint = fingerprint
    return watched


def test_closed_meanwhile(store):
    with pytest.raises(StoreClosedError):
        store.reembed(Watched(before=lambda asked: store.close() if "record number 5" in asked else None))


def test_several_fields_and_parts(path):
    settings = StoreSettings(fields=("title", "body"))
    with twofold.open(path, embedder=OLD, settings=settings) as store:
        store.add(fields={"title": "kettle", "body": ["hot water", "cold water"]}, id="a")
        store.add(fields={"title": "pager"}, id="b")
        assert store.reembed(NEW).embedded == 2
        assert store.stats().vectors == 4
        for text, expected in (("kettle", "a"), ("cold water", "a"), ("pager", "b")):
            result = store.search(text, mode="vector", k=1)
            assert result.ids == (expected,)
            assert result[0].score == pytest.approx(1.0, abs=1e-6)
        assert store.check().ok


@pytest.mark.parametrize("index", ["exact", "faiss-flat", "faiss-hnsw", "faiss-ivf", "sqlite-vec"])
def test_every_index_is_made_anew(path, index):
    needed = {"exact": "numpy", "sqlite-vec": "sqlite_vec"}.get(index, "faiss")
    if importlib.util.find_spec(needed) is None:
        pytest.skip(f"{needed} is not installed")
    settings = StoreSettings(index=index)
    with twofold.open(path, embedder=OLD, settings=settings) as store:
        store.add_many(texts(60))
        assert store.search("record number 7", k=1).ids == ("7",)
    with twofold.open(path, embedder=OLD, settings=settings) as store:
        store.reembed(NEW)
        assert_answers_with(store, NEW)
        report = store.check()
        assert (report.damage, report.skipped) == ((), ())
    with twofold.open(path, embedder=NEW, settings=settings) as store:
        assert_answers_with(store, NEW)


def test_the_async_twin(store):
    assert asyncio.run(store.areembed(NEW)).done
