"""A sample of what ``python -m tests.property.filters`` compares a million times, and that it tells a difference."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=600, check=False
    )


def test_a_sample_shows_no_difference() -> None:
    done = run("-m", "tests.property.filters", "--cases", "3000", "--seed", "1000000")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("3,000 filters, ")
    assert done.stdout.rstrip().endswith("no difference")


def test_a_difference_is_told_with_what_makes_it_again() -> None:
    wrong = "import tests.property.filters as f; f.matches = lambda where, row: row.kind > 'b'; f.main()"
    done = run("-c", wrong, "--cases", "100")
    assert done.returncode != 0
    assert "SQL differs: --seed " in done.stderr
