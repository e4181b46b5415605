"""Branches of closed forms against EAIK (D. Ostermeier, J. Külz, M. Althoff, RA-L 2025)."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from random_arms import random_arm

from mechanik import gallery
from mechanik.solver.search.closed_form import ClosedForm, closed_form

pytestmark = pytest.mark.eaik
ARMS = {"puma560": "tool", "ur5": "tool0", "ur10": "tool0"}
SPECIAL_WRISTS = [
    f"wrist, 1 and 2 {first_pair}, 2 and 3 {second_pair}"
    for first_pair, second_pair in itertools.product(("skew", "meet", "parallel"), repeat=2)
    if (first_pair, second_pair) not in (("skew", "skew"), ("parallel", "parallel"))
]


class Eaik:
    """The same arm for EAIK: directions of the axes, and offsets between points on them."""

    def __init__(self, form: ClosedForm) -> None:
        pytest.importorskip("eaik")
        from eaik.IK_HP import HPRobot

        axes = form.axes
        # EAIK has wrong solutions for antiparallel axes, so parallel axes get the same direction
        self.signs = np.ones(axes.n)
        for i, j in itertools.combinations(range(axes.n), 2):
            if self.signs[i] * axes.directions[i] @ axes.directions[j] < -1 + 1e-9:
                self.signs[j] = -1.0
        steps = np.diff(axes.points, axis=0, prepend=np.zeros((1, 3)), append=axes.home[None, :3, 3])
        self.robot = HPRobot(axes.directions * self.signs[:, None], steps)
        self.R_home = axes.home[:3, :3]

    def solve(self, X):
        """Yield for each pose the angles (k, n) that EAIK calls exact."""
        X = X.copy()
        X[:, :3, :3] = X[:, :3, :3] @ self.R_home.T
        for result in self.robot.IK_batched(X, 2):
            exact = [q for q, is_least_squares in zip(result.Q, result.is_LS, strict=True) if not is_least_squares]
            yield np.array(exact).reshape(-1, len(self.signs)) * self.signs


def angle_distance(a, b):
    return np.abs((a - b + np.pi) % (2 * np.pi) - np.pi).max(axis=-1)


@pytest.mark.parametrize("name", ARMS)
def test_number_of_branches_matches_eaik_for_100_000_poses(name):
    arm = gallery.make(name)
    form = closed_form(arm, ARMS[name])
    X = arm.pose(ARMS[name], np.random.default_rng(1).uniform(-np.pi, np.pi, (100_000, 6)))
    _, exists = form.solve_all(X)
    theirs = [len(branches) for branches in Eaik(form).solve(X)]
    np.testing.assert_array_equal(exists.sum(axis=1), theirs)


@pytest.mark.parametrize(
    "name",
    [*SPECIAL_WRISTS, "shoulder, 5 and 6 skew, 4 and 5 parallel", "2, 3, 4 parallel, 5 and 6 meet", "3, 4, 5 parallel"],
)
def test_branches_of_random_arms_match_eaik(name):
    for seed in range(3):
        arm = random_arm(seed, name)
        form = closed_form(arm, "tool")
        X = arm.pose("tool", np.random.default_rng(seed).uniform(-np.pi, np.pi, (300, 6)))
        angles, exists = form.solve_all(X)
        for ours, there, theirs in zip(angles, exists, Eaik(form).solve(X), strict=True):
            assert len(theirs) == there.sum()
            assert angle_distance(ours[there][:, None], theirs).min(axis=1).max() < 1e-6


@pytest.mark.parametrize("name", ["2, 3, 4 parallel, 5 and 6 skew", "2, 3, 4 parallel, 5 and 6 parallel"])
def test_branches_missing_in_eaik_are_correct(name):
    """Of arms whose last two axes do not meet EAIK loses one branch in a hundred; forward kinematics decides."""
    for seed in range(3):
        arm = random_arm(seed, name)
        form = closed_form(arm, "tool")
        X = arm.pose("tool", np.random.default_rng(seed).uniform(-np.pi, np.pi, (1000, 6)))
        angles, exists = form.solve_all(X)
        for target, ours, there, theirs in zip(X, angles, exists, Eaik(form).solve(X), strict=True):
            assert np.abs(arm.pose("tool", ours[there]) - target).max() < 1e-9
            if len(theirs):
                assert (
                    angle_distance(theirs[:, None], ours[there]).min(axis=1).max() < 1e-6
                )  # none of theirs is missing


@pytest.mark.parametrize("name", ARMS)
def test_exact_branches_of_eaik_at_singular_poses_are_found(name):
    """It calls most of what it finds there inexact; of the rest, whatever is not free has to be among ours."""
    arm = gallery.make(name)
    form = closed_form(arm, ARMS[name])
    q = np.array(list(itertools.product((0.0, np.pi / 2, np.pi, -np.pi / 2), repeat=6)))
    X = arm.pose(ARMS[name], q)
    angles, exists = form.solve_all(X, near=q)
    for ours, there, theirs in zip(angles, exists, Eaik(form).solve(X), strict=True):
        assert there.any()
        if len(theirs):
            assert angle_distance(theirs[:, None], ours[there]).min(axis=1).max() < 1e-6
