"""Retiming: computing the time along a path within limits on velocity, acceleration and jerk.

Input: a `Path`. Output: a `Trajectory`. SciPy and ruckig are imported only when they are needed.
"""

from mechanik.motion.retime.trajectory import Trajectory, retime

__all__ = ["Trajectory", "retime"]
