"""Random mechanisms of all kinds and sizes; each part is drawn from its own numbers, so that parts can be left out."""

from __future__ import annotations

from zlib import crc32

import numpy as np
from random_arms import FAMILIES, arm_of
from random_mechanisms import random_turn
from solver.random_problems import random_loop

import mechanik as mk
from mechanik.model.dof import ALL_DOFS, ROTATIONS, TRANSLATIONS, DoF

KINDS = {
    "chain": 0.22,
    "arm": 0.1,
    "tree": 0.2,
    "free tree": 0.1,
    "loops": 0.1,
    "gallery arm": 0.12,
    "gallery loop": 0.1,
    "gallery platform": 0.06,
}
"""Kinds of mechanisms, and how often they are drawn."""
GALLERY_ARMS = (
    "panda",
    "ur5",
    "puma560",
    "planar_3r",
    "zalo5",
    "dh6",
    "scara",
    "iiwa14",
    "grippy10",
    "rail_arm",
    "snake",
)
GALLERY_LOOPS = (
    "four_bar", "slider_crank", "five_bar", "pantograph", "watt_six_bar", "planar_3rrr", "bennett", "excavator",
    "scissor_lift", "peaucellier",
)  # fmt: skip
GALLERY_PLATFORMS = ("stewart_platform", "delta_robot")


class Parts:
    """Random numbers by part of a case; a part that is left out changes no other part.

    Args:
        seed: of the case.
        without: names of the parts that are left out.
        joints: largest number of joints of a chain or tree; None: as drawn.
    """

    def __init__(self, seed: int, without: frozenset[str] = frozenset(), joints: int | None = None) -> None:
        self.seed, self.without, self.joints = seed, without, joints
        self.names: list[str] = []

    def rng(self, name: str) -> np.random.Generator:
        """Return the generator of a part."""
        return np.random.default_rng([self.seed, crc32(name.encode())])

    def has(self, name: str) -> bool:
        """Return whether a part that was drawn is in the case, and record its name."""
        self.names.append(name)
        return name not in self.without


def random_kind(parts: Parts) -> str:
    rng = parts.rng("kind")
    return str(rng.choice(list(KINDS), p=np.array(list(KINDS.values())) / sum(KINDS.values())))


def make_mechanism(parts: Parts) -> tuple[str, mk.Mechanism, float]:
    """Return the kind, the mechanism, and its size (m)."""
    kind, rng = random_kind(parts), parts.rng("mechanism")
    unit = float(10.0 ** rng.uniform(-2, 2)) if parts.has("unit") else 1.0
    match kind:
        case "chain" | "tree" | "free tree":
            mechanism = _branching_mechanism(parts, kind, unit)
        case "arm":
            mechanism = arm_of(rng, FAMILIES[list(FAMILIES)[rng.integers(len(FAMILIES))]][1](rng), unit)
            _limit_some_joints(parts, mechanism)
        case "loops":
            mechanism, unit = random_loop(rng, int(rng.integers(1, 3))), 1.0
        case "gallery arm":
            mechanism, unit = mk.gallery.make(GALLERY_ARMS[rng.integers(len(GALLERY_ARMS))]), 1.0
        case "gallery loop":
            mechanism, unit = mk.gallery.make(GALLERY_LOOPS[rng.integers(len(GALLERY_LOOPS))]), 1.0
        case _:
            mechanism, unit = mk.gallery.make(GALLERY_PLATFORMS[rng.integers(len(GALLERY_PLATFORMS))]), 1.0
    return kind, mechanism, unit


def _branching_mechanism(parts: Parts, kind: str, unit: float) -> mk.Mechanism:
    """Return a chain or tree of up to 40 joints of all kinds, some limited, coupled, constrained or in cones."""
    rng = parts.rng("mechanism")
    count = int(rng.integers(1, 41 if rng.random() < 0.15 else 10)) if kind == "chain" else int(rng.integers(2, 20))
    count = count if parts.joints is None else min(count, parts.joints)
    links = [mk.Link("link0", position=rng.uniform(-1, 1, 3) * unit, wxyz=random_turn(rng))]
    joints: list[mk.Joint] = []
    for k in range(count):
        rng = parts.rng(f"joint {k}")
        dof = ALL_DOFS if kind == "free tree" and k == 0 else _random_dof(rng, kind)
        position = np.zeros(3) if rng.random() < 0.1 else rng.uniform(-0.5, 0.5, 3) * unit
        axes = np.array([1.0, 0, 0, 0]) if rng.random() < 0.3 else random_turn(rng)
        joint = mk.Joint(f"joint{k}", dof=dof, position=position, wxyz=random_turn(rng), axes_wxyz=axes)
        _limit(parts, rng, joint, unit)
        link = mk.Link(f"link{k + 1}", position=rng.uniform(-0.3, 0.3, 3) * unit, wxyz=random_turn(rng))
        if rng.random() < 0.7:
            link.inertial = mk.Inertial(rng.uniform(0.1, 3), mk.Pose(rng.uniform(-0.2, 0.2, 3) * unit))
        parent = links[-1] if kind == "chain" else links[max(0, len(links) - 1 - int(rng.geometric(0.6)))]
        parent.add_child(joint)
        joint.add_child(link)
        links.append(link)
        joints.append(joint)
    _couple(parts, joints, unit)
    return mk.Mechanism(links[0], name=f"{kind} {parts.seed}")


def _random_dof(rng: np.random.Generator, kind: str) -> tuple[DoF, ...]:
    share = rng.random() if kind != "chain" else rng.random() ** 2
    if share < 0.55:
        return (ROTATIONS[rng.integers(3)],)
    if share < 0.7:
        return (TRANSLATIONS[rng.integers(3)],)
    if share < 0.8:
        return ROTATIONS
    if share < 0.88:
        return tuple(sorted(rng.choice(ROTATIONS, 2, replace=False)))
    if share < 0.93:
        return ()
    return tuple(dof for dof in ALL_DOFS if rng.random() < 0.5)


def _limit(parts: Parts, rng: np.random.Generator, joint: mk.Joint, unit: float) -> None:
    """Limit a joint within its zero values, or by a cone."""
    rotations = sum(dof.is_rotation for dof in joint.dof)
    draw = rng.random()
    if not joint.dof or not parts.has(f"limits of {joint.name}"):
        return
    if rotations >= 2 and draw < 0.2:
        joint.set_cone(rng.uniform(0.2, 2.5), "z" if rng.random() < 0.7 else "xyz")
    elif draw < 0.55:
        units = np.array([1.0 if dof.is_rotation else unit for dof in joint.dof])
        joint.set_limits(-rng.uniform(0.05, 3, len(units)) * units, rng.uniform(0.05, 3, len(units)) * units)
    elif draw < 0.6:
        joint.set_limits([-np.inf] * len(joint.dof), rng.uniform(0.05, 3, len(joint.dof)))


def _couple(parts: Parts, joints: list[mk.Joint], unit: float) -> None:
    """Couple some joints of one dof, and constrain others by a polynomial that holds at their present values."""
    rng = parts.rng("couplings")
    single = [joint for joint in joints if len(joint.dof) == 1]
    has_couplings, has_constraints = rng.random() < 0.35, rng.random() < 0.15
    if has_couplings and parts.has("couplings"):
        for follower, leader in zip(single[1::3], single[::3], strict=False):
            ratio = rng.uniform(-2, 2) * (unit if leader.dof[0].is_rotation else 1.0 / unit) ** (
                leader.dof[0].is_rotation != follower.dof[0].is_rotation
            )
            follower.mimic(
                leader, ratio=ratio, offset=rng.uniform(-0.1, 0.1) * (1.0 if follower.dof[0].is_rotation else unit)
            )
    rng = parts.rng("constraints")
    free = [joint for joint in single if not joint.couplings]
    if has_constraints and len(free) >= 2 and parts.has("constraints"):
        a, b = (free[k] for k in rng.choice(len(free), 2, replace=False))
        terms = {a: [1.0, 0.3] if rng.random() < 0.5 else 1.0, b: float(rng.uniform(0.3, 2.0))}
        constraint = mk.JointConstraint(terms, name="constraint")
        constraint.undo()
        mk.JointConstraint(terms, constraint.error(), name="constraint")


def _limit_some_joints(parts: Parts, mechanism: mk.Mechanism) -> None:
    rng = parts.rng("arm limits")
    for name, joint in mechanism.joints.items():
        lower, upper = -rng.uniform(0.5, 6), rng.uniform(0.5, 6)
        if joint.dof and rng.random() < 0.5 and parts.has(f"limits of {name}"):
            joint.set_limits(lower, upper)
