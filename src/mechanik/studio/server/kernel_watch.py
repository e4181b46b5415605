"""Whether the kernels of a studio are compiled, for its pages."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from mechanik.studio.messages.events import Event, Kernels
from mechanik.tiers import KernelState, kernel_states, on_kernel_change, prepare

STUDIO_KERNELS = ("forward", "look", "put_targets", "descent", "distance.watch")
"""What every scene uses from its first drag on, in the order in which they are compiled: quick ones first."""
POLL_SECONDS = 1.0
RECOMPILE = "`mechanik warmup` compiles the kernels and says what is wrong if it cannot."
log = logging.getLogger("mechanik.studio")


class KernelWatch:
    """Asks for the kernels of a studio, and tells pages while they are being compiled, from a thread of its own.

    The states of kernels are read once a second while something is being compiled, and else only when a module begins
    to be used.

    Args:
        tell: takes an event for all pages; called from the thread.
    """

    def __init__(self, tell: Callable[[Event], None]) -> None:
        self._tell = tell
        self._event = Kernels("ready", 0, 0, "")
        self._telling = threading.Lock()
        self._news = threading.Event()
        self._is_closed = False
        self._end_listening = on_kernel_change(self._news.set)
        prepare(*STUDIO_KERNELS)
        self._news.set()
        self._thread = threading.Thread(target=self._work, name="mechanik studio kernels", daemon=True)
        self._thread.start()

    def greet(self, put: Callable[[Event], None]) -> None:
        """Tell a page that was just added to those that `tell` reaches; it hears of every change after that."""
        with self._telling:
            put(self._event)

    def close(self) -> None:
        self._end_listening()
        self._is_closed = True
        self._news.set()

    def _work(self) -> None:
        while not self._is_closed:
            self._news.wait(POLL_SECONDS if self._event.state == "compiling" else None)
            self._news.clear()
            if self._is_closed:
                return
            try:
                event = kernel_event(kernel_states(only_used=True))
            except Exception as error:  # pages can do without this, and the thread has nobody to tell
                log.error("the states of kernels cannot be read: %s", error)
                return
            with self._telling:
                if event != self._event:
                    self._event = event
                    self._tell(event)


def kernel_event(states: list[KernelState]) -> Kernels:
    """What pages are told of the modules of kernels that are used.

    Args:
        states: of these modules.
    """
    ready = sum(one.state == "ready" for one in states)
    if ready == len(states):
        return Kernels("ready", ready, ready, "")
    if any(one.state == "compiling" for one in states):
        return Kernels("compiling", ready, len(states), "")
    reasons = (one.reason for one in states if one.state == "not compiled" and one.reason)
    return Kernels("not compiled", ready, len(states), _sentence(next(reasons, RECOMPILE)))


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
