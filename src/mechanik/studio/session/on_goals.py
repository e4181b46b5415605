"""Goals: added, changed, moved, taken by hand, removed; and links that are pulled."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mechanik.errors import Refused
from mechanik.studio.messages import requests
from mechanik.studio.messages.frames import PULL
from mechanik.studio.session.goal import Goal
from mechanik.studio.session.goal_kinds import objective_of, usual_sizes
from mechanik.studio.session.plan import Held
from mechanik.studio.session.poses import as_matrix, matrix_of
from mechanik.studio.session.riding import frame_for

if TYPE_CHECKING:
    from mechanik.studio.session.session import Session

WORDS = {
    "point": "point", "pose": "pose", "orientation": "turn", "axis": "axis", "hinge": "hinge", "surface": "surface",
    "on_line": "line", "on_plane": "plane", "look_at": "look", "distance": "distance", "in_box": "box",
    "in_cone": "cone", "in_band": "band", "centre_of_mass": "centre of mass", "on_terrain": "ground",
}  # fmt: skip


def add_goal(session: Session, request: requests.AddGoal) -> None:
    words = f"pin {request.link}" if request.pinned else f"add {WORDS[request.kind]} goal"
    pose = None if request.pose is None else matrix_of(request.pose)
    with session.step(words):
        session.add_goal(request.kind, request.link, at=request.at, pose=pose, pinned=request.pinned)


def change_goal(session: Session, request: requests.ChangeGoal) -> None:
    stage = session.on_stage
    goal = stage.setup.goal(request.goal)
    changes = {
        name: getattr(request, name)
        for name in ("kind", "link", "at", "weight", "level", "enabled", "pinned", "sizes")
        if getattr(request, name) is not None
    }
    if request.free is not None:
        changes["free"] = tuple(dict.fromkeys(request.free))
    if not changes:
        return
    if "link" in changes:
        session.mechanism.link(changes["link"])
    changed = replace(goal, **changes)
    if {"kind", "link", "at"} & changes.keys():
        changed = _refitted(session, goal, changed, request)
    objective_of(changed, stage.setup.terrain).relations(session.mechanism)
    words = "pin goal" if request.pinned else "unpin goal" if request.pinned is False else "change goal"
    with session.step(words):
        session.change(stage.setup.with_goal(changed))


def _refitted(session: Session, before: Goal, changed: Goal, request: requests.ChangeGoal) -> Goal:
    """Another kind has other sizes; another link, point or kind is wanted where it is, so that nothing jumps."""
    stage = session.on_stage
    X = stage.table.anatomy.poses(stage.q)
    X_link = X[stage.table.anatomy.links[changed.link]]
    sizes = changed.sizes
    if changed.kind != before.kind and request.sizes is None:
        sizes = usual_sizes(changed.kind, X_link, session.radius)
    centre = stage.table.anatomy.centre(X) if changed.kind == "centre_of_mass" else None
    frame = frame_for(changed.kind, X_link, changed.at, sizes, session.radius, centre)
    return replace(changed, sizes=sizes, X=frame)


def move_goal(session: Session, request: requests.MoveGoal) -> None:
    session.on_stage.setup.goal(request.goal)
    X = as_matrix(matrix_of(request.pose))
    with session.step("move goal"):
        session.move_goal(request.goal, X)
        session.tell_goals()


def remove_goal(session: Session, request: requests.RemoveGoal) -> None:
    session.on_stage.setup.goal(request.goal)
    with session.step("remove goal"):
        session.remove_goal(request.goal)


def grab_goal(session: Session, request: requests.GrabGoal) -> None:
    goal = session.on_stage.setup.goal(request.goal)
    session.take(Held("goal", goal.number), f"move {goal.name}")


def pull_link(session: Session, request: requests.PullLink) -> None:
    stage = session.on_stage
    session.mechanism.link(request.link)
    if any(goal.number == PULL for goal in stage.setup.goals):
        raise Refused("a link is pulled already; let it go first")
    X_link = stage.table.anatomy.poses(stage.q)[stage.table.anatomy.links[request.link]]
    frame = frame_for("point", X_link, request.at, (0.0, 0.0, 0.0), session.radius, None)
    pull = Goal(PULL, "the pull", "point", request.link, frame, request.at, is_pull=True)
    setup = replace(stage.setup, goals=(*stage.setup.goals, pull))
    session.take(Held("goal", PULL, session.riders()), f"pull {request.link}", setup)
    session.tell_goals()


def release(session: Session, request: requests.Release) -> None:
    session.let_go(puts_back=request.puts_back)
