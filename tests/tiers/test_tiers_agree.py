"""Compiled kernels and plain Python give the same solutions from the same start."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from random_mechanisms import random_mechanism
from special_loops import bennett, planar_four_bar, sarrus, six_sps

import mechanik as mk

TIERS = ("jit", "plain")
AGREE = 1e-9
"""m or rad."""


def last_link(mechanism: mk.Mechanism) -> str:
    return list(mechanism.links)[-1]


def moved(mechanism: mk.Mechanism, seed: int, size: float) -> np.ndarray:
    """A configuration near the present one, loops closed."""
    rng = np.random.default_rng(seed)
    v = rng.normal(size=mechanism.nv) * size
    q = mechanism.space.clamp(mechanism.space.integrate(mechanism.q, v)) if mechanism.nv else mechanism.q
    if not mechanism.closures:
        return q
    return np.asarray(mk.solve(mechanism, mk.RestPose(q), mechanism.q, restarts=0).q)


def solutions(
    mechanism: mk.Mechanism, goals: list[mk.Objective], q0: np.ndarray, use_tier: Callable[[str], None], **options
):
    results = []
    for tier in TIERS:
        use_tier(tier)
        results.append(mk.Solver(mechanism, goals).solve(q0=q0, **options))
    return results


def check(compiled: mk.Solution, plain: mk.Solution) -> None:
    assert compiled.success == plain.success
    assert compiled.status == plain.status
    if compiled.success:
        np.testing.assert_allclose(plain.q, compiled.q, rtol=0.0, atol=AGREE)


@pytest.mark.parametrize("options", [{}, {"restarts": 0}], ids=["default", "one attempt"])
@pytest.mark.parametrize("name", mk.gallery.names())
def test_solves_of_the_gallery_agree(name: str, options: dict[str, int], use_tier: Callable[[str], None]) -> None:
    """One attempt of an arm runs in the general kernel, others in the one for chains."""
    use_tier("jit")
    mechanism = mk.gallery.make(name)
    if not mechanism.nv:
        pytest.skip("nothing moves")
    link, q0 = last_link(mechanism), mechanism.q.copy()
    target = mechanism.pose(link, moved(mechanism, 1, 0.05))
    check(*solutions(mechanism, [mk.PositionGoal(link, target[:3, 3])], q0, use_tier, **options))
    check(*solutions(mechanism, [mk.PoseGoal(link, target)], q0, use_tier, **options))


@pytest.mark.parametrize("options", [{}, {"restarts": 0}], ids=["default", "one attempt"])
@pytest.mark.parametrize("seed", range(40))
def test_solves_of_random_mechanisms_agree(seed: int, options: dict[str, int], use_tier: Callable[[str], None]) -> None:
    use_tier("jit")
    mechanism = random_mechanism(seed, 3 + seed % 12)
    if not mechanism.nv:
        pytest.skip("nothing moves")
    link, q0 = last_link(mechanism), mechanism.q.copy()
    target = mechanism.pose(link, moved(mechanism, seed, 0.2))
    goals = (
        [mk.PoseGoal(link, target), mk.RestPose(q0, level=2)] if seed % 2 else [mk.PositionGoal(link, target[:3, 3])]
    )
    check(*solutions(mechanism, goals, q0, use_tier, **options))


@pytest.mark.parametrize("make", [planar_four_bar, bennett, sarrus, six_sps])
def test_solves_of_loops_agree(make: Callable[[], mk.Mechanism], use_tier: Callable[[str], None]) -> None:
    use_tier("jit")
    mechanism = make()
    link, q0 = last_link(mechanism), mechanism.q.copy()
    target = mechanism.pose(link, moved(mechanism, 3, 0.05))
    check(*solutions(mechanism, [mk.PositionGoal(link, target[:3, 3])], q0, use_tier))


@pytest.mark.parametrize("name", ["panda", "ur5", "puma560"])
def test_arms_without_a_start_agree(name: str, use_tier: Callable[[str], None]) -> None:
    """From the seed table, whose single-precision numbers are the same in both."""
    use_tier("jit")
    arm = mk.gallery.make(name)
    link, targets = last_link(arm), arm.space.random(np.random.default_rng(5), 30)
    X = arm.pose(link, targets)
    results = []
    for tier in TIERS:
        use_tier(tier)
        solver = mk.Solver(arm, mk.PoseGoal(link, X[0]))
        results.append([solver.solve(pose) for pose in X])
    for compiled, plain in zip(*results, strict=True):
        check(compiled, plain)


def test_a_batch_in_lanes_equals_the_batch_in_plain_python(use_tier: Callable[[str], None]) -> None:
    use_tier("jit")
    arm = mk.gallery.panda()
    X = arm.pose("panda_link8", arm.space.random(np.random.default_rng(2), 100))
    results = []
    for tier in TIERS:
        use_tier(tier)
        results.append(mk.Solver(arm, mk.PoseGoal("panda_link8", X[0])).solve_batch(X))
    compiled, plain = results
    np.testing.assert_array_equal(compiled.success, plain.success)
    np.testing.assert_allclose(plain.q, compiled.q, rtol=0.0, atol=AGREE)


@pytest.mark.parametrize("method", sorted(set(mk.METHODS) - {"annealing", "evolution", "closed_form"}))
def test_every_method_agrees(method: str, use_tier: Callable[[str], None]) -> None:
    use_tier("jit")
    arm = mk.gallery.panda()
    target = arm.pose("panda_link8", arm.q + 0.05)
    results = []
    for tier in TIERS:
        use_tier(tier)
        results.append(mk.solve(arm, mk.PositionGoal("panda_link8", target[:3, 3]), arm.q, solver=method))
    check(*results)


def test_distances_agree(use_tier: Callable[[str], None]) -> None:
    use_tier("jit")
    arm = mk.gallery.panda()
    q = arm.space.random(np.random.default_rng(4), 8)
    results = []
    for tier in TIERS:
        use_tier(tier)
        collider = mk.Collider(arm, ["self", mk.Obstacle(mk.Box((0.2, 0.3, 0.2)), position=(0.5, 0.1, 0.3))])
        results.append(collider.distance(q))
    np.testing.assert_allclose(*results, rtol=0.0, atol=AGREE)


HULL = mk.ConvexMesh(np.random.default_rng(1).normal(size=(12, 3)) * 0.3)
BODIES = {
    "sphere": mk.Sphere(0.3),
    "capsule": mk.Capsule(0.2, 0.6),
    "box": mk.Box((0.4, 0.5, 0.7)),
    "cylinder": mk.Cylinder(0.25, 0.6),
    "hull": HULL,
}
OBSTACLES = {
    "ball": mk.Obstacle(mk.Sphere(0.4), (1.5, 0, 1)),
    "bar": mk.Obstacle(mk.Capsule(0.2, 0.8), (-1.5, 0, 1), (1, 1, 0, 0)),
    "block": mk.Obstacle(mk.Box((0.5, 1, 0.5)), (0, 1.5, 1), (1, 0, 0.3, 0)),
    "drum": mk.Obstacle(mk.Cylinder(0.3, 0.9), (0, -1.5, 1), (1, 0.5, 0, 0)),
    "stone": mk.Obstacle(HULL, (1.2, 1.2, 1.5)),
    "floor": mk.Obstacle(mk.HalfSpace(), (0, 0, -0.2), (1, 0.1, 0, 0)),
    "hills": mk.Obstacle(
        mk.HeightField(np.random.default_rng(2).uniform(0.0, 0.3, (6, 7)), (3.0, 2.5)), (0.0, 0.0, 0.0)
    ),
}


@pytest.mark.parametrize("obstacle", OBSTACLES)
@pytest.mark.parametrize("body", BODIES)
def test_distances_of_all_kinds_of_shapes_agree(body: str, obstacle: str, use_tier: Callable[[str], None]) -> None:
    """Apart, touching and one inside the other."""
    robot = mk.Builder("free body")
    robot.joint("free", "base", "body", dof=["X", "Y", "Z", "EX", "EY", "EZ"])
    robot.link("body", collisions=[mk.ShapeInstance(BODIES[body])])
    mechanism = robot.build()
    rng = np.random.default_rng(7)
    offsets = np.repeat([0.02, 0.3, 0.6, 1.2], 2)[:, None] * rng.normal(size=(8, 3))
    rotations = mk.spatial.quaternion.exp(rng.normal(size=(8, 3)))
    q = np.hstack([OBSTACLES[obstacle].pose.position + offsets, rotations])
    results = []
    for tier in TIERS:
        use_tier(tier)
        collider = mk.Collider(mechanism, [OBSTACLES[obstacle]])
        results.append((collider.distance(q), *collider.distances_and_jacobian(q)))
    (compiled, _, compiled_jacobians), (plain, _, plain_jacobians) = results
    apart = compiled > 1e-3
    np.testing.assert_allclose(plain[apart], compiled[apart], rtol=0.0, atol=AGREE)
    # the depth is found by iteration, which ends where rounding decides; several directions may be equally short
    np.testing.assert_allclose(plain[~apart], compiled[~apart], rtol=0.0, atol=1e-6)
    np.testing.assert_allclose(plain_jacobians[apart], compiled_jacobians[apart], rtol=0.0, atol=1e-6)


def test_paths_around_obstacles_agree(use_tier: Callable[[str], None]) -> None:
    use_tier("jit")
    arm = mk.gallery.planar_3r()
    obstacle = mk.Obstacle(mk.Box((0.1, 0.1, 1.0)), position=(1.6, 1.6, 0.0))
    results = []
    for tier in TIERS:
        use_tier(tier)
        path = mk.plan(arm, np.array([0.0, 0.2, 0.2]), np.array([1.4, 0.2, 0.2]), avoid=[obstacle], max_seconds=120.0)
        results.append(path.q)
    np.testing.assert_allclose(*results, rtol=0.0, atol=1e-6)


def test_paths_along_loops_agree(use_tier: Callable[[str], None]) -> None:
    use_tier("jit")
    mechanism = mk.gallery.four_bar()
    goal = mk.solve(mechanism, mk.JointValues({"crank_joint": 1.6}), mechanism.q).q
    results = []
    for tier in TIERS:
        use_tier(tier)
        results.append(mk.plan(mechanism, mechanism.q, goal, avoid=None, max_seconds=60.0).q)
    np.testing.assert_allclose(*results, rtol=0.0, atol=1e-6)


@pytest.mark.parametrize(("name", "tolerance"), [("ur5", AGREE), ("panda", 10.0 * AGREE)])
def test_tracking_agrees(name: str, tolerance: float, use_tier: Callable[[str], None]) -> None:
    """Ten steps add up to more where the goal leaves a freedom, which rounding moves."""
    use_tier("jit")
    arm = mk.gallery.make(name)
    link = last_link(arm)
    target = arm.pose(link, arm.q + 0.03)
    results = []
    for tier in TIERS:
        use_tier(tier)
        tracker = mk.Tracker(arm, mk.PoseGoal(link, target), dt=0.01)
        results.append(np.array([tracker.step().q for _ in range(10)]))
    np.testing.assert_allclose(*results, rtol=0.0, atol=tolerance)
