"""A session: one mechanism on the table, its goals, a background solver, and everything that a page may ask for.

In: requests and hands (`studio/messages`). Out: events and state frames, through the two functions that it was given.
It knows nothing of the web. May import everything below the studio, and `studio/messages`.
"""

from mechanik.studio.session.goal import Goal
from mechanik.studio.session.session import Session

__all__ = ["Goal", "Session"]
