"""Mechanisms written by hand: name the joints, say what they join, close the loops."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, TypedDict, Unpack

from mechanik.errors import DuplicateName, StructureError, UnknownName, WrongKind
from mechanik.mechanism.bonds import Bonds
from mechanik.mechanism.closure import Closure
from mechanik.mechanism.dof import ALL, ROTATIONS, DoF, DoFLike, as_dofs
from mechanik.mechanism.door import counted
from mechanik.mechanism.goal import Goal
from mechanik.mechanism.joint import Joint
from mechanik.mechanism.link import Link
from mechanik.mechanism.mechanism import Mechanism
from mechanik.mechanism.placing import Axis, as_axes, as_limits, as_place
from mechanik.mechanism.shapes import Inertial, PlacedShape
from mechanik.spatial import Pose, inverse
from mechanik.spatial.array import ArrayLike

Kind = Literal["weld", "pin", "ball", "slider", "universal", "cylindrical", "planar", "point_on_line", "point_on_plane"]

CLOSURES: dict[str, tuple[DoF, ...]] = {
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
"""The freedoms that each kind of closure leaves, with `axis` as z: of a line its direction, of a plane its normal."""


class JointOptions(TypedDict, total=False):
    """What every joint of a builder takes: see `Builder.joint`."""

    at: ArrayLike | Pose | None
    axis: Axis
    limits: Sequence[ArrayLike] | None
    value: ArrayLike | None


class Builder(Bonds):
    """Collects links and joints by name. The first parent that is named is the root and stands in the world.

    Every joint method takes the joint's name, the parent and the child link, and `at`: where the joint sits in the
    parent, as a point (3,) or a pose. A child link is made when it is first named.
    """

    def __init__(self, name: str = "") -> None:
        super().__init__()
        self.name = name
        self._links: dict[str, Link] = {}

    def __repr__(self) -> str:
        parts = f"{counted(len(self._links), 'link')}, {counted(len(self._joints), 'joint')}"
        return f"<builder of {self.name!r}: {parts} so far>"

    def link(
        self,
        name: str,
        *,
        visuals: Sequence[PlacedShape] = (),
        collisions: Sequence[PlacedShape] | None = None,
        inertial: Inertial | None = None,
        at: ArrayLike | Pose | None = None,
    ) -> Link:
        """Make a link, or dress one that a joint has made: shapes (bumping with what is seen, unless said), mass.

        Args:
            at: for a link that stands in the world: where.
        """
        link = self._links.get(name)
        if link is None:
            link = self._links[name] = Link(name)
        link.visuals = visuals or link.visuals
        link.collisions = (visuals if collisions is None else collisions) or link.collisions
        link.inertial = inertial or link.inertial
        if at is not None:
            link.matrix = as_place(at, name)
        return link

    def joint(
        self,
        name: str,
        parent: str,
        child: str,
        dof: Iterable[DoFLike] | DoFLike,
        *,
        at: ArrayLike | Pose | None = None,
        axis: Axis = "z",
        limits: Sequence[ArrayLike] | None = None,
        value: ArrayLike | None = None,
    ) -> Joint:
        """A joint with any freedoms, in axes of which the z axis points along `axis`.

        Args:
            dof: in the order X Y Z EX EY EZ.
            at: where it sits in the parent: a point (3,), or a pose (4, 4) or `Pose`.
            axis: "x", "y", "z", "-x", "-y", "-z", or a vector (3,), in the joint's frame.
            limits: (lower, upper), each a number or one for each freedom; m or rad.
            value: where it stands, one number for each freedom.
        """
        self._check_new(name, parent)
        if child in self._links and self._links[child].parent is not None:
            above = self._links[child].parent
            raise StructureError(f"link {child!r} hangs on {above} already; to join it a second time use close()")
        if child == parent:
            raise StructureError(f"joint {name!r} would join link {child!r} to itself")
        joint = Joint(name, dof=dof)
        joint.matrix = as_place(at, name)
        joint.axes_wxyz = as_axes(axis, name)
        if limits is not None:
            joint.set_limits(*as_limits(limits, len(joint.dof), name))
        if value is not None:
            joint.set_values(value)
        # hung only when nothing can go wrong any more: a call that fails changes nothing
        self._hang(joint, parent)
        joint.add_child(self.link(child))
        return joint

    def revolute(self, name: str, parent: str, child: str, **options: Unpack[JointOptions]) -> Joint:
        """One turn about `axis`. Options: at, axis, limits, value, as in `joint`."""
        return self.joint(name, parent, child, DoF.EZ, **options)

    def prismatic(self, name: str, parent: str, child: str, **options: Unpack[JointOptions]) -> Joint:
        """One shift along `axis`. Options: at, axis, limits, value, as in `joint`."""
        return self.joint(name, parent, child, DoF.Z, **options)

    def ball(self, name: str, parent: str, child: str, **options: Unpack[JointOptions]) -> Joint:
        """All turns. Options as in `joint`; a ball without limits is kept as a quaternion."""
        return self.joint(name, parent, child, ROTATIONS, **options)

    def universal(self, name: str, parent: str, child: str, **options: Unpack[JointOptions]) -> Joint:
        """Two crossed turns, normal to `axis`: first about y, then about the x that it carried along."""
        return self.joint(name, parent, child, (DoF.EX, DoF.EY), **options)

    def cylindrical(self, name: str, parent: str, child: str, **options: Unpack[JointOptions]) -> Joint:
        """A shift along `axis` and a turn about it."""
        return self.joint(name, parent, child, (DoF.Z, DoF.EZ), **options)

    def planar(self, name: str, parent: str, child: str, **options: Unpack[JointOptions]) -> Joint:
        """Two shifts in the plane normal to `axis` and a turn about it."""
        return self.joint(name, parent, child, (DoF.X, DoF.Y, DoF.EZ), **options)

    def free(self, name: str, parent: str, child: str, **options: Unpack[JointOptions]) -> Joint:
        """All six freedoms: a body that floats."""
        return self.joint(name, parent, child, ALL, **options)

    def fixed(self, name: str, parent: str, child: str, *, at: ArrayLike | Pose | None = None) -> Joint:
        """No freedom."""
        return self.joint(name, parent, child, (), at=at)

    def close(
        self,
        name: str,
        a: str,
        b: str,
        kind: Kind | Iterable[DoFLike],
        *,
        at: ArrayLike | Pose | None = None,
        onto: ArrayLike | Pose | None = None,
        axis: Axis = "z",
    ) -> Closure:
        """Join two links that both hang in the tree, and so close a loop.

        Args:
            kind: a name, or the freedoms that stay (in axes of which z points along `axis`).
            at: where on link `a`, as a point or a pose.
            onto: where on link `b`; if it is not given, where `at` is now, so that the loop is shut as it stands.
        """
        if isinstance(kind, str):
            if kind not in CLOSURES:
                raise UnknownName("kind of closure", kind, CLOSURES)
            free = CLOSURES[kind]
        elif isinstance(kind, Iterable):
            free = as_dofs(kind)
        else:  # a single freedom is too easily something else
            raise WrongKind(
                f"the kind of closure {name!r} is one of {', '.join(CLOSURES)}, "
                f'or a list of the freedoms that stay, as ["Z", "EZ"], not {kind!r}'
            )
        for link in (a, b):
            if link not in self._links:
                raise UnknownName("link", link, self._links)
        if a == b:
            raise StructureError(f"closure {name!r} would join link {a!r} to itself")
        self._check_new(name, a)
        joint = Joint(name, dof=free)
        joint.matrix = as_place(at, name)
        joint.axes_wxyz = as_axes(axis, name)
        if onto is None:
            X_b_end = inverse(self._links[b].world_matrix) @ self._links[a].world_matrix @ joint.matrix
        else:
            X_b_end = as_place(onto, name)
        self._hang(joint, a)
        return joint.make_closure(self._links[b], X_b_end)

    def goal(
        self,
        name: str,
        link: str,
        *,
        at: ArrayLike | Pose | None = None,
        dof: Iterable[DoFLike] = ALL,
        axes: Literal["goal", "world"] = "goal",
        on: str | None = None,
    ) -> Goal:
        """Want a link somewhere: at `at` in the world, or on the link `on`; by default where it is now."""
        if link not in self._links:
            raise UnknownName("link", link, self._links)
        self._check_new(name, link if on is None else on)
        goal = Goal(name, dof=dof, axes=axes)
        place = as_place(at, name)
        if on is not None:
            self._hang(goal, on)
        self._joints[name] = goal
        if at is None:
            goal.world_matrix = self._links[link].world_matrix
        else:
            goal.matrix = place
        goal.make_closure(self._links[link])
        return goal

    def build(self) -> Mechanism:
        """The mechanism, which may stand on several roots."""
        if not self._links:
            raise StructureError("nothing was built: name at least one link or joint")
        return Mechanism([link.root for link in self._links.values()], name=self.name)

    def _check_new(self, name: str, parent: str) -> None:
        if name == "":
            raise StructureError("a joint, a closure or a goal of a builder needs a name, and '' is none")
        if name in self._joints:
            raise DuplicateName(f"two joints are called {name!r}; names must be unique")
        if parent not in self._links and self._links:
            raise UnknownName("link", parent, self._links)

    def _hang(self, joint: Joint | Goal, parent: str) -> None:
        self._joints[joint.name] = joint
        self.link(parent).add_child(joint)
