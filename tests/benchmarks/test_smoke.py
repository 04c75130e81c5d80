"""The benchmark runs, on little data and without rivals."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path


def test_the_benchmark_runs_and_reports_every_figure(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    root = Path(__file__).resolve().parents[2]
    subprocess.run(
        [sys.executable, "-m", "tests.benchmarks", "--records", "300", "--queries", "5", "--dimension", "16",
         "--no-rivals", "--json", str(figures)],
        cwd=root, check=True, capture_output=True, timeout=600,
    )  # fmt: skip
    measured = json.loads(figures.read_text())
    assert measured["records"] == 300
    for name in (
        "bulk add, records/s",
        "file, bytes/record",
        "open to first answer, s",
        "hybrid, median ms",
        "bulk add takes longer than bare, times",
        "embedder hangs: the next search, ms",
    ):
        assert measured[name] > 0


def test_the_comparison_of_indexes_runs(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    root = Path(__file__).resolve().parents[2]
    subprocess.run(
        [sys.executable, "-m", "tests.benchmarks", "indexes", "--records", "300", "--queries", "5", "--dimension", "8",
         "--json", str(figures)],
        cwd=root, check=True, capture_output=True, timeout=600,
    )  # fmt: skip
    rows = json.loads(figures.read_text())["indexes"]
    assert rows[0]["index"] == "exact"
    assert all(row["recall, all"] == 1.0 and row["all, ms"] > 0 for row in rows)


def test_the_comparison_of_presets_runs() -> None:
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.presets", "--records", "300", "--queries", "25", "--dimension", "8"],
        cwd=root, check=True, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    rows = [line.strip("| ").split(" | ") for line in done.stdout.splitlines()[2:]]
    assert [name for name, *_ in rows] == ["`rrf`", "`balanced`", "`localmem`", "`engram`"]
    assert float(rows[0][2]) == 1.0
    assert all(float(median) > 0 for _, median, _ in rows)
