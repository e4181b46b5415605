"""Paths: configurations one behind the other without a jump.

In: a mechanism and goals that change along the way. Out: a `Path`, or the place where there is none and why.
"""

from mechanik.paths.arc import Arc
from mechanik.paths.follow import follow
from mechanik.paths.following import Following
from mechanik.paths.line import Line
from mechanik.paths.path import Path
from mechanik.paths.pose_path import PosePath
from mechanik.paths.spline import Spline

__all__ = ["Arc", "Following", "Line", "Path", "PosePath", "Spline", "follow"]
