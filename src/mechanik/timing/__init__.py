"""When to be where on a path: as fast as limits of velocity, acceleration and jerk allow.

In: a `Path`. Out: a `Trajectory`. May import `paths` and what stands below it; toppra and ruckig are imported when they
are needed.
"""

from mechanik.timing.retime import retime
from mechanik.timing.trajectory import Trajectory

__all__ = ["Trajectory", "retime"]
