"""Helpers that drive a linkage step by step and check closure and continuity at each step."""

import cmath
import math

import numpy as np

import mechanik as mk

CLOSED = 1e-9


def driven(mechanism, joint, values, fastest):
    """Solutions with the joint at each value, every one from the one before.

    Each is a success with all loops closed, and no joint moves more than `fastest` times as far as the driven one.
    """
    solver = mk.Solver(mechanism, mk.JointValues({joint: 0.0}, angle_mode="exact", angle_tolerance=1e-9))
    q, before = mechanism.q, mechanism.values()[joint]
    for value in values:
        solution = solver.solve({joint: float(value)}, q)
        assert solution.success, (value, solution)
        assert openness(solution) < CLOSED, (value, solution.closure_errors)
        assert np.abs(solution.q - q).max() <= fastest * abs(value - before) + CLOSED, (value, solution.q - q)
        yield solution
        q, before = solution.q, value


def openness(solution):
    return max(max(error.position, error.rotation) for error in solution.closure_errors.values())


def turn(start, steps, turns=1):
    """Values of a joint that turns all around, without the first."""
    return start + np.linspace(0, turns * 2 * math.pi, steps + 1)[1:]


def cross(a, a_reach, b, b_reach, side):
    """Where circles in the complex plane cross, by the law of cosines; side +1 is on the left of a -> b."""
    apart = abs(b - a)
    corner = math.acos((a_reach**2 + apart**2 - b_reach**2) / (2 * a_reach * apart))
    return a + cmath.rect(a_reach, cmath.phase(b - a) + side * corner)


def flat(position):
    """A point of the plane x, y as a complex number."""
    return complex(position[0], position[1])


def upright(position):
    """A point of the plane x, z as a complex number."""
    return complex(position[0], position[2])


def same_angle(angle, expected, tolerance):
    return abs(math.remainder(angle - expected, 2 * math.pi)) <= tolerance
