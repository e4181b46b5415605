"""`mechanik info`: links, joints, limits, loops, mobility and collision pairs of a mechanism, as text or JSON."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.table import Table

from mechanik.cli.file_args import UsageError, open_mechanism
from mechanik.cli.output import (
    add_row,
    format_direction,
    format_number,
    make_table,
    print_json,
    print_note,
    print_out,
    print_table,
)
from mechanik.cli.warmup_command import kernel_data, print_kernels
from mechanik.collision.collision_pairs import SAME_BODY, Pair, adjacent_pairs
from mechanik.formats.model_check import format_amount
from mechanik.model import DoF, Frame, Joint, Mechanism, Structure, mobility, structure
from mechanik.model.mechanism_explanation import describe_structure
from mechanik.spatial import quaternion
from mechanik.validation import format_count

JOINT_TYPE_NAMES = {
    "": "fixed",
    "X Y Z EX EY EZ": "floating",
    "X Y EZ": "planar",
    "X Z EY": "planar",
    "Y Z EX": "planar",
    "EX EY": "universal",
    "EX EZ": "universal",
    "EY EZ": "universal",
    "X EX": "cylindrical",
    "Y EY": "cylindrical",
    "Z EZ": "cylindrical",
}
"""Name of a joint type by its dofs."""
CLOSED_TOLERANCE = 1e-6
"""Larger closure gaps (m, rad) and larger errors of joint constraints (relative to their scale) are printed in red."""


def joint_type_name(joint: Joint) -> str:
    """Return the name of a joint type such as "revolute", or its dofs if the type has no name."""
    dofs = " ".join(dof.name for dof in joint.dof)
    if len(joint.dof) == 1:
        dof = joint.dof[0]
        is_limited = any(math.isfinite(limit) for limit in joint.limits(dof))
        return "prismatic" if not dof.is_rotation else "revolute" if is_limited else "continuous"
    if dofs == "EX EY EZ" and joint.has_quaternion:
        return "spherical"
    return JOINT_TYPE_NAMES.get(dofs, dofs)


def q_indices(mechanism: Mechanism, joint: Joint) -> dict[DoF, range]:
    """Return the indices into q of each dof of a joint.

    The four indices of a quaternion belong to the dof EX. Mimic dofs, and joints that close a loop, have no indices.
    """
    indices = mechanism.kinematics.joint_indices.get(joint)
    if indices is None:  # closes a loop
        return {}
    index_ranges = {dof: range(k, k + 1) for dof, k in indices.q.items()}
    if indices.quaternion_q is not None:
        index_ranges[DoF.EX] = range(indices.quaternion_q, indices.quaternion_q + 4)
    return index_ranges


def coupling_formula(mechanism: Mechanism, joint: Joint, dof: DoF) -> str:
    """Format the coupling of a mimic dof, such as `= -2 * elbow + 0.1`; empty for an independent dof."""
    coupling = joint._couplings.get(dof)
    if coupling is None:
        return ""
    leader = mechanism.name_of(coupling.leader) + (
        f".{coupling.leader_dof.name}" if len(coupling.leader.dof) > 1 else ""
    )
    ratio = "" if coupling.ratio == 1 else f"{coupling.ratio:g} * "
    offset = "" if coupling.offset == 0 else f" {'-' if coupling.offset < 0 else '+'} {abs(coupling.offset):g}"
    return f"= {ratio}{leader}{offset}"


@dataclass(frozen=True, slots=True)
class CollisionSummary:
    """Counts of collision shapes and of the link pairs that self-collision checks include and exclude.

    Attributes:
        shape_count: number of collision shapes of all links.
        link_count: number of links with collision shapes.
        checked_pair_count: number of link pairs that are checked for self-collision.
        excluded_pairs: reason why a pair of links with shapes is not checked, by pair.
        is_complete: whether `excluded_pairs` are all pairs that a `Collider` skips by default.
    """

    shape_count: int
    link_count: int
    checked_pair_count: int
    excluded_pairs: dict[Pair, str]
    is_complete: bool

    def __str__(self) -> str:
        if not self.shape_count:
            return "no collision shapes"
        reason_counts = Counter(self.excluded_pairs.values())
        reasons = (
            f" ({', '.join(f'{pair_count} {reason}' for reason, pair_count in reason_counts.most_common())})"
            if reason_counts
            else ""
        )
        pairs_hint = (
            "" if self.is_complete or not self.checked_pair_count else "; --pairs also finds pairs that always collide"
        )
        return (
            f"{format_count(self.shape_count, 'collision shape')} on {format_count(self.link_count, 'link')}; "
            f"{format_count(self.checked_pair_count, 'link pair')} checked, "
            f"{len(self.excluded_pairs)} excluded{reasons}{pairs_hint}"
        )


def summarise_collisions(mechanism: Mechanism, find_always_colliding: bool) -> CollisionSummary:
    """Count the collision shapes and the checked and excluded link pairs of a mechanism.

    Args:
        find_always_colliding: whether to find the pairs that collide in every sampled configuration, if the mechanism
            does not list allowed collisions. Sampling needs kernels and meshes.
    """
    names = [name for name, link in mechanism.links.items() if link.collisions]
    shape_count = sum(len(mechanism.links[name].collisions) for name in names)
    allowed_collisions = mechanism.allowed_collisions
    if find_always_colliding and names:
        from mechanik.collision import Collider

        excluded_pairs = Collider(mechanism).allowed_collisions
    else:
        excluded_pairs = adjacent_pairs(mechanism, names)
        if allowed_collisions is not None:
            excluded_pairs = {
                **{pair: reason for pair, reason in excluded_pairs.items() if reason == SAME_BODY},
                **allowed_collisions,
            }
    names_with_shapes = set(names)
    unique_pairs = {
        frozenset(pair): (pair, reason) for pair, reason in excluded_pairs.items() if names_with_shapes.issuperset(pair)
    }
    checked_pair_count = len(names) * (len(names) - 1) // 2 - len(unique_pairs)
    return CollisionSummary(
        shape_count,
        len(names),
        checked_pair_count,
        dict(unique_pairs.values()),
        find_always_colliding or allowed_collisions is not None,
    )


def collision_data(summary: CollisionSummary) -> dict[str, object]:
    """Return a collision summary as JSON data."""
    return {
        "shapes": summary.shape_count,
        "links": summary.link_count,
        "checked_pairs": summary.checked_pair_count,
        "excluded_pairs": [{"links": list(pair), "reason": reason} for pair, reason in summary.excluded_pairs.items()],
    }


def mechanism_data(mechanism: Mechanism, find_always_colliding: bool = False) -> dict[str, Any]:
    """Return the description of a mechanism as JSON data; a missing limit is null.

    Args:
        find_always_colliding: as in `summarise_collisions`.
    """
    mechanism_mobility = mobility(mechanism)
    return {
        "name": mechanism.name,
        "nq": mechanism.nq,
        "nv": mechanism.nv,
        "mass": total_mass(mechanism),
        "mobility": {
            "gruebler": mechanism_mobility.gruebler,
            "dof": mechanism_mobility.dof,
            "redundant_constraints": mechanism_mobility.redundant_constraints,
        },
        "structure": None if mechanism_mobility.dof is None else structure_data(structure(mechanism)),
        "links": [
            {
                "name": name,
                "joint": mechanism.name_of(link.parent) if isinstance(link.parent, Joint) else None,
                "mass": None if link.inertial is None else link.inertial.mass,
                "visuals": len(link.visuals),
                "collisions": len(link.collisions),
            }
            for name, link in mechanism.links.items()
        ],
        "joints": [
            {
                "name": name,
                "parent": parent_name(mechanism, joint),
                "child": joint.child and mechanism.name_of(joint.child),
                "closes_loop": joint.is_closure,
                "type": joint_type_name(joint),
                "dof": [dof.name for dof in joint.dof],
                "axes": [dof_axis(joint, dof) for dof in joint.dof],
                "lower": [None if math.isinf(value) else value for value in joint.lower.tolist()],
                "upper": [None if math.isinf(value) else value for value in joint.upper.tolist()],
                "values": joint.values.tolist(),
                "q": [k for index_range in q_indices(mechanism, joint).values() for k in index_range],
                "leaders": [mechanism.name_of(coupling.leader) for coupling in joint.couplings],
                "cone": None if joint.cone is None else {"angle": joint.cone.angle, "axes": joint.cone.axes},
            }
            for name, joint in mechanism.joints.items()
        ],
        "loops": [
            {
                "name": name,
                "links": [parent_name(mechanism, closure.joint), mechanism.name_of(closure.link)],
                "free": [dof.name for dof in closure.free_dof],
                "gap": {"distance": closure.gap().distance, "angle": closure.gap().angle},
            }
            for name, closure in mechanism.closures.items()
        ],
        "joint_constraints": [
            {
                "name": name,
                "joints": [mechanism.name_of(joint) for joint in constraint.joints],
                "formula": f"{constraint.formula} = {constraint.constant:g}",
                "error": constraint.error(),
            }
            for name, constraint in mechanism.joint_constraints.items()
        ],
        "goals": [
            {
                "name": name,
                "link": goal.child and mechanism.name_of(goal.child),
                "dof": [dof.name for dof in goal.goal_dof],
            }
            for name, goal in mechanism.goals.items()
        ],
        "collision": collision_data(summarise_collisions(mechanism, find_always_colliding)),
        "configurations": {name: [float(value) for value in q] for name, q in mechanism.configurations.items()},
        "warnings": list(mechanism.warnings),
    }


def structure_data(analysis: Structure) -> dict[str, Any]:
    """Return the structure of a mechanism as JSON data."""
    return {
        "generic_mobility": analysis.generic_dof,
        "inputs": list(analysis.inputs),
        "passive_dofs": list(analysis.passive_dofs),
        "immobile_dofs": list(analysis.immobile_dofs),
        "idle_motions": [list(motion) for motion in analysis.idle_motions],
        "redundant_rows": [list(row) for row in analysis.redundant_rows],
        "loops": [
            {
                "closures": list(loop.closures),
                "joint_constraints": list(loop.joint_constraints),
                "dofs": list(loop.dofs),
                "mobility": loop.mobility.dof,
            }
            for loop in analysis.loops
        ],
    }


def describe_size(mechanism: Mechanism) -> str:
    """Format the size of a mechanism, such as `8 links, 7 joints (1 fixed), 1 goal`.

    Joints that close loops are counted as loops.
    """
    joints = [joint for joint in mechanism.joints.values() if not joint.is_closure]
    fixed_count = sum(not joint.dof for joint in joints)
    parts = [
        format_count(len(mechanism.links), "link"),
        format_count(len(joints), "joint") + (f" ({fixed_count} fixed)" if fixed_count else ""),
    ]
    parts += [format_count(len(mechanism.closures), "loop")] if mechanism.closures else []
    parts += [format_count(len(mechanism.joint_constraints), "joint constraint")] if mechanism.joint_constraints else []
    parts += [format_count(len(mechanism.goals), "goal")] if mechanism.goals else []
    return ", ".join(parts)


def total_mass(mechanism: Mechanism) -> float | None:
    """Return the sum of the link masses, kg; None if no link has a mass."""
    masses = [link.inertial.mass for link in mechanism.links.values() if link.inertial is not None]
    return sum(masses) if masses else None


def parent_name(mechanism: Mechanism, frame: Frame) -> str | None:
    """Return the name of the parent of a frame; None without a parent."""
    return mechanism.name_of(frame.parent) if frame.parent is not None else None


def dof_axis(joint: Joint, dof: DoF) -> list[float]:
    """Return the direction of the axis of a dof in the frame of the joint, (3,)."""
    return quaternion.rotate(joint.axes_wxyz, np.eye(3)[dof.axis_index]).tolist()


def info(
    file: str | None = None,
    /,
    *,
    all: bool = False,
    pairs: bool = False,
    kernels: bool = False,
    json: bool = False,
) -> None:
    """Show links, joints, limits, loops, mobility and collision pairs of a mechanism.

    The dofs of a joint are X Y Z, translations along its axes in m, and EX EY EZ, rotations about them in rad. They
    move the child by T(X, Y, Z) Rz(EZ) Ry(EY) Rx(EX). The column q shows the index of a dof in q. A spherical joint has
    no angles in q but a quaternion wxyz with four indices; 3:7 means the indices 3 to 6. The gap of a loop is its
    closure error in the configuration of the file. The error of a joint constraint is in the unit of its formula. The
    cone of a spherical joint is its swing limit in rad.

    For example:

        mechanik info robot.urdf
        mechanik info gallery:stewart_platform
        mechanik info robot.urdf --pairs
        mechanik info robot.json --json
        mechanik info --kernels

    Parameters
    ----------
    file
        A URDF, MJCF, SDF or JSON file, `gallery:NAME`, or `-` for standard input. Not needed with `--kernels`.
    all
        Also list fixed joints.
    pairs
        List the link pairs that self-collision checks exclude, with the reason. If the file contains no allowed
        collisions, the list includes the pairs that collide in every sampled configuration.
    kernels
        Show the kernel modules instead of a mechanism: their tier (prebuilt or compiled machine code, or plain
        Python), whether they are ready, and how long ago they were compiled.
    json
        Print JSON.
    """
    if kernels:
        _print_kernel_info(file, json)
        return
    if file is None:
        raise UsageError("`mechanik info` needs FILE, or --kernels. See `mechanik info --help`.")
    mechanism = open_mechanism(file)
    if json:
        print_json(mechanism_data(mechanism, pairs))
    else:
        print_info(mechanism, all, pairs)


def _print_kernel_info(file: str | None, json: bool) -> None:
    """Print the state of the kernel modules as a table or JSON; FILE must not be given."""
    if file is not None:
        raise UsageError("`mechanik info` takes FILE or --kernels, not both.")
    if json:
        print_json(kernel_data())
    else:
        print_kernels()


def print_info(mechanism: Mechanism, show_fixed: bool, show_pairs: bool = False) -> None:
    """Print the description of a mechanism as text.

    Args:
        show_fixed: whether to list fixed joints.
        show_pairs: whether to list the link pairs that self-collision checks exclude.
    """
    mechanism_mobility = mobility(mechanism)
    print_out(mechanism.name or "(no name)", style="bold")
    print_out(f"{describe_size(mechanism)}; nq {mechanism.nq}, nv {mechanism.nv}; {_mass_text(mechanism)}")
    collisions = summarise_collisions(mechanism, show_pairs)
    print_out(str(collisions))
    dof_text = (
        "unknown, because a loop is not closed or a joint constraint is violated"
        if mechanism_mobility.dof is None
        else str(mechanism_mobility.dof)
    )
    redundancy_text = (
        f", {mechanism_mobility.redundant_constraints} of {mechanism_mobility.constraints} constraints redundant"
        if mechanism_mobility.redundant_constraints
        else ""
    )
    print_out(f"mobility {dof_text} (Grübler's count {mechanism_mobility.gruebler}{redundancy_text})")
    if mechanism_mobility.dof is not None and mechanism_mobility.constraints:
        for sentence in describe_structure(structure(mechanism)):
            print_out(sentence)
    print_out()
    joints, links = _joint_table(mechanism, show_fixed), _link_table(mechanism)
    pairs = _pair_table(collisions if show_pairs else None)
    for table in (joints, links, _loop_table(mechanism), _constraint_table(mechanism), _goal_table(mechanism), pairs):
        if table.row_count:
            print_table(table)
            print_out()
    if mechanism.configurations:
        print_out(f"configurations: {', '.join(mechanism.configurations)}")
    for text in mechanism.warnings:
        print_note(f"warning: {text}")


def _joint_table(mechanism: Mechanism, show_fixed: bool) -> Table:
    joints = {name: joint for name, joint in mechanism.joints.items() if not joint.is_closure}
    coupling_columns = ["follows"] if any(joint.couplings for joint in joints.values()) else []
    table = make_table(["joint"], ["q"])
    table.add_column("type", no_wrap=True)
    for column in ("dof", "axis", "lower", "upper", "value"):
        table.add_column(column, justify="right", no_wrap=True)
    for column in ("unit", *coupling_columns):
        table.add_column(column, no_wrap=True)
    for name, joint in joints.items():
        index_ranges, label, type_text = q_indices(mechanism, joint), name, joint_type_name(joint) + _cone_text(joint)
        for dof in joint.dof:
            index_range = index_ranges.get(dof, range(0))
            index = (
                f"{index_range.start}:{index_range.stop}" if len(index_range) > 1 else "".join(map(str, index_range))
            )
            cells = [format_number(value) for value in (*joint.limits(dof), joint.value(dof))]
            unit, coupling = dof.unit, coupling_formula(mechanism, joint, dof)
            add_row(
                table,
                [
                    label,
                    index,
                    type_text,
                    dof.name,
                    format_direction(dof_axis(joint, dof)),
                    *cells,
                    unit,
                    *([coupling] if coupling else []),
                ],
            )
            label = type_text = ""
    if show_fixed:
        for name, joint in joints.items():
            if not joint.dof:
                add_row(table, [name, "", joint_type_name(joint)], style="dim")
    return table


def _link_table(mechanism: Mechanism) -> Table:
    table = make_table(["link"], ["mass (kg)", "visuals"], ["joint", "parent"])
    for name, link in mechanism.links.items():
        joint = link.parent
        joint_and_parent = (
            [mechanism.name_of(joint), parent_name(mechanism, joint) or "world"] if joint is not None else ["", "world"]
        )
        mass = "" if link.inertial is None else format_number(link.inertial.mass)
        add_row(table, [name, mass, str(len(link.visuals)) if link.visuals else "", *joint_and_parent])
    return table


def _loop_table(mechanism: Mechanism) -> Table:
    table = make_table(["loop"], ["gap (m)", "gap (rad)"], ["free dof", "link 1", "link 2"])
    for name, closure in mechanism.closures.items():
        gap = closure.gap()
        free_dofs = " ".join(dof.name for dof in closure.free_dof) or "none"
        if isinstance(closure.joint, Joint):
            free_dofs += _cone_text(closure.joint)
        link_names = [parent_name(mechanism, closure.joint) or "world", mechanism.name_of(closure.link)]
        style = "" if gap.is_closed(CLOSED_TOLERANCE) else "red"
        add_row(
            table, [name, format_amount(gap.distance), format_amount(gap.angle), free_dofs, *link_names], style=style
        )
    return table


def _constraint_table(mechanism: Mechanism) -> Table:
    table = make_table(["joint constraint"], ["error"], ["formula"])
    for name, constraint in mechanism.joint_constraints.items():
        error = constraint.error()
        style = "" if abs(error) <= CLOSED_TOLERANCE * constraint.scale else "red"
        add_row(
            table,
            [name, format_amount(error), f"{constraint.formula} = {format_number(constraint.constant)}"],
            style=style,
        )
    return table


def _goal_table(mechanism: Mechanism) -> Table:
    table = make_table(["goal"], ["dof"], ["link"])
    for name, goal in mechanism.goals.items():
        dof = " ".join(goal_dof.name for goal_dof in goal.goal_dof)
        add_row(table, [name, dof, mechanism.name_of(goal.child) if goal.child else "none"])
    return table


def _pair_table(collisions: CollisionSummary | None) -> Table:
    table = make_table(["link 1", "link 2", "reason for exclusion"])
    for (a, b), reason in () if collisions is None else collisions.excluded_pairs.items():
        add_row(table, [a, b, reason])
    return table


def _cone_text(joint: Joint) -> str:
    return "" if joint.cone is None else f", cone {joint.cone.angle:g}"


def _mass_text(mechanism: Mechanism) -> str:
    mass = total_mass(mechanism)
    return "no masses" if mass is None else f"{format_number(mass, 3)} kg"
