"""Joints that drive, on the straight way from the values that they have to those that they should have.

The way is measured in s, from 0 to `far`: the length of what the drives go, in the units of steps. A drive that is one
freedom of the tree goes evenly; a ball turns evenly about one axis; so does a joint that closes a loop, whose values
are those of its row at the goal, since it has no number in q. Where that joint turns about one axis its turns are
counted along the way.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from mechanik.assembly.loops import Loops
from mechanik.mechanism import Joint, Mechanism
from mechanik.mechanism.by_name import _named as joint_and_freedoms
from mechanik.mechanism.door import read_only
from mechanik.objectives.aims import aims_by_name, nearest
from mechanik.objectives.objective import lengths
from mechanik.objectives.relation import Kind, Relation
from mechanik.spatial import make, quaternion, rotation
from mechanik.spatial.array import Array


class Drives:
    """
    Attributes:
        values: by name, as the caller has them.
        names: one for each of `relations`.
        relations: the rows that are zero where the drives have the values that they should have.
        wanted: the same as the caller has them, even outside the limits.
        clamped: drives whose values lie outside their limits, which stand in their place.
        start: (m,) the rows of `relations` at the start: how far the drives have to go, scaled, against their way.
        far: the length of the whole way.
    """

    def __init__(
        self,
        loops: Loops,
        values: Mapping[str, Array],
        q: Array,
        is_free: bool = False,
        turned: Mapping[str, float] | None = None,
    ) -> None:
        """
        Args:
            is_free: whether limits do not matter.
            turned: by joint, about how far one that closes a loop has turned at q; if that is not known, the value that
                it holds. Full turns are counted from there.
        """
        self.loops, self.values, self._is_free = loops, values, is_free
        self._turned = turned or {}
        self._closing: dict[int, tuple[Joint, float]] = {}
        self.names: list[str] = []
        self.relations: list[Relation] = []
        self.wanted: list[Relation] = []
        self.clamped: list[str] = []
        mechanism = loops.mechanism
        aims_by_name(mechanism, values)  # refuses what contradicts itself
        for name, numbers in values.items():
            inside = self._closing_inside(name, numbers)
            aims = aims_by_name(mechanism, {name: numbers}), aims_by_name(mechanism, {name: inside})
            for asked, aim in zip(*aims, strict=True):
                if asked.relation.kind is Kind.POSE and asked.relation.rows == (5,):  # the turn of a hinge, last of all
                    joint = joint_and_freedoms(name, mechanism.joints)[0]
                    self._closing[len(self.names)] = joint, float(inside[-1])
                self.names.append(name)
                self.wanted.append(asked.relation)
                self.relations.append(self._inside(name, aim.relation))
        self._only_values = self._look_for_values()
        self.begin(q)

    def begin(self, q: Array) -> None:
        """The way begins where the drives stand at q."""
        found = [self.loops.evaluate([one], q)[0] for one in self.relations]
        for k, (joint, wanted) in self._closing.items():
            dof = next(dof for dof in joint.dof if dof.is_rotation)
            about, (lower, upper) = joint.values[joint.dof.index(dof)], joint.limits(dof)
            name = self.loops.mechanism.name_of(joint)
            if name in self._turned:
                about, lower, upper = self._turned[name], -math.inf, math.inf
            value = nearest(wanted + float(found[k][0]), float(about), float(lower), float(upper))
            found[k] = np.array([value - wanted])
        self._parts = found
        self.start = np.concatenate([np.zeros(0), *found])
        self.far = float(np.linalg.norm(self.start))

    def rows(self, q: Array, s: float) -> tuple[Array, Array, Array]:
        """How far the drives are (m,) from where they should be at s; the derivatives by u (m, nv), and by s (m,).

        Those of turns are exact where the rows are zero.
        """
        left = 1.0 - s / self.far if self.far > 0.0 else 0.0
        by_s = self.start / self.far if self.far > 0.0 else np.zeros(len(self.start))
        if self._only_values is not None:
            k, target, scale, J = self._only_values
            return (q[k] - target) * scale - left * self.start, J, by_s
        here = [self._on_the_way(one, part, left) for one, part in zip(self.relations, self._parts, strict=True)]
        e, J = self.loops.evaluate(here, q)
        return e, J, by_s

    def put(self, q: Array, s: float) -> Array:
        """q with the drives that are numbers of q exactly where they should be at s."""
        exact = q.copy()
        names, left = self.loops.mechanism.space.q_names, 1.0 - s / self.far if self.far > 0.0 else 0.0
        for relation, part in zip(self.relations, self._parts, strict=True):
            if relation.kind is Kind.VALUE:
                on_the_way = self._on_the_way(relation, part, left)
                exact[names.index(relation.freedom)] = on_the_way.target[0]
        return exact

    def errors(self, q: Array, s: float) -> dict[str, float]:
        """By name, how far each drive is at (q, s) from the value that it should have, rad or m; full turns count."""
        found: dict[str, float] = {}
        for k, (name, relation) in enumerate(zip(self.names, self.wanted, strict=True)):
            rows = self.loops.evaluate_plain(relation, q)
            if k in self._closing:
                asked, (_, inside) = float(self.values[name][-1]), self._closing[k]
                rows = np.array([self._turn(k, q, s) + inside - asked])
            found[name] = max(found.get(name, 0.0), float(np.linalg.norm(rows)))
        return found

    def turns(self, q: Array, s: float) -> dict[str, float]:
        """By joint, how far (rad) each drive that closes a loop has turned at (q, s), full turns included."""
        name_of = self.loops.mechanism.name_of
        return {name_of(joint): wanted + self._turn(k, q, s) for k, (joint, wanted) in self._closing.items()}

    def _turn(self, k: int, q: Array, s: float) -> float:
        """How far (rad) beyond its goal a closing joint is: a row tells it but for full turns, and s tells those."""
        left = 1.0 - s / self.far if self.far > 0.0 else 0.0
        beyond = float(self.loops.evaluate_plain(self.relations[k], q)[0])
        return nearest(beyond, left * float(self._parts[k][0]))

    def _look_for_values(self) -> tuple[npt.NDArray[np.int64], Array, Array, Array] | None:
        """Where in q the drives are, their targets, scales and derivatives, if each is one number of q: a short way."""
        if not self.relations or any(one.kind is not Kind.VALUE for one in self.relations):
            return None
        space = self.loops.mechanism.space
        k = np.array([space.q_names.index(one.freedom) for one in self.relations])
        v = np.array([int(space.scalars_v[np.flatnonzero(space.scalars_q == one)[0]]) for one in k])
        scale = np.where(space.rotates[v], 1.0, 1.0 / self.loops.size)
        J = np.zeros((len(k), self.loops.n))
        J[np.arange(len(k)), v] = self.loops.unit[v] * scale
        return k, np.array([float(one.target[0]) for one in self.relations]), scale, J

    def columns(self) -> list[int]:
        """The numbers of v that drives hold."""
        space = self.loops.mechanism.space
        held = {one.freedom for one in self.relations if one.kind is Kind.VALUE}
        return [int(v) for k, v in zip(space.scalars_q, space.scalars_v, strict=True) if space.q_names[k] in held]

    @property
    def period(self) -> float:
        """Values of s that differ by it look the same, if the only drive that moves is a hinge; else infinite."""
        moving = [k for k, part in enumerate(self._parts) if np.any(part)]
        if len(moving) == 1 and moving[0] in self._closing:
            return 2 * math.pi
        if self._only_values is None or int((self.start != 0.0).sum()) != 1:
            return math.inf
        k = int(self._only_values[0][int(np.flatnonzero(self.start)[0])])
        space = self.loops.mechanism.space
        turns = bool(space.rotates[int(space.scalars_v[int(np.flatnonzero(space.scalars_q == k)[0])])])
        return 2 * math.pi if turns else math.inf

    def _closing_inside(self, name: str, numbers: Array) -> Array:
        """The values of a joint that closes a loop, inside its limits; those of several turns are left as they are."""
        joint, dofs = joint_and_freedoms(name, self.loops.mechanism.joints)
        if joint.closure is None or self._is_free or len(numbers) != len(dofs):
            return numbers
        several = sum(dof.is_rotation for dof in joint.dof) > 1
        limits = [(-math.inf, math.inf) if several and dof.is_rotation else joint.limits(dof) for dof in dofs]
        inside = np.clip(numbers, *np.array(limits).T)
        if not np.array_equal(inside, numbers):
            self.clamped.append(name)
        return inside

    def _inside(self, name: str, relation: Relation) -> Relation:
        if relation.kind is not Kind.VALUE or self._is_free:
            return relation
        space = self.loops.mechanism.space
        k, wanted = space.q_names.index(relation.freedom), float(relation.target[0])
        inside = float(np.clip(wanted, space.lower[k], space.upper[k]))
        if inside == wanted:
            return relation
        self.clamped.append(name)
        return replace(relation, target=read_only(np.array([inside])))

    def _on_the_way(self, relation: Relation, start: Array, left: float) -> Relation:
        """The relation that holds where a share `left` of the way from the start is left."""
        if left == 0.0:
            return relation
        scale = np.where(lengths(self.loops.mechanism, relation, len(start)), self.loops.size, 1.0)
        rest = left * start * scale
        if relation.kind is Kind.VALUE:
            return replace(relation, target=read_only(relation.target + rest))
        if relation.kind is Kind.TURN:
            return replace(relation, target=read_only(quaternion.multiply(relation.target, quaternion.exp(rest))))
        shift, turn = np.zeros(3), np.zeros(3)
        for row, value in zip(relation.rows, rest, strict=True):
            (shift if row < 3 else turn)[row % 3] = value
        return replace(relation, X_a=read_only(relation.X_a @ make(rotation.exp(turn), shift)))


def without_turns(mechanism: Mechanism, values: Mapping[str, Array]) -> dict[str, float]:
    """What `turned` says where drives that close a loop shall take the short way to their values: by joint."""
    found: dict[str, float] = {}
    for name, numbers in values.items():
        joint, dofs = joint_and_freedoms(name, mechanism.joints)
        if joint.closure is not None and dofs and dofs[-1].is_rotation:
            found[mechanism.name_of(joint)] = float(numbers[-1])
    return found
