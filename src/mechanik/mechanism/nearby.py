"""Configurations close to a given one with all loops shut: what is special about one place is not so beside it."""

from __future__ import annotations

import numpy as np

from mechanik.mechanism.mechanism import Mechanism
from mechanik.mechanism.motions import ROUNDING, Mask, Motions, motions
from mechanik.spatial.array import Array

STEPS = (0.05, 0.005)
"""How far aside to look: rad, or share of the mechanism's size; the second where the first leads nowhere."""
LITTLE, POLISHING = 1e-4, 6
"""A gap (in sizes of the mechanism) below which a place counts as meant to be shut, and steps to shut it."""
ROUNDS = 40
"""Newton's method takes 3 to 5; where loops lose rank it only halves the gap each time."""
AWAY = 0.2
"""Of a step, what must be left of it once the loops are shut again; else it led nowhere."""


def shut_motions(mechanism: Mechanism, q: Array, active: Mask | None = None) -> Motions:
    """The constraints at q, or, where loops are open by a little, at the closest q that shuts them."""
    here = motions(mechanism, q, active)
    for _ in range(POLISHING):
        if not ROUNDING < here.gap < LITTLE:
            break
        # directions that hardly move the gap would have to go far: they are left alone
        step = np.linalg.pinv(here.A, rcond=1e-6) @ -here.residual
        there = motions(mechanism, mechanism.integrate(here.q, step * here.unit), here.can_move)
        if not there.gap < 0.5 * here.gap:
            break
        here = there
    return here


def neighbours(mechanism: Mechanism, here: Motions, count: int = 3) -> list[Motions]:
    """Up to `count` shut configurations beside this one, a random small motion away; the same ones each time.

    None where it cannot move, or where all that its constraints seem to allow leads nowhere.
    """
    ways = here.basis()
    if not ways.shape[1]:
        return []
    rng = np.random.default_rng(0)
    found: list[Motions] = []
    for step in STEPS:
        for _ in range(count):
            way = np.asarray(ways @ rng.standard_normal(ways.shape[1]), dtype=np.float64)
            aside = way * (step / float(np.abs(way).max()))
            there = _shut(mechanism, motions(mechanism, mechanism.integrate(here.q, aside * here.unit), here.can_move))
            if there is None:
                continue
            gone = mechanism.difference(here.q, there.q) / here.unit
            if np.linalg.norm(gone) > AWAY * np.linalg.norm(aside):
                found.append(there)
        if found:
            break
    return found


def _shut(mechanism: Mechanism, here: Motions) -> Motions | None:
    """Newton's method with damping, which near a place without full rank keeps it from going far."""
    damping = 1e-3
    for _ in range(ROUNDS):
        if here.gap < ROUNDING:
            return here
        u, sizes, vt = np.linalg.svd(here.A, full_matrices=False)
        few = sizes > 1e-9 * sizes[0]
        shrunk = sizes[few] / (sizes[few] ** 2 + damping * float(here.residual @ here.residual))
        step = -vt[few].T @ (shrunk * (u[:, few].T @ here.residual))
        there = motions(mechanism, mechanism.integrate(here.q, step * here.unit), here.can_move)
        if there.gap < here.gap:
            here, damping = there, 0.1 * damping
        else:
            damping *= 100.0
    return here if here.gap < 1e3 * ROUNDING else None
