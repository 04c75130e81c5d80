"""Every snippet of the documentation runs, and prints what the page says it prints.

The blocks of a page run in order, in one namespace and one empty folder; they may `await`. A ```text block right below
a ```python block is what that prints. A line of a ```sh block is a `twofold …` command and succeeds. `# not run: …` on
a line of sh, or on the first line of python, says why it cannot run here; such python is only parsed. The README's
Quick start is run by `.ci/run` instead.
"""

from __future__ import annotations

import ast
import asyncio
import importlib.util
import inspect
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "integrations").glob("*/README.md")],
    key=lambda page: page.relative_to(ROOT).parts,
)
BLOCK = re.compile(r"^```(?P<language>\w+)\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE)
NEEDS = {
    'embedder="local"': "wordllama",
    "OllamaEmbedder": "ollama",
    "FakeOpenAI": "openai",
    "langchain_twofold": "langchain_twofold",
    "TwofoldStore": "langgraph",
    "TwofoldMemoryMiddleware": "langchain",
    "llama_index": "llama_index.core",
}


class Block(NamedTuple):
    language: str
    body: str
    line: int
    section: str
    follows_python: bool


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found: list[Block] = []
    end, last = 0, ""
    for match in BLOCK.finditer(text):
        headings = re.findall(r"^## (.+)$", text[: match.start()], re.MULTILINE)
        directly_below = last == "python" and not text[end : match.start()].strip()
        found.append(
            Block(
                match["language"],
                match["body"],
                text.count("\n", 0, match.start()) + 2,
                headings[-1] if headings else "",
                directly_below,
            )
        )
        end, last = match.end(), match["language"]
    return found


def is_quick_start(page: Path, block: Block) -> bool:
    return page == ROOT / "README.md" and block.section == "Quick start"


def is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_snippets_of_a_page_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = [block for block in blocks_of(page) if not is_quick_start(page, block)]
    for clue, module in NEEDS.items():
        if any(clue in block.body for block in blocks if block.language == "python") and not is_there(module):
            pytest.skip(f"its snippets need {module}, which is not installed")
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__main__"}
    printed = ""
    for block in blocks:
        if block.language == "python":
            run_python(block, page, namespace)
            printed = capsys.readouterr().out
        elif block.language == "text" and block.follows_python:
            assert printed.rstrip() == block.body.rstrip(), f"{page}:{block.line}"
        elif block.language == "sh":
            for line in block.body.splitlines():
                run_shell_line(line, page, block)


def run_python(block: Block, page: Path, namespace: dict[str, object]) -> None:
    code = "\n" * (block.line - 1) + block.body  # so that a traceback names the page's own line
    compiled = compile(code, str(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    first = block.body.partition("\n")[0]
    if first.startswith("# not run:"):
        assert first.removeprefix("# not run:").strip(), f"{page}:{block.line}: say why it is not run"
        return
    running = eval(compiled, namespace)  # statements, too; what awaits gives a coroutine
    if inspect.iscoroutine(running):
        asyncio.run(running)


def run_shell_line(line: str, page: Path, block: Block) -> None:
    words = shlex.split(line, comments=True)
    if not words:
        return
    if "# not run:" in line:
        assert line.partition("# not run:")[2].strip(), f"{page}:{block.line}: say why {line!r} is not run"
        return
    assert words[0] == "twofold", f"{page}:{block.line}: only twofold's commands can be run here; give '# not run: why'"
    command = Path(sys.executable).with_name("twofold")
    done = subprocess.run(
        [command, *words[1:]],
        check=False,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=120,
        env={**os.environ, "NO_COLOR": "1"},
    )
    assert done.returncode == 0, f"{page}:{block.line}: {line}\n{done.stdout}\n{done.stderr}"


def test_the_quick_start_is_two_shell_blocks() -> None:
    quick_start = [block for block in blocks_of(ROOT / "README.md") if block.section == "Quick start"]
    assert [block.language for block in quick_start] == ["sh", "sh"]
    set_up, test = (block.body for block in quick_start)
    assert set_up.rstrip().endswith("twofold demo")
    assert test.rstrip().endswith(".venv/bin/pytest -n auto")


def test_no_block_is_overlooked() -> None:
    """A fence with a language that nobody runs, or one that is indented, would never be tested."""
    known = {"python", "text", "sh", "json", "toml"}
    for page in PAGES:
        fences = re.findall(r"^[ \t]*```(\w.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
        assert set(fences) <= known, page
        assert len(fences) == len(blocks_of(page)), page


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.relative_to(ROOT)} links to {target}"
