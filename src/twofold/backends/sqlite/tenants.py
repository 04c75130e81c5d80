"""The file name of a tenant."""

from __future__ import annotations

import hashlib
import re
from typing import Final

from twofold.errors import ConfigurationError

__all__ = ["tenant_file_name"]

_SUFFIX: Final = ".db"
_LONGEST: Final = 100
_KEPT: Final = 32
_PLAIN: Final = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789-")
_DEVICES: Final = re.compile(r"con|prn|aux|nul|com\d|lpt\d")


def tenant_file_name(tenant: str) -> str:
    """The name of the file that holds ``tenant`` in its folder.

    Small ASCII letters, digits and ``-`` stand for themselves, each other byte of the UTF-8 is ``_`` and two hex
    digits: no two tenants share a name, not even where upper and lower case are the same, and none leads out of the
    folder. A name of more than 100 characters is its beginning, ``__`` (which no short one has) and a SHA-256.

    Raises:
        ConfigurationError: it is no text, empty, or no valid Unicode.
    """
    if not isinstance(tenant, str) or not tenant:
        raise ConfigurationError(f"tenant is a text of at least one character, not {tenant!r}")
    try:
        raw = tenant.encode()
    except UnicodeEncodeError as error:
        raise ConfigurationError(f"tenant is not valid Unicode: {tenant!r}") from error
    name = "".join(chr(byte) if byte in _PLAIN else f"_{byte:02x}" for byte in raw)
    if name.startswith("-") or _DEVICES.fullmatch(name):
        # "-" looks like an option to other programs; Windows keeps the names of its devices for itself.
        name = f"_{ord(name[0]):02x}{name[1:]}"
    if len(name) > _LONGEST:
        name = f"{name[:_KEPT]}__{hashlib.sha256(raw).hexdigest()}"
    return name + _SUFFIX
