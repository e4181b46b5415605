"""Time parameterization of a path within limits on velocity, acceleration and jerk.

Input: a `Path`. Output: a `Trajectory`. toppra and ruckig are imported when they are needed.
"""

from mechanik.motion.retime.trajectory import Trajectory, retime

__all__ = ["Trajectory", "retime"]
