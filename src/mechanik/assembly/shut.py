"""Loops that stand open, shut near to where they are: where a walk begins."""

from __future__ import annotations

import numpy as np

from mechanik.assembly.loops import Loops
from mechanik.assembly.place import SHUT, Course
from mechanik.ik import Solver
from mechanik.objectives import RestPose
from mechanik.spatial.array import Array

RESTARTS = 30
FAR = 0.3
"""Rows (rad, sizes) above this are not shut by Newton's method, which could lead anywhere from there."""


def shut(course: Course, q: Array) -> tuple[Array, bool]:
    """A configuration (nq,) near q inside the limits whose loops are shut; else the least open one that was found.

    Drives stay where they are if that can be.

    Returns:
        q, and whether the loops are shut there.
    """
    loops = course.loops
    q = loops.mechanism.clamp(q)
    if not loops.relations or _is_shut(loops, q):
        return q, True
    driven, nothing = course.drives.columns(), list[int]()
    ways = (driven, nothing) if driven else (nothing,)
    if float(np.abs(loops.rows(q)[0]).max()) < FAR:
        for stay in ways:
            there = shut_by_newton(loops, q, np.eye(loops.n)[stay])
            if there is not None:
                return there, True
    least = q
    for stay in ways:
        lock = [loops.mechanism.space.v_names[v] for v in stay] or None
        found = Solver(loops.mechanism, RestPose(q), lock=lock, restarts=RESTARTS).solve(q0=q)
        there = shut_by_newton(loops, found.q, np.eye(loops.n)[stay])
        if there is not None:
            return there, True
        least = min((least, found.q), key=lambda one: _gap(loops, one))
    return least, False


def _gap(loops: Loops, q: Array) -> float:
    """How far all loops and laws are off, rad and sizes; limits count as much."""
    return float(np.linalg.norm(loops.rows(q)[0])) + loops.beyond(q)[0]


def _is_shut(loops: Loops, q: Array) -> bool:
    return float(np.abs(loops.rows(q)[0]).max(initial=0.0)) < SHUT


def shut_by_newton(loops: Loops, q: Array, stay: Array | None = None) -> Array | None:
    """By the shortest steps, with `stay` (k, nv) of them zero; None where it does not end inside the limits, or far."""
    stay = np.zeros((0, loops.n)) if stay is None else stay
    start = q
    e, J = loops.rows(q)
    error = float(np.abs(e).max(initial=0.0))
    for _ in range(20):
        if error < 1e-15:
            break
        M, wanted = np.concatenate([J, stay]), np.append(-e, np.zeros(len(stay)))
        u = np.asarray(np.linalg.lstsq(M, wanted, rcond=1e-11)[0], dtype=np.float64)
        size = float(np.linalg.norm(u))
        trial = loops.step(q, u * min(1.0, 0.5 / max(size, 1e-300)))
        e_new, J_new = loops.rows(trial)
        error_new = float(np.abs(e_new).max(initial=0.0))
        if not error_new < error:
            break
        q, e, J, error = trial, e_new, J_new, error_new
    if error > SHUT or loops.beyond(q)[0] > 1e-9 or float(np.linalg.norm(loops.apart(start, q))) > 1.0:
        return None
    return q
