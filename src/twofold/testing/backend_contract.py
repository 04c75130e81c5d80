"""The contract of a backend, as tests to be run against yours.

::

    pytest.register_assert_rewrite("twofold.testing")  # before the import: failures then show their values

    class TestMyBackend(BackendContract):
        @pytest.fixture
        def backend(self, tmp_path):
            with contextlib.closing(MyBackend(tmp_path)) as backend:
                yield backend

Each declared :class:`~twofold.backends.protocol.Capability` is tested in both directions where there are two. A test
that your backend cannot pass yet is overridden and marked ``@pytest.mark.xfail(reason=...)``; one that is overridden,
removed or skipped in any other way fails the suite.
"""
# ruff: noqa: S101, D102 - tests: they assert, and their names say what they ask

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from twofold.backends.protocol import Backend, Candidate, Capability
from twofold.errors import StoreClosedError
from twofold.testing.contract_keyword import KeywordContract
from twofold.testing.contract_lifecycle import LifecycleContract
from twofold.testing.contract_links import LinkContract
from twofold.testing.contract_moving import MovingContract
from twofold.testing.contract_ranking import RankingContract
from twofold.testing.contract_rows import RowContract, seen_by, stored
from twofold.testing.contract_vectors import VectorContract, embed, found_by_vector, vector
from twofold.testing.records import make_record, make_vectors

__all__ = ["BackendContract"]


class _Boom(Exception):  # noqa: N818 - no error of anybody's
    """Raised by a test to see what is left behind."""


class SessionContract:
    """Transactions, snapshots, generations, threads, the end."""

    def test_the_generation_grows_by_one_a_write(self, backend: Backend) -> None:
        def generation() -> int:
            with backend.read() as reader:
                return reader.generation

        start = generation()
        first, _ = stored(backend, make_record("a", "x"), make_record("b", "y"))
        assert generation() == start + 1
        with backend.write() as writer:
            writer.replace(first, make_record("a", "z"), None)
            writer.set_archived([first], make_record("a").created_at)
            assert writer.generation == start + 2
            writer.delete([first])
        assert generation() == start + 2
        with backend.write() as writer:
            writer.delete([first])
            writer.set_archived([first], None)
        assert generation() == start + 2, "nothing was changed"

    def test_a_write_that_raises_leaves_nothing(self, backend: Backend) -> None:
        if Capability.TRANSACTIONS not in backend.capabilities:
            pytest.skip("the backend does not declare TRANSACTIONS")
        record, other = make_record("a", "old"), make_record("b", "other")
        key, _ = embed(backend, (record, (1, 0)), (other, (0, 1)))
        with backend.read() as reader:
            generation = reader.generation
        new = make_record("a", "new")

        def write() -> None:
            with backend.write() as writer:
                writer.replace(key, new, make_vectors(new, (0, 1)))
                writer.delete([key + 1])
                writer.insert(make_record("c", "x"), None)
                assert writer.nearest(vector(0, 1), seen_by(), 5).candidates == (Candidate(key, 1.0),)
                raise _Boom

        with pytest.raises(_Boom):
            write()
        with backend.read() as reader:
            assert reader.generation == generation
            assert reader.records([key])[key] == record
            assert reader.count(seen_by()) == 2
            assert reader.vectors([key])[key].by_field["text"].tolist() == [[1, 0]]
        assert found_by_vector(backend, (1, 0), limit=1) == ["a"]
        assert backend.check().ok

    def test_a_writer_sees_its_own_writes(self, backend: Backend) -> None:
        with backend.write() as writer:
            writer.adopt("fake", 2)
            record = make_record("a", "kettle")
            key = writer.insert(record, make_vectors(record, (1, 0)))
            assert writer.records([key]) == {key: record}
            assert writer.count(seen_by()) == 1
            assert writer.nearest(vector(1, 0), seen_by(), 5).candidates == (Candidate(key, 1.0),)
            writer.delete([key])
            assert writer.nearest(vector(1, 0), seen_by(), 5).candidates == ()
            assert writer.count(seen_by()) == 0

    def test_a_snapshot_stays_as_it_is(self, backend: Backend) -> None:
        if Capability.SNAPSHOTS not in backend.capabilities:
            pytest.skip("the backend does not declare SNAPSHOTS")
        embed(backend, (make_record("a", "x"), (1, 0)))
        later = make_record("b", "y")
        with ThreadPoolExecutor(1) as pool:
            with backend.read() as reader:
                generation = reader.generation
                # A store in memory makes the writer wait instead: then this is not done before the snapshot ends.
                written = pool.submit(embed, backend, (later, (1, 0)))
                _wait_a_little(written.done)
                assert reader.generation == generation
                assert reader.count(seen_by()) == 1
                assert len(reader.nearest(vector(1, 0), seen_by(), 5).candidates) == 1
            written.result(timeout=30)
        assert found_by_vector(backend, (1, 0)) == ["a", "b"]
        with backend.read() as reader:
            assert reader.generation == generation + 1

    def test_another_handle_sees_what_was_written(
        self, backend: Backend, another: Callable[[], Backend] | None
    ) -> None:
        if Capability.MULTI_PROCESS not in backend.capabilities:
            assert another is None, "a backend that a second handle can share declares MULTI_PROCESS"
            return
        assert another is not None, "give the fixture `another`: MULTI_PROCESS is declared"
        embed(backend, (make_record("a", "x"), (1, 0)))
        second = another()
        assert found_by_vector(second, (1, 0)) == ["a"]
        for id_, writes, reads in (("b", second, backend), ("c", backend, second)):
            embed(writes, (make_record(id_, id_), (1, 0)))
            assert id_ in found_by_vector(reads, (1, 0))
        (key,) = [key for key, _ in _found(second, "a")]
        with second.write() as writer:
            writer.delete([key])
        assert found_by_vector(backend, (1, 0)) == ["b", "c"]

    def test_many_threads(self, backend: Backend) -> None:
        # mem0ai/mem0#3184: objects made in one thread could not be used in another.
        embed(backend, (make_record("start", "x"), (1, 0)))

        def work(thread: int) -> None:
            for n in range(10):
                record = make_record(f"{thread}-{n}", f"text {thread} {n}")
                with backend.write() as writer:
                    writer.insert(record, make_vectors(record, (1, thread + n)))
                with backend.read() as reader:
                    found = reader.nearest(vector(1, 0), seen_by(), 1_000)
                    assert len(found.candidates) == reader.count(seen_by())
                    assert found.unembedded == 0

        with ThreadPoolExecutor(8) as pool:
            for done in [pool.submit(work, thread) for thread in range(8)]:
                done.result(timeout=120)
        with backend.read() as reader:
            assert reader.count(seen_by()) == 1 + 8 * 10
        assert backend.check().ok

    def test_info(self, backend: Backend) -> None:
        embed(backend, (make_record("secret", "hidden words", owner=None), (1, 0)))
        info = backend.info()
        assert info.fields == backend.fields == ("text",)
        assert (info.fingerprint, info.dimension) == ("fake", 2)
        assert info.read_only is backend.read_only is False
        assert "secret" not in repr(info)
        assert "hidden" not in repr(info)

    def test_check_of_a_sound_store(self, backend: Backend) -> None:
        assert backend.check().ok
        keys = embed(backend, (make_record("a", "x"), (1, 0)), (make_record("b", "y"), (0, 1)))
        stored(backend, make_record("c", "z"), make_record("d", {}))
        with backend.write() as writer:
            writer.delete(keys[:1])
        report = backend.check()
        assert (report.records, report.damage) == (3, ())

    def test_close(self, backend: Backend) -> None:
        backend.close()
        backend.close()
        with pytest.raises(StoreClosedError), backend.read():
            pass
        with pytest.raises(StoreClosedError), backend.write():
            pass


class BackendContract(
    RowContract,
    KeywordContract,
    VectorContract,
    RankingContract,
    LinkContract,
    LifecycleContract,
    MovingContract,
    SessionContract,
):
    """Subclass it and give the fixture ``backend``; see the module's docstring."""

    @pytest.fixture
    def backend(self) -> Backend:
        """An empty backend with the one field ``text``, in English, that is closed after the test."""
        raise NotImplementedError("give the fixture `backend`")

    @pytest.fixture
    def another(self) -> Callable[[], Backend] | None:
        """Opens a second handle on the data of ``backend``, as another process would. Default: there is none."""
        return None

    def test_no_contract_test_is_changed(self) -> None:
        for name in dir(BackendContract):
            if name.startswith("test_"):
                own = getattr(type(self), name, None)
                unchanged = own is getattr(BackendContract, name)
                assert unchanged or _fails_for_a_reason(own), (
                    f"{name} is overridden or removed; mark it @pytest.mark.xfail(reason=...) and let it call super()"
                )


def _fails_for_a_reason(test: object) -> bool:
    marks = getattr(test, "pytestmark", [])
    return any(mark.name == "xfail" and mark.kwargs.get("reason") for mark in marks) and not any(
        mark.name in ("skip", "skipif") for mark in marks
    )


def _found(backend: Backend, id_: str) -> list[tuple[int, object]]:
    with backend.read() as reader:
        return list(reader.find(id_, (), None))


def _wait_a_little(done: Callable[[], bool]) -> None:
    """Wait until ``done``, but not for long."""
    pause = threading.Event()
    for _ in range(20):
        if done() or pause.wait(0.01):
            return
