"""Signals that ask a program to end: TERM and HUP do what Ctrl-C does."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def ends_like_ctrl_c() -> Iterator[None]:
    """Within, INT, TERM and HUP raise KeyboardInterrupt; their default would leave what was started running alone.

    One that is ignored, as HUP under nohup, stays so.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {
        number: signal.signal(number, signal.default_int_handler)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) != signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
