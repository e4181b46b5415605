"""Path following: continuous configurations for goals that change along a path parameter s.

Input: a mechanism and goals that depend on s. Output: a `Path`, or the s where the path breaks and the reason.
"""

from mechanik.motion.follow.cartesian_path import Arc, CartesianPath, Line, Spline
from mechanik.motion.follow.follow_goals import FollowResult, follow
from mechanik.motion.follow.joint_path import Path

__all__ = ["Arc", "CartesianPath", "FollowResult", "Line", "Path", "Spline", "follow"]
