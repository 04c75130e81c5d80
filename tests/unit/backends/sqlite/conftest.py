"""What the tests of the SQLite backend share. A file is looked into through the driver that has it open, or from
another process: a second SQLite library in this one would drop the first one's locks."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from twofold.backends.sqlite.opening import OpenedFile, open_file
from twofold.config import StoreSettings

needs_pysqlite3 = pytest.mark.skipif(
    importlib.util.find_spec("pysqlite3") is None, reason="pysqlite3 (the extra sqlite-vec) is not installed"
)


@pytest.fixture(params=["sqlite3", pytest.param("pysqlite3", marks=needs_pysqlite3)])
def driver_name(request: pytest.FixtureRequest) -> str:
    """Each driver there is."""
    return str(request.param)


@pytest.fixture
def settings(driver_name: str) -> Callable[..., StoreSettings]:
    """Settings with the driver under test."""

    def make(**more: Any) -> StoreSettings:
        return StoreSettings(**{"driver": driver_name, "busy_timeout": 10.0} | more)

    return make


@pytest.fixture
def opened(settings: Callable[..., StoreSettings]) -> Iterator[Callable[..., OpenedFile]]:
    """Opens files that are closed after the test: ``opened(path, tenant=..., migrations=..., **settings)``."""
    files: list[OpenedFile] = []

    def make(path: str | os.PathLike[str], *, tenant: str | None = None, **more: Any) -> OpenedFile:
        extra = {name: more.pop(name) for name in ("functions", "migrations") if name in more}
        file = open_file(path, tenant=tenant, settings=settings(**more), **extra)
        files.append(file)
        return file

    yield make
    for file in files:
        file.close()


@pytest.fixture
def start(driver_name: str) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts a script in a process of its own: ``start(code, *arguments)``. The script finds ``arguments`` (texts),
    ``settings(**more)``, ``opened(path, **more)`` and ``become_nobody()`` defined."""
    started: list[subprocess.Popen[str]] = []

    def run(code: str, *arguments: object) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", _PRELUDE.format(driver=driver_name) + code, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield run
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def run(start: Callable[..., subprocess.Popen[str]]) -> Callable[..., str]:
    """Runs a script as ``start`` does to its end, and gives what it printed."""

    def run(code: str, *arguments: object) -> str:
        process = start(code, *arguments)
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        return out.strip()

    return run


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may reach; pytest closes its own to others."""
    if sys.platform == "win32" or os.getuid() != 0:
        pytest.skip("only root can make files and then look at them as somebody without rights")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


@pytest.fixture
def digest() -> Callable[[Path], str]:
    """The hash of a file's bytes. Only of one that no connection of this process has open."""

    def of(path: Path) -> str:
        return hashlib.sha256(path.read_bytes()).hexdigest()

    return of


_PRELUDE = """
import os, sys
from twofold.backends.sqlite.driver import load_driver
from twofold.backends.sqlite.opening import open_file
from twofold.config import StoreSettings
from twofold.errors import *

arguments = sys.argv[1:]
module = load_driver("{driver}").module

def settings(**more):
    return StoreSettings(**{{"driver": "{driver}", "busy_timeout": 20.0}} | more)

def opened(path, tenant=None, migrations=None, **more):
    extra = {{}} if migrations is None else {{"migrations": migrations}}
    return open_file(path, tenant=tenant, settings=settings(**more), **extra)

def become_nobody():
    os.setgid(65534)
    os.setuid(65534)

"""
