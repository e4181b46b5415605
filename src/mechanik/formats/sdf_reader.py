"""SDF to mechanism. Joints stand in the order of the file; one that leads to a link which hangs already closes a loop.

Names inside nested and included models are full ones, "gripper::finger"; those in the only model of a file are plain.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np

from mechanik.errors import CouplingError, DoFError, SdfError
from mechanik.formats.packages import files_around
from mechanik.formats.sdf_frames import WORLD, Key
from mechanik.formats.sdf_gearbox import geared
from mechanik.formats.sdf_joints import Follower, check_type, dof_of, follower_of, has_axis, keep_extras, make_joints
from mechanik.formats.sdf_model import Collected, JointSpec, collect
from mechanik.formats.sdf_shapes import SdfShapes
from mechanik.formats.sdf_tree import Role, plan_tree
from mechanik.formats.source import FilesAround, Source, open_source
from mechanik.formats.urdf_tree import listed, nearest_name
from mechanik.mechanism.dof import ALL
from mechanik.mechanism.frame import Frame
from mechanik.mechanism.joint import Joint
from mechanik.mechanism.link import Link
from mechanik.mechanism.mechanism import Mechanism
from mechanik.spatial import inverse
from mechanik.spatial.array import Array


def read_sdf(
    source: str | Path | Source,
    *,
    base: Literal["fixed", "free"] = "fixed",
    packages: Mapping[str, str | Path] | None = None,
) -> Mechanism:
    """The mechanism that an SDF describes.

    Args:
        source: a path, or the text itself, which begins with `<`.
        base: whether models that no joint holds to the world stand in it or float, by a joint `floating_base` that
            comes first in q. Static models stand.
        packages: name to folder, for `model://` and `package://`.
    Returns:
        A mechanism whose `warnings` say what was odd, and whose `extras` keep "limits" (effort, velocity) and
        "dynamics" by joint.
    Raises:
        XmlError, SdfError: it cannot be read; the message says where and why.
    """
    if base not in ("fixed", "free"):
        raise SdfError(f"base can be 'fixed' or 'free', not {base!r}")
    opened = source if isinstance(source, Source) else open_source(source)
    files = files_around(opened, packages)
    found = collect(opened, files)
    assembly = _Assembly(found, files)
    roots = assembly.build(base == "free")
    name = found.name or opened.stem
    mechanism = Mechanism(roots, name=name, warnings=found.root.document.warnings)
    mechanism.extras.update(assembly.extras)
    return mechanism


class _Assembly:
    """Puts the links and joints of a file together."""

    def __init__(self, found: Collected, files: FilesAround) -> None:
        self.found, self.frames = found, found.frames
        for spec in found.joints.values():
            check_type(spec)
        self.specs = {name: spec for name, spec in found.joints.items() if spec.type != "gearbox"}
        self.ends = {name: self._bodies(spec) for name, spec in self.specs.items()}
        self.extras: dict[str, Any] = {}
        self.joints: dict[str, list[Joint]] = {}
        self.backwards: set[str] = set()
        shapes = SdfShapes(files, found.frames)
        self.links: dict[str, Link] = {}
        if any(WORLD in pair for pair in self.ends.values()):
            self.links[WORLD] = Link(WORLD)
        for name, spec in found.links.items():
            visuals, collisions = shapes.placed(spec, "visual"), shapes.placed(spec, "collision")
            self.links[name] = Link(name, visuals=visuals, collisions=collisions, inertial=shapes.inertial(spec))

    def build(self, floats: bool) -> list[Frame]:
        """The roots of all trees."""
        followers = self._followers()
        bound = {one.joint for one in followers} | {one.leader for one in followers}
        bound |= {name for name, spec in self.specs.items() if spec.type == "screw"}
        plan = plan_tree(self.links, self.ends, bound, WORLD)
        floating = [root for root in plan.roots if floats and root != WORLD and root not in self.found.still]
        floating_joints = {root: Joint(self._base_name(root, len(floating)), dof=ALL) for root in floating}
        for name, spec in self.specs.items():
            if plan.roles[name] == "closes" and name in bound:
                raise spec.node.fault(
                    "closes a loop, and it is a screw, or follows a joint or leads one, which is possible only for "
                    "joints that hold a link; let another joint of the loop close it"
                )
            self._put(spec, plan.roles[name])
            keep_extras(self.extras, spec)
        for follower in followers:
            self._couple(follower)
        self._warn_of_values()
        tops: list[Frame] = []
        for root in plan.roots:
            top: Frame = self.links[root]
            if root != WORLD:
                top.matrix = self._pose(root)
                if root in floating_joints:  # the joint's zero is where the file has it
                    joint = floating_joints[root]
                    joint.matrix, top.matrix = top.matrix, np.eye(4)
                    joint.add_child(top)
                    top = joint
            tops.append(top)
        return tops

    def _warn_of_values(self) -> None:
        """Where a file is drawn, every value is zero; limits may have moved some from there."""
        made = [joint for several in self.joints.values() for joint in several]
        moved = [one.name for one in made if not (one.is_closure or one.couplings) and any(one.values)]
        if moved:
            self.found.root.warn(
                f"is drawn with joints outside their limits, which stand at a limit now: {listed(moved)}"
            )

    def _put(self, spec: JointSpec, role: Role) -> None:
        """Hang a joint on one end and hold the other with it, or close it onto that."""
        start, end = self.ends[spec.name] if role != "backwards" else self.ends[spec.name][::-1]
        if role == "backwards":
            self.backwards.add(spec.name)
        X_world_joint = self.frames.pose(Key("joint", spec.name))
        X_start = inverse(self._pose(start)) @ X_world_joint
        X_end = inverse(self._pose(end)) @ X_world_joint
        made = make_joints(spec, self.frames, role == "backwards")
        above, made[0].matrix = self.links[start], X_start
        for joint in made[:-1]:
            between = Link(f"{spec.name}/{joint.name}")
            above.add_child(joint)
            joint.add_child(between)
            above = between
        above.add_child(made[-1])
        if role == "closes":
            made[-1].make_closure(self.links[end], X_end)
        else:
            self.links[end].matrix = inverse(X_end)
            made[-1].add_child(self.links[end])
        self.joints[spec.name] = made

    def _couple(self, one: Follower) -> None:
        joint, leader = self._with_axis(one.joint, one.axis), self._with_axis(one.leader, one.leader_axis)
        try:
            dof = dof_of(joint, one.axis, one.joint in self.backwards)
            leader_dof = dof_of(leader, one.leader_axis, one.leader in self.backwards)
            joint.follow(leader, one.ratio, one.offset, dof=dof, leader_dof=leader_dof)
        except (CouplingError, DoFError) as error:
            raise one.node.fault(f"cannot be: {error}") from None

    def _with_axis(self, name: str, axis: str) -> Joint:
        """Of two joints that stand for one, the one about that axis."""
        made = self.joints[name]
        return next((joint for joint in made if axis == "axis2" and joint.name != name), made[0])

    def _followers(self) -> list[Follower]:
        gears = [spec for spec in self.found.joints.values() if spec.type == "gearbox"]
        found = [geared(spec, self.specs, self.ends, self.frames) for spec in gears]
        for spec in self.specs.values():
            for tag in ("axis", "axis2"):
                one = follower_of(spec, tag)
                if one is None:
                    continue
                if one.leader not in self.specs:
                    near = nearest_name(one.leader, self.specs)
                    raise one.node.fault(f"follows {one.leader!r}, and there is no such joint{near}")
                for name, axis in ((one.joint, one.axis), (one.leader, one.leader_axis)):
                    if not has_axis(self.specs[name], axis):
                        raise one.node.fault(f"is about the {axis} of joint {name!r}, which has none")
                found.append(one)
        return found

    def _bodies(self, spec: JointSpec) -> tuple[str, str]:
        """The links at both ends, where frames stand for the link that they move with."""
        ends = [self.frames.body(self.frames.key(spec.scope, name, spec.node)) for name in (spec.parent, spec.child)]
        if ends[0] == ends[1]:
            raise spec.node.fault(f"joins {ends[0]!r} to itself")
        return ends[0], ends[1]

    def _pose(self, link: str) -> Array:
        return np.eye(4) if link == WORLD else self.frames.pose(Key("link", link))

    def _base_name(self, root: str, count: int) -> str:
        name = "floating_base" if count == 1 else f"{root}_floating_base"
        while name in self.found.joints:
            name += "_"
        return name
