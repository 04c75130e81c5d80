r"""How memories and messages are written, so that none of them can be taken for more than it is.

The law: what a record or a message holds is data. Whatever it holds, the block around it begins and ends where it
should, and every line of it but the first is indented, so that none looks like the start of another entry.

* ``<`` is written ``&lt;``, so that no tag and no special token (``</memories>``, ``<|im_start|>``) comes of it; an
  ``&`` that would look like one of these escapes is written ``&amp;``. All other ``&``, and ``>``, stay.
* Control characters, line separators, lone surrogates, and what is invisible or turns the writing's direction are
  written as ``&#x202E;``. ZERO WIDTH JOINER and NON-JOINER stay between characters that need them, as in emoji and
  Persian; so do tabs and, between lines, line ends.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from datetime import tzinfo
from typing import Final

from twofold.context.messages import Message
from twofold.context.zones import day, minute
from twofold.types import Hit

__all__ = [
    "as_data",
    "conversation_block",
    "memories_block",
    "stamped",
    "well_formed",
]

INDENT: Final = "    "
"""What every line of an entry but its first begins with."""

USUAL_KIND: Final = "semantic"
"""The kind that goes without saying."""
MOST_TAGS: Final = 3
"""How many tags of a record are told."""
IMPORTANT: Final = 0.8
"""From here on a record's importance is told."""

_LOOKS_ESCAPED: Final = re.compile(r"&(?=(?:lt|amp|#x[0-9A-Fa-f]+);)")
_SURROGATES: Final = re.compile("[\ud800-\udfff]")
_JOINERS: Final = "\u200c\u200d"
_SHOWN_FORMATS: Final = frozenset("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd")
"""Format characters that are seen: the signs that stand before an Arabic, Syriac or Kaithi number."""
_SELECTORS: Final = range(0xE0100, 0xE01F0)
"""Variation selectors that only hide things in text: no font has use for most of them."""


class _Escapes(dict[int, str]):
    """For ``str.translate``: what each character is written as; worked out at first sight."""

    def __missing__(self, code: int) -> str:
        self[code] = written = _written(code)
        return written


def _written(code: int) -> str:
    character = chr(code)
    if character == "<":
        return "&lt;"
    if character in "\n\t" or character in _JOINERS or character in _SHOWN_FORMATS:
        return character
    if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp") or code in _SELECTORS:
        return _reference(character)
    return character


def _reference(character: str) -> str:
    return f"&#x{ord(character):04X};"


_ESCAPES: Final = _Escapes()


def as_data(text: str, *, lines: bool = True) -> str:
    r"""``text`` so that it stays within the entry it stands in; see the module's docstring.

    Args:
        text: any text. ``\r\n`` counts as ``\n``.
        lines: whether it may go over several lines, the further ones indented; else line ends are escaped too.
    """
    written = _LOOKS_ESCAPED.sub("&amp;", text.replace("\r\n", "\n")).translate(_ESCAPES)
    if "\u200c" in written or "\u200d" in written:
        written = _without_idle_joiners(written)
    if lines:
        return written.replace("\n", f"\n{INDENT}")
    return written.replace("\n", "&#x000A;").replace("\t", "&#x0009;")


def _without_idle_joiners(text: str) -> str:
    """``text`` with those joiners escaped that join nothing: they would only hide in it."""
    written = []
    for place, character in enumerate(text):
        if character in _JOINERS and not (_joins(text[place - 1 : place]) and _joins(text[place + 1 : place + 2])):
            written.append(_reference(character))
        else:
            written.append(character)
    return "".join(written)


def _joins(neighbour: str) -> bool:
    return bool(neighbour) and not neighbour.isascii() and neighbour not in _JOINERS and not neighbour.isspace()


def well_formed(text: str) -> str:
    """``text`` with U+FFFD for lone surrogates, which no encoding has."""
    return _SURROGATES.sub("\ufffd", text)


def memories_block(memories: Sequence[Hit], heading: str, zone: tzinfo) -> str:
    """The block of memories, one entry each, numbered from 1; nothing at all if there are none."""
    entries = [f"[{number}] {_memory(hit, zone)}" for number, hit in enumerate(memories, start=1)]
    return _block("memories", entries, heading)


def _memory(hit: Hit, zone: tzinfo) -> str:
    record = hit.record
    told = [day(record.created_at if record.event_at is None else record.event_at, zone)]
    if record.kind != USUAL_KIND:
        told.append(as_data(record.kind, lines=False))
    if record.tags:
        told.append(", ".join(as_data(tag, lines=False) for tag in record.tags[:MOST_TAGS]))
    if record.importance >= IMPORTANT:
        told.append(f"importance {record.importance:.2g}")
    return f"({'; '.join(told)}) {as_data(record.text)}"


def conversation_block(messages: Sequence[Message], heading: str, zone: tzinfo) -> str:
    """The conversation, one entry a message; nothing at all if there are none."""
    entries = [stamped(f"{message.role}: {as_data(message.content)}", message, zone) for message in messages]
    return _block("conversation", entries, heading)


def stamped(text: str, message: Message, zone: tzinfo) -> str:
    """``text`` with the time of the message before it, if that is known."""
    return text if message.at is None else f"[{minute(message.at, zone)}] {text}"


def _block(name: str, entries: Iterable[str], heading: str) -> str:
    written = "\n".join(entries)
    head = f"{heading}\n" if heading else ""
    return f"{head}<{name}>\n{written}\n</{name}>" if written else ""
