"""The releases that are tested as the oldest are those that the distributions promise."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / ".ci" / "oldest.py"


def printed(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True, check=False)


def written(folder: Path, dependencies: str, extras: str = "") -> str:
    (folder / "pyproject.toml").write_text(
        f'[project]\nname = "x"\ndependencies = {dependencies}\n[project.optional-dependencies]\n{extras}\n'
    )
    return str(folder)


def test_the_lower_bounds_are_printed(tmp_path: Path) -> None:
    folder = written(tmp_path, '["some-core>=1.0,<2", "twofold>=0.1,<0.2"]', 'more = ["other>=2.1.3"]')
    assert printed(folder).stdout.split() == ["some-core==1.0"]
    assert printed(folder, "more").stdout.split() == ["other==2.1.3"]


@pytest.mark.parametrize("requirement", ["some-core", "some-core<2", "some-core==1.0"])
def test_a_requirement_without_a_lower_bound_is_refused(tmp_path: Path, requirement: str) -> None:
    done = printed(written(tmp_path, f'["{requirement}"]'))
    assert done.returncode != 0
    assert "no lower bound" in done.stderr


@pytest.mark.parametrize("adapter", ["langchain-twofold", "llama-index-twofold"])
def test_each_adapter_promises_a_release_of_its_framework(adapter: str) -> None:
    (pin,) = printed(str(ROOT / "integrations" / adapter)).stdout.split()
    assert pin.partition("==")[0] == adapter.replace("twofold", "core")
