"""The oldest releases that a distribution says it works with: ``python .ci/oldest.py FOLDER [EXTRA]`` prints
``name==version`` a line for what it needs, or, with EXTRA, for what that extra adds. The bounds are those of its
``pyproject.toml``, so that what is tested is what is promised. Distributions of this repository are left out.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

_OWN = "twofold"


def oldest(folder: Path, extra: str | None = None) -> list[str]:
    """``name==version`` of each requirement, by its lower bound.

    Raises:
        ValueError: a requirement without one.
    """
    project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = project["dependencies"] if extra is None else project["optional-dependencies"][extra]
    pins = []
    for requirement in map(Requirement, needed):
        if _OWN in requirement.name:
            continue
        bounds = [each.version for each in requirement.specifier if each.operator == ">="]
        if len(bounds) != 1:
            raise ValueError(f"{folder}: {requirement} has no lower bound that could be tested; write name>=version")
        pins.append(f"{requirement.name}=={bounds[0]}")
    return pins


if __name__ == "__main__":
    print(*oldest(Path(sys.argv[1]), *sys.argv[2:]), sep="\n")
