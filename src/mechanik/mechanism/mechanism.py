"""A mechanism: the graph with names, configurations, poses and Jacobians."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy import empty

from mechanik.errors import DuplicateName, ShapeError, StructureError, UnknownName
from mechanik.mechanism.by_name import JointValues, configuration_by_name, values_by_name
from mechanik.mechanism.chains import Chain, independent_chains
from mechanik.mechanism.closure import Closure
from mechanik.mechanism.configuration import ConfigurationSpace
from mechanik.mechanism.configurations import Configurations
from mechanik.mechanism.door import as_vector, counted
from mechanik.mechanism.flat import flatten, restore
from mechanik.mechanism.frame import Frame
from mechanik.mechanism.goal import Goal
from mechanik.mechanism.joint import Joint
from mechanik.mechanism.kinematics import Kinematics, compile_kinematics, forward
from mechanik.mechanism.law import Law
from mechanik.mechanism.link import Link
from mechanik.mechanism.loops import Loops
from mechanik.mechanism.roots import find_roots
from mechanik.mechanism.unchecked import Unchecked
from mechanik.spatial.array import Array, ArrayLike

ORIGIN = np.zeros(3)
REFUSALS = (KeyError, TypeError, ValueError, AttributeError, IndexError)
"""How a kernel, compiled or as plain Python, says that its arguments are not of the common kind."""
T = TypeVar("T")


class HasConfiguration(Protocol):
    """What solvers return, as far as a mechanism has to know."""

    @property
    def q(self) -> Array: ...


class Mechanism(Loops, Unchecked):
    """Links, joints, closures and goals below some roots, by name and as vectors.

    The graph may be edited at any time; what is computed from it notices by itself. Joints stand in q
    in the order in which they were made, which for a file is the file's.

    Args:
        roots: frames of the trees; trees that closures lead to are found.
        name: of the whole.
        warnings: what a reader found odd; kept for people.
    """

    def __init__(self, roots: Frame | Iterable[Frame], *, name: str = "", warnings: Iterable[str] = ()) -> None:
        self.name = name
        self.warnings = list(warnings)
        self.configurations = Configurations(lambda: self.space)
        """Named configurations, such as the key frames of a file."""
        self.extras: dict[str, Any] = {}
        """What a file says and the graph has no place for, by subject and joint: plain data, kept for writers."""
        frames = find_roots(roots)
        # goals are found through what they want, so that they go when they want nothing any more
        self._given = tuple(f for f in frames if not (isinstance(f, Goal) and f.closure is not None)) or frames
        self._refresh()

    def __repr__(self) -> str:
        parts = [
            counted(len(self.links), "link"),
            counted(len(self.joints) - len(self.closures), "joint"),
            *([counted(len(self.closures), "closure")] if self.closures else []),
            *([counted(len(self.laws), "law")] if self.laws else []),
            *([counted(len(self.goals), "goal")] if self.goals else []),
        ]
        return f"<mechanism {self.name!r}: {', '.join(parts)}; nq {self.nq}, nv {self.nv}>"

    # ---- parts ------------------------------------------------------------------------------

    @property
    def roots(self) -> tuple[Frame, ...]:
        """The tops of all trees that belong to it."""
        self._fresh()
        return self._roots

    @property
    def revision(self) -> tuple[int, ...]:
        """Changes whenever the graph does; what is compiled from the mechanism compares it."""
        self._fresh()
        return self._seen

    @property
    def links(self) -> Mapping[str, Link]:
        """All links by name, in the order in which they were made."""
        self._fresh()
        return self._links

    @property
    def joints(self) -> Mapping[str, Joint]:
        """All joints in the order in which they were made, closing joints among them."""
        self._fresh()
        return self._joints

    @property
    def closures(self) -> Mapping[str, Closure]:
        """The closed loops, by the name of the joint that closes them."""
        self._fresh()
        return self._closures

    @property
    def laws(self) -> Mapping[str, Law]:
        """The laws that bind joint values, by name, in the order in which they were made."""
        self._fresh()
        return self._laws

    @property
    def goals(self) -> Mapping[str, Goal]:
        """All goals by name."""
        self._fresh()
        return self._goals

    def link(self, name: str) -> Link:
        """The link of that name."""
        return _look_up("link", name, self.links)

    def joint(self, name: str) -> Joint:
        """The joint of that name."""
        return _look_up("joint", name, self.joints)

    def goal(self, name: str) -> Goal:
        """The goal of that name."""
        return _look_up("goal", name, self.goals)

    def closure(self, name: str) -> Closure:
        """The closure of that name, which is the name of the joint that makes it."""
        return _look_up("closure", name, self.closures)

    def law(self, name: str) -> Law:
        """The law of that name."""
        return _look_up("law", name, self.laws)

    def name_of(self, frame: Frame) -> str:
        """The name under which a frame is known here; unnamed frames are numbered by kind."""
        self._fresh()
        if frame not in self._names:
            raise StructureError(f"{frame!r} is no part of this mechanism")
        return self._names[frame]

    def chains(self) -> tuple[Chain, ...]:
        """Groups of closures, goals and laws that share moving joints and have to be solved together."""
        goals = [goal.closure for goal in self.goals.values() if goal.closure is not None]
        return independent_chains([*self.closures.values(), *goals], self.laws.values())

    def explain(self, link: str | Link | None = None) -> str:
        """In plain sentences: its loops and mobility, and for each chain whether it has a closed form, and why.

        Args:
            link: the end of one chain; every link that holds no other if it is not given.
        """
        from mechanik.mechanism.explain import explain

        return explain(self, None if link is None else self._link_name(link))

    # ---- configurations ---------------------------------------------------------------------

    @property
    def space(self) -> ConfigurationSpace:
        """The shape of q and v, with names and limits."""
        return self.kinematics.space

    @property
    def nq(self) -> int:
        """How many numbers q has."""
        return self.kinematics.space.nq

    @property
    def nv(self) -> int:
        """How many numbers v has: the freedoms of the tree."""
        return self.kinematics.space.nv

    def neutral(self) -> Array:
        """Every value zero, or as near to zero as its limits allow."""
        return self.space.neutral()

    def random(self, rng: np.random.Generator, size: int | Sequence[int] = ()) -> Array:
        """Configurations (*size, nq), uniform inside the limits."""
        return self.space.random(rng, size)

    def integrate(self, q: ArrayLike, v: ArrayLike) -> Array:
        """The configuration reached from q by the step v; leading axes broadcast."""
        return self.space.integrate(q, v)

    def difference(self, q0: ArrayLike, q1: ArrayLike) -> Array:
        """The step v that leads from q0 to q1; leading axes broadcast."""
        return self.space.difference(q0, q1)

    def clamp(self, q: ArrayLike) -> Array:
        """q with every value inside its limits and every ball a unit quaternion."""
        return self.space.clamp(q)

    @property
    def q(self) -> Array:
        """The configuration that the joints hold now, (nq,), as a copy; assign one to move them."""
        kinematics = self.kinematics
        q = np.empty(kinematics.space.nq)
        for joint, slot in kinematics.slots.items():
            for dof, k in slot.q.items():
                q[k] = joint._values[dof]
            if slot.ball_q is not None:
                q[slot.ball_q : slot.ball_q + 4] = joint.turn_wxyz
        return q  # not frozen: kernels take arrays that can be written into without a detour

    @q.setter
    def q(self, q: ArrayLike) -> None:
        self.set_q(q)

    def set_q(self, q: ArrayLike) -> bool:
        """Move the joints to q, brought inside the limits; returns whether a limit was hit."""
        kinematics = self.kinematics
        wanted = self._one(q)
        inside = kinematics.space.clamp(wanted)
        for joint, slot in kinematics.slots.items():
            if slot.q:
                joint._assign({dof: float(inside[k]) for dof, k in slot.q.items()})
            if slot.ball_q is not None:
                joint.turn_wxyz = inside[slot.ball_q : slot.ball_q + 4]
        scalars = kinematics.space.scalars_q
        return bool((inside[scalars] != wanted[scalars]).any())

    def apply(self, solution: HasConfiguration) -> bool:
        """Move the joints to where a solution says; returns whether a limit was hit."""
        return self.set_q(solution.q)

    def values(self, q: ArrayLike | None = None) -> dict[str, float | Array]:
        """Values by joint: a number for a joint of one freedom, an array for one of several, followers included.

        Joints that close a loop are not in q; `Closure.measure` reads theirs off the links.

        Args:
            q: (nq,); the present configuration if it is not given.
        """
        return values_by_name(self.kinematics, self._names, self.q if q is None else self._one(q))

    def configuration(self, values: JointValues, q: ArrayLike | None = None) -> Array:
        """q with some joints' values replaced, given by joint (`elbow`), or by freedom (`base.X`).

        Args:
            values: a number for a joint of one freedom; the values of `Joint.values` for one of several.
                A follower may be named if it agrees with its leader.
            q: (nq,) what the rest is taken from; the present configuration if it is not given.
        """
        start = np.array(self.q if q is None else self._one(q))
        return configuration_by_name(self.kinematics, self.joints, values, start)

    # ---- forward kinematics -----------------------------------------------------------------

    @property
    def kinematics(self) -> Kinematics:
        """The mechanism as flat arrays, compiled again when the graph has changed."""
        if Frame.edits != self._edits:
            self._fresh()
        if self._kinematics is None:
            self._kinematics = compile_kinematics(self._roots, self._names)
            self._paths, self._nv = self._kinematics.paths, self._kinematics.space.nv
        return self._kinematics

    def pose(self, link: str | Link, q: ArrayLike | None = None, out: Array | None = None) -> Array:
        """X_world_link, (..., 4, 4), at q (..., nq) or at the present configuration.

        Args:
            out: where to put it, (..., 4, 4) float64; saves a fast loop the making of arrays.
        """
        try:  # the shortest way, for loops in Python; the kernel refuses what is not a finite float64 (nq,)
            X = empty((4, 4)) if out is None else out
            one = q.ndim == 1  # type: ignore[union-attr]
            if one and Frame.edits == self._edits and forward.chain_pose(self._paths[link], q, X):
                return X
        except REFUSALS:
            pass
        return self.kinematics.pose(self._link_name(link), self.q if q is None else q, out)

    def poses(self, q: ArrayLike | None = None, links: Sequence[str | Link] | None = None) -> Array:
        """X_world_link of all links, or of those named, (..., L, 4, 4), in the order of `links`."""
        some = [links] if isinstance(links, str | Link) else links
        names = None if some is None else [self._link_name(link) for link in some]
        return self.kinematics.poses(self.q if q is None else q, names)

    def jacobian(self, link: str | Link, q: ArrayLike | None = None, point: ArrayLike | None = None) -> Array:
        """The geometric Jacobian (..., 6, nv) of a point that is fixed in the link.

        Args:
            point: (3,), in the link's frame; its origin if not given.
        Returns:
            world velocities (linear, angular) of the point for each number of v.
        """
        p_link = ORIGIN if point is None else as_vector(point, 3, "point")
        try:  # as in `pose`
            J = empty((6, self._nv))
            one = q.ndim == 1  # type: ignore[union-attr]
            if one and Frame.edits == self._edits and forward.chain_jacobian(self._paths[link], p_link, q, J):
                return J
        except REFUSALS:
            pass
        return self.kinematics.jacobian(self._link_name(link), self.q if q is None else q, p_link)

    def copy(self) -> Mechanism:
        """Another mechanism that is like this one as it stands, and goes its own ways."""
        return deepcopy(self)

    def __getstate__(self) -> dict[str, Any]:
        """For copies and other processes: the graph and what people gave it, nothing that is computed."""
        kept = {name: dict(values) for name, values in self.configurations._kept.items()}
        pairs = None if self.unchecked is None else dict(self.unchecked)
        state = {"name": self.name, "warnings": self.warnings, "extras": self.extras, "kept": kept, "unchecked": pairs}
        return {**state, "flat": flatten(self.roots, self._given)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(restore(state["flat"]), name=state["name"], warnings=state["warnings"])
        self.extras = deepcopy(state["extras"])
        self.configurations._kept.update(state["kept"])
        self.unchecked = state["unchecked"]

    # ---- inside -----------------------------------------------------------------------------

    def _link_name(self, link: str | Link) -> str:
        return self.name_of(link) if isinstance(link, Link) else link

    def _one(self, q: ArrayLike) -> Array:
        values = self.space.check_q(q)
        if values.ndim != 1:
            raise ShapeError(f"one configuration is needed here, not an array of shape {values.shape}")
        return values

    def _fresh(self) -> None:
        """Look the graph over again if it was edited."""
        if Frame.edits == self._edits:
            return
        if self._seen != tuple(root._revision for root in self._roots):
            self._refresh()
        self._edits = Frame.edits

    def _refresh(self) -> None:
        self._roots = find_roots(self._given)
        frames = sorted((f for root in self._roots for f in root.traverse()), key=lambda f: f._serial)
        self._names = _name_all(frames)
        links = {self._names[f]: f for f in frames if isinstance(f, Link)}
        joints = {self._names[f]: f for f in frames if isinstance(f, Joint)}
        goals = {self._names[f]: f for f in frames if isinstance(f, Goal)}
        closures = {name: joint.closure for name, joint in joints.items() if joint.closure is not None}
        self._links, self._joints = MappingProxyType(links), MappingProxyType(joints)
        self._closures, self._goals = MappingProxyType(closures), MappingProxyType(goals)
        self._laws = MappingProxyType(_name_laws(joints.values()))
        self._kinematics: Kinematics | None = None
        self._paths: Mapping[Any, Array] = {}
        self._nv = 0
        self._kept: dict[str, object] = {}  # what was worked out from the graph as it is now
        self._seen = tuple(root._revision for root in self._roots)
        self._edits = Frame.edits


def _look_up(kind: str, name: str, known: Mapping[str, T]) -> T:
    try:
        return known[name]
    except (KeyError, TypeError):
        raise UnknownName(kind, name, known) from None


def _name_all(frames: Sequence[Frame]) -> dict[Frame, str]:
    """Names, unique among links and among joints and goals; the unnamed get numbers."""
    names: dict[Frame, str] = {}
    for kinds in (("link",), ("joint", "goal"), ("frame",)):
        group = [frame for frame in frames if frame.kind in kinds]
        taken: set[str] = set()
        for frame in group:
            if frame.name:
                if frame.name in taken:
                    raise DuplicateName(f"two {frame.kind}s are called {frame.name!r}; names must be unique")
                taken.add(frame.name)
                names[frame] = frame.name
        number = 0
        for frame in group:
            if not frame.name:
                number += 1
                while f"{frame.kind}{number}" in taken:
                    number += 1
                names[frame] = f"{frame.kind}{number}"
    return names


def _name_laws(joints: Iterable[Joint]) -> dict[str, Law]:
    """Laws by name, in the order in which they were made; the unnamed get numbers."""
    laws = sorted({law for joint in joints for law in joint.laws}, key=lambda law: law._serial)
    taken, found, number = {law.name for law in laws}, dict[str, Law](), 0
    for law in laws:
        name = law.name
        while not name or (not law.name and name in taken):
            number += 1
            name = f"law{number}"
        if name in found:
            raise DuplicateName(f"two laws are called {name!r}; names must be unique")
        found[name] = law
    return found
