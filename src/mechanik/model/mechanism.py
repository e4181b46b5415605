"""The `Mechanism`: a graph of links and joints with names, configurations, poses, Jacobians and allowed collisions.

The mechanism compiles its graph to flat arrays on first use and again after an edit. `assemble` and similar methods
call functions of `mechanik.closure`. That package is imported on the first call, since it imports this package.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

import numpy as np
from numpy import empty

from mechanik.errors import InvalidArgument, ShapeError, StructureError, UnknownName
from mechanik.model.configuration_space import ConfigurationSpace
from mechanik.model.frame import Frame, Goal, Link
from mechanik.model.joint import Joint, find_roots
from mechanik.model.joint_constraint import JointConstraint
from mechanik.model.kinematic_graph import (
    COPIED_TYPES,
    IndependentChain,
    flatten_graph,
    independent_chains,
    restore_graph,
)
from mechanik.model.kinematics import (
    JointValueMap,
    Kinematics,
    compile_kinematics,
    configuration_by_name,
    forward,
    values_by_name,
)
from mechanik.model.loop_closure import Closure, ClosureGap
from mechanik.spatial.array import Array, ArrayLike
from mechanik.validation import as_vector, format_count, read_only

if TYPE_CHECKING:
    from mechanik.closure import Assembly, AssemblyModes, AssemblyPath
    from mechanik.model.closed_jacobian import ClosedJacobian


CLOSURE_FUNCTIONS = {
    "assemble": "mechanik.closure.assemble_loops:assemble",
    "assembly_path": "mechanik.closure.assemble_loops:assembly_path",
    "assembly_modes": "mechanik.closure.assembly_modes:assembly_modes",
}
"""`module:function` by the name of the method that calls it."""


def closure_function(name: str) -> Callable[..., Any]:
    """Import a function of `mechanik.closure` by its name in `CLOSURE_FUNCTIONS`.

    Returns:
        The function; its first argument is the mechanism.
    """
    module, function = CLOSURE_FUNCTIONS[name].split(":")
    return getattr(import_module(module), function)


class LoopKinematics:
    """The methods of `Mechanism` for closed loops: assembly, and the Jacobian with closed loops.

    The assembly is implemented in `mechanik.closure`.
    """

    def assemble(
        self,
        inputs: Mapping[str | Joint, ArrayLike] | Mapping[str, ArrayLike] | None = None,
        q0: ArrayLike | Assembly | None = None,
        *,
        steps: int | None = None,
        weights: Mapping[str, float] | None = None,
    ) -> Assembly:
        """Solve the forward kinematics of closed loops: move the inputs to given values and stay on one branch.

        The inputs move along a straight line from their values at `q0` to the given values, and all other joints follow
        on the branch. Joints that the inputs leave free stay as near to `q0` as possible. Loops that are open at `q0`
        are closed first, near `q0` if possible. The mechanism does not move; `mechanism.apply(assembly)` moves it.

        Args:
            inputs: value by joint (`crank_joint`) or dof (`base.X`); m, or rad with full rotations counted. Rotations
                of a joint with a quaternion can be inputs only together with all its dofs (`base`). A joint that closes
                a loop may be an input. Its value is not part of q, so its full rotations are counted from its present
                value, or from the previous assembly if `q0` is an assembly. None: only close the loops.
            q0: start configuration, (nq,), where loops may be violated; or the previous assembly, which also contains
                the direction of motion. Default: the present configuration.
            steps: minimum number of steps.
            weights: by joint or dof, the cost of its motion (above 0) if several motions are possible; default 1.

        Returns:
            The assembly: `assembly.q` and its status. Failure is a status, not an exception.

        Raises:
            LimitsError: `steps` is not an integer of 1 or more.
            ShapeError, NotFinite: an input or `q0` has the wrong shape or is not finite.
            UnknownName: no joint or dof has that name.
            DoFError: an input is a fixed joint, or a dof that the joint does not have.
            ObjectiveError: a weight is not above 0, or inputs contradict each other.
            InvalidArgument: `weights` is not a mapping.

        Example:
            >>> linkage = mk.gallery.four_bar()
            >>> assembly = linkage.assemble({"crank_joint": 0.8})
            >>> round(float(assembly.q[0]), 6)
            0.8
        """
        return closure_function("assemble")(self, inputs, q0, steps=steps, weights=weights)

    def assembly_path(
        self,
        inputs: Mapping[str | Joint, ArrayLike] | Mapping[str, ArrayLike],
        q0: ArrayLike | Assembly | None = None,
        *,
        weights: Mapping[str, float] | None = None,
    ) -> AssemblyPath:
        """Assemble for a sequence of input values; each assembly starts from the previous one.

        Args:
            inputs: values by joint or dof, (T,) for one dof, (T, n) for a joint of n dofs; m or rad.
            q0: as in `assemble`.
            weights: as in `assemble`.

        Returns:
            The path of T assemblies.

        Raises:
            ShapeError: an array has the wrong shape, or the arrays differ in T.
            NotFinite: an input is not finite.
            UnknownName, DoFError, ObjectiveError, InvalidArgument: as in `assemble`.

        Example:
            >>> linkage = mk.gallery.four_bar()
            >>> path = linkage.assembly_path({"crank_joint": np.linspace(0.6, 0.8, 3)})
            >>> path.q.shape
            (3, 3)
        """
        return closure_function("assembly_path")(self, inputs, q0, weights=weights)

    def assembly_modes(
        self,
        inputs: Mapping[str | Joint, ArrayLike] | Mapping[str, ArrayLike] | None = None,
        q0: ArrayLike | None = None,
        *,
        limit: int | None = None,
        max_attempts: int | None = None,
        max_seconds: float | None = None,
        rng: np.random.Generator | None = None,
    ) -> AssemblyModes:
        """Search for all assembly modes for given input values, sorted by distance from `q0`.

        Configurations that differ only in the rotation of passive legs about their own line are one mode; see
        `AssemblyModes`.

        Args:
            inputs: as in `assemble`.
            q0: reference configuration, (nq,); default: the present configuration.
            limit: maximum number of modes to return, the nearest first; None: all.
            max_attempts: maximum number of starts; default: 4000. The search ends earlier if many successive starts
                lead to no new mode.
            max_seconds: time after which the search ends, s.
            rng: random generator of the starts; default: the starts are the same on each call.

        Returns:
            The modes, with an estimate of the probability that another successful attempt leads to a new mode.

        Raises:
            LimitsError: `limit`, `max_attempts` or `max_seconds` is not positive.
            StructureError: the mechanism has neither a loop nor a joint constraint.
            InvalidArgument: `rng` is not a generator.
            ShapeError, NotFinite, UnknownName, DoFError, ObjectiveError: as in `assemble`.

        Example:
            >>> linkage = mk.gallery.four_bar()
            >>> len(linkage.assembly_modes({"crank_joint": 0.6}, max_attempts=50))
            2
        """
        return closure_function("assembly_modes")(
            self, inputs, q0, limit=limit, max_attempts=max_attempts, max_seconds=max_seconds, rng=rng
        )

    def closed_jacobian(
        self,
        link: str | Link,
        inputs: Iterable[str] | str | None = None,
        q: ArrayLike | None = None,
        point: ArrayLike | None = None,
    ) -> ClosedJacobian:
        """Return the Jacobian of a link with respect to the input velocities while all loops stay closed.

        The Jacobian is exact, also for overconstrained mechanisms.

        Args:
            link: the tool link.
            inputs: joints (`crank_joint`) or dofs (`base.X`); for a joint with a quaternion the rotations about its
                rotated axes (`base.EX`). A joint that closes a loop is allowed. None: the inputs that `mk.structure`
                chooses.
            q: (nq,), with all loops closed; default: the present configuration.
            point: (3,), in the link's frame, m; default: the link's origin.

        Returns:
            The Jacobian, the velocities of all dofs per input velocity, the dependent inputs and the undetermined dofs;
            see `ClosedJacobian`.

        Raises:
            StructureError: a loop or joint constraint is violated at q, an input is repeated or is a joint without a
                child link, or `inputs` is empty.
            InvalidArgument: `inputs` are not names.
            DoFError: an input is a fixed joint, a dof that the joint does not have, or one of several rotations of a
                joint that closes a loop.
            UnknownName: no link, joint or dof has that name.
            ShapeError, NotFinite: q or `point` has the wrong shape or is not finite.

        Example:
            >>> linkage = mk.gallery.four_bar()
            >>> linkage.closed_jacobian("rocker", "crank_joint").matrix.shape
            (6, 1)
        """
        from mechanik.model.closed_jacobian import closed_jacobian

        mechanism = cast("Mechanism", self)
        return closed_jacobian(mechanism, mechanism._link_name(link), inputs, q, point)


class AllowedCollisions:
    """The part of `Mechanism` that stores the pairs of links that are not checked for collisions.

    Pairs are stored by link object, so that renaming a link does not change them; pairs with removed links are ignored.
    """

    _allowed_pairs: dict[tuple[Link, Link], str] | None = None

    @property
    def allowed_collisions(self) -> Mapping[tuple[str, str], str] | None:
        """Pairs of links that collision checks skip, each with the reason, such as "adjacent" or "always".

        None: the pairs are unknown. A `Collider` then skips adjacent links and pairs that are in collision in every
        configuration of a sample. `mk.find_allowed_collisions` computes the pairs; SRDF files list them. Assign a
        mapping to set the pairs. Links that are one rigid body are skipped even if the mapping does not contain them.
        """
        mechanism = cast("Mechanism", self)
        if self._allowed_pairs is None:
            return None
        index_and_name = {link: (k, name) for k, (name, link) in enumerate(mechanism.links.items())}
        pairs = [
            (index_and_name[a], index_and_name[b], reason)
            for (a, b), reason in self._allowed_pairs.items()
            if a in index_and_name and b in index_and_name
        ]
        ordered_pairs = sorted((min(a, b), max(a, b), reason) for a, b, reason in pairs)
        return MappingProxyType({(a, b): reason for (_, a), (_, b), reason in ordered_pairs})

    @allowed_collisions.setter
    def allowed_collisions(self, pairs: Mapping[tuple[str, str], str] | None) -> None:
        self._allowed_pairs = None if pairs is None else self._validate_pairs(pairs)

    def _validate_pairs(self, pairs: Mapping[tuple[str, str], str]) -> dict[tuple[Link, Link], str]:
        mechanism = cast("Mechanism", self)
        if not isinstance(pairs, Mapping):
            raise InvalidArgument(
                f"allowed_collisions must map pairs of links to reasons, {{('hand', 'cup'): 'held'}}, not {pairs!r}"
            )
        valid_pairs: dict[tuple[Link, Link], str] = {}
        for pair, reason in pairs.items():
            if not (isinstance(pair, tuple) and len(pair) == 2):
                raise InvalidArgument(f"allowed_collisions must map pairs of links to reasons; {pair!r} is not a pair")
            if not isinstance(reason, str):
                raise InvalidArgument(
                    f"allowed_collisions must map pairs of links to reasons; the reason of {pair!r} is {reason!r}"
                )
            a, b = mechanism.link(pair[0]), mechanism.link(pair[1])
            if a is b:
                raise StructureError(f"allowed_collisions: link {pair[0]!r} is paired with itself")
            valid_pairs[(a, b) if (b, a) not in valid_pairs else (b, a)] = reason
        return valid_pairs


ORIGIN = np.zeros(3)
KERNEL_ARGUMENT_ERRORS = (KeyError, TypeError, ValueError, AttributeError, IndexError)
"""Exceptions that the fast path raises for arguments that it does not accept; the general path handles them."""
T = TypeVar("T")


class HasConfiguration(Protocol):
    """An object with a configuration `q`, such as a solution or an assembly."""

    @property
    def q(self) -> Array: ...


class NamedConfigurations(MutableMapping[str, Array]):
    """A mapping from names to configurations q (nq,), such as the key frames of a file.

    A configuration is stored by the names of its entries, so it stays valid when joints are added, removed or
    reordered; new entries have the value of `neutral`.
    """

    def __init__(self, get_space: Callable[[], ConfigurationSpace]) -> None:
        self._get_space = get_space
        self._values: dict[str, dict[str, float]] = {}

    def __getitem__(self, name: str) -> Array:
        space, values = self._get_space(), self._values[name]
        q = space.neutral()
        for k, label in enumerate(space.q_names):
            q[k] = values.get(label, q[k])
        return read_only(q)

    def __setitem__(self, name: str, q: ArrayLike) -> None:
        space = self._get_space()
        values = space.check_q(q)
        if values.ndim != 1:
            raise ShapeError(f"configuration {name!r} must have the shape ({space.nq},), not {values.shape}")
        self._values[name] = dict(zip(space.q_names, values.tolist(), strict=True))

    def __delitem__(self, name: str) -> None:
        del self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"<configurations {', '.join(self) or 'none'}>"


class Mechanism(LoopKinematics, AllowedCollisions):
    """A mechanism: links, joints, closures, joint constraints and goals by name; configurations, poses and Jacobians.

    The graph may be edited at any time; derived data is updated on the next use. The order of joints in q is the order
    of their creation; for a file this is the order of the file.

    Args:
        roots: one or several frames; the mechanism has their trees, and all trees that are reachable from these by
            closures, couplings and joint constraints.
        name: name of the mechanism.
        warnings: messages of a reader, for the user.

    Attributes:
        name: name of the mechanism.
        warnings: messages of a reader, for the user.
        configurations: named configurations, such as the key frames of a file; name to q (nq,).
        extras: data of a file that the graph cannot represent, by category, such as `extras["limits"]`.

    Raises:
        InvalidArgument: a root is not a frame.
        StructureError: two links, two joints or goals, or two joint constraints have the same name.

    Example:
        >>> arm = mk.gallery.planar_2r()
        >>> arm.nq, arm.nv
        (2, 2)
        >>> list(arm.joints)
        ['joint1', 'joint2', 'tool_joint']
    """

    def __init__(self, roots: Frame | Iterable[Frame], *, name: str = "", warnings: Iterable[str] = ()) -> None:
        self.name = name
        self.warnings = list(warnings)
        self.configurations = NamedConfigurations(lambda: self.space)
        """Named configurations, such as the key frames of a file."""
        self.extras: dict[str, Any] = {}
        """Data of a file that the graph cannot represent, by category, such as `extras["limits"]`."""
        frames = find_roots(roots)
        # a root goal with a closure is found through its link, so that the goal disappears when its closure is undone
        self._initial_roots = (
            tuple(frame for frame in frames if not (isinstance(frame, Goal) and frame.closure is not None)) or frames
        )
        self._rebuild_index()

    def __repr__(self) -> str:
        parts = [
            format_count(len(self.links), "link"),
            format_count(len(self.joints) - len(self.closures), "joint"),
            *([format_count(len(self.closures), "closure")] if self.closures else []),
            *([format_count(len(self.joint_constraints), "joint constraint")] if self.joint_constraints else []),
            *([format_count(len(self.goals), "goal")] if self.goals else []),
        ]
        return f"<mechanism {self.name!r}: {', '.join(parts)}; nq {self.nq}, nv {self.nv}>"

    # ---- parts ------------------------------------------------------------------------------

    @property
    def roots(self) -> tuple[Frame, ...]:
        """The root frames of all trees."""
        self._update_if_edited()
        return self._roots

    @property
    def revision(self) -> tuple[int, ...]:
        """Version numbers of the trees, which change with each edit of the graph; caches compare them.

        New joint values and targets, shapes and goal poses do not change these numbers.
        """
        self._update_if_edited()
        return self._indexed_revision

    @property
    def links(self) -> Mapping[str, Link]:
        """All links by name, in the order of creation."""
        self._update_if_edited()
        return self._links

    @property
    def joints(self) -> Mapping[str, Joint]:
        """All joints by name, in the order of creation; joints that close a loop are included."""
        self._update_if_edited()
        return self._joints

    @property
    def closures(self) -> Mapping[str, Closure]:
        """The loop closures, by the name of the joint that closes the loop."""
        self._update_if_edited()
        return self._closures

    @property
    def joint_constraints(self) -> Mapping[str, JointConstraint]:
        """The joint constraints by name, in the order of creation."""
        self._update_if_edited()
        return self._joint_constraints

    @property
    def goals(self) -> Mapping[str, Goal]:
        """All goals by name, in the order of creation."""
        self._update_if_edited()
        return self._goals

    def link(self, name: str) -> Link:
        """Return the link with this name; raises `UnknownName`."""
        return _find_by_name("link", name, self.links)

    def joint(self, name: str) -> Joint:
        """Return the joint with this name; raises `UnknownName`."""
        return _find_by_name("joint", name, self.joints)

    def goal(self, name: str) -> Goal:
        """Return the goal with this name; raises `UnknownName`."""
        return _find_by_name("goal", name, self.goals)

    def closure(self, name: str) -> Closure:
        """Return the closure with this name, which is the name of its joint; raises `UnknownName`."""
        return _find_by_name("closure", name, self.closures)

    def joint_constraint(self, name: str) -> JointConstraint:
        """Return the joint constraint with this name; raises `UnknownName`."""
        return _find_by_name("joint constraint", name, self.joint_constraints)

    def name_of(self, frame: Frame) -> str:
        """Return the name of a frame in this mechanism; unnamed frames are numbered by kind, such as `joint1`.

        Raises:
            StructureError: the frame is not part of this mechanism.
        """
        self._update_if_edited()
        if frame not in self._names:
            raise StructureError(f"{frame!r} is not part of this mechanism")
        return self._names[frame]

    def chains(self) -> tuple[IndependentChain, ...]:
        """Group the closures, goals and joint constraints that share moving joints and must be solved together."""
        goals = [goal.closure for goal in self.goals.values() if goal.closure is not None]
        return independent_chains([*self.closures.values(), *goals], self.joint_constraints.values())

    def explain(self, link: str | Link | None = None) -> str:
        """Describe the mechanism as text: its loops, its mobility, and for each chain why it has a closed form or not.

        Args:
            link: the tip link of one chain; default: every link without child links.

        Raises:
            UnknownName: no link has that name.

        Example:
            >>> print(mk.gallery.planar_2r().explain("tool").split(".")[0][:21])
            planar_2r has 4 links
        """
        from mechanik.model.mechanism_explanation import explain_mechanism

        return explain_mechanism(self, None if link is None else self._link_name(link))

    # ---- configurations ---------------------------------------------------------------------

    @property
    def space(self) -> ConfigurationSpace:
        """The layout of q and v, with names and limits."""
        return self.kinematics.space

    @property
    def nq(self) -> int:
        """Length of the configuration vector q."""
        return self.kinematics.space.nq

    @property
    def nv(self) -> int:
        """Length of the velocity vector v: the number of dofs of the tree, without mimic dofs."""
        return self.kinematics.space.nv

    def neutral(self) -> Array:
        """Return the configuration, (nq,), with every value at zero, or at the limit nearest to zero.

        Quaternions are the identity.
        """
        return self.space.neutral()

    def random(self, rng: np.random.Generator, size: int | Sequence[int] = ()) -> Array:
        """Sample configurations uniformly inside the limits.

        Args:
            rng: random generator.
            size: batch shape.

        Returns:
            Configurations, (*size, nq). Values without limits are drawn as in `ConfigurationSpace.random`. Loops are
            not closed.

        Raises:
            InvalidArgument: `rng` is not a generator.
            ShapeError: `size` is not a shape.

        Example:
            >>> mk.gallery.panda().random(np.random.default_rng(0), 5).shape
            (5, 8)
        """
        return self.space.random(rng, size)

    def integrate(self, q: ArrayLike, v: ArrayLike) -> Array:
        """Return the configuration that the step v (..., nv) reaches from q (..., nq); batch axes broadcast."""
        return self.space.integrate(q, v)

    def difference(self, q0: ArrayLike, q1: ArrayLike) -> Array:
        """Return the step v (..., nv) from q0 to q1, both (..., nq); batch axes broadcast."""
        return self.space.difference(q0, q1)

    def clamp(self, q: ArrayLike) -> Array:
        """Return q (..., nq) with every value inside its limits and every quaternion normalized."""
        return self.space.clamp(q)

    @property
    def q(self) -> Array:
        """The present configuration of the joints, (nq,), as a copy; assign to move the joints."""
        kinematics = self.kinematics
        q = np.empty(kinematics.space.nq)
        for joint, indices in kinematics.joint_indices.items():
            for dof, k in indices.q.items():
                q[k] = joint._values[dof]
            if indices.quaternion_q is not None:
                q[indices.quaternion_q : indices.quaternion_q + 4] = joint.rotation_wxyz
        return q  # writeable, since kernels would have to copy a read-only array

    @q.setter
    def q(self, q: ArrayLike) -> None:
        self.set_q(q)

    def set_q(self, q: ArrayLike) -> bool:
        """Move the joints to a configuration, clamped to the limits.

        Args:
            q: (nq,); m, rad and unit quaternions (wxyz).

        Returns:
            Whether a value was outside its limits.

        Raises:
            ShapeError: q is not of shape (nq,).
            NotFinite: a value is not finite.
            NotARotation: a quaternion is zero.
        """
        kinematics = self.kinematics
        requested_q = self._single_q(q)
        clamped_q = kinematics.space.clamp(requested_q)
        for joint, indices in kinematics.joint_indices.items():
            if indices.q:
                joint._assign({dof: float(clamped_q[k]) for dof, k in indices.q.items()})
            if indices.quaternion_q is not None:
                joint.rotation_wxyz = clamped_q[indices.quaternion_q : indices.quaternion_q + 4]
        scalars = kinematics.space.scalars_q
        return bool((clamped_q[scalars] != requested_q[scalars]).any())

    def apply(self, solution: HasConfiguration) -> bool:
        """Move the joints to the configuration of a solution; returns whether a value was outside its limits."""
        return self.set_q(solution.q)

    def values(self, q: ArrayLike | None = None) -> dict[str, float | Array]:
        """Return the values by joint: a number for a joint of one dof, an array for several; mimic joints are included.

        Joints that close a loop are not in q; `Closure.joint_values` computes their values from the link poses.

        Args:
            q: (nq,); default: the present configuration.

        Returns:
            Joint name to value; m or rad.

        Example:
            >>> mk.gallery.planar_2r().values([0.1, 0.2])
            {'joint1': 0.1, 'joint2': 0.2}
        """
        return values_by_name(self.kinematics, self._names, self.q if q is None else self._single_q(q))

    def closing_joint_values(self, joint: str, q: ArrayLike | None = None) -> Array:
        """Return the values of a joint that closes a loop, computed from the poses of its links; no joint moves.

        Args:
            joint: name of the joint.
            q: (nq,); default: the present configuration.

        Returns:
            A value for each free dof, inside its limits, m or rad.

        Raises:
            UnknownName: no loop is closed by a joint of this name.

        Example:
            >>> four_bar = mk.gallery.four_bar()
            >>> four_bar.closing_joint_values("closing_joint").shape
            (1,)
        """
        closure = self.closure(joint)
        return closure.joint_values_at(*self._closure_poses(closure, q))

    def closure_gap(self, joint: str, q: ArrayLike | None = None) -> ClosureGap:
        """Return the violation of a loop closure at q (nq,); no joint moves.

        Args:
            joint: name of the joint that closes the loop.
            q: (nq,); default: the present configuration.

        Raises:
            UnknownName: no loop is closed by a joint of this name.

        Example:
            >>> four_bar = mk.gallery.four_bar()
            >>> four_bar.closure_gap("closing_joint").is_closed()
            True
        """
        closure = self.closure(joint)
        return closure.gap_at(*self._closure_poses(closure, q))

    def _closure_poses(self, closure: Closure, q: ArrayLike | None) -> tuple[Array, Array]:
        """Return the poses at q of the parent link of a closing joint, and of the link onto which it closes."""
        configuration = self.q if q is None else self._single_q(q)
        parent = closure.joint.parent
        X_world_parent = np.eye(4) if parent is None else self.pose(self.name_of(parent), configuration)
        return X_world_parent, self.pose(self.name_of(closure.link), configuration)

    def configuration(self, values: JointValueMap, q: ArrayLike | None = None) -> Array:
        """Return a configuration with the values of given joints replaced.

        Args:
            values: value by joint (`elbow`) or by dof (`base.X`); m or rad. The value of a joint of several dofs is an
                array as in `Joint.values`. A mimic joint is allowed if its value agrees with its leader.
            q: (nq,), source of all other values; default: the present configuration.

        Returns:
            The configuration, (nq,).

        Raises:
            UnknownName: no joint or dof has that name.
            ShapeError: `values` is not a mapping, or a value has the wrong length.
            NotFinite: a value is not finite.
            DoFError: the joint is fixed, or does not have the dof.
            CouplingError: the joint closes a loop or has no child link, or a mimic joint disagrees with its leader.

        Example:
            >>> arm = mk.gallery.planar_2r()
            >>> arm.configuration({"joint2": 0.5}, q=[0.1, 0.2])
            array([0.1, 0.5])
        """
        start = np.array(self.q if q is None else self._single_q(q))
        return configuration_by_name(self.kinematics, self.joints, values, start)

    # ---- forward kinematics -----------------------------------------------------------------

    @property
    def kinematics(self) -> Kinematics:
        """The mechanism as flat arrays; compiled again after an edit of the graph."""
        if Frame.edit_count != self._indexed_edit_count:
            self._update_if_edited()
        if self._kinematics is None:
            self._kinematics = compile_kinematics(self._roots, self._names)
            self._paths, self._nv = self._kinematics.paths, self._kinematics.space.nv
        return self._kinematics

    def pose(self, link: str | Link, q: ArrayLike | None = None, out: Array | None = None) -> Array:
        """Compute the pose of a link in the world.

        Args:
            link: name or link.
            q: configurations, (..., nq); default: the present configuration.
            out: array for the result, (..., 4, 4), float64; it avoids an allocation in a fast loop.

        Returns:
            X_world_link, (..., 4, 4).

        Raises:
            UnknownName: no link has that name.
            ShapeError: q or `out` has the wrong shape.
            NotFinite: q is not finite.

        Example:
            >>> arm = mk.gallery.panda()
            >>> arm.pose("panda_link8")[:3, 3].round(3)
            array([0.307, 0.   , 0.59 ])
        """
        try:  # fast path for Python loops; the kernel returns False unless q is a finite float64 (nq,)
            X = empty((4, 4)) if out is None else out
            is_single = q.ndim == 1  # type: ignore[union-attr]
            if (
                is_single
                and Frame.edit_count == self._indexed_edit_count
                and forward.chain_pose(self._paths[link], q, X)
            ):
                return X
        except KERNEL_ARGUMENT_ERRORS:
            pass
        return self.kinematics.pose(self._link_name(link), self.q if q is None else q, out)

    def poses(self, q: ArrayLike | None = None, links: Sequence[str | Link] | None = None) -> Array:
        """Compute the poses of several links in the world.

        Args:
            q: configurations, (..., nq); default: the present configuration.
            links: L names or links; default: all links in the order of `links`.

        Returns:
            X_world_link, (..., L, 4, 4).

        Raises:
            UnknownName: no link has that name.
            ShapeError: q has the wrong shape.
            NotFinite: q is not finite.

        Example:
            >>> arm = mk.gallery.panda()
            >>> arm.poses(links=["panda_link7", "panda_link8"]).shape
            (2, 4, 4)
        """
        selected_links = [links] if isinstance(links, str | Link) else links
        names = None if selected_links is None else [self._link_name(link) for link in selected_links]
        return self.kinematics.poses(self.q if q is None else q, names)

    def jacobian(self, link: str | Link, q: ArrayLike | None = None, point: ArrayLike | None = None) -> Array:
        """Compute the geometric Jacobian of a point that is fixed in a link; loop closures are ignored.

        Args:
            link: name or link.
            q: configurations, (..., nq); default: the present configuration.
            point: (3,), in the link's frame, m; default: the link's origin.

        Returns:
            World velocity of the point and angular velocity of the link per entry of v, (..., 6, nv).

        Raises:
            UnknownName: no link has that name.
            ShapeError: q or `point` has the wrong shape.
            NotFinite: q or `point` is not finite.

        Example:
            >>> arm = mk.gallery.panda()
            >>> arm.jacobian("panda_link8").shape
            (6, 8)
        """
        p_link_point = ORIGIN if point is None else as_vector(point, 3, "point")
        try:  # as in `pose`
            J = empty((6, self._nv))
            is_single = q.ndim == 1  # type: ignore[union-attr]
            if (
                is_single
                and Frame.edit_count == self._indexed_edit_count
                and forward.chain_jacobian(self._paths[link], p_link_point, q, J)
            ):
                return J
        except KERNEL_ARGUMENT_ERRORS:
            pass
        return self.kinematics.jacobian(self._link_name(link), self.q if q is None else q, p_link_point)

    def copy(self) -> Mechanism:
        """Return an independent copy in the present state."""
        return deepcopy(self)

    def snapshot(self) -> MechanismSnapshot:
        """Return a snapshot, from which a copy of the mechanism as it is now can be made after later edits.

        Its cost is a small part of that of a copy. It is the same for all calls between two edits: joint values, and
        all else that `revision` does not count, are those of the first call.

        Example:
            >>> arm = mk.gallery.planar_2r()
            >>> snapshot = arm.snapshot()
            >>> joint_was_clamped = arm.joint("joint2").set_limits(-0.1, 0.1)
            >>> snapshot.copy().space.upper.round(2).tolist()
            [3.14, 3.14]
        """
        self._update_if_edited()
        snapshot = self._cache.get("snapshot")
        if not isinstance(snapshot, MechanismSnapshot):
            state = self.__getstate__()
            flat = dict(state["flat"])
            flat["frames"] = [
                (
                    kind,
                    {name: copy(value) if isinstance(value, COPIED_TYPES) else value for name, value in fields.items()},
                )
                for kind, fields in flat["frames"]
            ]
            snapshot = self._cache["snapshot"] = MechanismSnapshot({**state, "flat": flat})
        return snapshot

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickling and copies: the graph and user data, but no derived data."""
        configurations = {name: dict(values) for name, values in self.configurations._values.items()}
        pairs = None if self.allowed_collisions is None else dict(self.allowed_collisions)
        state = {
            "name": self.name,
            "warnings": self.warnings,
            "extras": self.extras,
            "configurations": configurations,
            "allowed_collisions": pairs,
        }
        return {**state, "flat": flatten_graph(self.roots, self._initial_roots)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(restore_graph(state["flat"]), name=state["name"], warnings=state["warnings"])
        self.extras = deepcopy(state["extras"])
        self.configurations._values.update(state["configurations"])
        self.allowed_collisions = state["allowed_collisions"]

    # ---- private helpers --------------------------------------------------------------------

    def _link_name(self, link: str | Link) -> str:
        return self.name_of(link) if isinstance(link, Link) else link

    def _single_q(self, q: ArrayLike) -> Array:
        values = self.space.check_q(q)
        if values.ndim != 1:
            raise ShapeError(f"q must be a single configuration ({self.nq},), not an array of shape {values.shape}")
        return values

    def _update_if_edited(self) -> None:
        """Update the parts and names if a tree of this mechanism was edited."""
        edit_count = Frame.edit_count  # read first: an edit during the comparison is noticed in the next call
        if edit_count == self._indexed_edit_count:
            return
        if self._indexed_revision != tuple(root._revision for root in self._roots):
            self._rebuild_index()
        self._indexed_edit_count = edit_count

    def _rebuild_index(self) -> None:
        """Find all parts of the graph and their names again, and discard compiled data."""
        edit_count = Frame.edit_count
        self._roots = find_roots(self._initial_roots)
        revision = tuple(root._revision for root in self._roots)  # read first, since other threads may edit meanwhile
        frames = sorted((frame for root in self._roots for frame in root.traverse()), key=lambda frame: frame._serial)
        self._names = _name_all(frames)
        links = {self._names[frame]: frame for frame in frames if isinstance(frame, Link)}
        joints = {self._names[frame]: frame for frame in frames if isinstance(frame, Joint)}
        goals = {self._names[frame]: frame for frame in frames if isinstance(frame, Goal)}
        closures = {name: joint.closure for name, joint in joints.items() if joint.closure is not None}
        self._links, self._joints = MappingProxyType(links), MappingProxyType(joints)
        self._closures, self._goals = MappingProxyType(closures), MappingProxyType(goals)
        self._joint_constraints = MappingProxyType(_name_joint_constraints(joints.values()))
        self._kinematics: Kinematics | None = None
        self._paths: Mapping[Any, Array] = {}
        self._nv = 0
        self._cache: dict[str, object] = {}  # valid for the present revision only
        self._indexed_revision, self._indexed_edit_count = revision, edit_count


@dataclass(frozen=True, slots=True, eq=False)
class MechanismSnapshot:
    """State of a mechanism at a point in time.

    Attributes:
        state: the state, in the form of `Mechanism.__getstate__`.
    """

    state: Mapping[str, Any]

    def copy(self) -> Mechanism:
        """Return a new mechanism with this state."""
        mechanism = Mechanism.__new__(Mechanism)
        mechanism.__setstate__(dict(self.state))
        return mechanism


def _find_by_name(kind: str, name: str, known_items: Mapping[str, T]) -> T:
    try:
        return known_items[name]
    except (KeyError, TypeError):
        raise UnknownName(kind, name, known_items) from None


def _name_all(frames: Sequence[Frame]) -> dict[Frame, str]:
    """Assign a name to each frame, unique among links and among joints and goals; unnamed frames are numbered."""
    names: dict[Frame, str] = {}
    for kinds in (("link",), ("joint", "goal"), ("frame",)):
        group = [frame for frame in frames if frame.kind in kinds]
        used_names: set[str] = set()
        for frame in group:
            if frame.name:
                if frame.name in used_names:
                    label = " or ".join(f"{kind}s" for kind in kinds)
                    raise StructureError(
                        f"two {label} are called {frame.name!r}; names must be unique", code="duplicate-name"
                    )
                used_names.add(frame.name)
                names[frame] = frame.name
        number = 0
        for frame in group:
            if not frame.name:
                number += 1
                while f"{frame.kind}{number}" in used_names:
                    number += 1
                names[frame] = f"{frame.kind}{number}"
    return names


def _name_joint_constraints(joints: Iterable[Joint]) -> dict[str, JointConstraint]:
    """Return the joint constraints by name, in the order of creation; unnamed ones are `constraint1` and so on."""
    constraints = sorted(
        {constraint for joint in joints for constraint in joint.joint_constraints},
        key=lambda constraint: constraint._serial,
    )
    used_names, constraints_by_name, number = (
        {constraint.name for constraint in constraints},
        dict[str, JointConstraint](),
        0,
    )
    for constraint in constraints:
        name = constraint.name
        while not name or (not constraint.name and name in used_names):
            number += 1
            name = f"constraint{number}"
        if name in constraints_by_name:
            raise StructureError(
                f"two joint constraints are called {name!r}; names must be unique", code="duplicate-name"
            )
        constraints_by_name[name] = constraint
    return constraints_by_name
