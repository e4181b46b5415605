"""Those who want to hear of each state; one that fails is dropped and does no harm to the others."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import count

from mechanik.live.state import LiveState

Callback = Callable[[LiveState], object]
KEPT_ERRORS = 16


class Listeners:
    """
    Attributes:
        errors: the last exceptions that callbacks raised.
    """

    def __init__(self) -> None:
        self.errors: deque[BaseException] = deque(maxlen=KEPT_ERRORS)
        self._callbacks: dict[int, Callback] = {}
        self._numbers = count()

    def add(self, callback: Callback) -> Callable[[], None]:
        """What is returned takes it away again."""
        number = next(self._numbers)
        self._callbacks[number] = callback

        def unsubscribe() -> None:
            self._callbacks.pop(number, None)

        return unsubscribe

    def clear(self) -> None:
        self._callbacks.clear()

    def tell(self, state: LiveState) -> None:
        """Call all of them, in the order in which they came."""
        for number, callback in tuple(self._callbacks.items()):
            if number not in self._callbacks:  # taken away by one before it
                continue
            try:
                callback(state)
            except BaseException as error:  # whatever it is, the thread has to live on
                self._callbacks.pop(number, None)
                self.errors.append(error)
