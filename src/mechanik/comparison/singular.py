"""Configurations that are all but singular: where the ends hardly move in a direction in which they usually can."""

from __future__ import annotations

import numpy as np

from mechanik.comparison.configurations import Shutter, draw, reach_of
from mechanik.comparison.robots import Robot
from mechanik.objectives.closures import closure_relations
from mechanik.objectives.evaluate import evaluate
from mechanik.spatial.array import Array

NEAR = 1e-3
"""The smallest singular value, with lengths in reaches, that counts as singular; typical ones are 0.05 to 0.5."""
NOT_NEAR, BEND = 5e-3, 0.01
"""What is worse than the first after the search is replaced by a straight arm, bent by a share of a random bend."""
ROUNDS, LOOP_ROUNDS, SIBLINGS = 40, 8, 8
"""Of the search; with loops it takes far longer, and is cut short."""


def near_singular(robot: Robot, rng: np.random.Generator, count: int) -> Array:
    """Configurations (count, nq), each brought by a short random search to where it is nearly singular.

    Where nothing is singular within the limits, as for a platform on six legs, they are the least nimble ones found.
    """
    space, shut = robot.mechanism.space, Shutter(robot)
    loops = bool(robot.mechanism.closures)
    pool = draw(robot, rng, count if loops else 8 * count)
    rank = int(np.median(np.sum(_values(robot, pool[:16]) > 1e-6, axis=1)))
    size = _dexterity(robot, pool, rank)
    best = np.argsort(size)[: 2 * count]
    best = rng.permutation(best)[:count]
    q, size = pool[best], size[best]
    unit = np.where(space.rotates, 1.0, reach_of(robot))
    for step in np.geomspace(0.3, 0.003, LOOP_ROUNDS if loops else ROUNDS):
        going = np.flatnonzero(size > NEAR)
        if not len(going):
            break
        shakes = step * unit * rng.standard_normal((SIBLINGS, len(going), space.nv))
        for tried in space.clamp(space.integrate(q[going], shakes)):
            closed = [shut(one) for one in tried] if loops else list(tried)
            kept = [k for k, one in enumerate(closed) if one is not None]
            if not kept:
                continue
            for_real = np.array([closed[k] for k in kept])
            new = _dexterity(robot, for_real, rank)
            here = going[kept]
            better = new < size[here]
            q[here[better]], size[here[better]] = for_real[better], new[better]
    return q if loops else _straightened(robot, rng, q, size, rank)


def _straightened(robot: Robot, rng: np.random.Generator, q: Array, size: Array, rank: int) -> Array:
    """Long arms are singular where they are all but straight, which no search finds from afar."""
    space = robot.mechanism.space
    bent = space.integrate(space.neutral(), BEND * space.difference(space.neutral(), draw(robot, rng, len(q))))
    bent = space.clamp(bent)
    better = (size > NOT_NEAR) & (_dexterity(robot, bent, rank) < size)
    return np.where(better[:, None], bent, q)


def _dexterity(robot: Robot, q: Array, rank: int) -> Array:
    """(n,), the smallest of the singular values that are usually there."""
    return _values(robot, q)[:, rank - 1]


def _values(robot: Robot, q: Array) -> Array:
    """(n, k) singular values of the ends' Jacobian in what the loops leave free; lengths in reaches."""
    mechanism, reach = robot.mechanism, reach_of(robot)
    J = np.concatenate([mechanism.jacobian(end, q) for end in robot.ends], axis=1)
    rows = np.tile(np.repeat([1.0 / reach, 1.0], 3), len(robot.ends))
    columns = np.where(mechanism.space.rotates, 1.0, reach)
    J = rows[:, None] * J * columns
    if not mechanism.closures:
        return np.asarray(np.linalg.svd(J, compute_uv=False), dtype=np.float64)
    found = np.zeros((len(q), min(J.shape[1:])))
    for k, one in enumerate(q):
        free = _null_space(closure_jacobian(robot, one) * columns)
        values = np.linalg.svd(J[k] @ free, compute_uv=False)
        found[k, : len(values)] = values
    return found


def closure_jacobian(robot: Robot, q: Array) -> Array:
    """(m, nv), of all loops together."""
    mechanism = robot.mechanism
    rows = [
        evaluate(mechanism, relation, q)[1]
        for closure in mechanism.closures.values()
        for relation in closure_relations(mechanism, closure)
    ]
    return np.concatenate([np.zeros((0, mechanism.nv)), *rows])


def _null_space(J: Array) -> Array:
    _, values, V = np.linalg.svd(J)
    rank = int(np.sum(values > 1e-9 * values[0])) if len(values) else 0
    return V[rank:].T
