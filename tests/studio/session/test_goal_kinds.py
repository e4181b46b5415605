"""Goals of every kind, on an arm and on a humanoid."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from session_harness import SessionHarness

import mechanik as mk
from mechanik.errors import MechanikError
from mechanik.spatial import make_pose, rotation
from mechanik.studio.messages.requests import AddGoal, ChangeGoal, GoalKind, MoveGoal, RemoveGoal, SetLimits, Undo
from mechanik.studio.session.edit_state import InteractiveGoal, pose_to_numbers
from mechanik.studio.session.frame_packer import goal_error
from mechanik.studio.session.solve_spec import make_objective
from mechanik.validation import read_only

KINDS: tuple[GoalKind, ...] = get_args(GoalKind)
FLAT = mk.Terrain(np.zeros((4, 4)), 2.0, (-3.0, -3.0))
ARM = mk.gallery.panda()
TIP = "panda_hand_tcp"
SMALL = make_pose(rotation.exp(np.array([0.05, -0.04, 0.06])), np.array([0.01, -0.02, 0.015]))
numbers = st.floats(-1.0, 1.0)
vectors = st.tuples(numbers, numbers, numbers)


def kinds_for(mechanism: mk.Mechanism) -> list[GoalKind]:
    weighs = any(link.inertial is not None for link in mechanism.links.values())
    return [kind for kind in KINDS if weighs or kind != "centre_of_mass"]


@pytest.mark.parametrize(("name", "link"), [("panda", TIP), ("humanoid", "left_hand")])
def test_a_goal_of_every_kind_is_met_when_it_is_added_and_reached_when_it_is_moved(name: str, link: str) -> None:
    with SessionHarness(name) as harness:
        session = harness.session
        session.set_terrain(FLAT)
        for goal in session.goals:
            if not goal.pinned:
                harness.ask(RemoveGoal(goal.number))
        for kind in kinds_for(session.mechanism):
            harness.rest()
            q = session.q.copy()
            harness.ask(AddGoal(kind, link, at=(0.0, 0.0, 0.0) if kind in ("axis", "in_cone") else (0.01, 0.0, 0.02)))
            goal = session.goals[-1]
            if kind != "on_terrain":
                assert harness.rest().goals[-1][7:].max() < 1e-9, f"{kind}: met as things stand"
                assert np.abs(session.q - q).max() < 1e-6, f"{kind}: nothing jumps"
                harness.ask(MoveGoal(goal.number, pose_to_numbers(SMALL @ goal.X)))
            frame = harness.rest()
            assert frame.goals[-1][7:].max() < 1e-5, f"{kind}: reached"
            harness.ask(RemoveGoal(goal.number))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=20)
@given(shift=vectors, turn=vectors, at=vectors, sizes=st.tuples(*[st.floats(0.01, 1.0)] * 3), seed=st.integers(0, 99))
def test_what_is_missing_is_what_the_objective_says(
    kind: GoalKind,
    shift: tuple[float, ...],
    turn: tuple[float, ...],
    at: tuple[float, ...],
    sizes: tuple[float, ...],
    seed: int,
) -> None:
    frame = read_only(make_pose(rotation.exp(3 * np.array(turn)), np.array(shift)))
    widths = (-sizes[0], sizes[1], 0.0) if kind == "in_band" else (0.0, 0.0, 0.0) if kind == "on_terrain" else sizes
    goal = InteractiveGoal(1, "it", kind, TIP, frame, at=at, sizes=widths)  # type: ignore[arg-type]
    q = ARM.random(np.random.default_rng(seed))
    try:
        error = make_objective(goal, FLAT).error(ARM, q)
    except MechanikError:
        assert kind == "centre_of_mass", "an arm that weighs nothing has no centre of mass"
        return
    distance, angle = goal_error(goal, ARM.pose(TIP, q), None, FLAT)
    assert distance == pytest.approx(error.position, abs=1e-9)
    if kind == "in_cone":  # its own row is a cosine, which is not told as an angle
        assert (angle < 1e-9) == (error.rotation < 1e-9)
    else:
        assert angle == pytest.approx(error.rotation, abs=1e-7)


@pytest.mark.parametrize("kind", kinds_for(ARM))
def test_a_new_target_means_the_objective_that_would_be_made_anew(kind: GoalKind) -> None:
    """What a running solver is aimed at is what a solver that begins there would be asked for."""
    with SessionHarness("panda") as harness:
        harness.session.set_terrain(FLAT)
        q, session = harness.session.q, harness.session
        session.add_goal(kind, TIP)
        goal = session.goals[-1]
        for motion in (SMALL, make_pose(np.eye(3), SMALL[:3, 3])):
            moved = goal.with_pose_matrix(read_only(motion @ goal.X))
            target = moved.target_after(goal)
            if target is not None:
                with_target = make_objective(goal, FLAT).with_target(target).residual(ARM, q)
                assert np.allclose(with_target, make_objective(moved, FLAT).residual(ARM, q), atol=1e-12)


def test_a_pose_asks_for_no_direction_that_is_free() -> None:
    with SessionHarness("panda") as harness:
        goal = harness.session.goals[0]
        harness.ask(ChangeGoal(goal.number, free=["Z", "EX", "EY", "EZ"]))
        far = goal.X.copy()
        far[:3, 3] += goal.X[:3, 2] * 0.3 + goal.X[:3, 0] * 0.02
        harness.ask(MoveGoal(goal.number, pose_to_numbers(far)))
        frame = harness.rest()
        assert frame.goals[0][7:].max() < 1e-5
        seen = goal.X[:3, :3].T @ (harness.session.mechanism.pose(TIP, harness.session.q)[:3, 3] - goal.X[:3, 3])
        assert seen[0] == pytest.approx(0.02, abs=1e-5)
        assert abs(seen[2]) < 0.1, "nobody has asked for its height"


def test_what_makes_no_sense_is_refused_and_changes_nothing() -> None:
    with SessionHarness("panda") as harness:
        session = harness.session
        goal, event_count = session.goals[0], len(harness.events)
        for request in (
            AddGoal("point", "nobody"),
            AddGoal("on_terrain", TIP),
            AddGoal("centre_of_mass", TIP),
            AddGoal("pose", TIP, pose=(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)),
            ChangeGoal(goal.number, weight=0.0),
            ChangeGoal(goal.number, link="nobody"),
            ChangeGoal(goal.number, free=["X", "Y", "Z", "EX", "EY", "EZ"]),
            ChangeGoal(99, weight=2.0),
            MoveGoal(99, goal.pose),
            RemoveGoal(99),
            SetLimits(0, 1.0, -1.0),
            SetLimits(99, 0.0, 1.0),
        ):
            with pytest.raises(MechanikError):
                harness.ask(request)
        assert session.goals == (goal,)
        assert len(harness.events) == event_count
        with pytest.raises(MechanikError):
            harness.ask(Undo())


def test_there_are_at_most_64_goals() -> None:
    with SessionHarness("planar_3r") as harness:
        harness.ask(RemoveGoal(harness.session.goals[0].number))
        for _ in range(64):
            harness.session.add_goal("point", "tool")
        with pytest.raises(MechanikError, match="64 goals"):
            harness.ask(AddGoal("point", "tool"))
        names = [goal.name for goal in harness.session.goals]
        assert len(set(names)) == 64


def test_a_goal_of_another_kind_is_met_where_its_link_is() -> None:
    with SessionHarness("panda") as harness:
        goal = harness.session.goals[0]
        q = harness.session.q.copy()
        for kind in ("hinge", "on_line", "look_at", "in_box", "point", "pose"):
            harness.ask(ChangeGoal(goal.number, kind=kind))
            assert harness.rest().goals[0][7:].max() < 1e-6, kind
        assert np.abs(harness.session.q - q).max() < 1e-6


def test_the_error_of_a_terrain_goal_follows_a_new_terrain_and_a_new_radius() -> None:
    """Once state frames had the error for the terrain and the radius of the time when the goal was added."""
    with SessionHarness("panda") as harness:
        harness.session.set_terrain(FLAT)
        number = harness.session.add_goal("on_terrain", TIP, sizes=(0.0, 0.0, 0.0))
        raised = mk.Terrain(np.full((4, 4), 0.2), 2.0, (-3.0, -3.0))
        changes = {
            0.2: lambda: harness.session.set_terrain(raised),
            0.3: lambda: harness.ask(ChangeGoal(goal=number, sizes=(0.1, 0.0, 0.0))),
        }
        for height, change in changes.items():
            change()
            frame = harness.rest()
            k = [goal.number for goal in harness.goals.goals].index(number)
            z = harness.session.mechanism.pose(TIP, harness.session.active.q)[2, 3]
            assert frame.goals[k, 7] == pytest.approx(abs(z - height), abs=1e-6)
