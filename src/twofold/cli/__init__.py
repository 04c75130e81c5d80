"""The command ``twofold``: a store from the shell, and a demonstration that needs nothing but Python."""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        arguments: what stands behind its name. Default: the process's.

    Returns:
        0 if all is well, 1 if nothing was found, something is damaged or records still wait for vectors, 2 after a
        mistake of the user's, 130 if interrupted, 141 if the reader of the output went away.
    """
    logging.getLogger("twofold").addHandler(logging.NullHandler())  # what goes wrong is shown with the answer
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that knows few characters is no mistake
    try:
        from twofold.cli.app import app  # noqa: PLC0415 - importing this package is no reason to load everything

        app(None if arguments is None else list(arguments), prog_name="twofold")
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1
    except KeyboardInterrupt:  # while it was still being loaded
        return 130
    return 0
