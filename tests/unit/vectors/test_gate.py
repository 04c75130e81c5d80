"""Who may pass a gate, and that one who gave up waiting keeps nobody else out."""

from __future__ import annotations

import signal
import threading
from typing import Any

import pytest

from twofold.vectors.gate import Gate


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system cannot interrupt a thread that waits")
def test_who_is_interrupted_while_waiting_to_be_alone_keeps_nobody_out() -> None:
    gate = Gate()
    inside, leave, passed = threading.Event(), threading.Event(), threading.Event()

    def pass_through() -> None:
        with gate.together():
            passed.set()

    def stay() -> None:
        with gate.together():
            inside.set()
            leave.wait(60)

    staying, later = threading.Thread(target=stay), threading.Thread(target=pass_through, daemon=True)
    staying.start()
    assert inside.wait(60)

    def interrupt(*_: Any) -> None:
        later.start()  # and waits, behind the one that waits to be alone
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(KeyboardInterrupt), gate.alone():
            pytest.fail("somebody is inside")
    finally:
        signal.signal(signal.SIGALRM, before)
    assert passed.wait(5)
    leave.set()
    staying.join()
    with gate.alone():
        pass
