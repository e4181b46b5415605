"""Certificates of paths agree with dense samples and with certification by bisection."""

from __future__ import annotations

import functools

import numba
import numpy as np
import pytest
from compiled_kernels import compiled
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import mechanik as mk
from mechanik.closure.loop_system import cached_loop_system
from mechanik.collision import Collider, Obstacle
from mechanik.kernels.distance.collision_layout import PairList
from mechanik.kernels.planning.motion_check import BodyPair, BoundingSphere
from mechanik.kernels.tables import RecordArray
from mechanik.model.shapes import Box, Sphere
from mechanik.motion.plan import path_certificate as certificate
from mechanik.motion.plan.path_certificate import PathCertificate, certify_by_bisection, certify_path
from mechanik.motion.plan.planning_space import PlanningSpace
from mechanik.spatial import apply, inverse
from mechanik.spatial.array import Array

SEEDS = st.integers(0, 2**32 - 1)


def box_below(size: tuple[float, float, float]) -> list[mk.ShapeInstance]:
    """A box below its joint."""
    return [mk.ShapeInstance(Box(size), mk.Pose((0.0, 0.0, -0.5 * size[2])))]


@functools.cache
def gantry() -> mk.Mechanism:
    """Two prismatic joints, a planar joint, and two fingers of which one is a mimic joint."""
    robot = mk.Builder("gantry")
    robot.prismatic("along", "base", "bridge", axis="x", limits=(-1.0, 1.0))
    robot.prismatic("down", "bridge", "column", axis="-z", limits=(0.0, 0.8))
    robot.planar("shift", "column", "hand", at=(0.0, 0.0, -0.9), limits=([-0.2, -0.2, -3.0], [0.2, 0.2, 3.0]))
    robot.revolute("left", "hand", "finger", at=(0.15, 0.0, 0.0), axis="y", limits=(-1.0, 1.0))
    right = robot.revolute("right", "hand", "thumb", at=(-0.15, 0.0, 0.0), axis="y", limits=(-1.0, 1.0))
    robot.link("bridge", collisions=[mk.ShapeInstance(Box((0.1, 0.6, 0.1)))])
    robot.link("column", collisions=box_below((0.06, 0.06, 0.8)))
    robot.link("hand", collisions=[mk.ShapeInstance(Box((0.3, 0.05, 0.05)))])
    for name in ("finger", "thumb"):
        robot.link(name, collisions=box_below((0.04, 0.04, 0.3)))
    gantry = robot.build()
    right.mimic(gantry.joints["left"], ratio=-0.8)
    return gantry


@functools.cache
def scene(name: str) -> Collider:
    """A mechanism among six balls and a box."""
    mechanism = gantry() if name == "gantry" else mk.gallery.panda(hand=False)
    rng = np.random.default_rng(0)
    balls = [Obstacle(Sphere(0.06), rng.uniform((-0.8, -0.8, -1.2), (0.8, 0.8, 1.0)), name=f"b{k}") for k in range(6)]
    return Collider(mechanism, ["self", *balls, Obstacle(Box((0.1, 0.1, 0.4)), (0.55, 0.1, 0.3), name="box")])


def random_path(collider: Collider, seed: int, count: int, size: float) -> Array:
    """Waypoints (count, nq) with random steps of up to `size` times the joint ranges."""
    space, rng = collider.mechanism.space, np.random.default_rng(seed)
    q = [space.random(rng, 1)[0]]
    for _ in range(count - 1):
        q.append(np.clip(q[-1] + size * (space.random(rng, 1)[0] - q[-1]), space.lower, space.upper))
    return np.array(q)


def certify_with(
    collider: Collider, q: Array, clearance: float, certify: object = certify_path, deadline: float = np.inf
) -> PathCertificate:
    config_space = collider.mechanism.space
    with cached_loop_system(collider.mechanism, {}) as loops:
        free = np.ones(config_space.nv, dtype=np.bool_)
        space = PlanningSpace(
            collider.mechanism, loops, collider, clearance, config_space.lower, config_space.upper, free
        )
        return certify(space, q, clearance, deadline)  # type: ignore[operator]


def sampled_min_distance(collider: Collider, q: Array) -> float:
    """Smallest distance (m) along the path with waypoints q, sampled every 0.5 mm or mrad."""
    return float(np.min(collider.distance(mk.Path(collider.mechanism, q).densify(5e-4).q)))


bounding = compiled("planning.motion_certificate")
pair_bounds, motion_bound, node_poses = bounding.pair_motion_bounds, bounding.motion_bound, bounding.update_node_poses
open_scene = bounding.open_scene


@numba.njit
def motion_bounds_along(
    scene_ints: Array, scene_floats: Array, spheres: Array, pairs: Array, q: Array, rates: Array, s: Array
) -> Array:
    scene = open_scene(scene_ints, scene_floats)
    rows = scene.pair_list_count
    W, bounds, out = np.empty((scene.node_count, 12)), np.empty((rows, 3)), np.empty((s.shape[0], rows))
    node_poses(scene.nodes, q, W)
    pair_bounds(scene.nodes, spheres, pairs, rates, W, bounds)
    for i in range(s.shape[0]):
        for row in range(rows):
            out[i, row] = motion_bound(bounds[row, 0], bounds[row, 1], bounds[row, 2], s[i])
    return out


# ---- invariants --------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(SEEDS, st.sampled_from(("gantry", "panda")), st.floats(0.01, 1.0))
def test_motion_and_loss_of_distance_are_within_the_bound(seed: int, name: str, size: float) -> None:
    collider, rng = scene(name), np.random.default_rng(seed)
    tables = collider._current_pairs().tables
    *_, sphere_rows, pair_rows = certificate._kernel_scene(tables)
    spheres = RecordArray(BoundingSphere, sphere_rows.reshape(-1))
    pairs = RecordArray(BodyPair, pair_rows.reshape(-1))
    segment = random_path(collider, seed, 2, size)
    rates, s = segment[1] - segment[0], np.linspace(0.0, 1.0, 60)
    bound = motion_bounds_along(*tables.arrays[:2], sphere_rows, pair_rows, segment[0], rates, s)
    assert np.isfinite(bound[1]).all()
    q = segment[0] + s[:, None] * rates
    for row, a in ((pair.distance_row, pair.body_a) for pair in pairs if pair.body_b < 0):
        body, sphere = tables.collision_bodies[a], spheres[a]
        directions = rng.normal(size=(40, 3))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        points = sphere.centre + sphere.radius * directions
        X = collider.mechanism.pose(body.name, q) @ inverse(body.X_node_body)
        positions = apply(X[:, None], points)
        assert (np.linalg.norm(positions - positions[0], axis=2).max(axis=1) <= bound[:, row] + 1e-9).all()
    # the first row of each pair list is its nearest pair
    first = tables.scene.pair_lists.column(PairList.first_row)
    distances = collider.distances_and_jacobian(q)[0][:, first]
    assert (np.abs(distances - distances[0]) <= bound + 1e-9).all()


@settings(max_examples=25)
@given(SEEDS, st.sampled_from(("gantry", "panda")), st.floats(0.02, 0.5))
def test_certificate_agrees_with_dense_samples(seed: int, name: str, size: float) -> None:
    collider = scene(name)
    q = random_path(collider, seed, 3, size)
    min_distance = sampled_min_distance(collider, q)
    assert not certify_with(collider, q, min_distance + 1e-6).is_certain
    assume(min_distance > 0.0)
    result = certify_with(collider, q, min_distance - 2e-3)
    assert result.is_free
    assert result.is_certain
    # the measured distance is the smallest, to 1 cm or a quarter
    assert result.min_distance >= min_distance - 1e-3
    assert result.min_distance - max(0.01, 0.25 * result.min_distance) <= min_distance


@settings(max_examples=12)
@given(SEEDS, st.sampled_from(("gantry", "panda")), st.floats(0.02, 0.3))
def test_certificate_agrees_with_bisection(seed: int, name: str, size: float) -> None:
    collider = scene(name)
    q = random_path(collider, seed, 3, size)
    assume(abs(sampled_min_distance(collider, q)) > 2e-3)
    by_kernel, by_bisection = certify_with(collider, q, 0.0), certify_with(collider, q, 0.0, certify_by_bisection)
    assert (by_kernel.is_free, by_kernel.is_certain) == (by_bisection.is_free, by_bisection.is_certain)


# ---- cases -------------------------------------------------------------------------------------


@functools.cache
def free_path() -> Array:
    return next(
        q
        for k in range(100)
        if sampled_min_distance(scene("panda"), q := random_path(scene("panda"), k, 4, 0.2)) > 2e-3
    )


def test_certification_in_several_kernel_calls_gives_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = certify_with(scene("panda"), free_path(), 0.0)
    monkeypatch.setattr(certificate, "CHECKS_PER_CALL", 3)
    pieces = certify_with(scene("panda"), free_path(), 0.0)
    assert (pieces.is_free, pieces.is_certain) == (whole.is_free, whole.is_certain) == (True, True)
    assert pieces.min_distance == pytest.approx(whole.min_distance, rel=0.3)


def test_path_is_checked_but_not_certain_after_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificate, "CHECKS_PER_CALL", 3)
    result = certify_with(scene("panda"), free_path(), 0.0, deadline=0.0)
    assert result.is_free
    assert not result.is_certain


def test_repeated_waypoints_are_certified() -> None:
    q = free_path()[:1]
    result = certify_with(scene("panda"), np.repeat(q, 3, axis=0), 0.0)
    assert result.is_certain
    assert result.min_distance == pytest.approx(scene("panda").distance(q[0]))
    again = np.repeat(free_path(), 2, axis=0)
    assert certify_with(scene("panda"), again, 0.0).is_certain


def test_path_in_contact_with_a_wall_is_free_but_not_certain() -> None:
    gantry_alone = gantry()
    q = np.zeros((2, gantry_alone.nq))
    q[:, 1] = 0.4
    q[1, 0] = 0.3
    low = float(gantry_alone.poses(q[0])[list(gantry_alone.links).index("finger"), 2, 3]) - 0.3
    floor = Collider(gantry_alone, [Obstacle(Box((4.0, 4.0, 0.1)), (0.0, 0.0, low - 0.05 - 1e-12), name="floor")])
    result = certify_with(floor, q, 0.0)
    assert result.is_free
    assert not result.is_certain
    assert result.min_distance == pytest.approx(0.0, abs=1e-9)


def test_poses_that_are_not_finite_raise() -> None:
    q = free_path().copy()
    q[1, 0] = np.inf
    with pytest.raises(mk.errors.NotFinite):
        certify_with(scene("panda"), q, 0.0)
