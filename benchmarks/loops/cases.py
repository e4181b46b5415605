"""Mechanisms and ticks of the loop benchmarks.

The 100-joint arm is the one of the original's own benchmark; the geometry of the platform and of the four-bar, and
their paths, are the ones of `benchmarks/solve.py`. Lengths in m, angles in rad.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from case import DOFS, IDENTITY, Case, Closure, Joint, TargetKind

# ---- arms -----------------------------------------------------------------------------------


def arm_3r(ticks: int) -> Case:
    """Yaw, shoulder, elbow; the hand follows a curve in space."""
    upper, lower, column = 1.0, 0.8, 0.5
    t = 0.02 * np.arange(ticks)
    yaw, shoulder = 0.2 + 0.4 * np.sin(0.7 * t), -0.6 + 0.3 * np.sin(t)
    bend = shoulder + 1.1 + 0.4 * np.sin(1.3 * t)
    out, down = upper * np.cos(shoulder) + lower * np.cos(bend), upper * np.sin(shoulder) + lower * np.sin(bend)
    targets = np.array([out * np.cos(yaw), out * np.sin(yaw), column - down]).T
    joints = (
        Joint("yaw", "base", "column", ("EZ",), start=(0.2,)),
        Joint("shoulder", "column", "upper", ("EY",), at(0, 0, column), start=(-0.6,)),
        Joint("elbow", "upper", "lower", ("EY",), at(upper, 0, 0), start=(1.1,)),
    )
    return Case("arm_3r", "3R arm", joints, (), TargetKind("point", "lower", (lower, 0.0, 0.0)), targets)


def arm_100(ticks: int) -> Case:
    """A hundred joints about z and x in turn, a metre apart, coiled up; five distant positions are the targets in turn.

    As in the benchmark of the original, the orientation stays that of the coil, and ten ticks are not timed.
    """
    count = 100
    links = ["base", *(f"link{k}" for k in range(count))]
    joints = tuple(
        Joint(f"joint{k}", links[k], links[k + 1], ("EX" if k % 2 else "EZ",), at(0, 1, 0), (-0.1 if k % 2 else 0.1,))
        for k in range(count)
    )
    R = np.eye(3)
    for joint in joints:
        R = R @ rotation_about("xz"[joint.dof[0] == "EZ"], joint.start[0])
    positions = [(1, 99, 0), (-1, 99, 0), (0, 99, 1), (0, 99, -1), (0.5, 99.5, 0.5)]
    skip = 10
    targets = np.array([at(*positions[i % 5], R) for i in range(ticks + skip)])
    return Case("arm_100", "100-joint arm", joints, (), TargetKind("pose", links[-1]), targets, skip=skip)


# ---- loops ----------------------------------------------------------------------------------

GROUND, CRANK, COUPLER, ROCKER = 2.0, 0.5, 1.8, 1.2


def four_bar(ticks: int, weld: bool = False) -> Case:
    """A crank that rotates, elbow up. The pin between coupler and rocker is a point, or a joint that ends in a weld."""
    angles = 0.6 + 0.02 * np.arange(ticks)
    start = angles[0]
    knee = CRANK * np.exp(1j * start)
    diagonal = GROUND - knee
    bend = math.acos((COUPLER**2 + abs(diagonal) ** 2 - ROCKER**2) / (2 * COUPLER * abs(diagonal)))
    coupler_angle = float(np.angle(diagonal)) + bend  # of the coupler, in the world
    rocker_angle = float(np.angle(knee + COUPLER * np.exp(1j * coupler_angle) - GROUND))
    joints = [
        Joint("crank_joint", "base", "crank", ("EZ",), start=(start,)),
        Joint("knee_joint", "crank", "coupler", ("EZ",), at(CRANK, 0, 0), start=(coupler_angle - start,)),
        Joint("rocker_joint", "base", "rocker", ("EZ",), at(GROUND, 0, 0), start=(rocker_angle,)),
    ]
    if weld:
        joints.append(Joint("pin", "coupler", "end", ("EZ",), at(COUPLER, 0, 0), start=(rocker_angle - coupler_angle,)))
        closure = Closure("closing", "rocker", "end", "weld", at(ROCKER, 0, 0))
    else:
        closure = Closure("closing", "rocker", "coupler", "point", at(ROCKER, 0, 0), at(COUPLER, 0, 0))
    name, title = ("four_bar_weld", "four-bar, pin and weld") if weld else ("four_bar", "four-bar")
    return Case(name, title, tuple(joints), (closure,), TargetKind("joint", "crank_joint"), angles)


def stewart(ticks: int, split: bool, weld: bool) -> Case:
    """A platform on legs that change their length, along a path of poses.

    Args:
        split: every dof is a joint of its own; else the platform is one joint of six, a leg begins with one of two
            and, with a weld, ends with one of three.
        weld: a leg ends in a spherical joint that is welded to the platform, else in a point closure.
    """
    height = 0.30
    joints = [Joint("platform_joint", "base", "platform", DOFS, start=(0.0, 0.0, height, 0.0, 0.0, 0.0))]
    closures: list[Closure] = []
    for k, (p_base, p_platform) in enumerate(anchors()):
        reach = p_platform + np.array([0.0, 0.0, height]) - p_base
        length = float(np.linalg.norm(reach))
        R = upright_to(reach / length)
        leg, piston, ball = f"leg{k}", f"piston{k}", f"ball{k}"
        joints.append(Joint(f"{leg}_universal", "base", leg, ("EX", "EY"), at(p_base[0], p_base[1], p_base[2], R)))
        joints.append(Joint(f"{leg}_slide", leg, piston, ("Z",), start=(length,), lower=(0.2,), upper=(0.5,)))
        if weld:
            joints.append(Joint(f"{leg}_ball", piston, ball, ("EX", "EY", "EZ"), at(0, 0, 0, R.T)))
        end = ball if weld else piston
        closures.append(Closure(f"{leg}_end", "platform", end, "weld" if weld else "point", at(*p_platform)))
    final_joints = tuple(part for joint in joints for part in (single(joint) if split else (joint,)))
    kind, ending = ("single" if split else "multi"), ("ball and weld" if weld else "points")
    n = sum(len(joint.dof) for joint in final_joints)
    title = f"platform, {kind}-DoF joints, legs end in {ending} ({n} DoF)"
    targets = np.array([platform_pose(0.02 * i) for i in range(ticks)])
    name = f"platform_{kind}_{'weld' if weld else 'point'}"
    return Case(name, title, final_joints, tuple(closures), TargetKind("pose", "platform"), targets)


def anchors() -> list[tuple[np.ndarray, np.ndarray]]:
    """Anchors of the six legs: on the base, at 120 k ± 15 degrees, and on the platform, at 120 k ± 45."""
    sides = [(120 * k, side) for k in range(3) for side in (-1, 1)]
    return [(around(0.20, middle + side * 15), around(0.12, middle + side * 45)) for middle, side in sides]


def platform_pose(t: float) -> np.ndarray:
    s = math.sin
    R = (
        rotation_about("z", 0.15 * s(0.5 * t))
        @ rotation_about("y", 0.1 * s(1.1 * t))
        @ rotation_about("x", 0.1 * s(0.9 * t))
    )
    return at(0.03 * s(t), 0.03 * math.cos(t) - 0.03, 0.30 + 0.02 * s(0.7 * t), R)


def single(joint: Joint) -> tuple[Joint, ...]:
    """The same motion by joints of one dof each."""
    order = [dof for dof in ("X", "Y", "Z", "EZ", "EY", "EX") if dof in joint.dof]
    if len(order) == 1:
        return (joint,)
    links = [joint.parent, *(f"{joint.name}_{dof}" for dof in order[:-1]), joint.link]
    parts: list[Joint] = []
    for k, dof in enumerate(order):
        i = joint.dof.index(dof)
        part = replace(
            joint, name=f"{joint.name}.{dof}", parent=links[k], link=links[k + 1], dof=(dof,),
            start=joint.start[i : i + 1], lower=joint.lower[i : i + 1], upper=joint.upper[i : i + 1],
        )  # fmt: skip
        parts.append(part if k == 0 else replace(part, pose=IDENTITY.copy()))
    return tuple(parts)


CASES: dict[str, Callable[[int], Case]] = {
    "arm_3r": arm_3r,
    "four_bar": four_bar,
    "four_bar_weld": lambda ticks: four_bar(ticks, weld=True),
    "platform_single_point": lambda ticks: stewart(ticks, split=True, weld=False),
    "platform_single_weld": lambda ticks: stewart(ticks, split=True, weld=True),
    "platform_multi_point": lambda ticks: stewart(ticks, split=False, weld=False),
    "platform_multi_weld": lambda ticks: stewart(ticks, split=False, weld=True),
    "arm_100": arm_100,
}


# ---- poses ----------------------------------------------------------------------------------


def at(x: float, y: float, z: float, R: np.ndarray | None = None) -> np.ndarray:
    X = np.eye(4)
    X[:3, 3] = x, y, z
    if R is not None:
        X[:3, :3] = R
    return X


def around(radius: float, degrees: float) -> np.ndarray:
    angle = math.radians(degrees)
    return np.array([radius * math.cos(angle), radius * math.sin(angle), 0.0])


def rotation_about(axis: str, angle: float) -> np.ndarray:
    c, s = math.cos(angle), math.sin(angle)
    i, j = {"x": (1, 2), "y": (2, 0), "z": (0, 1)}[axis]
    R = np.eye(3)
    R[[i, j], [i, j]] = c
    R[i, j], R[j, i] = -s, s
    return R


def upright_to(direction: np.ndarray) -> np.ndarray:
    """(3, 3), the shortest rotation that takes z to a unit vector, which does not point straight down."""
    x, y, z = direction
    return np.array(
        [[1 - x * x / (1 + z), -x * y / (1 + z), x], [-x * y / (1 + z), 1 - y * y / (1 + z), y], [-x, -y, z]]
    )
