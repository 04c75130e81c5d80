"""What goes to a language model for one turn: the system text, memories, the last messages, the question.

Pure functions and values. What is remembered comes in as the result of a search; no store is known here.
"""

from twofold.context.budget import CountTokens, estimate_tokens
from twofold.context.bundle import ContextBundle, LeftOut, assemble
from twofold.context.messages import Message, MessageLike, as_messages
from twofold.context.template import ContextTemplate, as_template
from twofold.context.zones import as_zone

__all__ = [
    "ContextBundle",
    "ContextTemplate",
    "CountTokens",
    "LeftOut",
    "Message",
    "MessageLike",
    "as_messages",
    "as_template",
    "as_zone",
    "assemble",
    "estimate_tokens",
]
