"""Reached voxels: closed forms, and properties that hold for any mechanism."""

from __future__ import annotations

import math
from copy import deepcopy

import numpy as np
import pytest
from random_arms import direction, place

import mechanik as mk
from mechanik.reach import ReachMap, reachability
from mechanik.spatial import make_pose, rotation

BOUNDARY_TOLERANCE = 5e-6
"""m: a voxel that the boundary touches by less than this may be in the map or not."""


def layer_distances(reach: ReachMap) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return for the layer and one ring around it: whether reached, smallest and largest distance from 0."""
    ring = np.pad(reach.occupied[:, :, 0], 1)
    x, y = np.meshgrid(*(np.arange(-1, n + 1) + first for n, first in zip(reach.shape, reach.first[:2], strict=False)),
                       indexing="ij")  # fmt: skip
    smallest = [np.maximum(np.maximum(k, -(k + 1)), 0) * reach.resolution for k in (x, y)]
    largest = [np.maximum(np.abs(k), np.abs(k + 1)) * reach.resolution for k in (x, y)]
    return ring, np.hypot(*smallest), np.hypot(*largest)


def assert_reached_between(ring: np.ndarray, surely: np.ndarray, maybe: np.ndarray) -> None:
    """Assert that every voxel of `surely` is reached, and none outside `maybe`."""
    assert (ring | ~surely).all(), f"{(surely & ~ring).sum()} of {surely.sum()} voxels are missing"
    assert (maybe | ~ring).all(), f"{(ring & ~maybe).sum()} of {ring.sum()} voxels are too many"


def graph_positions(mechanism: mk.Mechanism, link: str, q: np.ndarray) -> np.ndarray:
    """Return the positions of the link computed by the graph instead of the kernels; loops must be closed there."""
    copy = deepcopy(mechanism)
    positions = []
    for configuration in q:
        assert not copy.set_q(configuration), "a limit is broken"
        positions.append(copy.link(link).world_matrix[:3, 3])
        assert all(closure.gap().is_closed(2e-6) for closure in copy.closures.values())
    return np.array(positions)


def gantry(*limits: tuple[float, float]) -> mk.Mechanism:
    builder, parent = mk.Builder("gantry"), "frame"
    for axis, pair in zip("xyz", limits, strict=False):
        builder.prismatic(f"slide_{axis}", parent, f"car_{axis}", axis=axis, limits=pair)
        parent = f"car_{axis}"
    return builder.build()


def random_arm(seed: int) -> mk.Mechanism:
    """Return an arm of four joints with random axes, positions and limits."""
    rng = np.random.default_rng(seed)
    builder, parent = mk.Builder(f"arm {seed}"), "base"
    for k in range(4):
        at = make_pose(rotation.exp(3 * direction(rng)), place(rng))
        if rng.random() < 0.25:
            builder.prismatic(f"j{k}", parent, f"l{k}", at=at, limits=(-0.3, rng.uniform(-0.2, 0.4)))
        else:
            builder.revolute(f"j{k}", parent, f"l{k}", at=at, limits=(-rng.uniform(0.3, 3), rng.uniform(0.3, 3)))
        parent = f"l{k}"
    builder.fixed("end", parent, "tool", at=place(rng))
    return builder.build()


# ---- closed forms ---------------------------------------------------------------------------


@pytest.mark.parametrize("lengths", [(1.0, 0.5), (0.4, 0.9), (0.7, 0.7)])
def test_a_planar_arm_of_two_links_reaches_exactly_an_annulus(lengths):
    reach = reachability(mk.gallery.planar_2r(lengths), "tool", 0.1, samples=500)
    inner, outer = abs(lengths[0] - lengths[1]), sum(lengths)
    ring, near, far = layer_distances(reach)
    assert reach.is_flat
    assert_reached_between(
        ring,
        surely=(near < outer - BOUNDARY_TOLERANCE) & (far > inner + BOUNDARY_TOLERANCE),
        maybe=(near < outer + BOUNDARY_TOLERANCE) & (far > inner - BOUNDARY_TOLERANCE),
    )


def test_a_polar_arm_reaches_exactly_the_centres_in_a_sector():
    builder = mk.Builder("polar")
    builder.revolute("turn", "base", "boom", limits=(0.3, 2.2))
    builder.prismatic("slide", "boom", "tool", axis="x", limits=(0.35, 1.2))
    reach = reachability(builder.build(), "tool", 0.05, samples=200)
    x, y = np.meshgrid(*(np.arange(-30, 30) * 0.05 + 0.025,) * 2, indexing="ij")
    radius, angle = np.hypot(x, y), np.arctan2(y, x)
    inside = (radius > 0.35) & (radius < 1.2) & (angle > 0.3) & (angle < 2.2)
    reached = {tuple(cell) for cell in (reach.cells + reach.first)[reach.centred][:, :2].tolist()}
    assert reached == {(i - 30, j - 30) for i, j in np.argwhere(inside).tolist()}


def test_a_gantry_reaches_its_box():
    reach = reachability(gantry((0.0, 0.6), (-0.2, 0.2), (0.1, 0.4)), "car_z", 0.1, samples=50)
    assert reach.volume == pytest.approx(0.6 * 0.4 * 0.3)
    assert np.allclose(reach.extent, [[0.0, -0.2, 0.1], [0.6, 0.2, 0.4]], atol=0.1)
    assert reach.orientation_kind == "nothing"
    assert (reach.shares == 1.0).all()


def test_a_link_of_a_four_bar_reaches_the_voxels_along_its_curve():
    reach = reachability(mk.gallery.four_bar(), "coupler", 0.1)  # its crank rotates fully, 0.5 m from the origin
    ring, near, far = layer_distances(reach)
    assert_reached_between(
        ring,
        (near < 0.5 - BOUNDARY_TOLERANCE) & (far > 0.5 + BOUNDARY_TOLERANCE),
        (near < 0.5 + BOUNDARY_TOLERANCE) & (far > 0.5 - BOUNDARY_TOLERANCE),
    )
    assert reach.area == 0.0, "a curve has no area"


def test_a_link_that_does_not_move_has_one_voxel_centred_on_it():
    arm = mk.gallery.panda()
    for link, position in (("panda_link0", (0, 0, 0)), ("panda_link1", (0, 0, 0.333))):
        reach = reachability(arm, link, 0.05, orientations=8)
        assert (reach.shape, len(reach)) == ((1, 1, 1), 1)
        assert np.allclose(reach.centres, position, atol=1e-9)


# ---- general properties ---------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_the_position_of_every_configuration_is_in_the_map(seed):
    arm = random_arm(seed)
    reach = reachability(arm, "tool", 0.2, orientations=0, samples=300)
    positions = arm.pose("tool", arm.random(np.random.default_rng(seed), 100_000))[:, :3, 3]
    assert reach.reachable(positions).all()


@pytest.mark.parametrize("seed", range(0, 9, 3))
def test_every_voxel_has_a_configuration_that_reaches_it(seed):
    arm = random_arm(seed)
    reach = reachability(arm, "tool", 0.25, orientations=0, samples=300)
    positions = graph_positions(arm, "tool", reach.q)
    assert np.allclose(positions, reach.positions, atol=1e-9)
    assert (np.abs(positions - reach.centres) <= 0.125 + 1e-9).all()


def test_every_voxel_of_a_mechanism_with_loops_has_a_closed_configuration():
    five_bar = mk.gallery.five_bar()
    end = next(name for name in reversed(five_bar.links) if name != "ground")
    reach = reachability(five_bar, end, 0.2, orientations=0)
    assert len(reach) > 5
    assert np.allclose(graph_positions(five_bar, end, reach.q), reach.positions, atol=1e-9)


def test_wider_limits_reach_at_least_as_much():
    arm = mk.gallery.planar_3r()
    box = [[-2.3, -2.3, -0.1], [2.3, 2.3, 0.1]]
    narrower: ReachMap | None = None
    for half_range in (0.4, 0.9, 1.8):
        limits = dict.fromkeys(("joint1", "joint2", "joint3"), (-half_range, half_range))
        reach = reachability(arm, "tool", 0.2, orientations=12, region=box, limits=limits, samples=2000)
        if narrower is not None:
            assert (reach.occupied | ~narrower.occupied).all()
            rows = [reach._voxel_index(centre) for centre in narrower.centres[narrower.centred]]
            assert (reach.reached[rows] | ~narrower.reached[narrower.centred]).all()
        narrower = reach


def test_the_map_of_a_region_is_part_of_the_whole_map():
    arm = mk.gallery.ur5()
    whole = reachability(arm, "tool0", 0.2, orientations=0)
    part = reachability(arm, "tool0", 0.2, orientations=0, region=[[-0.4, 0.2, 0.0], [0.6, 1.4, 0.4]])
    assert part.shape == (5, 6, 2)
    assert np.allclose(part.origin, [-0.4, 0.2, 0.0])
    centres = part.origin + (np.argwhere(np.ones(part.shape)) + 0.5) * 0.2
    assert (whole.reachable(centres) == part.reachable(centres)).all()


def test_an_unreachable_region_gives_an_empty_map():
    reach = reachability(mk.gallery.planar_2r(), "tool", 0.1, region=[[3, 3, 0], [3.3, 3.2, 0]])
    assert (len(reach), reach.shape, reach.volume) == (0, (3, 2, 1), 0.0)
    assert not reach.reachable((3.1, 3.1, 0))
    assert reach.share((3.1, 3.1, 0)) == 0


def test_locked_joints_keep_their_values():
    arm = mk.gallery.planar_3r()
    reach = reachability(arm, "tool", 0.1, lock=["joint2", "joint3"], orientations=4)
    assert np.allclose(reach.q[:, 1:], arm.q[1:])
    radius = np.linalg.norm(arm.pose("tool", arm.q)[:2, 3])
    assert np.allclose(np.linalg.norm(reach.positions, axis=1), radius)


def test_maps_are_repeatable_and_do_not_change_the_mechanism():
    arm = random_arm(3)
    q = arm.q
    first_map, second_map = (reachability(arm, "tool", 0.2, orientations=6, samples=500) for _ in range(2))
    assert (first_map.cells == second_map.cells).all()
    assert (first_map.q == second_map.q).all()
    assert (first_map.reached == second_map.reached).all()
    assert (arm.q == q).all()
    random_map = reachability(arm, "tool", 0.2, orientations=6, samples=500, rng=np.random.default_rng(1))
    assert {*map(tuple, random_map.cells + random_map.first)} == {*map(tuple, first_map.cells + first_map.first)}


# ---- invalid arguments ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"link": "tol"}, "Did you mean 'tool'"),
        ({"resolution": 0}, "above 0"),
        ({"resolution": -0.1}, "above 0"),
        ({"resolution": math.nan}, "resolution is nan"),
        ({"resolution": "fine"}, "must be a number"),
        ({"resolution": 1e-4}, r"would have 1,\d\d\d,\d\d\d,\d\d\d voxels.*coarser"),
        ({"resolution": 1e-9}, "coarser"),
        ({"samples": 0}, "samples"),
        ({"orientations": -1}, "orientations must be 0 or more"),
        ({"orientations": [[1, 0, 0]]}, r"\(n, 4\)"),
        ({"orientations": [[2, 0, 0, 0]]}, "norm 2"),
        ({"orientations": [[math.nan, 0, 0, 0]]}, "norm nan"),
        ({"region": [0, 1]}, r"\(2, 3\)"),
        ({"region": [[0, 0, 0], [1, -1, 1]]}, "lowest corner first"),
        ({"region": [[0, 0, 0], [1, math.nan, 1]]}, "nan"),
        ({"rng": 3}, "rng"),
        ({"lock": "joint9"}, "joint9"),
        ({"limits": {"joint1": (2, 1)}}, "above the upper"),
        ({"progress": True}, "progress"),
    ],
)
def test_wrong_arguments_of_reachability_are_refused(arguments, message):
    arguments = {"link": "tool", **arguments}
    with pytest.raises(mk.MechanikError, match=message):
        reachability(mk.gallery.planar_2r(), **arguments)


def test_an_unbounded_reach_is_refused_with_advice():
    builder = mk.Builder("rail")
    builder.prismatic("rail", "ground", "cart", axis="x")
    builder.revolute("turn", "cart", "tool", at=(0.2, 0.0, 0.0))
    with pytest.raises(mk.MechanikError, match="'rail' is not limited"):
        reachability(builder.build(), "tool")
    assert len(reachability(builder.build(), "tool", 0.1, limits={"rail": (0, 1)}, orientations=0)) > 5
    humanoid = mk.gallery.humanoid()
    with pytest.raises(
        mk.MechanikError, match="'base' floats, so link 'left_hand' reaches every position; use lock='base'"
    ):
        reachability(humanoid, "left_hand")


def test_a_loop_that_cannot_be_closed_is_reported():
    loop = mk.gallery.four_bar()
    with pytest.raises(mk.MechanikError, match="with closed loops"):
        reachability(loop, "coupler", limits={"crank_joint": (0, 0.1), "rocker_joint": (0, 0.1)})


def test_progress_is_reported_up_to_the_last_step():
    steps: list[tuple[int, int]] = []
    reachability(mk.gallery.planar_3r(), "tool", 0.4, orientations=5, progress=lambda *step: steps.append(step))
    assert steps == [(k, 6) for k in range(7)]
