"""Goals and arms for the tests of cyclic coordinate descent, and the error that a sweep lowers."""

from __future__ import annotations

import numpy as np
from random_mechanisms import random_turn

import mechanik as mk
from mechanik.spatial import from_position_wxyz

KINDS = ("point", "pose", "hinge", "axis", "orientation", "line", "plane", "square")


def random_goal(rng, mechanism, kind, **options):
    """A random goal of one link in the world or relative to another link."""
    links = list(mechanism.links)
    link = links[rng.integers(1, len(links))]
    others = [None, None, *(name for name in links if name != link)]
    position, direction, local = rng.normal(scale=1.5, size=3), random_turn(rng)[1:], random_turn(rng)[1:]
    at, wxyz = rng.uniform(-0.5, 0.5, 3), random_turn(rng)
    options |= {"weight": float(rng.choice([1.0, 0.3, 3.0])), "relative_to": others[rng.integers(len(others))]}
    match kind:
        case "point":
            return mk.PositionGoal(link, position, at, **options)
        case "pose":
            return mk.PoseGoal(link, from_position_wxyz(position, wxyz), at=at, **options)
        case "hinge":
            return mk.HingeGoal(link, position, direction, at, local, **options)
        case "axis":
            return mk.AxisGoal(link, direction, local, **options)
        case "orientation":
            return mk.OrientationGoal(link, wxyz, **options)
        case "line":
            return mk.OnLine(link, position, direction, at, **options)
        case "plane":
            return mk.OnPlane(link, position, direction, at, **options)
        case "square":
            return mk.PoseGoal(link, from_position_wxyz(position, wxyz), at=at, dof=("X", "Z", "EY"), **options)
    raise AssertionError(kind)


def chordal_error(mechanism, goals, sizes, q):
    """The error that a sweep lowers, from the objectives' relations: squared lengths and chords of angles."""
    total = 0.0
    for goal, size in zip(goals, sizes, strict=True):
        for relation in goal.relations(mechanism):
            ends = [(relation.a, relation.X_a), (relation.b, relation.X_b)]
            A, B = (X if link is None else mechanism.pose(link, q) @ X for link, X in ends)
            p, R = A[:3, :3].T @ (B[:3, 3] - A[:3, 3]), A[:3, :3].T @ B[:3, :3]
            shifts = [row for row in relation.rows if row < 3 and relation.kind.name != "COSINE"]
            total += (relation.weight / size) ** 2 * float(p[shifts] @ p[shifts])
            rotations = [row for row in relation.rows if row >= 3]
            if relation.kind.name == "COSINE":
                total += relation.weight**2 * R[2, 2] ** 2
            elif len(rotations) == 3:
                total += relation.weight**2 * (3.0 - np.trace(R))
            elif rotations:
                total += relation.weight**2 * 2.0 * (1.0 - R[2, 2])
    return total


def path_of(solver, q0, **options):
    """The configurations from q0 on, one after each sweep."""
    seen = [np.array(q0)]
    solution = solver.solve(q0=q0, callback=lambda now: seen.append(now.q) and None, **options)
    return seen, solution


def one_hinge(limits=None, value=0.0, reach=1.0):
    builder = mk.Builder("one hinge")
    options = {} if limits is None else {"limits": limits}
    builder.revolute("hinge", "base", "arm", axis="z", value=value, **options)
    builder.fixed("end", "arm", "tip", at=(reach, 0, 0))
    return builder.build()


def ball_arm(links=1):
    builder = mk.Builder("balls")
    for k in range(links):
        builder.spherical(f"ball{k}", f"link{k}", f"link{k + 1}", at=(0, 0, 0 if k == 0 else 1))
    builder.fixed("end", f"link{links}", "tip", at=(0, 0, 1))
    return builder.build()
