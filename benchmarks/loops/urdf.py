"""A case's tree as URDF, for libraries that read nothing else; all its joints have one freedom."""

from __future__ import annotations

import math
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
from case import Case, Closure

AXES = {"X": "1 0 0", "Y": "0 1 0", "Z": "0 0 1"}
ROOT = "world"
"""Klampt lets a robot float unless its root is called so."""
FAR = 1e3
"""m or rad: the limit of a joint without one, since URDF wants some."""


def write_urdf(case: Case, path: Path) -> dict[str, tuple[str, str]]:
    """Returns, by closure, the frames of its two ends: links, some of them made for it."""
    robot = ElementTree.Element("robot", name=case.name)
    for link in (case.root, *(joint.link for joint in case.joints)):
        _add_link(robot, urdf_link(case, link))
    for joint in case.joints:
        (dof,) = joint.dof
        kind = "prismatic" if dof in AXES else "revolute"  # a continuous joint would have two numbers in Pinocchio
        ends = urdf_link(case, joint.parent), urdf_link(case, joint.link)
        one = _add_joint(robot, joint.name, kind, *ends, joint.place)
        ElementTree.SubElement(one, "axis", xyz=AXES[dof[-1]])
        lower, upper = np.clip([joint.lower[0], joint.upper[0]], -FAR, FAR)
        ElementTree.SubElement(one, "limit", lower=f"{lower:.17g}", upper=f"{upper:.17g}", effort="1e3", velocity="1e3")
    frames = {one.name: (_frame(robot, case, one, "a"), _frame(robot, case, one, "b")) for one in case.closures}
    path.parent.mkdir(parents=True, exist_ok=True)
    ElementTree.ElementTree(robot).write(path)
    return frames


def _frame(robot: ElementTree.Element, case: Case, closure: Closure, end: str) -> str:
    link, place = urdf_link(case, getattr(closure, end)), getattr(closure, f"place_{end}")
    if np.array_equal(place, np.eye(4)):
        return link
    name = f"{closure.name}_{end}"
    _add_link(robot, name)
    _add_joint(robot, f"{name}_fixed", "fixed", link, name, place)
    return name


def _add_link(robot: ElementTree.Element, name: str) -> None:
    inertial = ElementTree.SubElement(ElementTree.SubElement(robot, "link", name=name), "inertial")
    ElementTree.SubElement(inertial, "mass", value="1")
    ElementTree.SubElement(inertial, "inertia", ixx="1", ixy="0", ixz="0", iyy="1", iyz="0", izz="1")


def _add_joint(
    robot: ElementTree.Element, name: str, kind: str, parent: str, child: str, place: np.ndarray
) -> ElementTree.Element:
    joint = ElementTree.SubElement(robot, "joint", name=name, type=kind)
    ElementTree.SubElement(joint, "parent", link=parent)
    ElementTree.SubElement(joint, "child", link=child)
    xyz, turned = (" ".join(f"{v:.17g}" for v in part) for part in (place[:3, 3], rpy(place)))
    ElementTree.SubElement(joint, "origin", xyz=xyz, rpy=turned)
    return joint


def urdf_link(case: Case, link: str) -> str:
    return ROOT if link == case.root else link


def rpy(X: np.ndarray) -> tuple[float, float, float]:
    """Of Rz(yaw) Ry(pitch) Rx(roll)."""
    pitch = math.atan2(-X[2, 0], math.hypot(X[0, 0], X[1, 0]))
    return math.atan2(X[2, 1], X[2, 2]), pitch, math.atan2(X[1, 0], X[0, 0])
