"""Pairs of links that are checked: by adjacency, by samples, and by `allow` and `forbid`."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_mechanisms import mechanisms

import mechanik as mk
from mechanik.collision import Collider, Obstacle, find_allowed_collisions
from mechanik.collision.collision_pairs import richtmyer_samples
from mechanik.errors import InvalidArgument, MechanikError, ShapeError, StructureError, UnknownName
from mechanik.model import Builder
from mechanik.model.shapes import ShapeInstance, Sphere
from mechanik.spatial import Pose


def chain(radius: float = 0.1, links: int = 4) -> mk.Mechanism:
    """Return a planar arm with a sphere on each link, 1 m from joint to joint."""
    arm = mk.arm_2d([1.0] * (links - 1), limits=(-1.0, 1.0))
    for k in range(links):
        arm.link(f"link{k}").collisions = (ShapeInstance(Sphere(radius)),)
    return arm


# ---- stored in the mechanism --------------------------------------------------------------------


def test_a_new_mechanism_has_no_allowed_collisions() -> None:
    assert chain().allowed_collisions is None


def test_allowed_collisions_follow_when_links_are_renamed_removed_or_copied() -> None:
    arm = chain()
    arm.allowed_collisions = {("link2", "link0"): "by hand", ("link3", "link1"): "never"}
    assert arm.allowed_collisions == {("link0", "link2"): "by hand", ("link1", "link3"): "never"}
    arm.link("link2").name = "wrist"
    assert arm.allowed_collisions == {("link0", "wrist"): "by hand", ("link1", "link3"): "never"}
    for duplicate in (arm.copy(), pickle.loads(pickle.dumps(arm))):
        assert duplicate.allowed_collisions == arm.allowed_collisions
        duplicate.link("wrist").name = "other"
        assert ("link0", "wrist") in arm.allowed_collisions
    wrist = arm.link("wrist")
    (joint,) = (candidate for candidate in arm.joints.values() if arm.link("link3") in candidate.children)
    wrist.remove_child(joint)
    assert arm.allowed_collisions == {("link0", "wrist"): "by hand"}


def test_wrong_allowed_collisions_are_refused() -> None:
    arm = chain()
    with pytest.raises(UnknownName, match="Did you mean 'link2'"):
        arm.allowed_collisions = {("link0", "lnk2"): "never"}
    with pytest.raises(StructureError, match="itself"):
        arm.allowed_collisions = {("link0", "link0"): "never"}
    for wrong in ([("link0", "link1")], {"link0": "never"}, {("link0", "link1"): 1}):
        with pytest.raises(InvalidArgument, match="allowed_collisions must map pairs"):
            arm.allowed_collisions = wrong  # type: ignore[assignment]
    assert arm.allowed_collisions is None


def test_allowed_collisions_of_the_mechanism_are_used() -> None:
    arm = chain(radius=0.6)
    arm.allowed_collisions = {("link0", "link2"): "by hand"}
    assert set(Collider(arm).pairs) == {
        ("link1", "link0"), ("link3", "link0"), ("link1", "link2"), ("link1", "link3"), ("link2", "link3"),
    }  # fmt: skip
    arm.allowed_collisions = None
    assert ("link1", "link0") not in Collider(arm).pairs


# ---- found by sampling --------------------------------------------------------------------------


def test_adjacent_pairs_and_pairs_always_in_collision_are_found() -> None:
    reasons = find_allowed_collisions(chain(radius=1.1, links=5))
    assert {reason for pair, reason in reasons.items() if int(pair[1][4:]) - int(pair[0][4:]) == 1} == {"adjacent"}
    # the first two spheres are about the same point; the others are at most 1, 2 and 3 m from it
    assert reasons["link0", "link2"] == reasons["link0", "link3"] == reasons["link1", "link3"] == "always"
    assert not {("link0", "link4"), ("link1", "link4")} & set(reasons)


def test_never_is_reported_only_on_request() -> None:
    assert "never" not in find_allowed_collisions(chain()).values()
    reasons = find_allowed_collisions(chain(), never=True)
    assert {pair for pair, reason in reasons.items() if reason == "never"} == {
        ("link0", "link2"), ("link1", "link3"), ("link0", "link3"),
    }  # fmt: skip


def test_allowed_collisions_are_repeatable_and_can_be_stored() -> None:
    arm = mk.gallery.iiwa14()
    reasons = find_allowed_collisions(arm, samples=200, never=True)
    assert reasons == find_allowed_collisions(arm, samples=200, never=True)
    arm.allowed_collisions = reasons
    assert not set(reasons) & set(Collider(arm).pairs)


def test_given_configurations_are_checked_instead_of_samples() -> None:
    arm = chain(radius=0.9)
    straight, bent = np.zeros(3), np.array([0.0, 1.0, 1.0])  # 2 m, and 2 cos(0.5) m, from the first sphere to the last
    assert ("link0", "link3") not in find_allowed_collisions(arm, configurations=[straight, bent], never=True)
    assert find_allowed_collisions(arm, configurations=straight, never=True)["link0", "link3"] == "never"
    assert find_allowed_collisions(arm, configurations=bent)["link0", "link3"] == "always"
    with pytest.raises(ShapeError, match="empty"):
        find_allowed_collisions(arm, configurations=np.empty((0, 3)))
    with pytest.raises(ShapeError, match="samples"):
        find_allowed_collisions(arm, samples=0)
    with pytest.raises(InvalidArgument, match="needs a Mechanism"):
        find_allowed_collisions("arm")  # type: ignore[arg-type]


def test_links_of_a_closing_joint_are_adjacent_and_loops_are_closed_for_samples() -> None:
    reasons = find_allowed_collisions(mk.gallery.four_bar(), samples=5)
    assert list(reasons.values()).count("adjacent") == 4


def test_a_floating_body_is_checked_against_its_parent() -> None:
    robot = Builder("drone")
    robot.link("ground", collisions=[ShapeInstance(Sphere(1.0), Pose((0, 0, -1)))])
    robot.free("flight", "ground", "drone")
    robot.link("drone", collisions=[ShapeInstance(Sphere(0.1))])
    assert Collider(robot.build()).pairs == (("drone", "ground"),)


@settings(max_examples=30)
@given(mechanisms, st.integers(1, 50))
def test_samples_are_configurations_inside_the_limits(mechanism: mk.Mechanism, count: int) -> None:
    q = richtmyer_samples(mechanism.space, count)
    assert q.shape == (count, mechanism.nq)
    assert mechanism.space.within_limits(q, 1e-12).all()
    for k in mechanism.space.quaternions_q:
        assert np.linalg.norm(q[:, k : k + 4], axis=1) == pytest.approx(1.0)


def test_samples_are_spread_evenly_along_every_dof_of_a_humanoid() -> None:
    space = mk.gallery.humanoid().space
    q = richtmyer_samples(space, 100)[:, space.scalars_q]
    low, high = q.min(axis=0), q.max(axis=0)
    for k in range(q.shape[1]):
        counts = np.histogram(q[:, k], 5, (low[k], high[k]))[0]
        assert counts.min() >= 15


# ---- allowed and forbidden ----------------------------------------------------------------------


def test_allow_removes_pairs_and_forbid_adds_pairs() -> None:
    arm = chain(radius=0.6)
    wall = Obstacle(Sphere(0.5), (2, 0.5, 0), name="wall")
    collider = Collider(arm, ["self", wall])
    pairs = {frozenset(pair) for pair in collider.pairs}
    assert frozenset(("link2", "wall")) in pairs
    assert frozenset(("link1", "link2")) not in pairs
    changed = Collider(arm, ["self", wall], allow=[("wall", "link2")], forbid=[("link1", "link2")])
    assert {frozenset(pair) for pair in changed.pairs} == (
        pairs - {frozenset(("link2", "wall"))} | {frozenset(("link1", "link2"))}
    )
    assert {
        (contact.a, contact.b) for contact in changed.contacts(np.zeros(3)) if "wall" not in (contact.a, contact.b)
    } == {("link1", "link2")}


def test_allowed_pairs_follow_when_a_link_is_renamed() -> None:
    arm = chain()
    collider = Collider(arm, ["self"], allow=[("link1", "link3")], forbid=[("link1", "link2")])
    before = len(collider.pairs)
    arm.link("link1").name = "shoulder"
    assert len(collider.pairs) == before
    assert ("shoulder", "link2") in collider.pairs


def test_forbid_alone_checks_only_its_pairs() -> None:
    assert Collider(chain(), [], forbid=[("link1", "link3")]).pairs == (("link1", "link3"),)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"allow": [("link1", "wal")]}, "Did you mean 'wall'"),
        ({"forbid": [("link1", "lnk2")]}, "Did you mean 'link2'"),
        ({"allow": [("link1",)]}, "is not a pair"),
        ({"allow": "link1"}, "must be pairs of names"),
        ({"allow": ["ab"]}, "is not a pair"),
        ({"forbid": [("link1", "link1")]}, "paired with itself"),
        ({"forbid": [("wall", "link0")]}, "neither 'link0' nor 'wall' moves"),
        ({"forbid": [("tool", "wall")]}, "'tool' has no collision shape"),
        ({"allow": [("link1", "wall")], "forbid": [("wall", "link1")]}, "is in allow and in forbid"),
    ],
)
def test_wrong_pairs_of_allow_and_forbid_are_refused(options: dict[str, object], text: str) -> None:
    with pytest.raises(MechanikError, match=text):
        Collider(chain(), ["self", Obstacle(Sphere(0.1), (5, 5, 5), name="wall")], **options)  # type: ignore[arg-type]


# ---- robots -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["panda", "ur5", "iiwa14", "puma560", "scara", "humanoid", "snake", "walker"])
def test_robots_are_free_at_their_default_configuration(name: str) -> None:
    robot = getattr(mk.gallery, name)()
    collider = Collider(robot)
    assert collider.pairs
    assert not collider.contacts(robot.q)
