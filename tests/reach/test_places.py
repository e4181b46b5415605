"""Which voxels are reached: closed forms, and laws that hold for any mechanism."""

from __future__ import annotations

import math
from copy import deepcopy

import numpy as np
import pytest
from random_arms import direction, place

import mechanik as mk
from mechanik.reach import ReachMap, reachability
from mechanik.spatial import make_pose, rotation

NEARLY = 5e-6
"""m: a voxel that a rim touches by less than this may be in the map or not."""


def squares(reach: ReachMap) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All voxels of the layer and one ring around: whether reached, and the least and the greatest distance from 0."""
    ring = np.pad(reach.occupied[:, :, 0], 1)
    x, y = np.meshgrid(*(np.arange(-1, n + 1) + first for n, first in zip(reach.shape, reach.first[:2], strict=False)),
                       indexing="ij")  # fmt: skip
    near = [np.maximum(np.maximum(k, -(k + 1)), 0) * reach.resolution for k in (x, y)]
    far = [np.maximum(np.abs(k), np.abs(k + 1)) * reach.resolution for k in (x, y)]
    return ring, np.hypot(*near), np.hypot(*far)


def assert_is(ring: np.ndarray, surely: np.ndarray, maybe: np.ndarray) -> None:
    """Every voxel that is surely reached is, and none is that may not be."""
    assert (ring | ~surely).all(), f"{(surely & ~ring).sum()} of {surely.sum()} voxels are missing"
    assert (maybe | ~ring).all(), f"{(ring & ~maybe).sum()} of {ring.sum()} voxels are too many"


def in_the_graph(mechanism: mk.Mechanism, link: str, q: np.ndarray) -> np.ndarray:
    """Where the link is, by the graph itself and not by the kernels; loops must be shut there."""
    copy = deepcopy(mechanism)
    places = []
    for one in q:
        assert not copy.set_q(one), "a limit is broken"
        places.append(copy.link(link).world_matrix[:3, 3])
        assert all(closure.gap().is_closed(2e-6) for closure in copy.closures.values())
    return np.array(places)


def gantry(*limits: tuple[float, float]) -> mk.Mechanism:
    builder, below = mk.Builder("gantry"), "frame"
    for axis, pair in zip("xyz", limits, strict=False):
        builder.prismatic(f"slide_{axis}", below, f"car_{axis}", axis=axis, limits=pair)
        below = f"car_{axis}"
    return builder.build()


def random_arm(seed: int) -> mk.Mechanism:
    """Four joints, each about or along any axis, anywhere, with some room to move."""
    rng = np.random.default_rng(seed)
    builder, below = mk.Builder(f"arm {seed}"), "base"
    for k in range(4):
        at = make_pose(rotation.exp(3 * direction(rng)), place(rng))
        if rng.random() < 0.25:
            builder.prismatic(f"j{k}", below, f"l{k}", at=at, limits=(-0.3, rng.uniform(-0.2, 0.4)))
        else:
            builder.revolute(f"j{k}", below, f"l{k}", at=at, limits=(-rng.uniform(0.3, 3), rng.uniform(0.3, 3)))
        below = f"l{k}"
    builder.fixed("end", below, "tool", at=place(rng))
    return builder.build()


# ---- closed forms ---------------------------------------------------------------------------


@pytest.mark.parametrize("lengths", [(1.0, 0.5), (0.4, 0.9), (0.7, 0.7)])
def test_two_links_in_a_plane_reach_every_voxel_of_an_annulus_and_no_other(lengths):
    reach = reachability(mk.gallery.planar_2r(lengths), "tool", 0.1, samples=500)
    inner, outer = abs(lengths[0] - lengths[1]), sum(lengths)
    ring, near, far = squares(reach)
    assert reach.is_flat
    assert_is(
        ring,
        surely=(near < outer - NEARLY) & (far > inner + NEARLY),
        maybe=(near < outer + NEARLY) & (far > inner - NEARLY),
    )


def test_a_turn_and_a_slide_reach_the_centres_in_a_sector_and_no_others():
    builder = mk.Builder("polar")
    builder.revolute("turn", "base", "boom", limits=(0.3, 2.2))
    builder.prismatic("slide", "boom", "tool", axis="x", limits=(0.35, 1.2))
    reach = reachability(builder.build(), "tool", 0.05, samples=200)
    x, y = np.meshgrid(*(np.arange(-30, 30) * 0.05 + 0.025,) * 2, indexing="ij")
    radius, angle = np.hypot(x, y), np.arctan2(y, x)
    inside = (radius > 0.35) & (radius < 1.2) & (angle > 0.3) & (angle < 2.2)
    found = {tuple(cell) for cell in (reach.cells + reach.first)[reach.centred][:, :2].tolist()}
    assert found == {(i - 30, j - 30) for i, j in np.argwhere(inside).tolist()}


def test_a_gantry_reaches_its_box():
    reach = reachability(gantry((0.0, 0.6), (-0.2, 0.2), (0.1, 0.4)), "car_z", 0.1, samples=50)
    assert reach.volume == pytest.approx(0.6 * 0.4 * 0.3)
    assert np.allclose(reach.extent, [[0.0, -0.2, 0.1], [0.6, 0.2, 0.4]], atol=0.1)
    assert reach.asked == "nothing"
    assert (reach.shares == 1.0).all()


def test_a_point_of_a_loop_reaches_the_voxels_along_its_curve():
    reach = reachability(mk.gallery.four_bar(), "coupler", 0.1)  # its crank goes round, 0.5 m from the origin
    ring, near, far = squares(reach)
    assert_is(ring, (near < 0.5 - NEARLY) & (far > 0.5 + NEARLY), (near < 0.5 + NEARLY) & (far > 0.5 - NEARLY))
    assert reach.area == 0.0, "a curve has none"


def test_what_does_not_move_is_one_voxel_with_its_place_in_the_middle():
    arm = mk.gallery.panda()
    for link, where in (("panda_link0", (0, 0, 0)), ("panda_link1", (0, 0, 0.333))):
        reach = reachability(arm, link, 0.05, orientations=8)
        assert (reach.shape, len(reach)) == ((1, 1, 1), 1)
        assert np.allclose(reach.centres, where, atol=1e-9)


# ---- laws -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_wherever_a_configuration_leads_is_in_the_map(seed):
    arm = random_arm(seed)
    reach = reachability(arm, "tool", 0.2, orientations=0, samples=300)
    positions = arm.pose("tool", arm.random(np.random.default_rng(seed), 100_000))[:, :3, 3]
    assert reach.reachable(positions).all()


@pytest.mark.parametrize("seed", range(0, 9, 3))
def test_every_mark_stands_on_a_configuration_that_leads_there(seed):
    arm = random_arm(seed)
    reach = reachability(arm, "tool", 0.25, orientations=0, samples=300)
    positions = in_the_graph(arm, "tool", reach.q)
    assert np.allclose(positions, reach.positions, atol=1e-9)
    assert (np.abs(positions - reach.centres) <= 0.125 + 1e-9).all()


def test_every_mark_of_a_mechanism_with_loops_stands_on_shut_ones():
    five_bar = mk.gallery.five_bar()
    end = next(name for name in reversed(five_bar.links) if name != "ground")
    reach = reachability(five_bar, end, 0.2, orientations=0)
    assert len(reach) > 5
    assert np.allclose(in_the_graph(five_bar, end, reach.q), reach.positions, atol=1e-9)


def test_wider_limits_reach_no_less():
    arm = mk.gallery.planar_3r()
    box = [[-2.3, -2.3, -0.1], [2.3, 2.3, 0.1]]
    before: ReachMap | None = None
    for wide in (0.4, 0.9, 1.8):
        limits = dict.fromkeys(("joint1", "joint2", "joint3"), (-wide, wide))
        reach = reachability(arm, "tool", 0.2, orientations=12, region=box, limits=limits, samples=2000)
        if before is not None:
            assert (reach.occupied | ~before.occupied).all()
            rows = [reach._at(centre) for centre in before.centres[before.centred]]
            assert (reach.reached[rows] | ~before.reached[before.centred]).all()
        before = reach


def test_a_region_is_a_part_of_the_whole():
    arm = mk.gallery.ur5()
    whole = reachability(arm, "tool0", 0.2, orientations=0)
    part = reachability(arm, "tool0", 0.2, orientations=0, region=[[-0.4, 0.2, 0.0], [0.6, 1.4, 0.4]])
    assert part.shape == (5, 6, 2)
    assert np.allclose(part.origin, [-0.4, 0.2, 0.0])
    centres = part.origin + (np.argwhere(np.ones(part.shape)) + 0.5) * 0.2
    assert (whole.reachable(centres) == part.reachable(centres)).all()


def test_a_region_that_nothing_reaches_is_an_empty_map():
    reach = reachability(mk.gallery.planar_2r(), "tool", 0.1, region=[[3, 3, 0], [3.3, 3.2, 0]])
    assert (len(reach), reach.shape, reach.volume) == (0, (3, 2, 1), 0.0)
    assert not reach.reachable((3.1, 3.1, 0))
    assert reach.share((3.1, 3.1, 0)) == 0


def test_what_is_locked_stays():
    arm = mk.gallery.planar_3r()
    reach = reachability(arm, "tool", 0.1, lock=["joint2", "joint3"], orientations=4)
    assert np.allclose(reach.q[:, 1:], arm.q[1:])
    radius = np.linalg.norm(arm.pose("tool", arm.q)[:2, 3])
    assert np.allclose(np.linalg.norm(reach.positions, axis=1), radius)


def test_the_same_call_gives_the_same_map_and_the_mechanism_stays_as_it_is():
    arm = random_arm(3)
    q = arm.q
    one, other = (reachability(arm, "tool", 0.2, orientations=6, samples=500) for _ in range(2))
    assert (one.cells == other.cells).all()
    assert (one.q == other.q).all()
    assert (one.reached == other.reached).all()
    assert (arm.q == q).all()
    drawn = reachability(arm, "tool", 0.2, orientations=6, samples=500, rng=np.random.default_rng(1))
    assert {*map(tuple, drawn.cells + drawn.first)} == {*map(tuple, one.cells + one.first)}


# ---- what is refused ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"link": "tol"}, "Did you mean 'tool'"),
        ({"resolution": 0}, "above 0"),
        ({"resolution": -0.1}, "above 0"),
        ({"resolution": math.nan}, "resolution is nan"),
        ({"resolution": "fine"}, "not a number"),
        ({"resolution": 1e-4}, r"would have 1,\d\d\d,\d\d\d,\d\d\d of them.*coarse"),
        ({"resolution": 1e-9}, "coarser"),
        ({"samples": 0}, "samples"),
        ({"orientations": -1}, "fewer than 0"),
        ({"orientations": [[1, 0, 0]]}, r"\(n, 4\)"),
        ({"orientations": [[2, 0, 0, 0]]}, "length 2"),
        ({"orientations": [[math.nan, 0, 0, 0]]}, "length nan"),
        ({"region": [0, 1]}, r"\(2, 3\)"),
        ({"region": [[0, 0, 0], [1, -1, 1]]}, "lowest corner comes first"),
        ({"region": [[0, 0, 0], [1, math.nan, 1]]}, "nan"),
        ({"rng": 3}, "rng"),
        ({"lock": "joint9"}, "joint9"),
        ({"limits": {"joint1": (2, 1)}}, "above the upper"),
        ({"progress": True}, "progress"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(given, words):
    given = {"link": "tool", **given}
    with pytest.raises(mk.MechanikError, match=words):
        reachability(mk.gallery.planar_2r(), **given)


def test_what_reaches_without_end_is_refused_with_a_way_out():
    builder = mk.Builder("rail")
    builder.prismatic("rail", "ground", "cart", axis="x")
    builder.revolute("turn", "cart", "tool", at=(0.2, 0.0, 0.0))
    with pytest.raises(mk.MechanikError, match="'rail' slides without an end"):
        reachability(builder.build(), "tool")
    assert len(reachability(builder.build(), "tool", 0.1, limits={"rail": (0, 1)}, orientations=0)) > 5
    humanoid = mk.gallery.humanoid()
    with pytest.raises(mk.MechanikError, match="'base' floats, so link 'left_hand' reaches every place; lock='base'"):
        reachability(humanoid, "left_hand")


def test_a_loop_that_cannot_be_shut_is_said_to_be_so():
    loop = mk.gallery.four_bar()
    with pytest.raises(mk.MechanikError, match="loops shut"):
        reachability(loop, "coupler", limits={"crank_joint": (0, 0.1), "rocker_joint": (0, 0.1)})


def test_progress_is_told_to_its_end():
    told: list[tuple[int, int]] = []
    reachability(mk.gallery.planar_3r(), "tool", 0.4, orientations=5, progress=lambda *step: told.append(step))
    assert told == [(k, 6) for k in range(7)]
