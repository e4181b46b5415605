"""Recognition of arms with closed-form inverse kinematics, from the geometry of their joint axes.

The result does not depend on the choice of the link frames. The families (nR means n revolute joints; axes are counted
from the base):

    planar 2R, planar 3R      all axes parallel
    spherical wrist           6R; axes 4, 5, 6 intersect in a point
    spherical shoulder        6R; axes 1, 2, 3 intersect in a point (a spherical wrist with base and tip exchanged)
    three parallel axes       6R; axes 2, 3, 4 parallel, or axes 3, 4, 5
    S-R-S                     7R; axes 1, 2, 3 intersect in a point, and axes 5, 6, 7 in another
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from mechanik.errors import NoClosedForm
from mechanik.model import screw_axes as lines
from mechanik.model.kinematic_graph import moving_joints
from mechanik.model.screw_axes import ScrewAxes, screw_axes
from mechanik.spatial import rotation
from mechanik.spatial.array import Array
from mechanik.spatial.vector_math import cross
from mechanik.validation import format_count

if TYPE_CHECKING:
    from mechanik.model.joint import Joint
    from mechanik.model.mechanism import Mechanism

AXIS_TOLERANCE = 3e-5
"""Largest angle of axes that count as parallel (rad); largest distance of axes that count as intersecting (share of
the arm's reach).

Some files round pi to 3.1416. This tilts an axis by 7e-6 rad, and the next axis by another 7e-6 rad. Newton's method
removes the error that remains in the closed form.
"""


class ClosedFormFamily(StrEnum):
    """The families of arms with a closed form."""

    PLANAR_2R = "planar 2R"
    PLANAR_3R = "planar 3R"
    SPHERICAL_WRIST = "spherical wrist"
    SPHERICAL_SHOULDER = "spherical shoulder"
    THREE_PARALLEL = "three parallel axes"
    SRS = "S-R-S"


@dataclass(frozen=True, slots=True, eq=False)
class ClosedFormMatch:
    """The closed-form family of a chain, or the reasons why it has none; `bool(match)` is whether there is a family.

    Attributes:
        family: the family; None if no closed form is known.
        reasons: why the family applies, or why no family does; text for messages.
        axes: axes of the chain; None if the joints of the chain are not all independent revolute joints.
        is_reversed: whether the family applies to the chain with base and tip exchanged, last axis first.
        deviation: largest deviation from the exact geometry of the family, rad or share of the reach.
    """

    family: ClosedFormFamily | None
    reasons: tuple[str, ...]
    axes: ScrewAxes | None = None
    is_reversed: bool = False
    deviation: float = 0.0

    def __bool__(self) -> bool:
        return self.family is not None


@dataclass(frozen=True, slots=True)
class _GeometricTest:
    """The result of a geometric test; `reason` is text for messages, `deviation` is in rad or a share of the reach."""

    is_satisfied: bool
    reason: str
    deviation: float = 0.0


class _ChainGeometry:
    """Geometric tests of the axes of a chain; `reach` and `length_tolerance` are in m."""

    def __init__(self, axes: ScrewAxes) -> None:
        self.axes, self.reach = axes, axes.reach
        self.length_tolerance = AXIS_TOLERANCE * self.reach

    def test_parallel(self, axis_indices: Sequence[int]) -> _GeometricTest:
        directions = self.axes.directions
        angle, i, j = max(
            (lines.angle_between_lines(directions[i], directions[j]), i, j)
            for i in axis_indices
            for j in axis_indices
            if i < j
        )
        if angle < AXIS_TOLERANCE:
            return _GeometricTest(True, f"{_format_axes(axis_indices)} are parallel (to {angle:.1g} rad)", angle)
        return _GeometricTest(False, f"axes {i + 1} and {j + 1} are not parallel (angle {angle:.4g} rad)")

    def test_common_point(self, axis_indices: Sequence[int]) -> _GeometricTest:
        """Test whether axes intersect in a point, and no two successive axes are parallel."""
        points, directions = self.axes.points, self.axes.directions
        for i, j in pairwise(axis_indices):
            if lines.angle_between_lines(directions[i], directions[j]) < AXIS_TOLERANCE:
                return _GeometricTest(
                    False, f"axes {i + 1} and {j + 1} are parallel, so they do not intersect in a point"
                )
        point, max_distance = lines.closest_point_to_lines(points[list(axis_indices)], directions[list(axis_indices)])
        if max_distance < self.length_tolerance:
            location = _format_point(point, self.reach)
            reason = f"{_format_axes(axis_indices)} intersect in the point {location} (to {max_distance:.1g} m)"
            return _GeometricTest(True, reason, max_distance / self.reach)
        distance, i, j = max(
            (lines.line_distance(points[i], directions[i], points[j], directions[j]), i, j)
            for i in axis_indices
            for j in axis_indices
            if i < j
        )
        if distance >= self.length_tolerance:
            return _GeometricTest(False, f"axes {i + 1} and {j + 1} do not intersect (distance {distance:.4g} m)")
        return _GeometricTest(
            False,
            f"{_format_axes(axis_indices)} intersect in pairs, but not in a common point "
            f"(distance {max_distance:.4g} m)",
        )

    def common_point(self, axis_indices: Sequence[int]) -> Array:
        return lines.closest_point_to_lines(
            self.axes.points[list(axis_indices)], self.axes.directions[list(axis_indices)]
        )[0]

    def is_on_axis(self, point: Array, k: int) -> bool:
        return (
            float(
                np.linalg.norm(point - lines.closest_point_on_line(point, self.axes.points[k], self.axes.directions[k]))
            )
            < self.length_tolerance
        )

    def distance(self, i: int, j: int) -> float:
        points, directions = self.axes.points, self.axes.directions
        return lines.line_distance(points[i], directions[i], points[j], directions[j])

    def can_move_in_all_dofs(self) -> bool:
        """Return whether the Jacobian has rank six in at least one of five random configurations."""
        for q in np.random.default_rng(0).uniform(-3, 3, (5, self.axes.n)):
            J = _jacobian(self.axes, q)
            J[:3] /= self.axes.reach
            singular_values = np.linalg.svd(J, compute_uv=False)
            if singular_values[5] > 10 * AXIS_TOLERANCE * singular_values[0]:
                return True
        return False


def match_closed_form(mechanism: Mechanism, link: str, base: str | None = None) -> ClosedFormMatch:
    """Determine the closed-form family of the chain from `base` to `link`, or why it has none.

    Args:
        mechanism: the mechanism.
        link: name of the tip link.
        base: name of a link above `link`; default: the world.

    Raises:
        UnknownName: no link has that name.
        StructureError: `base` is not above `link`.
    """
    try:
        axes = screw_axes(mechanism.kinematics, link, base)
    except NoClosedForm as error:
        return ClosedFormMatch(None, (str(error),))
    for name, closure in mechanism.closures.items():
        if axis_name := _first_axis_of(mechanism, axes, moving_joints(closure)):
            return ClosedFormMatch(None, (f"joint {axis_name!r} is part of the loop that {name!r} closes",), axes)
    for name, constraint in mechanism.joint_constraints.items():
        if axis_name := _first_axis_of(mechanism, axes, [joint for joint, _ in constraint.resolve_couplings()[0]]):
            return ClosedFormMatch(None, (f"joint {axis_name!r} is part of the joint constraint {name!r}",), axes)
    for name, joint in mechanism.joints.items():
        if joint.cone is not None and _first_axis_of(mechanism, axes, [joint]):
            return ClosedFormMatch(None, (f"joint {name!r} has a cone limit",), axes)
    return match_closed_form_axes(axes)


def _first_axis_of(mechanism: Mechanism, axes: ScrewAxes, joints: Iterable[Joint]) -> str:
    """Return the name of the first axis of the chain that belongs to one of the joints; empty if none does."""
    joint_indices = mechanism.kinematics.joint_indices
    columns = {column for joint in joints if joint in joint_indices for column in joint_indices[joint].q.values()}
    return next((name for name, k in zip(axes.names, axes.columns.tolist(), strict=True) if k in columns), "")


def match_closed_form_axes(axes: ScrewAxes) -> ClosedFormMatch:
    """Determine the closed-form family of a chain from its axes alone."""
    geometry = _ChainGeometry(axes)
    match axes.n:
        case 2:
            return _match_planar_2r(geometry)
        case 3:
            return _match_planar_3r(geometry)
        case 6:
            return _match_6r(geometry)
        case 7:
            return _match_7r(geometry)
        case n:
            count = format_count(n, "independent revolute joint")
            return ClosedFormMatch(
                None, (f"the chain has {count}; closed forms are implemented for 2, 3, 6 and 7",), axes
            )


def _match_planar_2r(geometry: _ChainGeometry) -> ClosedFormMatch:
    parallel_test, axes = geometry.test_parallel((0, 1)), geometry.axes
    if not parallel_test.is_satisfied:
        return ClosedFormMatch(None, (parallel_test.reason,), axes)
    if geometry.distance(0, 1) < geometry.length_tolerance:
        return ClosedFormMatch(None, ("axes 1 and 2 coincide",), axes)
    if geometry.is_on_axis(axes.home[:3, 3], 1):
        return ClosedFormMatch(None, ("the link's origin lies on axis 2, so axis 2 does not move it",), axes)
    reason = f"{parallel_test.reason}: the link's origin moves in a plane"
    return ClosedFormMatch(ClosedFormFamily.PLANAR_2R, (reason,), axes, deviation=parallel_test.deviation)


def _match_planar_3r(geometry: _ChainGeometry) -> ClosedFormMatch:
    parallel_test, axes = geometry.test_parallel((0, 1, 2)), geometry.axes
    if not parallel_test.is_satisfied:
        return ClosedFormMatch(None, (parallel_test.reason,), axes)
    for i in (0, 1):
        if geometry.distance(i, i + 1) < geometry.length_tolerance:
            return ClosedFormMatch(None, (f"axes {i + 1} and {i + 2} coincide",), axes)
    reason = f"{parallel_test.reason}: the link moves and rotates in a plane"
    return ClosedFormMatch(ClosedFormFamily.PLANAR_3R, (reason,), axes, deviation=parallel_test.deviation)


def _match_6r(geometry: _ChainGeometry) -> ClosedFormMatch:
    candidates = (
        (
            ClosedFormFamily.SPHERICAL_WRIST,
            False,
            geometry.test_common_point((3, 4, 5)),
            "axes 1, 2 and 3 determine the position of the wrist",
        ),
        (
            ClosedFormFamily.SPHERICAL_SHOULDER,
            True,
            geometry.test_common_point((0, 1, 2)),
            "with base and tip exchanged, the shoulder is a spherical wrist",
        ),
        (
            ClosedFormFamily.THREE_PARALLEL,
            False,
            geometry.test_parallel((1, 2, 3)),
            "axes 1, 5 and 6 determine the other three dofs",
        ),
        (
            ClosedFormFamily.THREE_PARALLEL,
            True,
            geometry.test_parallel((2, 3, 4)),
            "axes 1, 2 and 6 determine the other three dofs",
        ),
    )
    suffixes = {
        ClosedFormFamily.SPHERICAL_WRIST: ": the wrist is not spherical",
        ClosedFormFamily.SPHERICAL_SHOULDER: ": the shoulder is not spherical",
    }
    reasons: list[str] = []
    for family, is_reversed, test, consequence in candidates:
        if not test.is_satisfied:
            reasons.append(test.reason + suffixes.get(family, ""))
        elif not geometry.can_move_in_all_dofs():
            reasons.append(f"{test.reason}, but the link cannot move in all six dofs")
        elif degeneracy := _degeneracy(geometry, family, is_reversed):
            reasons.append(f"{test.reason}, but {degeneracy}")
        else:
            return ClosedFormMatch(family, (test.reason, consequence), geometry.axes, is_reversed, test.deviation)
    return ClosedFormMatch(None, tuple(dict.fromkeys(reasons)), geometry.axes)


def _degeneracy(geometry: _ChainGeometry, family: ClosedFormFamily, is_reversed: bool) -> str:
    """Describe a degeneracy of the axes that prevents the closed form of the family; empty if there is none."""
    order = (5, 4, 3, 2, 1, 0) if is_reversed else (0, 1, 2, 3, 4, 5)
    first_axis, second_axis, third_axis = order[:3]
    if family is ClosedFormFamily.THREE_PARALLEL:
        for i, j in ((order[1], order[2]), (order[2], order[3])):
            if geometry.distance(i, j) < geometry.length_tolerance:
                return f"axes {i + 1} and {j + 1} coincide"
        return ""
    wrist_centre = geometry.common_point(order[3:])
    if geometry.is_on_axis(wrist_centre, third_axis):
        return f"axis {third_axis + 1} also passes through that point"
    if (
        geometry.test_parallel((first_axis, second_axis)).is_satisfied
        and geometry.distance(first_axis, second_axis) < geometry.length_tolerance
    ):
        return f"axes {first_axis + 1} and {second_axis + 1} coincide"
    return ""


def _match_7r(geometry: _ChainGeometry) -> ClosedFormMatch:
    shoulder_test, wrist_test, axes = (
        geometry.test_common_point((0, 1, 2)),
        geometry.test_common_point((4, 5, 6)),
        geometry.axes,
    )
    if not (shoulder_test.is_satisfied and wrist_test.is_satisfied):
        tests = ((shoulder_test, "shoulder"), (wrist_test, "wrist"))
        return ClosedFormMatch(
            None,
            tuple(f"{test.reason}: the {part} is not spherical" for test, part in tests if not test.is_satisfied),
            axes,
        )
    for point, part in ((geometry.common_point((0, 1, 2)), "shoulder"), (geometry.common_point((4, 5, 6)), "wrist")):
        if geometry.is_on_axis(point, 3):
            return ClosedFormMatch(None, (f"axis 4 passes through the {part}, so the arm cannot bend",), axes)
    if not geometry.can_move_in_all_dofs():
        return ClosedFormMatch(None, ("the link cannot move in all six dofs",), axes)
    reasons = (shoulder_test.reason, wrist_test.reason, "the elbow can rotate about the line from shoulder to wrist")
    return ClosedFormMatch(
        ClosedFormFamily.SRS, reasons, axes, deviation=max(shoulder_test.deviation, wrist_test.deviation)
    )


def _jacobian(axes: ScrewAxes, q: Array) -> Array:
    """Return the Jacobian (6, n) of the link's origin (linear, angular) at q (n,), without kernels."""
    R, translation = np.eye(3), np.zeros(3)
    directions, points = np.empty((axes.n, 3)), np.empty((axes.n, 3))
    for k, (direction, point) in enumerate(zip(axes.directions, axes.points, strict=True)):
        directions[k], points[k] = R @ direction, R @ point + translation
        R = R @ rotation.from_axis_angle(direction, q[k])
        translation = points[k] - R @ point
    tip = R @ axes.home[:3, 3] + translation
    return np.concatenate([cross(directions, tip - points), directions], axis=1).T


def _format_axes(axis_indices: Sequence[int]) -> str:
    return "axes " + ", ".join(str(k + 1) for k in axis_indices[:-1]) + f" and {axis_indices[-1] + 1}"


def _format_point(point: Array, reach: float) -> str:
    """Format a point as text; rounding errors, which are relative to the reach of the arm (m), become zero."""
    return "(" + ", ".join(f"{0.0 if abs(x) < 1e-9 * reach else x:.4g}" for x in point.tolist()) + ")"
