"""Loops with special geometry whose mobility is known from textbooks."""

from __future__ import annotations

import math

import numpy as np

import mechanik as mk
from mechanik.spatial import make_pose, rotation

Z = np.array([0.0, 0.0, 1.0])


def planar_four_bar(kind="pin", lengths=(2.0, 0.5, 1.8, 1.2), crank=0.6) -> mk.Mechanism:
    """Ground, crank, coupler, rocker; shut, elbow up."""
    ground, a, b, c = lengths
    tip = a * np.exp(1j * crank)
    diagonal = ground - tip
    angle = np.angle(diagonal) + math.acos((b**2 + abs(diagonal) ** 2 - c**2) / (2 * b * abs(diagonal)))
    end = tip + b * np.exp(1j * angle)
    builder = mk.Builder("four-bar")
    builder.revolute("crank", "ground", "crank", value=crank)
    builder.revolute("knee", "crank", "coupler", at=(a, 0, 0), value=angle - crank)
    builder.revolute("rocker", "ground", "rocker", at=(ground, 0, 0), value=float(np.angle(end - ground)))
    builder.close("pin", "coupler", "rocker", kind, at=(b, 0, 0), onto=(c, 0, 0))
    return builder.build()


def parallelogram(crank=0.7) -> mk.Mechanism:
    """Cranks of 1 m, bars of 2 m."""
    return planar_four_bar(lengths=(2.0, 1.0, 2.0, 1.0), crank=crank)


def bennett(turn=0.8, a=0.5, alpha=0.6, beta=1.1) -> mk.Mechanism:
    """Four hinges, opposite links alike: lengths a and b, twists alpha and beta, sin(alpha) / a = sin(beta) / b.

    G. T. Bennett, Engineering 76 (1903). The input-output law is tan(t1 / 2) tan(t2 / 2) = sin((beta + alpha) / 2) /
    sin((beta - alpha) / 2), with angles of neighbouring hinges.
    """
    b = a * math.sin(beta) / math.sin(alpha)
    ratio = math.sin((beta + alpha) / 2) / math.sin((beta - alpha) / 2)
    second_angle = 2 * math.atan(ratio / math.tan(turn / 2))
    builder = mk.Builder("bennett")

    def next_hinge(length, twist):
        return make_pose(rotation.about_x(twist), (length, 0.0, 0.0))

    builder.revolute("one", "ground", "first", value=turn)
    builder.revolute("two", "first", "second", at=next_hinge(a, alpha), value=second_angle)
    builder.revolute("three", "second", "third", at=next_hinge(b, beta), value=-turn)
    before_the_first = np.linalg.inv(next_hinge(b, beta))
    builder.close("four", "third", "ground", "pin", at=next_hinge(a, alpha), onto=before_the_first)
    return builder.build()


def sarrus(bend=0.7, arm=0.5) -> mk.Mechanism:
    """A plate that goes straight up between two folding arms at right angles (P. F. Sarrus 1853).

    Each arm is three parallel hinges; the two sets of hinges are not parallel to each other.
    """
    builder = mk.Builder("sarrus")

    def fold(name, turn):
        R = rotation.about_z(turn)
        builder.revolute(f"{name}1", "ground", f"{name}_lower", at=make_pose(R, R @ (0.6, 0, 0)), axis="y", value=-bend)
        builder.revolute(f"{name}2", f"{name}_lower", f"{name}_upper", at=(0, 0, arm), axis="y", value=2 * bend)
        return R

    fold("a", 0.0)
    builder.revolute("a3", "a_upper", "plate", at=(0, 0, arm), axis="y", value=-bend)
    R = fold("b", math.pi / 2)
    onto = make_pose(R, R @ (0.6, 0, 0) - np.array([0.6, 0, 0]))
    builder.close("b3", "b_upper", "plate", "pin", at=(0, 0, arm), axis="y", onto=onto)
    return builder.build()


def slot_crank() -> mk.Mechanism:
    """A slider-crank whose slide closes the loop, at the dead point: the rod is square to the slide."""
    crank = math.asin(5 / 6)
    builder = mk.Builder()
    builder.revolute("crank", "ground", "arm", value=crank)
    builder.revolute("elbow", "arm", "rod", at=(0.6, 0, 0), value=-crank - math.pi / 2)
    builder.close("slot", "ground", "rod", ("X", "EZ"), onto=(0.5, 0, 0))
    return builder.build()


def quick_return(angle: float = 0.7) -> mk.Mechanism:
    """A pin on a crank in the slot of a lever, which turns on a carriage that slides."""
    builder = mk.Builder()
    builder.revolute("crank", "ground", "arm", value=angle)
    builder.prismatic("slide", "ground", "carriage", axis="x", value=-0.5)
    x, y = 0.3 * math.cos(angle) + 0.5, 0.3 * math.sin(angle)
    builder.revolute("pivot", "carriage", "lever", value=math.atan2(y, x))
    builder.close("slot", "lever", "arm", ("X", "EZ"), onto=(0.3, 0, 0))
    return builder.build()


def six_sps(
    ends="closure", foot="ball", angles=(15.0, 45.0), pose=(0.02, -0.01, 0.30, 0.05, 0.1, -0.1)
) -> mk.Mechanism:
    """A platform on six legs, of radius 0.12 over a base of radius 0.20.

    Args:
        ends: whether the upper balls are the closures, or joints that are welded to the platform.
        foot: with a ball at either end each leg can spin; with a "universal" at its foot it cannot.
        angles: legs begin and end at 120 k, plus or minus so many degrees.
        pose: X Y Z EX EY EZ of the platform.
    """
    builder = mk.Builder("6-SPS")
    builder.free("platform_joint", "base", "platform", value=pose)
    X = builder.link("platform").world_matrix
    for k in range(6):
        middle, side = 120.0 * (k // 2), (-1.0, 1.0)[k % 2]
        start, end = (math.radians(middle + side * angle) for angle in angles)
        p_base = 0.20 * np.array([math.cos(start), math.sin(start), 0.0])
        p_platform = 0.12 * np.array([math.cos(end), math.sin(end), 0.0])
        reach = X[:3, :3] @ p_platform + X[:3, 3] - p_base
        at = make_pose(rotation.between(Z, reach), p_base)
        getattr(builder, {"ball": "spherical"}.get(foot, foot))(f"foot{k}", "base", f"leg{k}", at=at)
        builder.prismatic(f"slide{k}", f"leg{k}", f"piston{k}", value=float(np.linalg.norm(reach)))
        if ends == "closure":
            builder.close(f"top{k}", f"piston{k}", "platform", "ball", onto=p_platform)
        else:
            builder.spherical(f"top{k}", f"piston{k}", f"cup{k}")
            builder.close(f"weld{k}", f"cup{k}", "platform", "weld")
    return builder.build()


def planar_platform(feet, elbows, tops) -> mk.Mechanism:
    """A body in the plane on legs of two bars, as they stand; the platform's origin is the world's.

    Args:
        feet, elbows, tops: (legs, 2), where legs are hinged to the ground, bend, and are pinned to the platform.
    """
    builder = mk.Builder("planar platform")
    builder.planar("platform_joint", "ground", "platform")
    for k, (foot, elbow, top) in enumerate(zip(*(np.asarray(points) for points in (feet, elbows, tops)), strict=True)):
        crank, rod = elbow - foot, top - elbow
        turn = math.atan2(crank[1], crank[0])
        bend = math.atan2(rod[1], rod[0]) - turn
        length, reach = (float(np.linalg.norm(bar)) for bar in (crank, rod))
        builder.revolute(f"crank{k}", "ground", f"crank{k}", at=(*foot, 0), value=turn)
        builder.revolute(f"elbow{k}", f"crank{k}", f"rod{k}", at=(length, 0, 0), value=bend)
        builder.close(f"top{k}", f"rod{k}", "platform", "pin", at=(reach, 0, 0), onto=(*top, 0))
    return builder.build()


def stretched_truss() -> mk.Mechanism:
    """Two bars in a straight line between two pins, exactly as long as they are apart: it can shake, and not move."""
    builder = mk.Builder("truss")
    builder.revolute("left", "ground", "bar", at=(0, 0, 0))
    builder.revolute("middle", "bar", "other", at=(1, 0, 0))
    builder.close("right", "other", "ground", "pin", at=(1, 0, 0), onto=(2, 0, 0))
    return builder.build()
