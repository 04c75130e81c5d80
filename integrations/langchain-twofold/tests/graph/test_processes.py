"""One file, several processes, one of which is killed."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langgraph.store.base", reason="langgraph is not installed")

from langgraph.store.base import PutOp

from langchain_twofold import TwofoldStore

# Puts pairs in a transaction each, and says of each pair when it is stored.
WRITER = """
import asyncio, sys
from itertools import count
from langgraph.store.base import PutOp
from langchain_twofold import TwofoldStore
path, name = sys.argv[1:]

async def main():
    async with TwofoldStore(path) as store:
        for number in count():
            value = {"text": f"kettle {number} of {name}"}
            if number % 2:
                await store.abatch([PutOp((name, side), str(number), value) for side in ("left", "right")])
            else:
                await asyncio.gather(*(store.aput((name, side), str(number), value) for side in ("left", "right")))
            print(number, flush=True)

asyncio.run(main())
"""


def test_a_killed_process_loses_nothing_that_it_was_told_is_stored(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    TwofoldStore(path).close()
    writers = {
        name: subprocess.Popen([sys.executable, "-c", WRITER, str(path), name], stdout=subprocess.PIPE, text=True)
        for name in ("ann", "ben")
    }
    told: dict[str, int] = {}
    try:
        for name, writer in writers.items():
            assert writer.stdout is not None
            for line in writer.stdout:
                told[name] = int(line)
                if told[name] >= 20:
                    break
    finally:
        for writer in writers.values():
            writer.send_signal(signal.SIGKILL)
            rest, _ = writer.communicate(timeout=60)
            assert rest is not None
    with TwofoldStore(path) as store:
        for name in writers:
            left, right = (
                {item.key for item in store.search((name, side), limit=100_000)} for side in ("left", "right")
            )
            assert left == right  # a transaction is there or it is not
            assert left >= {str(number) for number in range(told[name] + 1)}
            assert {item.namespace[0] for item in store.search((name,), query="kettle", limit=100_000)} == {name}
        store.put(("after",), "k", {"n": 1})
        assert store.store.check().ok


async def test_a_batch_that_is_cancelled_is_there_or_not(model: Any, tmp_path: Path) -> None:
    async with TwofoldStore(tmp_path / "s.db", index={"dims": 27, "embed": model, "fields": ["text"]}) as store:
        await store.aput(("a",), "old", {"text": "x"})
        model.gate.clear()
        model.entered.clear()
        ops = [PutOp(("a",), "old", None), *(PutOp(("a",), str(n), {"text": f"y {n}"}) for n in range(3))]
        batch = asyncio.ensure_future(store.abatch(ops))
        await asyncio.to_thread(model.entered.wait, 60)
        batch.cancel()
        with pytest.raises(asyncio.CancelledError):
            await batch
        model.gate.set()
        await store.aput(("b",), "after", {"text": "z"})
        assert {item.key for item in await store.asearch(("a",))} in ({"old"}, {"0", "1", "2"})
        assert store.store.check().ok
