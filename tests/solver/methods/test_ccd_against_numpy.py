"""Cyclic coordinate descent, sweep by sweep, against a NumPy version without nodes and blocks."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy_ccd import FrameGoal, sweep
from random_mechanisms import random_turn
from solver_internals import packed_problem, row_length_units

import mechanik as mk
from mechanik.spatial import from_position_wxyz, make_pose, rotation

SWEEPS = 10
KINDS = ("point", "pose", "hinge", "axis", "line", "plane")


def random_tree(rng, kind):
    """One chain, or two on one trunk, with any axes: revolute, some prismatic and spherical joints, some limits."""
    builder = mk.Builder(kind)
    order = []

    def hang(name, parent, child, motion):
        at = from_position_wxyz(rng.uniform(-0.5, 0.5, 3), random_turn(rng))
        if motion == "ball":
            builder.spherical(name, parent, child, at=at)
        else:
            width = {"turn": (0.3, 2.5), "slide": (0.1, 0.5)}[motion]
            limits = {"limits": (-rng.uniform(*width), rng.uniform(*width))} if "limits" in kind else {}
            make_joint = builder.revolute if motion == "turn" else builder.prismatic
            make_joint(name, parent, child, at=at, axis=random_turn(rng)[1:], **limits)
        order.append((name, motion))

    def motion():
        if "slide" in kind and rng.random() < 0.3:
            return "slide"
        return "ball" if "ball" in kind and rng.random() < 0.35 else "turn"

    hang("trunk", "base", "link", motion())
    hands = []
    for side in ("a", "b") if "tree" in kind else ("a",):
        above = "link"
        for k in range(5):
            hang(f"{side}{k}", above, f"{side}_link{k}", motion())
            above = f"{side}_link{k}"
        hands.append(above)
    return builder.build(), order, hands


def random_goal_pair(rng, link, kind, X, with_balls):
    """An objective, and the same for the NumPy version."""
    at = make_pose(rotation.exp(rng.normal(size=3)), rng.uniform(-0.3, 0.3, 3))
    target = X @ at if rng.random() < 0.5 else make_pose(rotation.exp(rng.normal(size=3)), rng.normal(size=3))
    weight = float(rng.choice([1.0, 0.4, 2.0]))
    weights = weight, weight
    point, local, z, local_z = target[:3, 3], at[:3, 3], target[:3, 2], at[:3, 2]
    if with_balls and kind in ("line", "plane"):  # no closed form for these
        kind = "hinge"
    match kind:
        case "point":
            return mk.PositionGoal(link, point, local, weight=weight), FrameGoal(
                link, at, target, (0, 1, 2), (), weights
            )
        case "pose":
            goal = mk.PoseGoal(link, target, at=at, weight=weight)
            return goal, FrameGoal(link, at, target, (0, 1, 2), (0, 1, 2), weights)
        case "hinge":
            goal = mk.HingeGoal(link, point, z, local, local_z, weight=weight)
            return goal, FrameGoal(link, at, target, (0, 1, 2), (2,), weights)
        case "axis":
            return mk.AxisGoal(link, z, local_z, weight=weight), FrameGoal(link, at, target, (), (2,), weights)
        case "line":
            return mk.OnLine(link, point, z, local, weight=weight), FrameGoal(link, at, target, (0, 1), (), weights)
        case "plane":
            return mk.OnPlane(link, point, z, local, weight=weight), FrameGoal(link, at, target, (2,), (), weights)
    raise AssertionError(kind)


CASES = [
    (kind, seed)
    for kind in ("chain", "chain limits", "chain slide limits", "chain ball", "tree limits", "tree slide ball")
    for seed in range(6)
]


@pytest.mark.parametrize(("kind", "seed"), CASES)
@pytest.mark.parametrize("options", [{}, {"order": "base to tip"}, {"largest_turn": 0.2}], ids=str)
def test_each_sweep_equals_that_of_the_numpy_version(kind, seed, options):
    rng = np.random.default_rng([seed, len(kind)])
    mechanism, joints, hands = random_tree(rng, kind)
    space, q0 = mechanism.space, mechanism.random(rng)
    size = packed_problem(mk.Solver(mechanism, mk.PositionGoal(hands[0], (0, 0, 0)))).length_unit
    X = mechanism.pose(hands[0], mechanism.random(rng))
    both = [random_goal_pair(rng, hand, KINDS[rng.integers(len(KINDS))], X, "ball" in kind) for hand in hands]
    if rng.random() < 0.5:
        both.append(random_goal_pair(rng, "a_link2", "point", X, "ball" in kind))
    order = []
    for name, motion in joints:
        if motion == "ball":
            k = space.q_names.index(f"{name}.qw")
            order.append((motion, k, int(space.quaternions_v[list(space.quaternions_q).index(k)])))
        else:
            k = space.q_names.index(name)
            order.append((motion, k, int(space.scalars_v[list(space.scalars_q).index(k)])))
    if options.get("order") != "base to tip":
        order = order[::-1]
    goals, frame_goals = ([pair[k] for pair in both] for k in (0, 1))
    solver = mk.Solver(mechanism, goals, solver="ccd", max_iterations=SWEEPS, **options)
    frame_goals = [
        replace(goal, weights=(goal.weights[0] / unit, goal.weights[1]))
        for goal, unit in zip(frame_goals, row_length_units(solver), strict=True)
    ]
    seen = []
    solver.solve(q0=q0, callback=lambda now: seen.append(now.q) and None)
    assert seen
    q, moved = q0, 0.0
    for ours in seen:
        before = q
        q = sweep(mechanism, frame_goals, q, order, largest=options.get("largest_turn", math.inf), size=size)
        # rounding grows as the motion does, and a quaternion may have either sign
        np.testing.assert_allclose(mechanism.difference(q, ours), 0.0, atol=1e-9)
        moved = max(moved, float(np.abs(mechanism.difference(before, q)).max()))
    assert moved > 1e-3
