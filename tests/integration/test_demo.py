"""The demonstration as a user runs it: a process of its own, its output read as text."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import types
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import twofold
from twofold.cli import demo, main
from twofold.cli.demo import QUESTIONS

needs_local = pytest.mark.skipif(
    importlib.util.find_spec("wordllama") is None, reason="the extra 'local' is not installed"
)

ANSWERS = {
    "rmtree onerror": {"shutil.rmtree"},
    "find files by wildcard": {"glob.glob", "glob.iglob"},
    "turn a string into a date": {"datetime.date.fromisoformat", "datetime.datetime.strptime"},
    "send an e-mail message": {"smtplib.SMTP.send_message", "smtplib.SMTP.sendmail"},
    "pick a random element from a list": {"random.Random.choice"},
    "limit how long I wait for a task": {"asyncio.timeout", "asyncio.wait_for"},
}


def run_demo(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from twofold.cli import main; raise SystemExit(main())", "demo", *arguments]
    environment = {**os.environ, "TMPDIR": str(folder), "PYTHONIOENCODING": "utf-8"}
    return subprocess.run(
        command, capture_output=True, encoding="utf-8", cwd=folder, env=environment, timeout=300, check=False
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """What the demonstration prints with the local model and the whole library."""
    folder = tmp_path_factory.mktemp("demo")
    ran = run_demo("--embedder", "local", folder=folder)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert list(folder.iterdir()) == [], "the demonstration leaves nothing behind"
    return ran.stdout


def columns(output: str, question: str) -> dict[str, list[str]]:
    """The three answers to a question, by the heads of their columns."""
    lines = output.split(f"“{question}”\n")[1].splitlines()
    starts = [(match.group(), match.start()) for match in re.finditer(r"\w+", lines[0])]
    ends = [*(start for _, start in starts[1:]), None]
    return {
        name: [line[start:end].strip() for line in lines[1:4]] for (name, start), end in zip(starts, ends, strict=True)
    }


@needs_local
def test_several_thousand_real_records_are_indexed(whole):
    (count,) = re.findall(r"([\d,]+) records read from the installed source", whole)
    assert int(count.replace(",", "")) > 4000


@needs_local
@pytest.mark.parametrize("question", QUESTIONS)
def test_the_fused_answer_makes_sense(whole, question):
    answers = columns(whole, question)
    assert list(answers) == ["keywords", "vectors", "fused"]
    assert set(answers["fused"]) & ANSWERS[question]


@needs_local
def test_each_leg_alone_misses_something_that_fusion_finds(whole):
    missed = {
        leg: [question for question in QUESTIONS if columns(whole, question)[leg][0] not in ANSWERS[question]]
        for leg in ("keywords", "vectors", "fused")
    }
    assert len(missed["fused"]) < min(len(missed["keywords"]), len(missed["vectors"]))


@needs_local
def test_why_is_told_once(whole):
    found = r"keyword rank 1 \(bm25 [\d.]+\), vector rank \d+ \(cosine 0\.\d+\)"
    by = r"0\.6 · \(cosine - 0\.\d+\) / 0\.\d+\s+\+ 0\.4 · bm25 / best: 0\.\d+\s+of\s+at\s+most\s+1"
    assert re.search(rf"Why shutil\.rmtree .*\n +{found}; {by}", whole)


@needs_local
def test_without_its_embedder_the_answer_comes_from_keywords_and_says_so(whole):
    step = whole.split("\n3. ")[1].split("\n4. ")[0]
    assert "1  shutil.rmtree" in step
    assert "embedder_unreachable: " in step


@needs_local
def test_two_users_with_one_id_each_see_their_own(whole):
    step = whole.split("\n4. ")[1].split("\n5. ")[0]
    lines = {line.split()[0]: line for line in step.splitlines()[1:] if line.strip()}
    assert lines["ann"].count("4711") == 2
    assert lines["ben"].count("0815") == 2
    assert "4711" not in lines["ben"] + lines["nobody"]
    assert "0815" not in lines["ann"] + lines["nobody"]


@needs_local
def test_it_reads_well_in_plain_text(whole):
    assert "\x1b" not in whole
    assert max(map(len, whole.splitlines())) <= 100


def test_without_an_embedder_keywords_answer_and_the_extra_is_named(tmp_path):
    ran = run_demo("--embedder", "none", "--modules", "shutil,glob", "rmtree", folder=tmp_path)
    assert ran.returncode == 0
    assert "pip install 'twofold[local]'" in ran.stdout
    assert "1  shutil.rmtree" in ran.stdout
    assert "vectors " not in ran.stdout.split("\n2. ")[1].split("\n3. ")[0]


def test_the_store_can_be_kept_and_is_never_overwritten(tmp_path):
    kept = tmp_path / "kept.db"
    arguments = ("--store", "kept.db", "--embedder", "none", "--modules", "json")
    assert run_demo(*arguments, folder=tmp_path).returncode == 0
    with twofold.open(kept) as store:
        assert store.get("json.dumps") is not None
    again = run_demo(*arguments, folder=tmp_path)
    assert again.returncode == 2
    assert "kept.db is there already" in again.stderr


@pytest.fixture
def adapters(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A framework that works and one that cannot be loaded; gives what the first was asked."""
    asked: list[str] = []

    def run(store: twofold.HybridStore, question: str) -> str:
        asked.append(question)
        return f"asked: {question}\nfound: {'json.dumps' in store.search(question).ids}\x1b[31m"

    module = types.ModuleType("framework_for_the_demo")
    module.run = run  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    entries = [
        EntryPoint("Works", "framework_for_the_demo:run", "twofold.demo"),
        EntryPoint("Broken", "no_such_framework_module:run", "twofold.demo"),
    ]
    monkeypatch.setattr(demo, "entry_points", lambda *, group: [each for each in entries if each.group == group])
    return asked


def test_every_installed_framework_is_asked_and_the_others_are_named(adapters, capsys):
    assert main(["demo", "--embedder", "none", "--modules", "json", "json.dumps"]) == 0
    step = capsys.readouterr().out.split("\n5. ")[1]
    assert adapters == ["json.dumps"]
    assert "  Works\n    asked: json.dumps\n    found: True\\x1b[31m\n" in step
    assert "Broken: its adapter cannot be loaded: No module named 'no_such_framework_module'" in step
    for distribution in ("langchain-twofold", "llama-index-twofold"):
        assert f"pip install {distribution}" in step
