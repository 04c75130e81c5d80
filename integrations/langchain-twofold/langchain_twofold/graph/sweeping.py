"""A thread that now and then deletes what has expired."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future

from twofold import StoreError

__all__ = ["Sweeper"]

_LOG = logging.getLogger(__name__)


class Sweeper:
    """Calls ``sweep`` every ``interval`` seconds until it is stopped.

    Args:
        sweep: deletes what has expired. A store that is busy is tried again the next time.
        interval: in seconds.
    """

    def __init__(self, sweep: Callable[[], int], interval: float) -> None:
        self._sweep = sweep
        self._interval = interval
        self._stopped = threading.Event()
        self.ended: Future[None] = Future()
        """Done when it has stopped."""
        self._thread = threading.Thread(target=self._work, name="twofold-ttl-sweeper", daemon=True)
        self._thread.start()

    def stop(self, timeout: float | None = None) -> bool:
        """End it, and wait for that at most ``timeout`` seconds; whether it has ended."""
        self._stopped.set()
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def _work(self) -> None:
        while not self._stopped.wait(self._interval):
            try:
                self._sweep()
            except StoreError as error:
                _LOG.warning("could not delete what has expired, which nobody sees all the same: %s", error)
        self.ended.set_result(None)
