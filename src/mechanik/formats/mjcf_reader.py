"""MJCF to mechanism, through MuJoCo's own reader. Joints stand in MuJoCo's order, and their values are its qpos.

The world is a link too. Bodies are links of the same name; a body with several joints has a link between each two.
Sites are links that are fixed to their body. Loops and couplings come from <equality> (`mjcf_equality`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from mechanik.formats.mjcf_equality import EqualityReader, fixed_tendon
from mechanik.formats.mjcf_model import BALL, FREE, SLIDE, Model, fresh, open_model
from mechanik.formats.mjcf_shapes import GeomReader, read_mass
from mechanik.formats.mjcf_state import from_qpos
from mechanik.formats.source import Source, open_source
from mechanik.formats.urdf_reader import set_axis
from mechanik.formats.urdf_tree import listed
from mechanik.mechanism.dof import ALL, ROTATIONS
from mechanik.mechanism.joint import Joint
from mechanik.mechanism.link import Link
from mechanik.mechanism.mechanism import Mechanism
from mechanik.spatial import make, rotation, translation
from mechanik.spatial.array import Array


def read_mjcf(source: str | Path | Source, *, sites: bool = True) -> Mechanism:
    """The mechanism that an MJCF model describes.

    It stands where MuJoCo starts, brought inside the limits; if its loops are open there, at the key frame at which
    they are shut, or the least open.

    Args:
        source: a path, or the text itself, which begins with `<`.
        sites: whether named sites become links.
    Returns:
        A mechanism with key frames as `configurations`, and in `extras`: "qpos", where each joint stands in MuJoCo's
        qpos (for `from_qpos` and `to_qpos`); "actuators", what each one drives; "driven", the joints that actuators
        drive by themselves or through a tendon; "tendons", the fixed ones, joint by coefficient; "mocap", bodies
        that are moved from outside.
    Raises:
        MissingExtra: the package `mujoco` is not installed.
        XmlError, MjcfError: it cannot be read; the message says where and why.
    """
    opened = source if isinstance(source, Source) else open_source(source)
    model = open_model(opened)
    folder = None if opened.path is None else opened.path.parent
    tree = _Tree(model, GeomReader(model, folder))
    tree.grow()
    if sites:
        tree.add_sites()
    EqualityReader(model, tree.links, tree.joints).read()
    _warn_of_the_rest(model)
    name = model.name or opened.stem
    mechanism = Mechanism(tree.links[0], name=name, warnings=model.warnings)
    mechanism.extras.update(_extras(model))
    for key in range(model.raw.nkey):
        label = model.name_of("key", key) or f"key{key}"
        mechanism.configurations[label] = from_qpos(mechanism, model.raw.key_qpos[key])
    _stand(mechanism, from_qpos(mechanism, model.raw.qpos0))
    return mechanism


def _stand(mechanism: Mechanism, start: Array) -> None:
    """Put the mechanism where MuJoCo starts, or at the key frame at which its loops are the least open."""

    def openness(q: Array) -> float:
        mechanism.set_q(q)
        gaps = [closure.gap() for closure in mechanism.closures.values()]
        errors = [abs(law.error()) for law in mechanism.laws.values()]
        return round(max([0.0, *errors, *(max(gap.distance, gap.angle) for gap in gaps)]), 6)

    mechanism.set_q(min([start, *mechanism.configurations.values()], key=openness))


class _Tree:
    """Links by number of the body, joints by number, as they are made."""

    def __init__(self, model: Model, geoms: GeomReader) -> None:
        self.model, self.geoms = model, geoms
        self.links: list[Link] = []
        self.joints: list[Joint] = []
        self.link_names = set(model.bodies)

    def grow(self) -> None:
        raw = self.model.raw
        for body, name in enumerate(self.model.bodies):
            link = self._link(body, name)
            if body:
                numbers = range(int(raw.body_jntadr[body]), int(raw.body_jntadr[body]) + int(raw.body_jntnum[body]))
                self._hang(link, body, list(numbers))
            self.links.append(link)
        self.geoms.report()

    def add_sites(self) -> None:
        raw = self.model.raw
        for site in range(raw.nsite):
            name = self.model.name_of("site", site)
            if name:
                if name in self.link_names:
                    name = f"{name}_site"
                link = Link(fresh(name, self.link_names))
                self._fix(link, self.links[int(raw.site_bodyid[site])], self.model.place("site", site))

    def _link(self, body: int, name: str) -> Link:
        visuals, collisions = self.geoms.shapes(body)
        return Link(name, visuals=visuals, collisions=collisions, inertial=read_mass(self.model, body))

    def _hang(self, link: Link, body: int, numbers: list[int]) -> None:
        """Each joint of a body moves what the ones before it leave, about its own point of the body."""
        above, X = self.links[int(self.model.raw.body_parentid[body])], self.model.place("body", body)
        if not numbers:
            self._fix(link, above, X)
        for number in numbers:
            is_last = number == numbers[-1]
            name = f"{link.name}/{self.model.joints[number]}"
            held = link if is_last else Link(fresh(name, self.link_names))
            joint = self._joint(number)
            anchor = np.zeros(3)
            if int(self.model.raw.jnt_type[number]) != FREE:
                anchor = self.model.raw.jnt_pos[number]
                joint.matrix = X @ translation(anchor) @ joint.matrix
            held.position = -anchor
            above.add_child(joint)
            joint.add_child(held)
            self.joints.append(joint)
            above, X = held, np.eye(4)

    def _joint(self, number: int) -> Joint:
        """The joint, placed so that it does not move at its reference value."""
        raw, kind = self.model.raw, int(self.model.raw.jnt_type[number])
        joint = Joint(self.model.joints[number])
        limits = [float(limit) for limit in raw.jnt_range[number]] if raw.jnt_limited[number] else None
        if kind == FREE:
            joint.set_dof(ALL)
            return joint
        if kind == BALL:
            joint.set_dof(ROTATIONS)
            if limits is not None:
                self._limit_ball(joint, limits[1])
            return joint
        axis, ref = raw.jnt_axis[number], float(raw.qpos0[int(raw.jnt_qposadr[number])])
        if kind == SLIDE:
            joint.matrix = translation(-ref * axis)
        elif ref:
            joint.matrix = make(rotation.exp(-ref * axis), np.zeros(3))
        set_axis(joint, axis.copy(), slides=kind == SLIDE)
        if limits is not None:
            joint.set_limits(limits[0], limits[1])
        return joint

    def _limit_ball(self, joint: Joint, angle: float) -> None:
        """MuJoCo bounds the whole turn; cones of the same angle for all three axes are the closest that a joint has."""
        if not 0.0 < angle < np.pi:
            return
        joint.set_cone(angle, "xyz")
        self.model.warn(
            f"ball {joint.name!r} may turn by {angle:g} rad in all; here each of its axes may tilt by that, "
            "which together lets it go a little further"
        )

    def _fix(self, link: Link, above: Link, X_above_link: Array) -> None:
        joint = Joint(fresh(f"{link.name}_fixed", self.model.joint_names))
        joint.matrix = X_above_link
        above.add_child(joint)
        joint.add_child(link)


def _extras(model: Model) -> dict[str, Any]:
    """Plain data about what has no place in the graph; see `read_mjcf`."""
    raw = model.raw
    at = {name: int(address) for name, address in zip(model.joints, raw.jnt_qposadr, strict=True)}
    extras: dict[str, Any] = {"qpos": {"size": int(raw.nq), "at": at}}
    tendons: dict[int, dict[str, float]] = {}
    for tendon in range(raw.ntendon):
        tendons[tendon] = {model.joints[joint]: c for joint, c in fixed_tendon(model, tendon).items()}
    actuators: dict[str, dict[str, str]] = {}
    driven: dict[str, None] = {}
    for actuator in range(raw.nu):
        kind = model.mujoco.mjtTrn(int(raw.actuator_trntype[actuator])).name.removeprefix("mjTRN_").lower()
        target = int(raw.actuator_trnid[actuator, 0])
        kind = "joint" if kind == "jointinparent" else "site" if kind == "slidercrank" else kind
        names = {"joint": model.joints, "body": model.bodies}.get(kind)
        label = names[target] if names is not None else model.name_of(kind, target)
        actuators[model.name_of("actuator", actuator) or f"actuator{actuator}"] = {kind: label}
        if kind == "joint":
            driven[label] = None
        elif kind == "tendon":
            driven |= dict.fromkeys(tendons[target])
    fixed = {model.name_of("tendon", t) or f"tendon{t}": said for t, said in tendons.items() if said}
    mocap = [name for body, name in enumerate(model.bodies) if int(raw.body_mocapid[body]) >= 0]
    kept = {"actuators": actuators, "driven": list(driven), "tendons": fixed, "mocap": mocap}
    return extras | {subject: said for subject, said in kept.items() if said}


def _warn_of_the_rest(model: Model) -> None:
    raw = model.raw
    spatial = [model.name_of("tendon", t) or f"tendon{t}" for t in range(raw.ntendon) if not fixed_tendon(model, t)]
    if spatial:
        model.warn(f"spatial tendons are left out: {listed(spatial)}")
    if raw.nflex or raw.nskin:
        model.warn("flexible bodies and skins are left out")
