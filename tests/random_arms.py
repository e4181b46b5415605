"""Random arms of each closed-form family: axes, frames, base, tool, signs and zero angles vary."""

from __future__ import annotations

import numpy as np

from mechanik import Builder, Mechanism
from mechanik.spatial import inverse, make_pose, quaternion, rotation

Lines = tuple[np.ndarray, np.ndarray]
"""Directions and points of axes, (n, 3) each."""


def direction(rng: np.random.Generator) -> np.ndarray:
    v = rng.standard_normal(3)
    return v / np.linalg.norm(v)


def apart(rng: np.random.Generator, *others: np.ndarray) -> np.ndarray:
    """A direction at more than 0.3 rad from the lines of others."""
    while True:
        v = direction(rng)
        if all(np.linalg.norm(np.cross(v, other_direction)) > 0.3 for other_direction in others):
            return v


def place(rng: np.random.Generator) -> np.ndarray:
    return rng.uniform(-0.5, 0.5, 3)


def point_off(rng: np.random.Generator, h: np.ndarray, p: np.ndarray) -> np.ndarray:
    """A point at more than 0.15 m from the line (p, h)."""
    while True:
        q = place(rng)
        if np.linalg.norm(np.cross(h, q - p)) > 0.15:
            return q


def meeting(rng: np.random.Generator, count: int, point: np.ndarray) -> Lines:
    """Axes through a point, none parallel to the one before."""
    h = [direction(rng)]
    while len(h) < count:
        h.append(apart(rng, h[-1]))
    return np.array(h), np.tile(point, (count, 1))


def parallel(rng: np.random.Generator, count: int, h: np.ndarray) -> Lines:
    """Parallel axes, each pointing either way, no neighbour nearer than 0.15 m."""
    p = [place(rng)]
    while len(p) < count:
        p.append(point_off(rng, h, p[-1]))
    return h * rng.choice([-1.0, 1.0], (count, 1)), np.array(p)


def planar_2r(rng: np.random.Generator) -> Lines:
    return parallel(rng, 2, direction(rng))


def planar_3r(rng: np.random.Generator) -> Lines:
    return parallel(rng, 3, direction(rng))


def _with_wrist(rng: np.random.Generator, h: np.ndarray, p: np.ndarray) -> Lines:
    wrist_h, wrist_p = meeting(rng, 3, point_off(rng, h[2], p[2]))
    return np.concatenate([h, wrist_h]), np.concatenate([p, wrist_p])


def _three(rng: np.random.Generator, first: str, second: str) -> Lines:
    """Three axes of which the first two, and the last two, are 'skew', 'meet' or 'parallel'."""
    h, p = [direction(rng)], [place(rng)]
    for how in (first, second):
        if how == "parallel":
            h.append(h[-1] * rng.choice([-1.0, 1.0]))
            p.append(point_off(rng, h[-1], p[-1]))
        else:
            h.append(apart(rng, h[-1]))
            while True:
                p.append(p[-1] + h[-2] * rng.uniform(0.1, 0.5) if how == "meet" else place(rng))
                normal = np.cross(h[-2], h[-1])
                if how == "meet" or abs(normal @ (p[-1] - p[-2])) > 0.05:
                    break
                p.pop()
    return np.array(h), np.array(p)


def wrist(first: str, second: str):
    return lambda rng: _with_wrist(rng, *_three(rng, first, second))


def mirrored(make_lines):
    def lines(rng: np.random.Generator) -> Lines:
        h, p = make_lines(rng)
        return h[::-1], p[::-1]

    return lines


def three_parallel(last: str):
    """Axes 5 and 6 'skew', 'meet' or 'parallel'."""

    def lines(rng: np.random.Generator) -> Lines:
        h = direction(rng)
        middle = parallel(rng, 3, h)
        first = apart(rng, h), place(rng)
        while True:
            (a, b), (p, q) = (part[1:] for part in _three(rng, "skew", last))
            if np.linalg.norm(np.cross(a, h)) > 0.3:
                break
        return np.concatenate([[first[0]], middle[0], [a, b]]), np.concatenate([[first[1]], middle[1], [p, q]])

    return lines


def s_r_s(rng: np.random.Generator) -> Lines:
    """The axis of the elbow misses shoulder and wrist, and is not square to their line."""
    h = direction(rng)
    p = place(rng)
    shoulder, hand = meeting(rng, 3, point_off(rng, h, p)), meeting(rng, 3, point_off(rng, h, p))
    return np.concatenate([shoulder[0], [h], hand[0]]), np.concatenate([shoulder[1], [p], hand[1]])


FAMILIES = {
    "planar 2R": ("planar 2R", planar_2r),
    "planar 3R": ("planar 3R", planar_3r),
    **{
        f"wrist, 1 and 2 {first_pair}, 2 and 3 {second_pair}": ("spherical wrist", wrist(first_pair, second_pair))
        for first_pair in ("skew", "meet", "parallel")
        for second_pair in ("skew", "meet", "parallel")
        if (first_pair, second_pair) != ("parallel", "parallel")
    },
    "shoulder, 5 and 6 skew, 4 and 5 parallel": ("spherical shoulder", mirrored(wrist("skew", "parallel"))),
    "2, 3, 4 parallel, 5 and 6 meet": ("three parallel axes", three_parallel("meet")),
    "2, 3, 4 parallel, 5 and 6 skew": ("three parallel axes", three_parallel("skew")),
    "2, 3, 4 parallel, 5 and 6 parallel": ("three parallel axes", three_parallel("parallel")),
    "3, 4, 5 parallel": ("three parallel axes", mirrored(three_parallel("meet"))),
    "S-R-S": ("S-R-S", s_r_s),
}
"""What is special about it: the family, and axes that have it."""


def arm_of(rng: np.random.Generator, lines: Lines, unit: float = 1.0) -> Mechanism:
    """An arm with these axes in the frame of its link "base", which stands anywhere; so do frames on their axes."""
    R_world_base, tip = quaternion.to_matrix(quaternion.normalize(rng.standard_normal(4))), unit * place(rng)
    X_world_base = make_pose(R_world_base, 3 * unit * place(rng))
    robot = Builder("arm")
    robot.fixed("stand", "floor", "base", at=X_world_base)
    parent, X_base_parent = "base", np.eye(4)
    for k, (h, p) in enumerate(zip(*lines, strict=True)):
        X_base_joint = make_pose(
            quaternion.to_matrix(quaternion.normalize(rng.standard_normal(4))), p + h * unit * rng.uniform(-1, 1)
        )
        axis = X_base_joint[:3, :3].T @ h
        robot.revolute(f"j{k + 1}", parent, f"l{k + 1}", at=inverse(X_base_parent) @ X_base_joint, axis=axis)
        parent, X_base_parent = f"l{k + 1}", X_base_joint
    X_base_tool = make_pose(rotation.exp(direction(rng)), tip)
    robot.fixed("mount", parent, "tool", at=inverse(X_base_parent) @ X_base_tool)
    return robot.build()


def random_arm(seed: int, name: str) -> Mechanism:
    rng = np.random.default_rng(seed)
    return arm_of(rng, FAMILIES[name][1](rng))
