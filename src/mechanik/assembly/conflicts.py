"""Drives that cannot all be given: which of them lead, and which follow from those."""

from __future__ import annotations

import numpy as np

from mechanik.assembly.drives import Drives
from mechanik.assembly.loops import Loops
from mechanik.assembly.shut import shut_by_newton
from mechanik.spatial.array import Array

NUDGE = 0.05
"""How far (rad, sizes) it is moved to see what holds in general, and not only at a dead point."""
RANK = 1e-6


def independent(loops: Loops, drives: Drives, q: Array) -> tuple[list[str], dict[str, list[str]]]:
    """The drives that can be given, those named first before others, and for each other one those it depends on."""
    rng = np.random.default_rng(0)
    null = _null(loops.rows(q)[1])
    for _ in range(4):
        moved = loops.step(
            q, NUDGE * null.T @ _unit(rng.standard_normal(len(null))) if len(null) else np.zeros(loops.n)
        )
        there = shut_by_newton(loops, moved)
        if there is not None:
            q = there
            break
    null = _null(loops.rows(q)[1])
    lead: list[str] = []
    rows = np.zeros((0, len(null)))
    follow: dict[str, list[str]] = {}
    for name, relation in zip(drives.names, drives.relations, strict=True):
        mine = loops.evaluate([relation], q)[1] @ null.T
        both = np.concatenate([rows, mine])
        if _rank(both) == len(both):
            rows = both
            lead += [name] * len(mine)
        else:
            shares = np.linalg.lstsq(rows.T, mine.T, rcond=None)[0] if len(rows) else np.zeros((0, 1))
            on = np.abs(shares).max(axis=1, initial=0.0) > 1e-6
            follow[name] = list(dict.fromkeys(one for one, is_on in zip(lead, on, strict=True) if is_on))
    return [name for name in dict.fromkeys(lead) if name not in follow], follow


def _null(J: Array) -> Array:
    """(k, nv) orthonormal steps that keep the loops shut."""
    if not len(J):
        return np.eye(J.shape[1])
    _, sizes, V = np.linalg.svd(J)
    return np.asarray(V)[int((sizes > RANK * max(float(sizes[0]), 1e-12)).sum()) :]


def _rank(M: Array) -> int:
    if not M.size:
        return 0
    sizes = np.linalg.svd(M, compute_uv=False)
    return int((sizes > RANK).sum())


def _unit(x: Array) -> Array:
    return x / max(float(np.linalg.norm(x)), 1e-12)
