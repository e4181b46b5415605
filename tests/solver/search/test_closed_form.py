"""Closed forms: every branch is correct, and none is missing."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from general_arms import angle_difference
from hypothesis import given, settings
from random_arms import FAMILIES, arm_of, random_arm
from random_mechanisms import seeds

from mechanik import Builder, Pose, gallery
from mechanik.errors import (
    InvalidArgument,
    NoClosedForm,
    NotARotation,
    NotFinite,
    ShapeError,
    StructureError,
    UnknownName,
)
from mechanik.solver.search.closed_form import ClosedForm, closed_form
from mechanik.spatial import euler, make_pose, rotation

ARMS = {"puma560": "tool", "ur5": "tool0", "ur10": "tool0", "iiwa14": "iiwa_link_ee"}
LINKS = ARMS | {"dh6": "tool", "planar_2r": "tool", "planar_3r": "tool"}


def form_of(name: str) -> ClosedForm:
    return closed_form(gallery.make(name), LINKS[name])


def poses(form: ClosedForm, angles):
    """Of the chain's end at angles (..., n), by the mechanism's own forward kinematics; its other joints are zero."""
    q = np.zeros((*angles.shape[:-1], form.mechanism.nq))
    q[..., form.axes.columns] = angles
    return form.mechanism.pose(form.link, q)


def solve_and_verify(form: ClosedForm, q, near=None):
    """Solve for the poses of q (m, n), and hold what comes out against forward kinematics.

    Returns:
        (m,) how many branches there are, and how far (rad) the nearest one is from q.
    """
    X = poses(form, q)
    elbow = form.formula.elbow_angle(q) if form.kind == "S-R-S" else None  # type: ignore[attr-defined]
    angles, exists = form.solve_all(X, elbow=elbow, near=near)
    assert angles.shape == (len(q), form.formula.candidate_count, q.shape[1])
    assert np.isnan(angles[~exists]).all()
    branches, count = angles[exists], exists.sum(axis=1)
    assert ((branches > -np.pi) & (branches <= np.pi)).all()
    reached, wanted = poses(form, branches), np.repeat(X, count, axis=0)
    assert np.linalg.norm(reached[:, :3, 3] - wanted[:, :3, 3], axis=-1).max() < 1e-9
    if form.formula.constrains_rotation:
        chord = np.linalg.norm(reached[:, :3, :3] - wanted[:, :3, :3], axis=(-2, -1))
        assert chord.max() / np.sqrt(2) < 1e-9
    return count, np.where(exists, angle_difference(np.nan_to_num(angles), q[:, None]), np.inf).min(axis=1)


@pytest.mark.parametrize("name", ARMS)
def test_every_branch_of_100_000_poses_is_correct_and_includes_the_generating_configuration(name):
    form = form_of(name)
    q = np.random.default_rng(1).uniform(-np.pi, np.pi, (100_000, form.axes.n))
    count, away = (
        np.concatenate(part) for part in zip(*(solve_and_verify(form, chunk) for chunk in np.split(q, 20)), strict=True)
    )
    assert away.max() < 1e-6, q[np.argmax(away)]
    assert set(count.tolist()) <= {2, 4, 6, 8}
    assert count.max() == 8


@pytest.mark.parametrize("name", FAMILIES)
@settings(max_examples=12)
@given(seed=seeds)
def test_any_arm_of_a_family_is_recognised_and_solved(name, seed):
    arm = random_arm(seed, name)
    form = closed_form(arm, "tool")
    assert form.kind == FAMILIES[name][0]
    q = np.random.default_rng(seed).uniform(-np.pi, np.pi, (50, arm.nq))
    _, away = solve_and_verify(form, q)
    assert away.max() < 1e-5, q[np.argmax(away)]


@pytest.mark.parametrize("unit", [1e-3, 1e3])
@pytest.mark.parametrize("name", FAMILIES)
def test_the_unit_of_length_does_not_matter(name, unit):
    rng = np.random.default_rng(5)
    h, p = FAMILIES[name][1](rng)
    arm = arm_of(rng, (h, unit * p), unit)
    form = closed_form(arm, "tool")
    assert form.kind == FAMILIES[name][0]
    q = rng.uniform(-np.pi, np.pi, (50, arm.nq))
    _, away = solve_and_verify(form, q)
    assert away.max() < 1e-5


@pytest.mark.parametrize(
    "name", ["wrist, 1 and 2 skew, 2 and 3 skew", "2, 3, 4 parallel, 5 and 6 skew", "3, 4, 5 parallel", "planar 3R"]
)
@pytest.mark.parametrize("seed", range(3))
def test_newtons_method_from_random_starts_finds_no_missing_branch(name, seed):
    arm = random_arm(seed, name)
    form = closed_form(arm, "tool")
    rng = np.random.default_rng(seed)
    X = arm.pose("tool", rng.uniform(-np.pi, np.pi, arm.nq))
    q = rng.uniform(-np.pi, np.pi, (400, arm.nq))
    for _ in range(80):
        at, J = arm.pose("tool", q), arm.jacobian("tool", q)
        turn = rotation.log(X[:3, :3] @ np.swapaxes(at[:, :3, :3], -1, -2))
        e = np.concatenate([X[:3, 3] - at[:, :3, 3], turn], axis=-1)
        Jt = np.swapaxes(J, -1, -2)
        damping = (1e-2 * (e**2).sum(axis=-1) + 1e-10)[:, None, None]
        q = q + (Jt @ np.linalg.solve(J @ Jt + damping * np.eye(6), e[..., None]))[..., 0]
    converged = q[np.abs(arm.pose("tool", q) - X).max(axis=(-2, -1)) < 1e-8]
    angles, exists = form.solve_all(X)
    apart = angle_difference(converged[:, None], angles[exists])
    assert apart.min(axis=1).max() < 1e-4
    assert apart.min(axis=0).max() < 1e-4  # the search is thorough: it finds all of ours


@pytest.mark.parametrize("name", LINKS)
def test_at_singular_poses_free_angles_are_taken_from_q0(name):
    """All quarter turns: arms stretched and folded, wrists straight, hands above the shoulder."""
    form = form_of(name)
    quarters = (0.0, np.pi / 2, np.pi, -np.pi / 2)
    q = np.array(list(itertools.product(quarters, repeat=min(form.axes.n, 6))))
    if form.axes.n == 7:
        q = np.concatenate([q, np.random.default_rng(0).choice(quarters, (len(q), 1))], axis=1)
    _, away = solve_and_verify(form, q, near=q)
    assert away.max() < 1e-6, q[np.argmax(away)]


@pytest.mark.parametrize("name", LINKS)
def test_coincident_branches_are_returned_once(name):
    form = form_of(name)
    q = np.random.default_rng(2).choice([0.0, 0.5, np.pi / 2, np.pi], (200, form.axes.n))
    angles, exists = form.solve_all(poses(form, q), near=q)
    for branches, there in zip(angles, exists, strict=True):
        apart = angle_difference(branches[there][:, None], branches[there][None])
        assert (apart[~np.eye(len(apart), dtype=bool)] > 1e-7).all()


@pytest.mark.parametrize("name", LINKS)
@pytest.mark.parametrize("step", [1e-4, 1e-6, 1e-8, 1e-10])
def test_branches_near_singular_poses_exist_and_are_correct(name, step):
    form = form_of(name)
    rng = np.random.default_rng(3)
    q = rng.choice([0.0, np.pi / 2, np.pi, -np.pi / 2], (300, form.axes.n))
    q = q + step * rng.standard_normal(q.shape)
    count, away = solve_and_verify(form, q, near=q)
    assert count.min() >= 1
    # near a singular pose, other angles may give the same pose to the last digit
    J = form.axes.jacobians(q)[:, : 6 if form.formula.constrains_rotation else 3]
    is_regular = np.linalg.svd(J, compute_uv=False)[:, min(form.axes.n, 6) - 1] > 1e-6
    assert (away[is_regular] < 1e-4).all()


@pytest.mark.parametrize("name", LINKS)
def test_out_of_reach_there_are_no_branches(name):
    form = form_of(name)
    X = poses(form, np.random.default_rng(4).uniform(-np.pi, np.pi, (20, form.axes.n)))
    X[:, :3, 3] += np.random.default_rng(5).choice([-1, 1], (20, 3)) * 4.0
    angles, exists = form.solve_all(X)
    assert not exists.any()
    assert np.isnan(angles).all()
    assert form.nearest(X[0]) is None
    assert form.branches(X[0]).shape == (0, form.mechanism.nq)


def test_the_border_of_the_reach_is_reached_and_a_micrometre_further_is_not():
    arm = gallery.planar_2r()
    form = closed_form(arm, "tool")
    tip = arm.pose("tool", np.zeros(2))
    assert len(form.branches(tip)) == 1
    tip[:3, 3] *= 1 + 1e-6
    assert len(form.branches(tip)) == 0


def test_a_target_outside_the_plane_of_a_planar_arm_is_out_of_reach():
    for name in ("planar_2r", "planar_3r"):
        form = form_of(name)
        X = poses(form, np.full((1, form.axes.n), 0.4))[0]
        assert len(form.branches(X, within_limits=False)) == 2
        X[2, 3] += 1e-6
        assert len(form.branches(X, within_limits=False)) == 0


def test_a_planar_2r_arm_ignores_the_rotation_of_the_target():
    form = form_of("planar_2r")
    X = poses(form, np.array([0.3, 0.8]))
    X[:3, :3] = rotation.about_x(1.0)
    assert len(form.branches(X, within_limits=False)) == 2


def test_leading_axes_are_preserved_and_broadcast():
    form = form_of("ur5")
    q = np.random.default_rng(6).uniform(-3, 3, (4, 5, 6))
    X = poses(form, q)
    angles, exists = form.solve_all(X)
    assert angles.shape == (4, 5, 8, 6)
    assert exists.shape == (4, 5, 8)
    for i, j in ((0, 0), (3, 2)):
        branches, there = form.solve_all(X[i, j])
        np.testing.assert_array_equal(branches, angles[i, j])
        np.testing.assert_array_equal(there, exists[i, j])
    many, _ = form.solve_all(X[0, 0], near=np.zeros((3, 6)))
    assert many.shape == (3, 8, 6)
    none, there = form.solve_all(np.zeros((0, 4, 4)))
    assert none.shape == (0, 8, 6)
    assert there.shape == (0, 8)


def test_branches_are_full_configurations_within_limits_nearest_first():
    arm = gallery.ur5()
    form = closed_form(arm, "tool0")
    rng = np.random.default_rng(7)
    for q in arm.random(rng, 30):
        q0 = arm.random(rng)
        X = arm.pose("tool0", q)
        branches = form.branches(X, q0)
        assert arm.space.within_limits(branches).all()
        assert np.abs(arm.pose("tool0", branches) - X).max() < 1e-9
        distances = np.linalg.norm(branches - q0, axis=-1)
        assert (np.diff(distances) >= 0).all()
        # of angles that mean the same no other one inside the limits is nearer
        for turn in (-2 * np.pi, 2 * np.pi):
            shifted = branches + turn
            inside = (shifted >= arm.space.lower) & (shifted <= arm.space.upper)
            assert (np.abs(shifted - q0) >= np.abs(branches - q0) - 1e-9)[inside].all()
        np.testing.assert_array_equal(form.nearest(X, q0), branches[0])


@pytest.mark.parametrize("name", ARMS)
def test_the_nearest_branch_to_the_current_configuration_is_that_configuration(name):
    arm = gallery.make(name)
    form = closed_form(arm, ARMS[name])
    for q in arm.random(np.random.default_rng(8), 10):
        np.testing.assert_allclose(form.nearest(arm.pose(ARMS[name], q), q), q, atol=1e-6)
    arm.q = arm.random(np.random.default_rng(9))
    np.testing.assert_allclose(form.branches(arm.pose(ARMS[name]))[0], arm.q, atol=1e-7)


def test_branches_outside_limits_are_omitted_unless_requested():
    arm = gallery.puma560()
    form = closed_form(arm, "tool")
    q = np.array([0.3, 0.9, -2.0, 0.4, 0.7, -0.5])
    X = arm.pose("tool", q)
    inside, every = form.branches(X, q), form.branches(X, q, within_limits=False)
    assert 1 <= len(inside) < len(every) == 8
    assert arm.space.within_limits(inside).all()
    np.testing.assert_allclose(inside[0], q, atol=1e-9)


def test_a_chain_may_start_at_any_ancestor_and_the_other_joints_stay():
    body = gallery.humanoid()
    form = closed_form(body, "left_hand", base="chest")
    assert form.kind == "S-R-S"
    q = body.random(np.random.default_rng(10))
    q0 = body.random(np.random.default_rng(11))
    others = np.setdiff1d(np.arange(body.nq), form.axes.columns)
    X_chest_hand = np.linalg.inv(body.pose("chest", q)) @ body.pose("left_hand", q)
    branches = form.branches(X_chest_hand, q0, within_limits=False, elbow=form.elbow_angle(q))
    assert len(branches) == 8
    np.testing.assert_array_equal(branches[:, others], np.tile(q0[others], (8, 1)))
    reached = np.linalg.inv(body.pose("chest", branches)) @ body.pose("left_hand", branches)
    assert np.abs(reached - X_chest_hand).max() < 1e-9


def arm_from_a_file_that_rounds(pi: str):
    """A UR5 whose file gives rotations with this number of digits."""
    half, robot, parent = float(pi) / 2, Builder("rounded"), "base"
    rows = [
        ((0, 0, 0.089159), 0, "z"),
        ((0, 0.13585, 0), half, "y"),
        ((0, -0.1197, 0.425), 0, "y"),
        ((0, 0, 0.39225), half, "y"),
        ((0, 0.093, 0), 0, "z"),
        ((0, 0, 0.09465), half, "y"),
    ]
    for k, (xyz, pitch, axis) in enumerate(rows):
        R = euler.matrix_from_euler([pitch / 3, pitch, 2 * pitch / 3], order="xyz", axes="fixed") if k == 5 else None
        R = rotation.about_y(pitch) @ rotation.about_x(np.pi - float(pi)) if R is None else R
        robot.revolute(f"j{k}", parent, f"l{k}", at=make_pose(R, xyz), axis=axis)
        parent = f"l{k}"
    return robot.build()


@pytest.mark.parametrize("pi", ["3.1416", "3.141593", "3.14159265"])
def test_an_arm_with_rounded_pi_in_its_file_is_solved_exactly(pi):
    arm = arm_from_a_file_that_rounds(pi)
    form = closed_form(arm, "l5")
    assert form.kind == "three parallel axes"
    q = np.random.default_rng(12).uniform(-np.pi, np.pi, (2000, 6))
    X = arm.pose("l5", q)
    angles, exists = form.solve_all(X)
    assert np.abs(arm.pose("l5", angles[exists]) - np.repeat(X, exists.sum(axis=1), axis=0)).max() < 1e-9
    away = np.where(exists, angle_difference(np.nan_to_num(angles), q[:, None]), np.inf).min(axis=1)
    # beside a singular pose formulas that are a little wrong can lose the two branches that meet there
    singular = np.linalg.svd(arm.jacobian("l5", q), compute_uv=False)[:, -1] < 2e-3
    assert singular.mean() < 0.05
    assert away[~singular].max() < 1e-6


def test_a_target_in_single_precision_is_accepted():
    form = form_of("puma560")
    X = poses(form, np.array([[0.3, 0.9, -2.0, 0.4, 0.7, -0.5]])).astype(np.float32)[0]
    branches = form.branches(X, within_limits=False)
    assert len(branches) == 8
    assert np.abs(form.mechanism.pose("tool", branches) - X).max() < 1e-6


def test_a_pose_object_is_accepted():
    form = form_of("ur10")
    assert len(form.branches(Pose((0.4, 0.3, 0.5)))) == len(form.branches(make_pose(np.eye(3), (0.4, 0.3, 0.5)))) > 0


def test_an_arm_without_a_closed_form_gives_an_error_with_reason_and_alternative():
    with pytest.raises(NoClosedForm, match=r"axes 6 and 7 do not intersect .distance 0\.088 m.*mechanik\.solve"):
        closed_form(gallery.panda(), "panda_hand_tcp")
    with pytest.raises(NoClosedForm, match="joint 'quill' is prismatic"):
        closed_form(gallery.scara(), "tool")


def test_invalid_input_is_rejected_by_name():
    arm = gallery.ur5()
    with pytest.raises(UnknownName, match="tool0"):
        closed_form(arm, "tol0")
    with pytest.raises(StructureError, match="is not an ancestor"):
        closed_form(arm, "forearm_link", base="tool0")
    form = closed_form(arm, "tool0")
    with pytest.raises(ShapeError, match="target"):
        form.solve_all(np.eye(3))
    with pytest.raises(NotFinite, match="target"):
        form.solve_all(np.full((4, 4), np.nan))
    with pytest.raises(NotARotation, match="target"):
        form.solve_all(np.diag([2.0, 1, 1, 1]))
    with pytest.raises(InvalidArgument, match="elbow angle"):
        form.solve_all(np.eye(4), elbow=0.3)
    with pytest.raises(InvalidArgument, match="elbow angle"):
        form.elbow_angle(arm.q)
    with pytest.raises(ShapeError, match="near"):
        form.solve_all(np.eye(4), near=np.zeros(5))
    with pytest.raises(NotFinite, match="near"):
        form.solve_all(np.eye(4), near=np.full(6, np.inf))
    with pytest.raises(ShapeError, match="one target"):
        form.branches(np.zeros((2, 4, 4)) + np.eye(4))
    with pytest.raises(ShapeError, match="q must have 6"):
        form.nearest(np.eye(4), np.zeros(5))


def test_a_closed_form_rejects_a_mechanism_that_has_changed():
    arm = gallery.ur5()
    form = closed_form(arm, "tool0")
    X = arm.pose("tool0")
    arm.q = arm.random(np.random.default_rng(0))
    assert len(form.branches(X)) > 0  # to move is no change
    arm.joint("elbow_joint").position = (0, 0, 1)
    with pytest.raises(StructureError, match="has changed"):
        form.branches(X)
