"""FABRIK in plain NumPy, from the papers: on a list of bones, with nothing of the library but its builder."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

import mechanik as mk

TINY = 1e-9
TURNS = ("ball", "hinge")


@dataclass
class Bone:
    """A joint and the link that it moves.

    Attributes:
        parent: index of the parent bone; -1 is the world.
        at: (4, 4), the joint in the parent's link.
        kind: "ball", "hinge" or "slide".
        axis: (3,), of hinges and slides.
    """

    parent: int
    at: np.ndarray
    kind: str = "hinge"
    axis: np.ndarray = field(default_factory=lambda: np.array([0.0, 0.0, 1.0]))
    limits: tuple[float, float] = (-math.inf, math.inf)

    def motion(self, value):
        X = np.eye(4)
        if self.kind == "ball":
            X[:3, :3] = value
        elif self.kind == "hinge":
            X[:3, :3] = rodrigues(self.axis, value)
        else:
            X[:3, 3] = value * self.axis
        return X


@dataclass
class End:
    """A point of a bone's link at a target, or with `turn` (link, target) a frame there."""

    bone: int
    local: np.ndarray
    target: np.ndarray
    turn: tuple[np.ndarray, np.ndarray] | None = None


def rodrigues(axis, angle):
    x, y, z = axis
    K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + math.sin(angle) * K + (1 - math.cos(angle)) * K @ K


def mechanism(bones):
    """The same as a mechanism: links l0, l1, ... and joints j0, j1, ..."""
    robot = mk.Builder("bones")
    for i, bone in enumerate(bones):
        parent = "world" if bone.parent < 0 else f"l{bone.parent}"
        if bone.kind == "ball":
            robot.spherical(f"j{i}", parent, f"l{i}", at=bone.at)
            continue
        make = robot.revolute if bone.kind == "hinge" else robot.prismatic
        limits = bone.limits if np.isfinite(bone.limits).any() else None
        make(f"j{i}", parent, f"l{i}", at=bone.at, axis=bone.axis, limits=limits)
    return robot.build()


def values_of(bones, q):
    """Joint values from q, which has four numbers for a spherical joint."""
    values, k = [], 0
    for bone in bones:
        if bone.kind == "ball":
            values.append(mk.spatial.quaternion.to_matrix(q[k : k + 4]))
            k += 4
        else:
            values.append(float(q[k]))
            k += 1
    return values


class NumpyFabrik:
    def __init__(self, bones, ends, tip, look_ahead=None):
        """
        Args:
            tip: how far from a pose's origin the tips of its axes are; offsets below a millionth of it are none.
        """
        self.bones, self.tip, self.look_ahead = bones, tip, look_ahead
        self.points = []  # bone, position in its link, target, rotation or None, whether the tip of an axis
        for end in ends:
            self.points.append((end.bone, end.local, end.target, end.turn, False))
            if end.turn is not None:
                for k in range(3):
                    arm, goal = end.turn[0][:, k], end.turn[1][:, k]
                    self.points.append((end.bone, end.local + tip * arm, end.target + tip * goal, None, True))

    def poses(self, values):
        X = []
        for bone, value in zip(self.bones, values, strict=True):
            X.append((np.eye(4) if bone.parent < 0 else X[bone.parent]) @ bone.at @ bone.motion(value))
        return X

    def children_of(self, i):
        """The children of bone i: rotating joints ("joint", k), and points ("point", k)."""
        children = []
        for k, bone in enumerate(self.bones):
            if bone.parent == i:
                children += [("joint", k)] if bone.kind in TURNS else self.children_of(k)
        return children + [("point", k) for k, point in enumerate(self.points) if point[0] == i]

    def position_of(self, X, what):
        kind, k = what
        if kind == "joint":
            return X[k][:3, 3]
        bone, local, *_ = self.points[k]
        return X[bone][:3, :3] @ local + X[bone][:3, 3]

    def is_planar(self, X, i):
        """Whether all rotating joints below bone i are revolute and parallel to it."""
        axes = [X[k][:3, :3] @ bone.axis for k, bone in enumerate(self.bones)]
        turning = [what[1] for what in self.children_of(i) if what[0] == "joint"]
        return all(
            self.bones[k].kind == "hinge" and np.linalg.norm(np.cross(axes[i], axes[k])) < 1e-6 and self.is_planar(X, k)
            for k in turning
        )

    def backward_pass(self, X):
        """Target positions of the joints and points."""
        wanted = {("point", k): point[2] for k, point in enumerate(self.points)}
        for i in reversed(range(len(self.bones))):
            candidates, here = [], X[i][:3, 3]
            for what in self.children_of(i):
                if what[0] == "point" and self.points[what[1]][4]:
                    continue
                goal, end = wanted[what], self.position_of(X, what)
                turn = self.points[what[1]][3] if what[0] == "point" else None
                if turn is not None:
                    R_now = X[self.points[what[1]][0]][:3, :3] @ turn[0]
                    candidates.append(goal + turn[1] @ R_now.T @ (here - end))
                    continue
                length, apart = np.linalg.norm(end - here), np.linalg.norm(here - goal)
                if length < TINY:
                    candidates.append(goal)
                elif apart < 1e-12 * length:
                    candidates.append(goal + here - end)
                else:
                    candidates.append((1 - length / apart) * goal + length / apart * here)
            wanted["joint", i] = np.mean(candidates, axis=0) if candidates else here
        return wanted

    def iterate(self, values):
        """The values after one iteration."""
        X = self.poses(values)
        wanted = self.backward_pass(X)
        new, X_new = [], []
        for i, (bone, value) in enumerate(zip(self.bones, values, strict=True)):
            F = (np.eye(4) if bone.parent < 0 else X_new[bone.parent]) @ bone.at
            Y = F @ bone.motion(value)
            origin = Y[:3, 3]
            carry = Y @ np.linalg.inv(X[i])
            ahead = (0 if self.is_planar(X, i) else None) if self.look_ahead is None else self.look_ahead
            now, goal = [], []
            generation, further, knows = self.children_of(i), 0, False
            while generation:
                for what in generation:
                    if bone.kind == "slide" and what[0] == "point" and self.points[what[1]][4]:
                        continue
                    now.append(carry[:3, :3] @ self.position_of(X, what) + carry[:3, 3] - origin)
                    goal.append(wanted[what] - origin)
                if knows:
                    further += 1
                knows = knows or self.determines_rotation(bone, F, now, goal)
                if bone.kind == "slide" or (knows and (bone.kind == "ball" or further == ahead)):
                    break
                generation = [
                    deeper for what in generation if what[0] == "joint" for deeper in self.children_of(what[1])
                ]
            if now and (knows or bone.kind == "slide"):
                value = self.best_value(bone, F, value, np.array(now), np.array(goal))
            new.append(value)
            X_new.append(F @ bone.motion(value))
        return new

    def determines_rotation(self, bone, F, now, goal):
        if bone.kind == "hinge":
            axis = F[:3, :3] @ bone.axis
            now, goal = ([v - (v @ axis) * axis for v in vectors] for vectors in (now, goal))
        return max(min(np.linalg.norm(a), np.linalg.norm(b)) for a, b in zip(now, goal, strict=True)) > 1e-6 * self.tip

    def best_value(self, bone, F, value, now, goal):
        """The joint value that brings the positions as near as possible to their targets."""
        axis = F[:3, :3] @ bone.axis
        if bone.kind == "slide":
            return float(np.clip(value + np.mean((goal - now) @ axis), *bone.limits))
        if bone.kind == "hinge":
            sine = np.sum(np.cross(now, goal) @ axis)
            cosine = np.sum(now * goal) - np.sum((now @ axis) * (goal @ axis))
            return nearest(value + math.atan2(sine, cosine), value, *bone.limits)
        is_long = np.linalg.norm(now, axis=1) > 1e-6 * self.tip
        if is_long.sum() == 1:
            now, goal = now[is_long], goal[is_long]
            across = np.cross(now[0], goal[0])
            size = np.linalg.norm(across)
            R = rodrigues(across / size, math.atan2(size, now[0] @ goal[0])) if size > 0 else np.eye(3)
        else:
            U, _, V = np.linalg.svd(goal.T @ now)
            R = U @ np.diag([1, 1, np.linalg.det(U @ V)]) @ V
        return F[:3, :3].T @ R @ F[:3, :3] @ value


def nearest(angle, before, lower, upper):
    """Of all angles within the limits the one that is best, and of several such the one nearest to `before`."""
    candidates = [angle + 2 * math.pi * k for k in range(-8, 9)]
    inside = [candidate for candidate in candidates if lower <= candidate <= upper]
    if inside:
        return min(inside, key=lambda candidate: abs(candidate - before))
    return max((lower, upper), key=lambda candidate: math.cos(candidate - angle))
