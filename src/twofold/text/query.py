"""What the keyword leg is asked for: tokens, never the user's raw text."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["MAX_TERMS", "KeywordQuery", "Term"]

MAX_TERMS = 512
"""How many distinct tokens one query searches; of a longer one the rarest are kept."""


@dataclass(frozen=True, slots=True)
class Term:
    """One thing to look for; a record that has any of a query's terms matches."""

    tokens: tuple[str, ...]
    """One token, or several that must stand next to each other in this order."""
    weight: int = 1
    """How often its BM25 contribution counts: 2 for identifiers. Default: 1."""
    prefix: bool = False
    """Whether every token that begins with the last one matches (a single character of a script
    without spaces). Default: False."""


@dataclass(frozen=True, slots=True)
class KeywordQuery:
    """A query in the tokens of the index: the OR of its terms."""

    terms: tuple[Term, ...] = ()
    """Distinct terms in the order asked."""
    pairs: tuple[tuple[str, str], ...] = ()
    """Tokens asked next to each other: records that hold them side by side are moved up a little."""

    def __bool__(self) -> bool:
        """Whether there is anything to search for."""
        return bool(self.terms)

    @property
    def tokens(self) -> tuple[str, ...]:
        """The distinct tokens of all terms, in the order asked."""
        return tuple(dict.fromkeys(token for term in self.terms for token in term.tokens))

    @property
    def words(self) -> tuple[str, ...]:
        """The distinct tokens that are looked for by themselves and whole, in the order asked."""
        return tuple(dict.fromkeys(term.tokens[0] for term in self.terms if len(term.tokens) == 1 and not term.prefix))

    def keeping(self, tokens: frozenset[str]) -> KeywordQuery:
        """The same query with only the terms and pairs made of ``tokens``."""
        return KeywordQuery(
            terms=tuple(term for term in self.terms if tokens.issuperset(term.tokens)),
            pairs=tuple(pair for pair in self.pairs if tokens.issuperset(pair)),
        )
