"""Helpers of the tests of robots with loops: gaps, poses near a pose, angles on a circle."""

import math

import numpy as np

from mechanik.spatial import make_pose, rotation

CLOSED = 1e-9


def openness(solution):
    return max((max(error.position, error.rotation) for error in solution.closure_errors.values()), default=0.0)


def check_reached(solution, tolerance=1e-6):
    """It says so, and measured at the answer every objective is met and every loop is shut."""
    assert solution.success, solution
    worst = max(max(error.position, error.rotation) for error in solution.errors.values())
    assert worst < tolerance, solution
    assert openness(solution) < CLOSED, solution.closure_errors


def moved(X, shift=(0.0, 0.0, 0.0), turn=(0.0, 0.0, 0.0)):
    """The pose X shifted, and turned in place, in the world's axes."""
    return make_pose(rotation.exp(np.array(turn)) @ X[:3, :3], X[:3, 3] + shift)


def apart(X, Y):
    """How far two poses are from each other: the largest difference of any number."""
    return float(np.abs(X - Y).max())


def solve_circle(a, b, c):
    """Both angles with a cos(angle) + b sin(angle) = c."""
    middle, half = math.atan2(b, a), math.acos(c / math.hypot(a, b))
    return middle - half, middle + half
