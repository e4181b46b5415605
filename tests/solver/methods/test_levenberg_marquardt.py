"""The default method, iterate by iterate, against its rules in plain NumPy.

Without active limits and open loops they are the textbook's. Each step is taken from where the solver was
before it, so that rounding does not pile up.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
import pytest
from numpy_steps import NumpyProblem, two_hands

import mechanik as mk

ARMS = ("panda", "ur5", "iiwa14", "puma560", "dh6", "zalo5", "grippy10", "two hands")
FIRST_MU, LEAST_MU, LEAST_DAMPING, SLOW = 0.04, 1e-8, 1e-10, 0.5


def plain_iterates(plain: NumpyProblem, q: np.ndarray) -> Generator[tuple[np.ndarray, np.ndarray, float], np.ndarray]:
    """Levenberg and Marquardt with a damping of mu times the cost; is sent where the solver went instead.

    Yields where it would go, the Jacobian there before, and what rounding of the normal equations may do to directions
    that nothing but the damping holds.
    It ends where progress is slow: from there on the solver uses second derivatives, which have tests of their own.
    """
    mu, (e, J) = FIRST_MU, plain.residual_and_jacobian(q)
    costs = [e @ e]
    while np.sqrt(costs[-1]) > 1e-7:
        damping = mu * costs[-1] + LEAST_DAMPING
        step = -np.linalg.solve(J.T @ J + damping * np.eye(J.shape[1]), J.T @ e)
        there = plain.mechanism.integrate(q, plain.scale * step)
        cost = np.sum(plain.residual_and_jacobian(there)[0] ** 2)
        if cost < costs[-1]:
            predicted = np.sum((e + J @ step) ** 2) + damping * step @ step
            gain = (costs[-1] - cost) / (costs[-1] - predicted)
            mu = max(0.2 * mu, LEAST_MU) if gain > 0.75 else 4 * mu if gain < 0.25 else mu
            rounding = 10 * np.finfo(float).eps * np.linalg.norm(J) ** 2 / damping * np.linalg.norm(step)
            q = yield there, J, rounding
            e, J = plain.residual_and_jacobian(q)
            costs.append(e @ e)
            if len(costs) > 3 and costs[-1] > SLOW * costs[-4]:
                return
        else:
            mu *= 8
            yield q, J, 0.0


@pytest.mark.parametrize("name", ARMS)
def test_the_iterates_are_those_of_the_textbook(name):
    arm = two_hands() if name == "two hands" else mk.gallery.make(name)
    ends = ["left_hand", "right_hand"] if name == "two hands" else [list(arm.links)[-1]]
    followers = [name for name, joint in arm.joints.items() if joint.couplings]
    nowhere = dict.fromkeys([*arm.space.q_names, *followers], (-1e3, 1e3))
    rng = np.random.default_rng(11)
    for trial in range(4):
        there = arm.random(rng)
        q0 = there + rng.uniform(-0.6, 0.6, arm.nq)
        X = [arm.pose(end, there) for end in ends]
        goals = [
            mk.PoseGoal(end, x) if trial % 2 else mk.PositionGoal(end, x[:3, 3]) for end, x in zip(ends, X, strict=True)
        ]
        solver = mk.Solver(arm, goals, limits=nowhere, perturbation=0.0)
        seen: list[np.ndarray] = []
        solver.solve(q0=q0, callback=lambda iterate, seen=seen: seen.append(iterate.q))
        reference, compared = plain_iterates(NumpyProblem(solver, goals), q0), 0
        expected, J, rounding = next(reference)
        for mine in seen:
            assert np.abs(mine - expected).max() < 1e-9 + rounding, f"iteration {compared}"
            assert np.abs(J @ arm.difference(expected, mine)).max() < 1e-9, f"iteration {compared}"
            compared += 1
            try:
                expected, J, rounding = reference.send(mine)
            except StopIteration:
                break
        assert compared >= 3
