"""A batch that was stopped by its user."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mechanik.batch.result import BatchResult


class Interrupted(KeyboardInterrupt):
    """Ctrl-C while a batch ran: what is done is in `result`, and the message says how to go on."""

    def __init__(self, message: str, result: BatchResult) -> None:
        super().__init__(message)
        self.result = result
