"""Plain Python: a file of one's own, records of one's own, an answer and its reasons."""

from __future__ import annotations

import twofold
from twofold import SearchParams

NOTES = {
    "vault": "The deploy key lives in the vault, second shelf.",
    "friday": "Deployments run every Friday at noon, never before a holiday.",
    "proxy": "ERR_CONN_REFUSED_7 means that the proxy is down: restart proxy.service.",
    "tea": "Anna prefers tea to coffee.",
}
QUESTIONS = ["what does ERR_CONN_REFUSED_7 mean?", "which hot beverage does she like", "when do we ship?"]

with twofold.open("notes.db", embedder="local") as store:
    report = store.add_many({"id": name, "text": text} for name, text in NOTES.items())
    print(f"{report.added} added, {store.count()} in the file\n")

    for question in QUESTIONS:
        result = store.search(question, k=2, params=SearchParams(trace=True))
        print(question)
        for hit in result:
            print(f"  {hit.score:.2f}  {hit.text}\n        {hit.why}")
        print("  " + ", ".join(f"{stage.name} {stage.milliseconds:.1f} ms" for stage in result.trace or ()) + "\n")

with twofold.open("notes.db", embedder="local") as store:  # it is all still there
    assert store.search("ERR_CONN_REFUSED_7")[0].id == "proxy"
    assert store.search("which hot beverage does she like")[0].id == "tea"
