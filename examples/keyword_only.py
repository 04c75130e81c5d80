"""No embedder at all: words, names and codes, in several scripts, and with filters."""

from __future__ import annotations

import twofold
from twofold import A, F

with twofold.open("words.db") as store:
    store.add("Run atomic_write_json before you call os.replace.", id="api", metadata={"version": 3})
    store.add("v1.2.3 broke getUserById for C++ clients.", id="release", tags=("bug",), metadata={"version": 1})
    store.add("Der Fluß führt Hochwasser.", id="german")
    store.add("東京都の天気は晴れです。", id="japanese")
    store.add("Café Amélie ☕ opens at eight.", id="cafe")

    for question in (
        "atomic_write_json",
        "write json",
        "get user",
        "C++",
        "v1.2.3",
        "fluss",
        "東京",
        "cafe amelie",
        "☕",
    ):
        result = store.search(question)
        print(f"{question:18} -> {', '.join(result.ids)}")
        assert result, question
        assert not result.degraded

    print("bugs:             ", store.search("clients", where=A.tags.contains("bug")).ids)
    print("since version 2:  ", store.search("write getUserById", where=F("version") >= 2).ids)
    print(store.search("C++")[0].why)
