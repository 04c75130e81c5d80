"""After a purge no byte of the text is in the file, its log, or beside it; everything else is as it was."""

from __future__ import annotations

import importlib.util
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import twofold
from twofold import (
    A,
    Access,
    AccessError,
    ConfigurationError,
    GivenVectors,
    Owner,
    ReadOnlyStoreError,
    SearchParams,
    StoreBusyError,
    StoreSettings,
    UnsupportedOperationError,
)
from twofold.backends.protocol import Capability
from twofold.backends.sqlite.backend import SqliteBackend
from twofold.backends.sqlite.vec0 import unit_blobs
from twofold.testing import FakeEmbedder

EVERYTHING = Access.everything()
ANN, BEN = Access(user="ann"), Access(user="ben", rooms=("r",))
SECRETS = ("Zanzibarsecret", "quokkasecret", "wombatsecret", "numbatsecret", "dingosecret")

has_faiss = importlib.util.find_spec("faiss") is not None
has_vec = importlib.util.find_spec("sqlite_vec") is not None and importlib.util.find_spec("pysqlite3") is not None

READ = """
import pathlib, sys
for file in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    data = file.read_bytes()
    for word in sys.argv[2:]:
        if word.encode() in data or word.lower().encode() in data:
            print(file.name, word)
"""


def traces(folder: Path, *words: str) -> list[str]:
    """Which file of a folder holds which word. Read by another process: to close a file drops this one's locks."""
    done = subprocess.run(
        [sys.executable, "-c", READ, str(folder), *words], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.splitlines()


def fill(store: twofold.HybridStore) -> None:
    """Records of several owners; those of ann, and `shared`, hold the secrets wherever text can stand."""
    chance = random.Random(1)
    words = [f"word{number}" for number in range(300)]
    store.add_many(
        [{"text": " ".join(chance.choices(words, k=40)), "id": f"other-{number}"} for number in range(300)],
        access=BEN,
    )
    store.add(f"{SECRETS[0]} kettle", id="a", access=ANN, tags=(SECRETS[1],), metadata={"note": SECRETS[2]})
    store.add(f"{SECRETS[0]} teapot", id="b", access=ANN, source=SECRETS[3], payload={"x": SECRETS[4]})
    store.add(f"{SECRETS[0]} cup", id="shared")
    store.add("a kettle of ben's", id="kept", access=BEN)
    store.add("everybody's kettle", id="common")
    store.link("a", "common", access=ANN, kind=SECRETS[1])
    store.link("kept", "common", access=BEN)
    store.update("a", text=f"{SECRETS[0]} {SECRETS[2]} changed", access=ANN)
    store.add("text without it", id="shared")
    for access in (ANN, BEN):
        store.marks.set("docs", ["a", "kept", "elsewhere"], groups=[SECRETS[3]] * 3, access=access)
    store.search("kettle", access=ANN, params=SearchParams(touch=True))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "data"
    place.mkdir()
    return place


@pytest.fixture(params=["sqlite3", "pysqlite3"])
def store(folder: Path, request: pytest.FixtureRequest) -> Iterator[twofold.HybridStore]:
    """By both libraries: some builds of SQLite wipe what is deleted by themselves, and would prove nothing."""
    if importlib.util.find_spec(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    settings = StoreSettings(busy_timeout=0.3, driver=request.param)
    with twofold.open(folder / "store.db", embedder=FakeEmbedder(16), settings=settings) as opened:
        yield opened


def test_nothing_of_a_user_is_left_and_nothing_else_is_gone(store: twofold.HybridStore, folder: Path) -> None:
    fill(store)
    store.marks.delete("docs", ["a", "kept", "elsewhere"], access=BEN)
    others = {record.id: record for record in store.list(access=BEN, include_archived=True)}
    question = store.search("word7 kettle", access=BEN, k=50)
    assert traces(folder, *SECRETS), "or this would prove nothing"
    assert store.purge(user="ann") == 2
    assert traces(folder, *SECRETS) == []
    assert {record.id: record for record in store.list(access=BEN, include_archived=True)} == others
    assert store.search("word7 kettle", access=BEN, k=50).ids == question.ids
    assert [link.source for link in store.links("common", access=EVERYTHING)] == ["kept"]
    assert store.marks.exists("docs", ["a"], access=ANN) == [False]
    assert store.check().ok
    assert store.purge(user="ann") == 0
    store.close()
    assert traces(folder, *SECRETS) == []


def test_ids_are_purged_as_they_are_deleted(store: twofold.HybridStore, folder: Path) -> None:
    fill(store)
    with pytest.raises(AccessError, match="not change it"):
        store.purge("common", access=BEN)
    assert store.purge("a", access=BEN) == 0, "it is ann's: to ben there is no such record"
    assert store.get("a", access=ANN) is not None
    assert store.purge(["a", "b", "unknown"], access=ANN) == 2
    assert store.marks.exists("docs", ["a", "elsewhere"], access=ANN) == [False, True]
    assert store.marks.exists("docs", ["a"], access=BEN) == [True]
    for access in (ANN, BEN):
        store.marks.delete("docs", ["elsewhere", "a", "kept"], access=access)
    assert store.purge([], access=ANN) == 0
    assert traces(folder, *SECRETS) == []


def test_what_was_deleted_earlier_goes_too(store: twofold.HybridStore, folder: Path) -> None:
    store.add("everybody's", id="kept")
    store.add(SECRETS[0], id="x")
    store.delete("x")
    assert store.purge("x") == 0
    assert traces(folder, SECRETS[0]) == []
    assert store.get("kept") is not None


def test_a_namespace_an_owner_a_room(store: twofold.HybridStore) -> None:
    store.add("one", id="x", namespace=("n",), access=ANN)
    store.add("two", id="x", access=ANN)
    store.add("three", id="x", access=BEN, scope="room", room="r")
    store.add("four", id="x", access=BEN)
    assert store.purge("x", namespace=("n",), owner=Owner.user("ann"), access=EVERYTHING) == 1
    with pytest.raises(twofold.AmbiguousIdError):
        store.purge("x", access=EVERYTHING)
    assert store.purge(room="r") == 1
    assert [record.text for record in store.list(access=EVERYTHING)] == ["four", "two"]


def test_who_may_purge_whom(store: twofold.HybridStore) -> None:
    fill(store)
    for handle, access in ((store, BEN), (store, Access()), (store.view(BEN), None), (store.view(Access()), None)):
        with pytest.raises(AccessError, match="may not remove what belongs to personal:ann"):
            handle.purge(user="ann", access=access)
    with pytest.raises(AccessError):
        store.purge(room="r", access=ANN)
    assert store.count(access=ANN) == 2 + 2
    assert store.view(ANN).purge(user="ann") == 2
    assert store.purge(user="ben", access=EVERYTHING) == 301


@pytest.mark.parametrize(
    "wrong",
    [{}, {"ids": "a", "user": "u"}, {"user": "u", "room": "r"}, {"user": "u", "namespace": ("n",)}, {"user": ""}],
)
def test_mistakes(store: twofold.HybridStore, wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError):
        store.purge(**wrong)  # type: ignore[arg-type]


def test_a_store_that_is_read_only(folder: Path) -> None:
    with twofold.open(folder / "store.db") as store:
        store.add("kettle", id="a")
    with (
        twofold.open(folder / "store.db", settings=StoreSettings(read_only=True)) as store,
        pytest.raises(ReadOnlyStoreError, match="reading only"),
    ):
        store.purge("a")


def test_a_library_without_fts5(store: twofold.HybridStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.add("kettle", id="a")
    without = property(lambda _: frozenset(Capability) - {Capability.SCRUB})
    monkeypatch.setattr(SqliteBackend, "capabilities", without)
    with pytest.raises(UnsupportedOperationError, match="leave no trace"):
        store.purge("a")
    assert store.get("a") is not None


def test_in_memory() -> None:
    with twofold.open(":memory:") as store:
        store.add("kettle", id="a", access=ANN)
        store.add("teapot", id="b")
        assert store.purge(user="ann") == 1
        assert store.search("kettle teapot", access=EVERYTHING).ids == ("b",)
        assert store.check().ok


READER = """
import sys, twofold
store = twofold.open(sys.argv[1])
with store._backend.read() as reader:
    print(len(store.search("teapot", access=twofold.Access.everything())), flush=True)
    sys.stdin.readline()
print(len(store.search("teapot", access=twofold.Access.everything())), flush=True)
sys.stdin.readline()
"""


def test_a_reader_of_another_process_is_told_of(store: twofold.HybridStore, folder: Path) -> None:
    fill(store)
    with subprocess.Popen(
        [sys.executable, "-c", READER, str(folder / "store.db")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as reader:
        assert reader.stdin is not None
        assert reader.stdout is not None
        before = int(reader.stdout.readline())
        with pytest.raises(StoreBusyError, match="still needs an old state") as raised:
            store.purge(user="ann")
        assert "call purge again" in raised.value.__notes__[0]
        assert store.count(access=ANN) == 2, "they are deleted all the same; shared and common are everybody's"
        assert traces(folder, SECRETS[0]), "the reader's state still has it"
        reader.stdin.write("\n")
        reader.stdin.flush()
        assert int(reader.stdout.readline()) == before - 1
        store.marks.delete("docs", ["a", "kept", "elsewhere"], access=BEN)
        assert store.purge(user="ann") == 0
        assert traces(folder, *SECRETS) == [], "though the other process still has the store open"
        assert store.check().ok
        reader.stdin.write("\n")
        reader.stdin.flush()


def test_a_reader_of_this_process_is_waited_for(store: twofold.HybridStore) -> None:
    store.add("kettle", id="a")
    with store._backend.read(), pytest.raises(StoreBusyError):
        store.purge("a")
    store.purge("a")
    assert store.count() == 0


@pytest.mark.parametrize("index", ["faiss-hnsw", "faiss-flat"])
@pytest.mark.skipif(not has_faiss, reason="faiss-cpu (the extra faiss) is not installed")
def test_indexes_beside_the_file_go_and_none_of_before_is_saved_again(folder: Path, index: str) -> None:
    settings = StoreSettings(index=index)  # type: ignore[arg-type]
    chance = np.random.default_rng(3)
    vectors = chance.normal(size=(3_000, 8)).astype(np.float32)
    secret = vectors[17]
    path = folder / "store.db"
    with twofold.open(path, embedder=GivenVectors("mine", 8), settings=settings) as store:
        store.add_many(
            [{"id": f"v{number}", "text": f"text {number}", "vector": row} for number, row in enumerate(vectors)]
        )
        store.search("", vector=secret, mode="vector")
    with (
        twofold.open(path, embedder=GivenVectors("mine", 8), settings=settings) as store,
        twofold.open(path, embedder=GivenVectors("mine", 8), settings=settings) as other,
    ):
        assert other.search("", vector=secret, mode="vector", k=1).ids == ("v17",)
        assert list(folder.glob("store.db.faiss-*")), "or this would prove nothing"
        store.purge("v17")
    assert not list(folder.glob("store.db.faiss-*")), "what the other one has in memory is older, and not saved"
    with twofold.open(path, embedder=GivenVectors("mine", 8), settings=settings) as store:
        assert "v17" not in store.search("", vector=secret, mode="vector", k=10).ids
        store.delete("v18")
        assert "v18" not in store.search("", vector=vectors[18], mode="vector", k=10).ids
        store.purge("v18")
    assert not list(folder.glob("store.db.faiss-*")), "what only marks its vector as removed is not saved"
    with twofold.open(path, embedder=GivenVectors("mine", 8), settings=settings) as store:
        assert {"v17", "v18"}.isdisjoint(store.search("", vector=secret, mode="vector", k=3_000).ids)
        assert store.check().ok
    assert secret.tobytes() not in path.read_bytes()


@pytest.mark.parametrize("purged_with", ["sqlite-vec", "exact"])
@pytest.mark.skipif(not has_vec, reason="sqlite-vec and pysqlite3 (the extra sqlite-vec) are not installed")
def test_a_vec0_table_is_cleaned_with_and_without_the_extension(folder: Path, purged_with: str) -> None:
    path = folder / "store.db"

    def opened(index: str) -> twofold.HybridStore:
        settings = StoreSettings(index=index, driver="pysqlite3")  # type: ignore[arg-type]
        return twofold.open(path, embedder=GivenVectors("mine", 4), settings=settings)

    vectors = np.random.default_rng(4).normal(size=(4, 4)).astype(np.float32)
    with opened("sqlite-vec") as store:
        store.add_many([{"id": f"v{n}", "text": f"text {n}", "vector": row} for n, row in enumerate(vectors)])
    units = unit_blobs(vectors)  # what vec0 holds
    assert vectors[2].tobytes() in path.read_bytes()
    assert units[2] in path.read_bytes()
    with opened(purged_with) as store:
        assert store.purge("v2") == 1
    left = b"".join(file.read_bytes() for file in folder.iterdir())
    assert vectors[2].tobytes() not in left
    assert units[2] not in left
    with opened("sqlite-vec") as store:
        found = store.search("", vector=vectors[2], mode="vector")
        assert set(found.ids) == {"v0", "v1", "v3"}
        assert not found.degradations
        assert store.check().ok
        store.add("more", id="v2", vector=vectors[2])
        assert store.search("", vector=vectors[2], mode="vector", k=1).ids == ("v2",)


def test_keyword_tokens_go_after_many_writes(store: twofold.HybridStore, folder: Path) -> None:
    """Tokens lie in many segments, as additions and as deletions, by the time that they are purged."""
    chance = random.Random(5)
    secrets = [f"secret{number}x" for number in range(12)]
    for round_ in range(40):
        number = chance.randrange(12)
        store.add(f"{secrets[number]} round{round_}", id=f"s{number}")
        store.add_many([{"id": f"t{number}", "text": secrets[number]}, {"id": f"t{number}", "text": f"k{round_}"}])
        if round_ % 3 == 0:
            store.delete(f"s{chance.randrange(12)}")
    assert store.purge(where_all(store)) > 0
    assert traces(folder, *secrets) == []
    assert store.check().ok


def where_all(store: twofold.HybridStore) -> list[str]:
    return [record.id for record in store.list(where=A.id.prefix("s"))]
