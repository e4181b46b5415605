"""What a session has to know of a demonstration; the scenes themselves stand above it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from mechanik.studio.messages.checks import Value
from mechanik.studio.messages.events import ControlInfo

if TYPE_CHECKING:
    from mechanik.studio.session.session import Session


class SceneLike(Protocol):
    """
    Attributes:
        about: two to four sentences.
        shows_collisions: whether colliders are drawn from the start.
    """

    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def about(self) -> str: ...
    @property
    def shows_collisions(self) -> bool: ...
    @property
    def is_moving(self) -> bool:
        """Whether `tick` moves anything now."""
        ...

    def open(self, session: Session) -> None:
        """Put its mechanism and its goals on the session's table."""
        ...

    def controls(self) -> list[ControlInfo]: ...
    def set(self, name: str, value: Value) -> None:
        """Set a control; raises and changes nothing if that cannot be."""
        ...

    def keep(self) -> object:
        """All that it is like now, for `bring_back`; what happens later does not change it."""
        ...

    def bring_back(self, kept: Any) -> None:
        """Be as when that was kept. The mechanism, its goals and its curves are the session's to bring back."""
        ...

    def tick(self, seconds: float) -> None:
        """Go on by so many seconds."""
        ...

    def read_out(self) -> list[str]:
        """Lines for the screen."""
        ...
