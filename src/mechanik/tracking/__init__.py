"""Following in time: what moves how fast in the next millisecond, within limits of velocity and acceleration.

In: a mechanism, tasks and a time step. Out: a `Tracker`, whose `step` turns new targets into the next configuration.
"""

from mechanik.tracking.state import TrackerState, TrackerStatus
from mechanik.tracking.task import Task
from mechanik.tracking.tracker import Tracker

__all__ = ["Task", "Tracker", "TrackerState", "TrackerStatus"]
