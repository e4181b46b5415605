"""Small graphs of links and joints, built frame by frame."""

from __future__ import annotations

import numpy as np

import mechanik as mk


def hang(parent: mk.Link, name: str, dof="EZ", at=(0, 0, 0), **options) -> tuple[mk.Joint, mk.Link]:
    """A joint on a link, with a link of the same name on it."""
    joint, link = mk.Joint(f"{name}_joint", dof=dof, position=at, **options), mk.Link(name)
    parent.add_child(joint)
    joint.add_child(link)
    return joint, link


def planar_arm(name="arm", joints=3, root: mk.Link | None = None, at=(0, 0, 0), value=0.3):
    """A root, joints about z with links of 1 m along x, and the link at the tip: root, joints, tip."""
    root = mk.Link(f"{name}_root") if root is None else root
    above, chain_joints = root, []
    for k in range(joints):
        joint, above = hang(above, f"{name}{k + 1}", at=(1, 0, 0) if k else at, values=value)
        chain_joints.append(joint)
    return root, chain_joints, hang(above, f"{name}_tip", dof=(), at=(1, 0, 0))[1]


def spatial_arm(name="arm", root: mk.Link | None = None, at=(0, 0, 0)):
    """Seven joints about changing axes, of which no two lie in line: root, joints, tip."""
    root = mk.Link(f"{name}_root") if root is None else root
    above, chain_joints = root, []
    for k, dof in enumerate(["EZ", "EY", "EX", "EY", "EX", "EY", "EZ"]):
        joint, above = hang(above, f"{name}{k + 1}", dof=dof, at=(0.1, 0, 0.3) if k else at, values=0.2 + 0.1 * k)
        chain_joints.append(joint)
    return root, chain_joints, hang(above, f"{name}_tip", dof=(), at=(0, 0, 0.2))[1]


def point_goal(link: mk.Link, name="reach", position=None) -> mk.Goal:
    """A goal for a link's position; the default is its current position."""
    goal = mk.Goal(name, dof=["X", "Y", "Z"], position=link.world_position if position is None else position)
    goal.make_closure(link)
    return goal


def four_bar(crank=0.6):
    """Ground 2.0, crank 0.5, coupler 1.8, rocker 1.2, closed by a pin: root, crank, coupler and rocker joint, pin."""
    mechanism = mk.gallery.four_bar(angle=crank)
    joints = [mechanism.joint(name) for name in ("crank_joint", "coupler_joint", "rocker_joint", "closing_joint")]
    return mechanism.link("ground"), *joints


def rocker_angle(crank: float) -> float:
    """In closed form, elbow up."""
    knee = 0.5 * np.array([np.cos(crank), np.sin(crank)])
    reach = knee - (2.0, 0.0)
    apart = np.linalg.norm(reach)
    inner = np.arccos((1.2**2 + apart**2 - 1.8**2) / (2 * 1.2 * apart))
    return float(np.arctan2(reach[1], reach[0]) - inner)


def wrap_angle(angle: float) -> float:
    """The equivalent angle from -pi to pi."""
    return float(np.remainder(angle + np.pi, 2 * np.pi) - np.pi)
