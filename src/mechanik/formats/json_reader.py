"""Mechanisms from JSON: our own format, or a DH table or arm list in a JSON wrapper."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from mechanik.errors import JsonError, UnknownName
from mechanik.formats.json_link import find_meshes, read_link
from mechanik.formats.json_pose import place, read_place, read_pose, read_turn
from mechanik.formats.json_state import set_aims, set_followers, set_values
from mechanik.formats.json_tables import read_arm, read_dh
from mechanik.formats.json_value import Record, Value, parse
from mechanik.formats.json_writer import VERSION
from mechanik.formats.packages import Packages, files_around
from mechanik.formats.source import Source, open_source
from mechanik.mechanism import DoF, Frame, Goal, Joint, Law, Link, Mechanism
from mechanik.mechanism.dof import ALL, as_dofs
from mechanik.mechanism.law import Freedom
from mechanik.spatial import Pose

F = TypeVar("F", bound=Frame)

PARTS = ("frames", "links", "joints", "closures", "goals", "couplings", "laws", "configurations", "unchecked", "extras")
PLACE = ("in_frame", "position", "wxyz")
LINK = (*PLACE, "visuals", "collisions", "inertial")
STATE = ("lower", "upper", "values", "turn_wxyz", "targets", "rest_pose", "track_turns", "cone")
JOINT = (*PLACE, "parent", "child", "dof", "axes_wxyz", *STATE)
GOAL = (*PLACE, "on", "dof", "axes", "link", "at")


def read_json(
    source: str | os.PathLike[str] | Source | Mapping[str, Any], *, packages: Mapping[str, str | Path] | None = None
) -> Mechanism:
    """A mechanism from JSON text, from a JSON file, or from what `json.load` or `describe` returned.

    Args:
        packages: where the folders are that `package://` addresses of meshes begin with, by name.
    Raises:
        JsonError: with the place, such as `joints[3].lower`, and what is expected there.
    """
    if isinstance(source, Mapping):
        mechanism, files = _read(Value(source)), Packages(None, packages)
    else:
        opened = source if isinstance(source, Source) else open_source(source)
        files = files_around(opened, packages)
        try:
            data = parse(opened.text())
            if opened.around is not None:
                opened.around.count(_parts(data), opened.where)
            mechanism = _read(Value(data))
        except JsonError as error:
            raise JsonError(f"{opened.where}{error}") from error.__cause__
    find_meshes(mechanism, files)
    return mechanism


def _parts(data: object) -> int:
    """How many links and joints this may become: the longest lists at the top, and in a table below it."""
    if not isinstance(data, Mapping):
        return 0
    inner = [one for key, one in cast("Mapping[object, object]", data).items() if key != "unchecked"]
    inner += [
        one for table in inner if isinstance(table, Mapping) for one in cast("Mapping[object, object]", table).values()
    ]
    return sum(len(cast("list[object]", one)) for one in inner if isinstance(one, list))


def _read(top: Value) -> Mechanism:
    fields = top.fields()
    if "mechanik" not in fields:
        raise JsonError(f'the key "mechanik" is missing; a mechanism begins with {{"mechanik": {VERSION}, ...')
    version = fields["mechanik"].number()
    if version != int(version) or version < 1:
        fields["mechanik"].fail(f"a version, 1 to {VERSION}")
    if version > VERSION:
        raise JsonError(
            f"this is version {version:g} of the format and this Mechanik reads up to {VERSION}; install a newer one"
        )
    if "dh" in fields:
        return read_dh(top.object(("mechanik", "dh"))["dh"])
    if "arm" in fields:
        return read_arm(top.object(("mechanik", "arm"))["arm"])
    return _Reader().mechanism(top.object(("mechanik",), ("name", *PARTS)))


class _Reader:
    """Collects frames by name while they are read."""

    def __init__(self) -> None:
        self.frames: dict[str, Frame] = {}
        self.links: dict[str, Link] = {}
        self.joints: dict[str, Joint] = {}
        self.goals: dict[str, Goal] = {}

    def mechanism(self, top: Record) -> Mechanism:
        frames = [(value, value.object(("name",), PLACE)) for value in top.list("frames")]
        links = [(value, value.object(("name",), LINK)) for value in top.list("links")]
        joints = [(value, value.object(("name",), JOINT)) for value in top.list("joints")]
        goals = [(value, value.object(("name",), GOAL)) for value in top.list("goals")]
        for _, record in frames:
            self.frames[self.new_name(record, self.frames)] = _placed(Frame(record["name"].name()), record)
        for _, record in links:
            self.links[self.new_name(record, self.links)] = _placed(read_link(record), record)
        for _, record in joints:
            self.joints[self.new_name(record, self.joints)] = _placed(_joint(record), record)
        for _, record in goals:
            self.goals[self.new_name(record, self.joints, self.goals)] = _placed(_goal(record), record)
        for (_, record), frame in zip(
            [*frames, *links, *joints, *goals],
            [*self.frames.values(), *self.links.values(), *self.joints.values(), *self.goals.values()],
            strict=True,
        ):
            self.hang(record, frame)
        for value in top.list("closures"):
            self.close(value)
        for _, record in goals:
            self.want(record)
        for value in top.list("couplings"):
            self.couple(value)
        for value in top.list("laws"):
            self.bind(value)
        self.set_states([record for _, record in joints])
        everything = [*self.links.values(), *self.frames.values(), *self.joints.values(), *self.goals.values()]
        if not everything and not top.has("links"):
            raise JsonError("the mechanism has no links")
        mechanism = Mechanism([f for f in everything if f.parent is None], name=top.get("name", Value.text, ""))
        if not everything:
            mechanism.warnings.append("the mechanism has no links, so there is nothing in it")
        for name, value in (top["configurations"].fields() if top.has("configurations") else {}).items():
            q = value.numbers(mechanism.nq)
            with value.blamed():
                mechanism.configurations[name] = np.array(mechanism.space.check_q(q))
        if top.has("unchecked") and top["unchecked"].data is not None:
            self.leave_out(top["unchecked"], mechanism)
        if top.has("extras"):
            top["extras"].fields()
            mechanism.extras.update(top["extras"].plain())
        return mechanism

    def leave_out(self, value: Value, mechanism: Mechanism) -> None:
        pairs: dict[tuple[str, str], str] = {}
        for one in value.items(of="pairs"):
            record = one.object(("links",), ("reason",))
            a, b = (self.link(name) for name in record["links"].items(2, "names of links"))
            pairs[mechanism.name_of(a), mechanism.name_of(b)] = record.get("reason", Value.text, "")
        with value.blamed():
            mechanism.unchecked = pairs

    def new_name(self, record: Record, *taken: Mapping[str, Frame]) -> str:
        name = record["name"].name()
        for group in taken:
            if name in group:
                raise JsonError(f"{record['name'].path}: {name!r} is the name of another {group[name].kind} already")
        return name

    def hang(self, record: Record, frame: Frame) -> None:
        above = record.maybe("in_frame", self.frame)
        key = "on" if isinstance(frame, Goal) else "parent"
        if record.has(key) and record[key].data is not None:
            if above is not None:
                raise JsonError(f"{record['in_frame'].path}: it has the {key} {record[key].data!r} already")
            above = self.link(record[key])
        if above is not None:
            with record["in_frame" if above.kind == "frame" else key].blamed():
                above.add_child(frame)
        child = record.maybe("child", self.link)
        if child is not None:
            with record["child"].blamed():
                frame.add_child(child)

    def close(self, value: Value) -> None:
        record = value.object(("joint", "link"), ("at",))
        joint, link = self.joint(record["joint"]), self.link(record["link"])
        _close(joint, link, record, value)

    def want(self, record: Record) -> None:
        goal = self.goals[record["name"].name()]
        link = record.maybe("link", self.link)
        if link is not None:
            _close(goal, link, record, record["link"])
        else:
            record.get("at", read_pose, None)

    def couple(self, value: Value) -> None:
        record = value.object(("follower", "leader"), ("dof", "leader_dof", "ratio", "offset"))
        follower, leader = self.joint(record["follower"]), self.joint(record["leader"])
        with value.blamed():
            follower.follow(
                leader,
                record.get("ratio", Value.number, 1.0),
                record.get("offset", Value.number, 0.0),
                dof=record.get("dof", Value.text, None),
                leader_dof=record.get("leader_dof", Value.text, None),
            )

    def bind(self, value: Value) -> None:
        record = value.object(("terms",), ("name", "constant"))
        terms: dict[Freedom, list[float]] = {}
        for one in record["terms"].items(of="terms"):
            term = one.object(("joint", "factors"), ("dof",))
            joint = self.joint(term["joint"])
            with one.blamed():
                which = term.get("dof", Value.text, None)
                dof = joint._only_dof("dof") if which is None else joint._free(which)
            if (joint, dof) in terms:
                raise JsonError(f"{one.path}: {dof.name} of {joint.name!r} stands in another term already")
            terms[joint, dof] = term["factors"].numbers()
        with value.blamed():
            Law(terms, record.get("constant", Value.number, 0.0), name=record.get("name", Value.text, ""))

    def set_states(self, records: list[Record]) -> None:
        """Once all limits and couplings stand, so that nothing moves what was read."""
        joints = list(zip(self.joints.values(), records, strict=True))
        for joint, record in joints:
            set_values(joint, record)
        for joint, record in joints:
            set_followers(joint, record)
            set_aims(joint, record)

    def frame(self, value: Value) -> Frame:
        return _named("frame", value, self.frames)

    def link(self, value: Value) -> Link:
        return _named("link", value, self.links)

    def joint(self, value: Value) -> Joint:
        return _named("joint", value, self.joints)


def _placed(frame: F, record: Record) -> F:
    place(frame, *read_place(record))
    return frame


def _joint(record: Record) -> Joint:
    dof = record.get("dof", _dofs, ())
    joint = Joint(record["name"].name(), dof=dof)
    if record.has("axes_wxyz"):
        joint._axes = read_turn(record["axes_wxyz"])
    sides = [[side * math.inf] * len(dof) for side in (-1, 1)]
    for key, side in zip(("lower", "upper"), sides, strict=True):
        if record.has(key):
            given = record[key].numbers_or_null(len(dof))
            side[:] = [free if number is None else number for number, free in zip(given, side, strict=True)]
    if record.has("lower") or record.has("upper"):
        with record["lower" if record.has("lower") else "upper"].blamed():
            joint.set_limits(*sides)
    if record.has("cone") and record["cone"].data is not None:
        cone = record["cone"].object(("angle",), ("axes",))
        with record["cone"].blamed():
            joint.set_cone(cone["angle"].number(), cone.get("axes", Value.text, "z"))
    return joint


def _goal(record: Record) -> Goal:
    axes: Any = record.get("axes", lambda value: value.choice(("goal", "world")), "goal")
    return Goal(record["name"].name(), dof=record.get("dof", _dofs, ALL), axes=axes)


def _close(joint: Joint | Goal, link: Link, record: Record, place: Value) -> None:
    at = record.get("at", read_pose, Pose.identity())
    with place.blamed():
        joint.make_closure(link, at)


def _dofs(value: Value) -> tuple[DoF, ...]:
    names = [item.choice(DoF._member_names_) for item in value.items(of="freedoms")]
    with value.blamed():
        return as_dofs(names)


def _named(kind: str, value: Value, known: Mapping[str, F]) -> F:
    name = value.text()
    if name not in known:
        with value.blamed():
            raise UnknownName(kind, name, known)
    return known[name]
