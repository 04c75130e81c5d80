"""HyDE: a short question is looked for by the vector of a text that might answer it.

A question of three words says little to an embedder, and is not written as its answer is. So a language model writes
what the record that is looked for might say, true or not, and that is embedded as a document; keywords still come from
the question. Gao, Ma, Lin and Callan, "Precise Zero-Shot Dense Retrieval without Relevance Labels", ACL 2023.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from twofold.config import SearchParams, StoreSettings
from twofold.embedders import Guard
from twofold.embedders.asking import Asker
from twofold.embedders.bridging import blocks_a_loop, runs_a_loop
from twofold.embedders.remembering import Remembered
from twofold.errors import ConfigurationError, EmbedderOutputError, EmbeddingError
from twofold.text.tokenise import Kind, scan
from twofold.types import Access

__all__ = ["Hyde", "HydeWriter", "LanguageModel", "Written", "has_words", "is_wanted"]

_AT_ONCE: Final = 8
"""How many questions are written for at the same time."""
_LONGEST: Final = 20_000
"""How many characters a text may have that is written: some four times what models read at once that read much."""
_RUN_OF_A_WORD: Final = 2
"""How many characters of a script without spaces count as a word."""


@runtime_checkable
class LanguageModel(Protocol):
    """A language model that completes a prompt; those of LlamaIndex are such. One with ``invoke(prompt)`` in its place,
    as those of LangChain, is taken too.
    """

    def complete(self, prompt: str, /) -> Any:
        """The text, or something with it as its ``text`` or ``content``; or an awaitable of that."""
        ...


HydeWriter: TypeAlias = Callable[[str], Any] | LanguageModel
"""What writes the text that might answer a question: a function of the question, sync or async, or a language model,
which is given ``StoreSettings.hyde_prompt`` with the question in it."""


@dataclass(frozen=True, slots=True)
class Written:
    """What came of asking the writer."""

    vector: npt.NDArray[np.float32]
    """What is looked for: the question's own vector if it failed."""
    milliseconds: float
    """How long it took, with the embedding."""
    text: str | None = None
    """What was written."""
    failure: EmbeddingError | None = None
    """Why nothing came of it."""


class Hyde:
    """Asks a writer on behalf of a store, and remembers what it wrote, for each asker apart: a writer may know from its
    context who asks, and write of what is theirs. May be used from any number of threads.
    """

    def __init__(self, writer: HydeWriter, settings: StoreSettings) -> None:
        """Ask nothing yet.

        Args:
            writer: who writes.
            settings: how long that may take, when the writer is left alone, what a language model is told.

        Raises:
            ConfigurationError: it is no writer.
        """
        self._function, self._prompt = _function_of(writer), None if _is_plain(writer) else settings.hyde_prompt
        name = getattr(writer, "__name__", type(writer).__name__)
        meanwhile = "searches use the question's own vector"
        self._asker = Asker(f"the HyDE writer {name!r}", settings.hyde_deadline, settings.embedding, meanwhile)
        self._remembered: Remembered[str] = Remembered(settings.hyde_cache_size)

    def improve(
        self, asker: Access, question: str, vector: npt.NDArray[np.float32], guard: Guard, params: SearchParams
    ) -> Written:
        """The vector to look for in place of ``vector``, the question's own.

        Raises:
            ConfigurationError: the writer cannot be used like this at all.
        """
        started = perf_counter()
        text = None
        try:
            text = self._text_for(asker, question)
            (written,) = guard.stand_ins([text])
        except EmbeddingError as error:
            return Written(vector, (perf_counter() - started) * 1000, text, error)
        looked_for = written if params.hyde_vector == "replace" else _between(vector, written)
        return Written(looked_for, (perf_counter() - started) * 1000, text)

    def write_ahead(self, questions: Iterable[tuple[Access, str]], guard: Guard) -> None:
        """Have written at the same time, and embedded in one call, what searches are going to ask for; if that fails
        each finds out by itself.

        Args:
            questions: who asks what.
            guard: what embeds it.

        Raises:
            ConfigurationError: the writer cannot be used like this at all.
        """
        wanted = list(dict.fromkeys(questions))
        missing = [each for each in wanted if self._remembered.get(*each) is None]
        if len(missing) > 1:
            blocks = blocks_a_loop.get() or runs_a_loop()
            with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="twofold-hyde") as threads:
                writing = []
                for asker, question in missing:
                    context = copy_context()
                    context.run(blocks_a_loop.set, blocks)
                    writing.append(threads.submit(context.run, self._try_text_for, asker, question))
            for done in writing:
                done.result()
        texts = [text for each in wanted if (text := self._remembered.get(*each)) is not None]
        if len(texts) > 1:
            with suppress(EmbeddingError):
                guard.stand_ins(texts)

    def _try_text_for(self, asker: Access, question: str) -> None:
        with suppress(EmbeddingError):
            self._text_for(asker, question)

    def _text_for(self, asker: Access, question: str) -> str:
        """What is written for somebody's question.

        Raises:
            EmbeddingError: nothing was.
        """
        text = self._remembered.get(asker, question)
        if text is None:
            text = self._asker.ask(lambda: self._checked(question))
            self._remembered.put(text, asker, question)
        return text

    def _checked(self, question: str) -> str:
        what = self._asker.name
        asked = question if self._prompt is None else self._prompt.replace("{question}", question)
        answer = self._asker.call(self._function, lambda: self._function(asked))
        text = _text_of(answer)
        if text is None:
            raise EmbedderOutputError(f"{what} gave a {type(answer).__name__}; it must give a text")
        if len(text) > _LONGEST:  # the embedder would be blamed for the time that it takes
            raise EmbedderOutputError(
                f"{what} gave a text of {len(text):,} characters; it must give one of at most {_LONGEST:,}",
                text_at_fault=True,
            )
        if not has_words(text):
            raise EmbedderOutputError(f"{what} gave a text without words", text_at_fault=True)
        return text


def is_wanted(params: SearchParams, question: str) -> bool:
    """Whether these parameters want something written for a question."""
    if params.hyde == "short":
        return _words_in(question) <= params.hyde_words
    return params.hyde == "always"


def has_words(text: str) -> bool:
    """Whether there is anything in it to embed: punctuation alone is not worth it."""
    return any(map(str.isalnum, text))


def _words_in(text: str) -> int:
    """How many words; two characters of a script without spaces count as one, symbols as none."""
    count = 0
    for piece in text.split():
        for chunk in scan(piece):
            if chunk.kind is Kind.RUN:
                count += -(-len(chunk.parts) // _RUN_OF_A_WORD)
            elif chunk.kind is Kind.WORD:
                count += 1
    return count


def _between(one: npt.NDArray[np.float32], other: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """The mean of two directions; the first where they are opposite."""
    units = [each.astype(np.float64) / np.linalg.norm(each.astype(np.float64)) for each in (one, other)]
    mean = ((units[0] + units[1]) / 2).astype(np.float32)
    return mean if float(np.linalg.norm(mean)) > np.finfo(np.float32).eps else one


# -- who writes ---------------------------------------------------------------------------------------------------


def _is_plain(writer: object) -> bool:
    """Whether it is a function of the question, and no language model that wants a prompt."""
    return not any(callable(getattr(writer, name, None)) for name in ("complete", "invoke"))


def _function_of(writer: Any) -> Callable[[str], Any]:
    if isinstance(writer, type):
        raise ConfigurationError(f"{writer.__name__} is a class; pass an instance, e.g. {writer.__name__}(...)")
    for name in ("complete", "invoke"):
        method = getattr(writer, name, None)
        if callable(method):
            return method  # type: ignore[no-any-return]
    if not callable(writer):
        raise ConfigurationError(
            "hyde is what writes a text that might answer a question: a function of the question, or a language model "
            f"with complete(prompt) or invoke(prompt), not a {type(writer).__name__}"
        )
    return writer  # type: ignore[no-any-return]


def _text_of(answer: Any) -> str | None:
    """The text of what a writer gave."""
    found: Sequence[Any] = (answer, getattr(answer, "text", None), getattr(answer, "content", None))
    return next((str(each) for each in found if isinstance(each, str)), None)
