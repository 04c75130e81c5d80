"""Threads and processes that read, write, link, touch and back-fill one file at once, with an embedder that fails now
and then: no error, no loss, all of it sound.

A few seconds of it by default; ``TWOFOLD_STRESS_SECONDS=30 pytest tests/integration/test_at_once.py`` is the long run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import twofold
from twofold import Access
from twofold.testing import FakeEmbedder

SECONDS = float(os.environ.get("TWOFOLD_STRESS_SECONDS", "3"))
PROCESSES, THREADS = 2, 8

WORKER = """
import itertools, json, logging, random, sys, time
from concurrent.futures import ThreadPoolExecutor
import twofold
from twofold import Access, EmbeddingSettings, SearchParams, StoreSettings
from twofold.testing import FakeEmbedder

path, name, seconds, threads = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
logging.disable(logging.WARNING)  # an outage is expected, and what is on stderr is taken for an error
settings = StoreSettings(touch_flush_seconds=0.1, semantic_links=0.95, busy_timeout=120.0,
                         embedding=EmbeddingSettings(first_pause=0.05, longest_pause=0.1))

class Flaky(FakeEmbedder):
    calls, failures = itertools.count(1), itertools.count()

    def embed(self, texts, kind):
        if kind == "document" and (next(self.calls) % 5 == 0 or time.monotonic() % 1.0 < 0.2):
            next(self.failures)
            raise ConnectionError("down")
        return super().embed(texts, kind)

embedder = Flaky(16)
TOUCH = SearchParams(touch=True, expand=3, hops=2)

with twofold.open(path, embedder=embedder, settings=settings) as store:
    print("ready", flush=True)
    sys.stdin.readline()
    end = time.monotonic() + seconds

    def work(thread):
        chance = random.Random(f"{name}-{thread}")
        access = Access(user=f"{name}-{thread}")
        kept, deleted, linked, touched, number = [], 0, set(), 0, 0
        while time.monotonic() < end or number < 20:  # a busy machine has time for few
            number += 1
            id_ = f"r{number}"
            what = chance.random()
            if what < 0.03:
                store.embed_pending(access=chance.choice((access, Access.everything())), batch_size=5)
            elif what < 0.3:
                store.add(f"kettle {id_} of {name}", id=id_, access=access)
                kept.append(id_)
            elif what < 0.4:
                ids = [f"{id_}-{part}" for part in range(3)]
                store.add_many([{"id": each, "text": f"teapot {each}"} for each in ids], access=access,
                               extracted_together=True)
                kept += ids
            elif what < 0.5 and len(kept) > 1:
                gone = kept.pop(chance.randrange(len(kept)))
                assert store.delete(gone, access=access) == 1
                linked = {pair for pair in linked if gone not in pair}
                deleted += 1
            elif what < 0.6 and len(kept) > 1:
                pair = tuple(chance.sample(kept, 2))
                assert store.link(*pair, kind="mine", access=access) == (pair not in linked)
                linked.add(pair)
            elif what < 0.7 and kept:
                store.neighbors(chance.choice(kept), hops=2, access=access)
            else:
                mode = chance.choice(("hybrid", "keyword"))
                result = store.search("shared" if what > 0.9 else "kettle", k=3, access=access, mode=mode, params=TOUCH)
                touched += sum(hit.id == "shared" for hit in (*result.hits, *result.linked))
        return {"kept": kept, "links": sorted(linked), "touched": touched, "deleted": deleted, "number": number}

    with ThreadPoolExecutor(threads) as pool:
        done = list(pool.map(work, range(threads)))
print(json.dumps({"done": done, "failures": next(embedder.failures)}), flush=True)
"""


def test_nothing_is_lost_when_all_is_done_at_once(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with twofold.open(path, embedder=FakeEmbedder(16)) as store:
        store.add("shared by all", id="shared")
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", WORKER, str(path), f"p{number}", str(SECONDS), str(THREADS)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for number in range(PROCESSES)
        ]
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        reports = {}
        for number, process in enumerate(processes):
            said, errors = process.communicate(timeout=SECONDS * 5 + 300)
            assert (process.returncode, errors) == (0, "")
            answer = json.loads(said)
            assert answer["failures"] > 0
            reports.update({f"p{number}-{thread}": each for thread, each in enumerate(answer["done"])})

        assert sum(each["number"] for each in reports.values()) > 100
        for user, each in reports.items():
            mine = store.view(Access(user=user))
            assert {record.id for record in mine.list()} == {*each["kept"], "shared"}
            links = {
                (link.source, link.target)
                for id_ in each["kept"]
                for link in mine.links(id_, direction="out", kinds=["mine"])
            }
            assert links == {tuple(pair) for pair in each["links"]}
        shared = store.get("shared")
        assert shared is not None
        assert shared.access_count == sum(each["touched"] for each in reports.values()) > 0
        filled_in = store.embed_pending(access=Access.everything())
        assert (filled_in.remaining, filled_in.degradations) == (0, ()), "no claim outlives the process that made it"
        assert store.info(access=Access.everything()).pending == 0
        report = store.check()
        assert report.ok, report.damage
