"""The benchmark runs, on little data and without rivals."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
from tests.benchmarks.goals import GOALS
from tests.benchmarks.growth import CURVES
from tests.benchmarks.peers import PEERS


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
    assert [name for name, *_ in rows] == ["`balanced`", "`rrf`", "`localmem`", "`engram`"]
    assert float(rows[1][2]) == 1.0
    assert all(float(median) > 0 for _, median, _ in rows)


def test_the_measurement_of_graph_stores_runs(tmp_path: Path) -> None:
    pytest.importorskip("langgraph.store.base", reason="langgraph is not installed")
    figures = tmp_path / "figures.json"
    root = Path(__file__).resolve().parents[2]
    subprocess.run(
        [sys.executable, "-m", "tests.benchmarks", "graph-store", "--operations", "120", "--no-rivals",
         "--json", str(figures)],
        cwd=root, check=True, capture_output=True, timeout=600,
    )  # fmt: skip
    measured = json.loads(figures.read_text())
    assert measured.pop("operations") == 120
    assert len(measured) == 3
    assert all(seconds > 0 for seconds in measured.values())


def test_the_measurement_of_adapters_runs(tmp_path: Path) -> None:
    pytest.importorskip("langchain_core", reason="langchain-core is not installed")
    pytest.importorskip("llama_index.core", reason="llama-index-core is not installed")
    figures = tmp_path / "figures.json"
    root = Path(__file__).resolve().parents[2]
    subprocess.run(
        [sys.executable, "-m", "tests.benchmarks", "adapters", "--records", "300", "--queries", "25",
         "--dimension", "16", "--json", str(figures)],
        cwd=root, check=True, capture_output=True, timeout=600,
    )  # fmt: skip
    measured = json.loads(figures.read_text())
    assert measured["store.search, median ms"] > 0
    assert {"LangChain adds, median ms", "LlamaIndex adds, median ms"} <= measured.keys()


def test_the_measurement_of_a_size_runs_and_fills_a_page(tmp_path: Path) -> None:
    pytest.importorskip("faiss", reason="faiss is not installed")
    figures, page = tmp_path / "figures.json", tmp_path / "page.md"
    root = Path(__file__).resolve().parents[2]
    subprocess.run(
        [sys.executable, "-m", "tests.benchmarks", "scale", "--records", "300", "--queries", "5", "--dimension", "16",
         "--json", str(figures)],
        cwd=root, check=True, capture_output=True, timeout=600,
    )  # fmt: skip
    measured = json.loads(figures.read_text(encoding="utf-8"))
    assert measured["about"]["records"] == 300
    rows = measured["rows"]
    numbers = [value for cells in rows.values() for value in cells.values() if not isinstance(value, str)]
    assert all(math.isfinite(value) and value >= 0 for value in numbers)
    timed = [cells for cells in rows.values() if "CPU p50, ms" in cells]
    assert all(0 < cells["CPU p50, ms"] <= cells["CPU p95, ms"] and cells["p50, ms"] > 0 for cells in timed)
    own = [goal for goal in GOALS if goal.row not in PEERS]
    assert all(goal.measured(rows) is not None for goal in own)
    assert set(CURVES) <= rows.keys()
    assert rows["keyword leg"]["bit-equal, share"] == rows["vector leg"]["recall@10"] == 1.0
    assert rows["hybrid, filter of 1 %"]["recall@10"] == rows["same hits as the exact scan"]["of the top 10"] == 1.0

    blocks = ("goals", "growth", "plot", "rivals", "batches", "rest", "real", "runs")
    marked = "".join(f"# {name}\n<!-- measured: {name} -->\nof old\n<!-- end -->\n" for name in blocks)
    page.write_text(marked, encoding="utf-8")
    growth = [sys.executable, "-m", "tests.benchmarks", "growth", str(figures), "--page", str(page)]
    subprocess.run(growth, cwd=root, check=True, capture_output=True, timeout=600)
    filled = page.read_text(encoding="utf-8")
    assert "of old" not in filled
    assert all(f"| {goal.what} |" in filled for goal in own)
    assert "python -m tests.benchmarks scale --records 300 --queries 5 --dimension 16`" in filled
    subprocess.run(growth, cwd=root, check=True, capture_output=True, timeout=600)
    assert page.read_text(encoding="utf-8") == filled
