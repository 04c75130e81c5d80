"""Files that appear whole or not at all: what is written for the user never stands half done under its name."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from twofold.errors import ConfigurationError

__all__ = ["free_place", "placed"]

_PLAIN = 0o666
_PRIVATE = 0o600


def free_place(target: str | os.PathLike[str], *, overwrite: bool, instead: str = "overwrite=True") -> Path:
    """Where ``target`` is, links followed, if a file may be put there.

    Args:
        target: the name of a file in a folder that exists.
        overwrite: whether a file that is there already may be replaced.
        instead: what to say if it is, so that it may.

    Raises:
        ConfigurationError: it is no name, a folder, something else than a regular file, in no folder, or there already.
    """
    raw = os.fspath(target)
    if not isinstance(raw, str) or not raw or "\0" in raw:
        raise ConfigurationError(f"the target is the name of a file as text, not {raw!r}")
    try:
        place = Path(raw).resolve()
        is_there, is_folder, is_file = place.exists(), place.is_dir(), place.is_file()
        has_folder = place.parent.is_dir()
    except (OSError, RuntimeError) as error:  # RuntimeError: links that lead in a circle
        raise ConfigurationError(f"{raw} cannot be used as a path: {error}") from error
    if is_folder:
        raise ConfigurationError(f"{place} is a folder: name a file in it")
    if is_there and not is_file:
        raise ConfigurationError(f"{place} is no regular file, and would be replaced by one: name another")
    if not has_folder:
        raise ConfigurationError(f"there is no folder {place.parent}: create it first")
    if is_there and not overwrite:
        raise ConfigurationError(f"{place} is there already: name another file, or say {instead}")
    return place


@contextmanager
def placed(place: Path, *, overwrite: bool, like: str | os.PathLike[str] | None = None) -> Iterator[Path]:
    """An empty file beside ``place`` to be filled within the block; at its end it gets that name. If the block raises,
    it is removed and ``place`` is as it was.

    Args:
        place: from :func:`free_place`.
        overwrite: whether a file that is there by then is replaced.
        like: a file: who may read that one may read the new one, and nobody else. Default: as the process makes files.

    Raises:
        ConfigurationError: a file has come to lie there meanwhile.
        OSError: the folder cannot be written, say.
    """
    temporary = place.with_name(f"twofold-{uuid4().hex}.part")
    try:
        os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PLAIN if like is None else _PRIVATE))
        yield temporary
        if like is not None:
            temporary.chmod(Path(like).stat().st_mode & 0o777)
        if overwrite:
            temporary.replace(place)
        else:
            _move_to_new(temporary, place)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def _move_to_new(temporary: Path, place: Path) -> None:
    """Give a file a name that nothing has; a second name first, for only that is refused if the name is taken."""
    try:
        place.hardlink_to(temporary)
    except FileExistsError:
        raise ConfigurationError(f"{place} has come to lie there meanwhile; it was not replaced") from None
    except OSError:  # a file system without hard links
        if place.exists():
            raise ConfigurationError(f"{place} has come to lie there meanwhile; it was not replaced") from None
        temporary.replace(place)
