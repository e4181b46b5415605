"""Sessions of the studio: each has one mechanism, its goals, solvers in background threads, and request handlers.

Requests and drag updates (`studio.messages`) come in; events and state frames go out through two functions that the
session receives. Sessions have no web code. They may import every layer below the studio and `studio.messages`.
"""

from mechanik.studio.session.edit_state import InteractiveGoal
from mechanik.studio.session.session import Session

__all__ = ["InteractiveGoal", "Session"]
