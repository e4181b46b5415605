"""A solver that runs in its own thread and follows moving targets.

Input: a mechanism, goals, and new targets at any time. Output: states, which are sent to all subscribers.
"""

from mechanik.motion.live.background_solver import LiveState
from mechanik.motion.live.live_solver import LiveSolver

__all__ = ["LiveSolver", "LiveState"]
