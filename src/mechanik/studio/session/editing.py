"""The mechanism made from text, live: DH rows, arm lists, our JSON, URDF; what people have set up is kept by name."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from mechanik.errors import FormatError, MechanikError
from mechanik.formats.in_memory import load_bytes
from mechanik.gallery.bones import BLUE, DARK, dress
from mechanik.mechanism import Mechanism
from mechanik.spatial.array import Array
from mechanik.studio.messages.requests import EditKind
from mechanik.studio.session.first_goals import first_goals
from mechanik.studio.session.goal import Goal
from mechanik.studio.session.goal_kinds import objective_of
from mechanik.studio.session.setup import Setup, read_bounds, read_rests
from mechanik.studio.session.sizes import check_size
from mechanik.studio.session.table import Table

if TYPE_CHECKING:
    from mechanik.studio.session.session import Session

THICKNESS = 0.035
"""Of the bones of an arm, as a share of its length."""
TITLES = {"dh": "Arm from a DH table", "arm_2d": "Arm in the plane", "arm_3d": "Arm in space", "json": "", "urdf": ""}
FIRST = {"json": "{", "urdf": "<", "dh": "{", "arm_2d": "{", "arm_3d": "{"}
"""How each text begins, so that none is taken for the name of a file."""


def read_text(kind: EditKind, text: str) -> Mechanism:
    """The mechanism that a text describes; no file of this machine is looked at."""
    if not text.lstrip().startswith(FIRST[kind]):
        wanted = "a JSON object, which begins with '{'" if FIRST[kind] == "{" else "XML, which begins with '<'"
        raise FormatError(f"this text has to be {wanted}")
    mechanism, _ = load_bytes("text.urdf" if kind == "urdf" else "text.json", text.encode())
    check_size(mechanism)
    return mechanism if kind in ("json", "urdf") else with_bodies(mechanism)


def with_bodies(arm: Mechanism) -> Mechanism:
    """An arm of a table or a list says nothing of bodies: bones from joint to joint, which are its colliders too."""
    lengths = [float(np.linalg.norm(joint.position)) for joint in arm.joints.values()]
    radius = min(THICKNESS * sum(lengths), 0.5 * max(lengths, default=0.0))
    return dress(arm, radius, 0.6 * radius, BLUE, DARK)


def title_of(kind: EditKind, mechanism: Mechanism) -> str:
    """What people call it who have not given it a name of their own; "": by its name."""
    return TITLES[kind] if mechanism.name in ("", kind) else ""


def edited(session: Session, kind: EditKind, text: str) -> None:
    """Put what the text says in the place of what stands there; a text that cannot be read changes nothing."""
    mechanism = read_text(kind, text)
    stage = session.stage
    if stage is None:
        session.open(mechanism, title=title_of(kind, mechanism), files={}, source=(kind, text))
        return
    old = stage.table
    is_like_before = kind == old.source[0]
    title = old.title if is_like_before else title_of(kind, mechanism)
    mechanism.name = mechanism.name or (old.mechanism.name if is_like_before else TITLES[kind])
    table = Table(mechanism, title, old.files, (kind, text), may_read=False, address=old.address)
    before, q = session.snapshot(), carried(old, stage.q, mechanism)
    setup = refitted(session, stage.setup, old, table, q, keeps_goals=is_like_before)
    try:
        other = session.staged(table, setup, q, stage.running)
    except MechanikError:
        showing = replace(setup.collisions, mode="show") if setup.collisions.mode == "avoid" else setup.collisions
        other = session.staged(
            table, replace(setup, solver="lm", options={}, demands={}, collisions=showing), q, stage.running
        )
    session.stage = other
    stage.close()
    session.forget_motions()
    session.push("edit model", before)
    session.tell_all(resets_view=not is_like_before)
    other.wake()


def carried(old: Table, q: Array, mechanism: Mechanism) -> Array:
    """q of the new mechanism: values by the names of freedoms, the rest as the text has them."""
    values = dict(zip(old.mechanism.space.q_names, q.tolist(), strict=True))
    found = mechanism.q
    for k, name in enumerate(mechanism.space.q_names):
        found[k] = values.get(name, found[k])
    return mechanism.clamp(found)


def refitted(session: Session, setup: Setup, old: Table, table: Table, q: Array, keeps_goals: bool) -> Setup:
    """The setup for the new mechanism: goals on links of the same name, or on its tip; what does not fit goes.

    keeps_goals: whether it is the same thing in other words; if not, its goals are those that fit what is new.
    """
    freedoms = table.anatomy.freedoms
    names = {one.name for k, one in enumerate(old.anatomy.freedoms) if k in setup.locked}
    fresh = replace(
        setup,
        goals=(),
        locked=frozenset(k for k, one in enumerate(freedoms) if one.name in names and one.leader < 0),
        bounds=read_bounds(table.mechanism, freedoms),
        rests=read_rests(table.mechanism, freedoms),
        demands={name: one for name, one in setup.demands.items() if _fits(one.relations, table.mechanism)},
        hidden=setup.hidden & {*table.anatomy.names},
    )
    tips = [handle.link for handle in first_goals(table.mechanism)] or list(table.anatomy.names[-1:])
    X = table.anatomy.poses(q)
    kept: list[Goal] = []
    for goal in setup.goals if keeps_goals else ():
        other = goal if goal.link in table.anatomy.links else replace(goal, link=tips[0])
        if _fits(objective_of(other, setup.terrain).relations, table.mechanism):
            kept.append(other)
    if setup.goals and not kept:
        kept = [
            session.new_goal(fresh, table, X, one.kind, one.link, at=one.at) for one in first_goals(table.mechanism)
        ]
    return replace(fresh, goals=tuple(kept))


def _fits(relations: object, mechanism: Mechanism) -> bool:
    try:
        relations(mechanism)  # type: ignore[operator]
    except MechanikError:
        return False
    return True
