"""What is said of a way between two looks: never more than dense looks show, and as much as by halving it."""

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
from mechanik.kernels.planning.motion_check import BODY_A, BODY_B, PAIR_ROW, SPHERE_CENTRE, SPHERE_RADIUS
from mechanik.model.shapes import Box, Sphere
from mechanik.motion.plan import path_certificate as certificate
from mechanik.motion.plan.path_certificate import PathCertificate, certify_by_bisection, certify_path
from mechanik.motion.plan.planning_space import PlanningSpace
from mechanik.spatial import apply, inverse
from mechanik.spatial.array import Array

SEEDS = st.integers(0, 2**32 - 1)


def hung(size: tuple[float, float, float]) -> list[mk.ShapeInstance]:
    """A box below its joint."""
    return [mk.ShapeInstance(Box(size), mk.Pose((0.0, 0.0, -0.5 * size[2])))]


@functools.cache
def gantry() -> mk.Mechanism:
    """Two slides, two shifts and a turn in one joint, and two fingers of which one follows the other."""
    robot = mk.Builder("gantry")
    robot.prismatic("along", "base", "bridge", axis="x", limits=(-1.0, 1.0))
    robot.prismatic("down", "bridge", "column", axis="-z", limits=(0.0, 0.8))
    robot.planar("shift", "column", "hand", at=(0.0, 0.0, -0.9), limits=([-0.2, -0.2, -3.0], [0.2, 0.2, 3.0]))
    robot.revolute("left", "hand", "finger", at=(0.15, 0.0, 0.0), axis="y", limits=(-1.0, 1.0))
    right = robot.revolute("right", "hand", "thumb", at=(-0.15, 0.0, 0.0), axis="y", limits=(-1.0, 1.0))
    robot.link("bridge", collisions=[mk.ShapeInstance(Box((0.1, 0.6, 0.1)))])
    robot.link("column", collisions=hung((0.06, 0.06, 0.8)))
    robot.link("hand", collisions=[mk.ShapeInstance(Box((0.3, 0.05, 0.05)))])
    for name in ("finger", "thumb"):
        robot.link(name, collisions=hung((0.04, 0.04, 0.3)))
    gantry = robot.build()
    right.mimic(gantry.joints["left"], ratio=-0.8)
    return gantry


@functools.cache
def scene(name: str) -> Collider:
    """A mechanism among some balls and a box."""
    mechanism = gantry() if name == "gantry" else mk.gallery.panda(hand=False)
    rng = np.random.default_rng(0)
    balls = [Obstacle(Sphere(0.06), rng.uniform((-0.8, -0.8, -1.2), (0.8, 0.8, 1.0)), name=f"b{k}") for k in range(6)]
    return Collider(mechanism, ["self", *balls, Obstacle(Box((0.1, 0.1, 0.4)), (0.55, 0.1, 0.3), name="box")])


def random_way(collider: Collider, seed: int, knots: int, size: float) -> Array:
    """(knots, nq), each with a random step of up to `size` of all ranges from the one before."""
    space, rng = collider.mechanism.space, np.random.default_rng(seed)
    q = [space.random(rng, 1)[0]]
    for _ in range(knots - 1):
        q.append(np.clip(q[-1] + size * (space.random(rng, 1)[0] - q[-1]), space.lower, space.upper))
    return np.array(q)


def look(
    collider: Collider, q: Array, clearance: float, how: object = certify_path, until: float = np.inf
) -> PathCertificate:
    space = collider.mechanism.space
    with cached_loop_system(collider.mechanism, {}) as loops:
        free = np.ones(space.nv, dtype=np.bool_)
        ground = PlanningSpace(collider.mechanism, loops, collider, clearance, space.lower, space.upper, free)
        return how(ground, q, clearance, until)  # type: ignore[operator]


def smallest(collider: Collider, q: Array) -> float:
    """The smallest gap on a way with knots q, at places of which each point is within half a millimetre or so."""
    return float(np.min(collider.distance(mk.Path(collider.mechanism, q).densify(5e-4).q)))


bounding = compiled("planning.motion_certificate")
bound_rows, gone, place_nodes = bounding.pair_motion_bounds, bounding.distance_bound, bounding.update_node_poses


@numba.njit
def farthest(nodes: Array, balls: Array, couples: Array, q: Array, rates: Array, s: Array, rows: int) -> Array:
    W, bounds, out = np.empty((nodes.shape[0], 12)), np.empty((rows, 3)), np.empty((s.shape[0], rows))
    place_nodes(nodes, q, W)
    bound_rows(nodes, balls, couples, rates, W, bounds)
    for i in range(s.shape[0]):
        for row in range(rows):
            out[i, row] = gone(bounds[row, 0], bounds[row, 1], bounds[row, 2], s[i])
    return out


# ---- laws --------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(SEEDS, st.sampled_from(("gantry", "panda")), st.floats(0.01, 1.0))
def test_no_point_goes_farther_and_no_gap_falls_by_more_than_the_bound(seed: int, name: str, size: float) -> None:
    collider, rng = scene(name), np.random.default_rng(seed)
    tables = collider._current_pairs().tables
    *_, balls, couples = certificate._scene(tables)
    way = random_way(collider, seed, 2, size)
    rates, s = way[1] - way[0], np.linspace(0.0, 1.0, 60)
    bound = farthest(tables.nodes, balls, couples, way[0], rates, s, len(tables.pair_groups))
    assert np.isfinite(bound[1]).all()
    q = way[0] + s[:, None] * rates
    for row, a in ((int(one[PAIR_ROW]), int(one[BODY_A])) for one in couples if one[BODY_B] < 0):
        body = tables.collision_bodies[a]
        directions = rng.normal(size=(40, 3))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        points = balls[a, SPHERE_CENTRE : SPHERE_CENTRE + 3] + balls[a, SPHERE_RADIUS] * directions
        X = collider.mechanism.pose(body.name, q) @ inverse(body.frame)
        places = apply(X[:, None], points)
        assert (np.linalg.norm(places - places[0], axis=2).max(axis=1) <= bound[:, row] + 1e-9).all()
    # of each guard the row of the nearest
    first = np.cumsum([0, *tables.pair_groups[:-1, 4]])
    gaps = collider.distances_and_jacobian(q)[0][:, first]
    assert (np.abs(gaps - gaps[0]) <= bound + 1e-9).all()


@settings(max_examples=25)
@given(SEEDS, st.sampled_from(("gantry", "panda")), st.floats(0.02, 0.5))
def test_a_clearance_that_dense_looks_deny_is_never_certain_and_one_that_they_allow_always_is(
    seed: int, name: str, size: float
) -> None:
    collider = scene(name)
    q = random_way(collider, seed, 3, size)
    gap = smallest(collider, q)
    assert not look(collider, q, gap + 1e-6).is_certain
    assume(gap > 0.0)
    verdict = look(collider, q, gap - 2e-3)
    assert verdict.is_free
    assert verdict.is_certain
    # what was measured is the smallest there is, to 1 cm or a quarter
    assert verdict.gap >= gap - 1e-3
    assert verdict.gap - max(0.01, 0.25 * verdict.gap) <= gap


@settings(max_examples=12)
@given(SEEDS, st.sampled_from(("gantry", "panda")), st.floats(0.02, 0.3))
def test_the_verdict_is_that_of_halving_the_way(seed: int, name: str, size: float) -> None:
    collider = scene(name)
    q = random_way(collider, seed, 3, size)
    assume(abs(smallest(collider, q)) > 2e-3)
    ours, by_halving = look(collider, q, 0.0), look(collider, q, 0.0, certify_by_bisection)
    assert (ours.is_free, ours.is_certain) == (by_halving.is_free, by_halving.is_certain)


# ---- cases -------------------------------------------------------------------------------------


@functools.cache
def free_way() -> Array:
    return next(q for k in range(100) if smallest(scene("panda"), q := random_way(scene("panda"), k, 4, 0.2)) > 2e-3)


def test_a_look_that_is_interrupted_goes_on_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = look(scene("panda"), free_way(), 0.0)
    monkeypatch.setattr(certificate, "SOME", 3)
    pieces = look(scene("panda"), free_way(), 0.0)
    assert (pieces.is_free, pieces.is_certain) == (whole.is_free, whole.is_certain) == (True, True)
    assert pieces.gap == pytest.approx(whole.gap, rel=0.3)


def test_without_time_a_way_is_looked_at_but_not_certain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificate, "SOME", 3)
    verdict = look(scene("panda"), free_way(), 0.0, until=0.0)
    assert verdict.is_free
    assert not verdict.is_certain


def test_knots_that_are_one_are_looked_at_once() -> None:
    q = free_way()[:1]
    verdict = look(scene("panda"), np.repeat(q, 3, axis=0), 0.0)
    assert verdict.is_certain
    assert verdict.gap == pytest.approx(scene("panda").distance(q[0]))
    again = np.repeat(free_way(), 2, axis=0)
    assert look(scene("panda"), again, 0.0).is_certain


def test_a_way_along_a_wall_that_is_touched_all_along_is_free_and_not_certain() -> None:
    gantry_alone = gantry()
    q = np.zeros((2, gantry_alone.nq))
    q[:, 1] = 0.4
    q[1, 0] = 0.3
    low = float(gantry_alone.poses(q[0])[list(gantry_alone.links).index("finger"), 2, 3]) - 0.3
    floor = Collider(gantry_alone, [Obstacle(Box((4.0, 4.0, 0.1)), (0.0, 0.0, low - 0.05 - 1e-12), name="floor")])
    verdict = look(floor, q, 0.0)
    assert verdict.is_free
    assert not verdict.is_certain
    assert verdict.gap == pytest.approx(0.0, abs=1e-9)


def test_lengths_that_are_not_finite_are_refused() -> None:
    q = free_way().copy()
    q[1, 0] = np.inf
    with pytest.raises(mk.errors.NotFinite):
        look(scene("panda"), q, 0.0)
