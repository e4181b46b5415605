"""Construction of mechanisms from named links and joints (`Builder`), and removal of fixed subtrees (`trim`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypedDict, Unpack

from mechanik.errors import DoFError, InvalidArgument, ShapeError, StructureError, UnknownName
from mechanik.model.dof import ALL_DOFS, ROTATIONS, DoF, DoFLike, as_dofs
from mechanik.model.frame import Goal, Link
from mechanik.model.joint import Joint
from mechanik.model.joint_constraint import Coefficients, Coupling, JointConstraint, JointDof
from mechanik.model.kinematics import joint_and_dofs
from mechanik.model.loop_closure import Closure
from mechanik.model.mechanism import Mechanism
from mechanik.model.shapes import Inertial, ShapeInstance
from mechanik.spatial import Pose, inverse
from mechanik.spatial.array import ArrayLike
from mechanik.validation import AxisLike, as_axes_wxyz, as_limits, as_number, as_point_or_pose, as_vector, format_count


class BuilderCouplings:
    """The methods of `Builder` for relations between joint values: couplings, gears, racks and joint constraints."""

    def __init__(self) -> None:
        self._joints: dict[str, Joint | Goal] = {}
        self._joint_constraints: dict[str, JointConstraint] = {}

    def couple(
        self,
        mimic: str,
        leader: str,
        ratio: float = 1.0,
        offset: float = 0.0,
        *,
        dof: DoFLike | None = None,
        leader_dof: DoFLike | None = None,
    ) -> Coupling:
        """Couple a mimic joint to a leader: mimic = ratio * leader + offset.

        Args:
            mimic, leader: names of joints.
            ratio: coefficient of the leader's value.
            offset: m or rad.
            dof, leader_dof: the coupled dofs; required only for a joint of several dofs.

        Returns:
            The coupling.

        Raises:
            UnknownName: no joint has that name.
            CouplingError, DoFError: as in `Joint.mimic`.
        """
        return self._find_joint(mimic).mimic(self._find_joint(leader), ratio, offset, dof=dof, leader_dof=leader_dof)

    def gear(
        self, mimic: str, leader: str, *, teeth: tuple[float, float], internal: bool = False, offset: float = 0.0
    ) -> Coupling:
        """Couple two revolute joints by gears: mimic = ratio * leader + offset, where |ratio| = teeth[1] / teeth[0].

        Args:
            mimic, leader: names of joints with one rotation.
            teeth: number of teeth of the mimic's gear and of the leader's gear.
            internal: whether the gear pair is internal. Then the ratio is positive; otherwise it is negative.
            offset: rad.

        Returns:
            The coupling.

        Raises:
            UnknownName: no joint has that name.
            ShapeError: `teeth` are not two positive numbers.
            DoFError: a joint is not revolute.
            CouplingError: as in `Joint.mimic`.
        """
        mimic_teeth, leader_teeth = as_vector(teeth, 2, f"teeth of {mimic!r} and {leader!r}").tolist()
        if not min(mimic_teeth, leader_teeth) > 0.0:
            raise ShapeError(f"teeth of {mimic!r} and {leader!r} must be two positive numbers, not {teeth!r}")
        ratio = leader_teeth / mimic_teeth if internal else -leader_teeth / mimic_teeth
        return self._joint_of_one_dof(mimic, is_rotation=True).mimic(
            self._joint_of_one_dof(leader, is_rotation=True), ratio, offset
        )

    def rack(self, rack: str, pinion: str, *, radius: float, offset: float = 0.0) -> Coupling:
        """Couple a rack to a pinion: rack = radius * pinion + offset.

        Args:
            rack: name of a joint with one translation.
            pinion: name of a joint with one rotation.
            radius: radius of the pinion's pitch circle, m; negative if the rack is on the other side.
            offset: m.

        Returns:
            The coupling.

        Raises:
            UnknownName: no joint has that name.
            ShapeError: the radius is zero or not a number.
            DoFError: `rack` is not prismatic, or `pinion` is not revolute.
            CouplingError: as in `Joint.mimic`.
        """
        if as_number(radius, f"radius of {pinion!r}") == 0.0:
            raise ShapeError(
                f"radius of {pinion!r} is zero; it must be positive, or negative if {rack!r} is on the other side"
            )
        return self._joint_of_one_dof(rack, is_rotation=False).mimic(
            self._joint_of_one_dof(pinion, is_rotation=True), radius, offset
        )

    def joint_constraint(self, name: str, terms: Mapping[str, Coefficients], constant: float = 0.0) -> JointConstraint:
        """Add a joint constraint: a sum of polynomials of single dofs equals a constant.

        Args:
            name: name of the constraint.
            terms: for a joint ("left") or a dof ("base.X"), the coefficient of its value (m or rad); or a list of the
                coefficients of its powers 1, 2, 3 and so on.
            constant: required value of the sum of the terms.

        Returns:
            The joint constraint.

        Raises:
            StructureError: the name is in use.
            UnknownName: no joint or dof has that name.
            DoFError: a joint does not have the dof, or a joint of several dofs is given without a dof.
            ShapeError: `terms` is not a mapping to numbers.
            CouplingError: a dof cannot be constrained, or all coefficients are zero.
        """
        if name in self._joint_constraints:
            raise StructureError(
                f"two joint constraints are called {name!r}; names must be unique", code="duplicate-name"
            )
        if not isinstance(terms, Mapping):
            raise ShapeError(
                f"terms of joint constraint {name!r} must be a mapping such as {{'left': 1, 'right': 1}}, not {terms!r}"
            )
        joints = {
            joint_name: joint_or_goal
            for joint_name, joint_or_goal in self._joints.items()
            if isinstance(joint_or_goal, Joint)
        }
        coefficients_by_dof: dict[JointDof, Coefficients] = {}
        for joint_or_dof, coefficients in terms.items():
            joint, dofs = joint_and_dofs(joint_or_dof, joints)
            coefficients_by_dof[joint if joint_or_dof in joints else (joint, dofs[0])] = coefficients
        self._joint_constraints[name] = constraint = JointConstraint(coefficients_by_dof, constant, name=name)
        return constraint

    def _joint_of_one_dof(self, name: str, is_rotation: bool) -> Joint:
        joint = self._find_joint(name)
        if len(joint.dof) != 1 or joint.dof[0].is_rotation != is_rotation:
            raise DoFError(
                f"{joint} must be {'revolute' if is_rotation else 'prismatic'}; use couple() for joints of other types"
            )
        return joint

    def _find_joint(self, name: str) -> Joint:
        joint = self._joints.get(name)
        if not isinstance(joint, Joint):
            raise UnknownName(
                "joint",
                name,
                [joint_name for joint_name, joint_or_goal in self._joints.items() if isinstance(joint_or_goal, Joint)],
            )
        return joint


ClosureKind = Literal[
    "weld", "pin", "ball", "slider", "universal", "cylindrical", "planar", "point_on_line", "point_on_plane"
]

CLOSURE_FREE_DOF: dict[str, tuple[DoF, ...]] = {
    "weld": (),
    "pin": (DoF.EZ,),
    "ball": ROTATIONS,
    "slider": (DoF.Z,),
    "universal": (DoF.EX, DoF.EY),
    "cylindrical": (DoF.Z, DoF.EZ),
    "planar": (DoF.X, DoF.Y, DoF.EZ),
    "point_on_line": (DoF.Z, *ROTATIONS),
    "point_on_plane": (DoF.X, DoF.Y, *ROTATIONS),
}
"""The free dofs of each kind of closure. The z axis is along `axis`: the direction of a line, the normal of a plane."""


class JointOptions(TypedDict, total=False):
    """The keyword options of the joint methods of a builder: see `Builder.joint`."""

    at: ArrayLike | Pose | None
    axis: AxisLike
    limits: Sequence[ArrayLike] | None
    value: ArrayLike | None


class Builder(BuilderCouplings):
    """A builder of mechanisms from named links and joints; links without a parent are fixed in the world.

    Each joint method takes the name of the joint, the parent link and the child link, and `at`: the joint's point (3,)
    or pose in the parent link. A child link is created when it is first named, and so is the first parent link.

    Args:
        name: name of the mechanism.

    Attributes:
        name: name of the mechanism.

    Example:
        >>> builder = mk.Builder("pendulum")
        >>> _ = builder.revolute("hinge", "base", "rod", at=(0, 0, 1), axis="y", limits=(-2, 2))
        >>> _ = builder.fixed("end", "rod", "tip", at=(0, 0, -0.5))
        >>> builder.build().pose("tip")[:3, 3]
        array([0. , 0. , 0.5])
    """

    def __init__(self, name: str = "") -> None:
        super().__init__()
        self.name = name
        self._links: dict[str, Link] = {}

    def __repr__(self) -> str:
        goal_count = sum(isinstance(joint_or_goal, Goal) for joint_or_goal in self._joints.values())
        counts = [(len(self._links), "link"), (len(self._joints) - goal_count, "joint")]
        counts += [(goal_count, "goal")] if goal_count else []
        parts = ", ".join(format_count(count, noun) for count, noun in counts)
        return f"<builder of {self.name!r}: {parts} so far>"

    def link(
        self,
        name: str,
        *,
        visuals: Sequence[ShapeInstance] = (),
        collisions: Sequence[ShapeInstance] | None = None,
        inertial: Inertial | None = None,
        at: ArrayLike | Pose | None = None,
    ) -> Link:
        """Create a link, or replace those properties of an existing link that are given.

        Args:
            name: name of the link.
            visuals: shapes for display.
            collisions: shapes for collision checks; default: `visuals`, if they are given.
            inertial: mass and inertia.
            at: pose or point in the world, for a root link.

        Returns:
            The link.

        Raises:
            InvalidArgument: a shape is not a `ShapeInstance`.
            ShapeError: `at` is neither a point nor a pose.
        """
        link = self._links.get(name)
        if link is None:
            link = self._links[name] = Link(name)
        link.visuals = visuals or link.visuals
        link.collisions = (visuals if collisions is None else collisions) or link.collisions
        link.inertial = inertial or link.inertial
        if at is not None:
            link.matrix = as_point_or_pose(at, name)
        return link

    def joint(
        self,
        name: str,
        parent: str,
        child: str,
        dof: Iterable[DoFLike] | DoFLike,
        *,
        at: ArrayLike | Pose | None = None,
        axis: AxisLike = "z",
        limits: Sequence[ArrayLike] | None = None,
        value: ArrayLike | None = None,
    ) -> Joint:
        """Create a joint with any dofs, in axes of motion whose z axis points along `axis`.

        Args:
            name: name of the joint.
            parent: name of the parent link.
            child: name of the child link; it is created if it does not exist.
            dof: dofs in the order X Y Z EX EY EZ.
            at: point (3,), pose (4, 4) or `Pose` of the joint in the parent link; m. Default: the parent frame.
            axis: "x", "y", "z", "-x", "-y", "-z", or a vector (3,), in the joint frame.
            limits: (lower, upper), each a number or an array over the dofs; m or rad.
            value: initial value of each dof; m or rad.

        Returns:
            The joint.

        Raises:
            UnknownName: the builder has links, but none with the name `parent`.
            StructureError: the name of the joint is in use or empty, the child already has a parent, or is the link
                `parent` or one of its ancestors, or `limits` is not a pair.
            DoFError: `dof` or `axis` is invalid.
            LimitsError: a lower limit is above the upper limit.
            ShapeError: `at`, `axis` or `value` has the wrong shape.
        """
        self._check_name_and_parent(name, parent)
        if child in self._links and self._links[child].parent is not None:
            present_parent = self._links[child].parent
            raise StructureError(
                f"link {child!r} already has the parent {present_parent}; use close() for a second joint"
            )
        if child == parent:
            raise StructureError(f"joint {name!r} connects link {child!r} to itself")
        if (
            parent in self._links
            and child in self._links
            and self._links[child] in self._links[parent].traverse_parents()
        ):
            raise StructureError(f"link {child!r} is above joint {name!r}; use close() to close a loop")
        joint = Joint(name, dof=dof)
        joint.matrix = as_point_or_pose(at, name)
        joint.axes_wxyz = as_axes_wxyz(axis, name)
        if limits is not None:
            joint.set_limits(*as_limits(limits, len(joint.dof), name))
        if value is not None:
            joint.set_values(value)
        # attached after all checks, so that an invalid argument leaves the builder unchanged
        parent_link, child_link = (self._links.get(link_name) or Link(link_name) for link_name in (parent, child))
        self._links |= {parent: parent_link, child: child_link}
        self._attach(joint, parent)
        joint.add_child(child_link)
        return joint

    def revolute(self, name: str, parent: str, child: str, **options: Unpack[JointOptions]) -> Joint:
        """Create a joint with a rotation about `axis`.

        Args:
            name, parent, child: names of the joint, of its parent link and of its child link.
            **options: `at`, `axis`, `limits`, `value` as in `joint`.
        """
        return self.joint(name, parent, child, DoF.EZ, **options)

    def prismatic(self, name: str, parent: str, child: str, **options: Unpack[JointOptions]) -> Joint:
        """Create a joint with a translation along `axis`.

        Args:
            name, parent, child: names of the joint, of its parent link and of its child link.
            **options: `at`, `axis`, `limits`, `value` as in `joint`.
        """
        return self.joint(name, parent, child, DoF.Z, **options)

    def spherical(self, name: str, parent: str, child: str, **options: Unpack[JointOptions]) -> Joint:
        """Create a joint with three rotations. Without limits, its rotation is stored as a quaternion.

        Args:
            name, parent, child: names of the joint, of its parent link and of its child link.
            **options: `at`, `axis`, `limits`, `value` as in `joint`.
        """
        return self.joint(name, parent, child, ROTATIONS, **options)

    def universal(self, name: str, parent: str, child: str, **options: Unpack[JointOptions]) -> Joint:
        """Create a joint with two rotations: about the y axis of motion, then about the rotated x axis.

        At joint values of zero, both are normal to `axis`.

        Args:
            name, parent, child: names of the joint, of its parent link and of its child link.
            **options: `at`, `axis`, `limits`, `value` as in `joint`.
        """
        return self.joint(name, parent, child, (DoF.EX, DoF.EY), **options)

    def cylindrical(self, name: str, parent: str, child: str, **options: Unpack[JointOptions]) -> Joint:
        """Create a joint with a translation along `axis` and a rotation about it.

        Args:
            name, parent, child: names of the joint, of its parent link and of its child link.
            **options: `at`, `axis`, `limits`, `value` as in `joint`.
        """
        return self.joint(name, parent, child, (DoF.Z, DoF.EZ), **options)

    def planar(self, name: str, parent: str, child: str, **options: Unpack[JointOptions]) -> Joint:
        """Create a joint with two translations normal to `axis` and a rotation about it.

        Args:
            name, parent, child: names of the joint, of its parent link and of its child link.
            **options: `at`, `axis`, `limits`, `value` as in `joint`.
        """
        return self.joint(name, parent, child, (DoF.X, DoF.Y, DoF.EZ), **options)

    def free(self, name: str, parent: str, child: str, **options: Unpack[JointOptions]) -> Joint:
        """Create a joint with all six dofs, for a floating body.

        Args:
            name, parent, child: names of the joint, of its parent link and of its child link.
            **options: `at`, `axis`, `limits`, `value` as in `joint`.
        """
        return self.joint(name, parent, child, ALL_DOFS, **options)

    def fixed(self, name: str, parent: str, child: str, *, at: ArrayLike | Pose | None = None) -> Joint:
        """Create a joint without dofs.

        Args:
            name, parent, child: names of the joint, of its parent link and of its child link.
            at: as in `joint`.
        """
        return self.joint(name, parent, child, (), at=at)

    def close(
        self,
        name: str,
        a: str,
        b: str,
        kind: ClosureKind | Iterable[DoFLike],
        *,
        at: ArrayLike | Pose | None = None,
        onto: ArrayLike | Pose | None = None,
        axis: AxisLike = "z",
    ) -> Closure:
        """Close a loop: connect two links of the tree by an additional joint.

        Args:
            name: name of the closing joint.
            a, b: names of the links.
            kind: kind of the closing joint, such as "pin", or a list of the dofs that stay free (in axes whose z axis
                points along `axis`).
            at: point or pose on link `a`; m. Default: the frame of `a`.
            onto: point or pose on link `b`; m. Default: the present pose of the closing joint, so that the loop is
                closed in the present configuration.
            axis: z axis of the closing joint, in its frame; as in `joint`.

        Returns:
            The closure.

        Raises:
            UnknownName: no link or kind of closure has that name.
            InvalidArgument: `kind` is neither a name nor a list.
            DoFError: `axis` or a dof in `kind` is invalid.
            StructureError: the name is in use or empty, or both links are the same.
        """
        if isinstance(kind, str):
            if kind not in CLOSURE_FREE_DOF:
                raise UnknownName("kind of closure", kind, CLOSURE_FREE_DOF)
            free_dof = CLOSURE_FREE_DOF[kind]
        elif isinstance(kind, Iterable):
            free_dof = as_dofs(kind)
        else:  # a single dof is rejected: it is an integer, and an integer is probably a mistake
            raise InvalidArgument(
                f"the kind of closure {name!r} must be one of {', '.join(CLOSURE_FREE_DOF)}, "
                f'or a list of free dofs such as ["Z", "EZ"], not {kind!r}'
            )
        for link_name in (a, b):
            if link_name not in self._links:
                raise UnknownName("link", link_name, self._links)
        if a == b:
            raise StructureError(f"closure {name!r} connects link {a!r} to itself")
        self._check_name_and_parent(name, a)
        joint = Joint(name, dof=free_dof)
        joint.matrix = as_point_or_pose(at, name)
        joint.axes_wxyz = as_axes_wxyz(axis, name)
        if onto is None:
            X_b_end = inverse(self._links[b].world_matrix) @ self._links[a].world_matrix @ joint.matrix
        else:
            X_b_end = as_point_or_pose(onto, name)
        self._attach(joint, a)
        return joint.make_closure(self._links[b], X_b_end)

    def goal(
        self,
        name: str,
        link: str,
        *,
        at: ArrayLike | Pose | None = None,
        dof: Iterable[DoFLike] = ALL_DOFS,
        axes: Literal["goal", "world"] = "goal",
        on: str | None = None,
    ) -> Goal:
        """Create a goal for a link.

        Args:
            name: name of the goal.
            link: name of the link to bring to the goal.
            at: point or pose in the world, or on the link `on`; m. Default: the present pose of `link`.
            dof: the constrained dofs, in the order X Y Z EX EY EZ; default: all six.
            axes: "goal": the dofs are along and about the axes of the goal; "world": the axes of the world.
            on: name of the link to which the goal is attached; default: the world.

        Returns:
            The goal.

        Raises:
            UnknownName: no link has that name.
            DoFError: `dof` or `axes` is invalid.
            StructureError: the name is in use or empty, or `on` is `link`.
        """
        if link not in self._links:
            raise UnknownName("link", link, self._links)
        self._check_name_and_parent(name, link if on is None else on)
        goal = Goal(name, dof=dof, axes=axes)
        X_parent_goal = as_point_or_pose(at, name)
        if on == link:
            raise StructureError(f"goal {name!r} is attached to link {link!r}, which it moves; choose another link")
        if on is not None:
            self._attach(goal, on)
        self._joints[name] = goal
        if at is None:
            goal.world_matrix = self._links[link].world_matrix
        else:
            goal.matrix = X_parent_goal
        goal.make_closure(self._links[link])
        return goal

    def build(self) -> Mechanism:
        """Return the mechanism; it may have several roots.

        Raises:
            StructureError: there is no link.
        """
        if not self._links:
            raise StructureError("the builder is empty: add at least one link or joint")
        return Mechanism([link.root for link in self._links.values()], name=self.name)

    def _check_name_and_parent(self, name: str, parent: str) -> None:
        if name == "":
            raise StructureError("the name of a joint, closure or goal is empty; give each a name")
        if name in self._joints:
            raise StructureError(
                f"two joints, closures or goals are called {name!r}; names must be unique", code="duplicate-name"
            )
        if parent not in self._links and self._links:
            raise UnknownName("link", parent, self._links)

    def _attach(self, joint: Joint | Goal, parent: str) -> None:
        self.link(parent).add_child(joint)
        self._joints[joint.name] = joint


def trim(mechanism: Mechanism, keep: Iterable[str] = ()) -> list[str]:
    """Remove the subtrees of a mechanism that have no moving joint, closure or goal; their masses are removed too.

    Root links, child links of moving joints and the links in `keep` are not removed.

    Args:
        mechanism: the mechanism; it is changed in place.
        keep: names of links that are not removed.

    Returns:
        The names of the removed links.

    Raises:
        UnknownName: a name in `keep` is not the name of a link.

    Example:
        >>> arm = mk.gallery.planar_2r()
        >>> mk.trim(arm)
        ['tool']
    """
    retained_links = {mechanism.link(name) for name in ([keep] if isinstance(keep, str) else keep)}
    removed_names: list[str] = []
    leaves = [link for link in mechanism.links.values() if not link.children]
    while leaves:
        link = leaves.pop()
        joint = link.parent
        if not isinstance(joint, Joint) or joint.dof or link.closures or link in retained_links or joint.parent is None:
            continue
        parent = joint.parent
        parent.remove_child(joint)
        removed_names.append(link.name)
        if not parent.children and parent.kind == "link":
            leaves.append(parent)  # type: ignore[arg-type]
    return removed_names
