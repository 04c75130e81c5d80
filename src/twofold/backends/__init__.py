"""Where records are kept: the :mod:`protocol <twofold.backends.protocol>` of a backend, and the shipped ones."""

from __future__ import annotations

__all__: list[str] = []
