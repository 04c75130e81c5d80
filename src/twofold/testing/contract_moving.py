"""What every backend must do when it is copied and when records are removed for good: a part of
:mod:`twofold.testing.backend_contract`.
"""
# ruff: noqa: S101, D102 - tests: they assert, and their names say what they ask

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from twofold.backends.protocol import Backend, Capability, LinkWrite, Mark
from twofold.errors import ConfigurationError, UnsupportedOperationError
from twofold.testing.contract_rows import ids_of, seen_by, stored
from twofold.testing.contract_vectors import embed, found_by_vector
from twofold.testing.records import NEW_YEAR, make_record
from twofold.types import Owner

__all__ = ["MovingContract"]

U1, ALL = Owner.user("u1"), Owner.everybody()
WORDS = ("zanzibarsecret", "quokkasecret")
"""Words that nothing else holds."""


def _keys(backend: Backend, owner: Owner, namespace: str) -> list[str]:
    with backend.read() as reader:
        return [mark.key for mark in reader.marks(owner, namespace)]


class MovingContract:
    """Backup, scrub, and marks of an owner."""

    @pytest.fixture
    def open_copy(self) -> Callable[[str], Backend]:
        """Opens what ``backup`` made; the test closes it. Needed where BACKUP is declared."""

        def missing(path: str) -> Backend:
            raise NotImplementedError(f"give the fixture `open_copy`: BACKUP is declared, and {path} is to be opened")

        return missing

    def test_a_backup_is_all_there_is(
        self, backend: Backend, open_copy: Callable[[str], Backend], tmp_path: Path
    ) -> None:
        target = tmp_path / "copy"
        if Capability.BACKUP not in backend.capabilities:
            with pytest.raises(UnsupportedOperationError):
                backend.backup(target)
            return
        embed(backend, (make_record("a", "kettle"), (1, 0)), (make_record("b", "teapot", owner=U1), (0, 1)))
        told: list[tuple[int, int]] = []
        path = backend.backup(target, progress=lambda done, total: told.append((done, total)))
        assert told
        assert told[-1][0] == told[-1][1]
        embed(backend, (make_record("later", "cup"), (1, 1)))
        assert list(tmp_path.glob("copy*")) == [Path(path)], "nothing is left beside it"
        with closing(open_copy(path)) as copy:
            assert copy.check().ok
            with copy.read() as reader:
                keys = reader.scan(seen_by(), (), None, 0)
            assert ids_of(copy, keys) == ["a", "b"]
            assert found_by_vector(copy, (0, 1)) == ["b", "a"]

    def test_a_backup_replaces_nothing_in_silence(self, backend: Backend, tmp_path: Path) -> None:
        if Capability.BACKUP not in backend.capabilities:
            pytest.skip("the backend does not declare BACKUP")
        target = tmp_path / "copy"
        target.write_bytes(b"mine")
        with pytest.raises(ConfigurationError, match="is there already"):
            backend.backup(target)
        assert target.read_bytes() == b"mine"
        backend.backup(target, overwrite=True)
        assert target.read_bytes() != b"mine"
        with pytest.raises(ConfigurationError, match="folder"):
            backend.backup(tmp_path / "missing" / "copy")

    def test_scrub_leaves_nothing_of_what_was_deleted(self, backend: Backend, tmp_path: Path) -> None:
        if Capability.SCRUB not in backend.capabilities:
            with pytest.raises(UnsupportedOperationError):
                backend.scrub()
            return
        first, kept, *_ = embed(
            backend,
            (make_record("gone", f"{WORDS[0]} kettle", attributes={"tags": (WORDS[1],)}), (1, 0)),
            (make_record("kept", "a kettle"), (0.6, 0.8)),
        )
        stored(backend, make_record("waits", "no vector yet"))
        with backend.write() as writer:
            writer.put_links([LinkWrite(first, kept, "related", 1.0)], NEW_YEAR)
            writer.park(first, WORDS[0])
            writer.delete([first])
        backend.scrub()
        backend.scrub()
        assert found_by_vector(backend, (1, 0)) == ["kept"]
        with backend.read() as reader:
            assert reader.count(seen_by()) == 2
            assert reader.document_frequencies(["kettl", "kettle"]) == {"kettl": 1}
            assert reader.links(kept, seen_by()) == []
        assert backend.check().ok
        if Capability.BACKUP in backend.capabilities:
            data = Path(backend.backup(tmp_path / "copy")).read_bytes()
            assert not [word for word in WORDS if word.encode() in data]
        embed(backend, (make_record("new", f"{WORDS[0]} again"), (1, 0)))
        assert found_by_vector(backend, (1, 0)) == ["new", "kept"]

    def test_an_owners_marks_are_forgotten_whatever_their_namespace(self, backend: Backend) -> None:
        with backend.write() as writer:
            for owner in (U1, ALL):
                for namespace in ("n", "m"):
                    writer.put_marks(owner, namespace, [Mark("a", None, 1.0), Mark("b", "group", 2.0)])
        with backend.write() as writer:
            assert writer.forget_marks(U1, ["a", "unknown"]) == 2
        assert _keys(backend, U1, "n") == _keys(backend, U1, "m") == ["b"]
        with backend.write() as writer:
            assert writer.forget_marks(U1) == 2
            assert writer.forget_marks(U1) == 0
        assert _keys(backend, U1, "n") == []
        assert _keys(backend, ALL, "n") == _keys(backend, ALL, "m") == ["a", "b"]
