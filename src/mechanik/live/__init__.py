"""A solver that runs in its own thread and follows goals that move.

In: a mechanism, what is asked of it, and targets whenever there are new ones. Out: states, each as it is found, to
whoever subscribed. May import `ik` and what stands below it.
"""

from mechanik.live.live import Live
from mechanik.live.state import LiveState

__all__ = ["Live", "LiveState"]
