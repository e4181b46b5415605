"""Differential inverse kinematics at a fixed time step, within limits on position, velocity and acceleration.

Input: a mechanism, tasks and a time step. Output: a `Tracker`; its method `step` computes the next configuration from
new targets.
"""

from mechanik.motion.tracking.tracker import Task, Tracker, TrackerState, TrackerStatus

__all__ = ["Task", "Tracker", "TrackerState", "TrackerStatus"]
