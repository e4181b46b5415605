"""A case's tree as URDF, for libraries that read nothing else; all its joints have one dof."""

from __future__ import annotations

import math
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
from case import Case, Closure

AXES = {"X": "1 0 0", "Y": "0 1 0", "Z": "0 0 1"}
ROOT = "world"
"""Klampt makes the base of a robot floating unless its root has this name."""
FAR = 1e3
"""m or rad: the limit of a joint without one, since URDF requires one."""


def write_urdf(case: Case, path: Path) -> dict[str, tuple[str, str]]:
    """Write the file; return the two end frames of each closure, which are links."""
    robot = ElementTree.Element("robot", name=case.name)
    for link in (case.root, *(joint.link for joint in case.joints)):
        _add_link(robot, urdf_link(case, link))
    for joint in case.joints:
        (dof,) = joint.dof
        kind = "prismatic" if dof in AXES else "revolute"  # a continuous joint would have two numbers in Pinocchio
        ends = urdf_link(case, joint.parent), urdf_link(case, joint.link)
        element = _add_joint(robot, joint.name, kind, *ends, joint.pose)
        ElementTree.SubElement(element, "axis", xyz=AXES[dof[-1]])
        lower, upper = np.clip([joint.lower[0], joint.upper[0]], -FAR, FAR)
        ElementTree.SubElement(
            element, "limit", lower=f"{lower:.17g}", upper=f"{upper:.17g}", effort="1e3", velocity="1e3"
        )
    frames = {
        closure.name: (_frame(robot, case, closure, "a"), _frame(robot, case, closure, "b"))
        for closure in case.closures
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    ElementTree.ElementTree(robot).write(path)
    return frames


def _frame(robot: ElementTree.Element, case: Case, closure: Closure, end: str) -> str:
    link, pose = urdf_link(case, getattr(closure, end)), getattr(closure, f"pose_{end}")
    if np.array_equal(pose, np.eye(4)):
        return link
    name = f"{closure.name}_{end}"
    _add_link(robot, name)
    _add_joint(robot, f"{name}_fixed", "fixed", link, name, pose)
    return name


def _add_link(robot: ElementTree.Element, name: str) -> None:
    inertial = ElementTree.SubElement(ElementTree.SubElement(robot, "link", name=name), "inertial")
    ElementTree.SubElement(inertial, "mass", value="1")
    ElementTree.SubElement(inertial, "inertia", ixx="1", ixy="0", ixz="0", iyy="1", iyz="0", izz="1")


def _add_joint(
    robot: ElementTree.Element, name: str, kind: str, parent: str, child: str, pose: np.ndarray
) -> ElementTree.Element:
    joint = ElementTree.SubElement(robot, "joint", name=name, type=kind)
    ElementTree.SubElement(joint, "parent", link=parent)
    ElementTree.SubElement(joint, "child", link=child)
    xyz, angles = (" ".join(f"{v:.17g}" for v in part) for part in (pose[:3, 3], rpy(pose)))
    ElementTree.SubElement(joint, "origin", xyz=xyz, rpy=angles)
    return joint


def urdf_link(case: Case, link: str) -> str:
    return ROOT if link == case.root else link


def rpy(X: np.ndarray) -> tuple[float, float, float]:
    """Of Rz(yaw) Ry(pitch) Rx(roll)."""
    pitch = math.atan2(-X[2, 0], math.hypot(X[0, 0], X[1, 0]))
    return math.atan2(X[2, 1], X[2, 2]), pitch, math.atan2(X[1, 0], X[0, 0])
