"""Functions on the kinematic graph: rest poses, independent chains, and a flat form for copies and pickles.

In the flat form frames refer to each other by index. Pickling the graph itself would recurse once per frame, and long
arms would overflow Python's stack.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np

from mechanik.model.dof import ROTATIONS, TRANSLATIONS, DoF
from mechanik.model.frame import Frame, Goal
from mechanik.model.joint import Joint, find_roots
from mechanik.model.joint_constraint import Coupling, JointConstraint
from mechanik.model.loop_closure import Closure
from mechanik.validation import read_only


def save_rest_pose(frames: Frame | Iterable[Frame]) -> None:
    """Store the present values of all joints in the trees of `frames` as rest poses, except those of mimic dofs.

    Args:
        frames: a frame, or several; trees that are reachable by closures, couplings and joint constraints are included.

    Raises:
        InvalidArgument: an entry is not a frame.

    Example:
        >>> linkage = mk.gallery.four_bar()
        >>> mk.save_rest_pose(linkage.roots)
        >>> linkage.joint("crank_joint").rest_pose
        (0.6,)
    """
    for root in find_roots(frames):
        for frame in root.traverse():
            if isinstance(frame, Joint):
                frame.save_rest_pose()


@dataclass(frozen=True, slots=True)
class IndependentChain:
    """A group of closures, goals and joint constraints that share moving joints, directly or through each other.

    Attributes:
        closures: closures of joints and goals.
        joints: all moving joints of the group, in the order of creation.
        joint_constraints: the joint constraints.

    Example:
        >>> chain, = mk.gallery.four_bar().chains()
        >>> [joint.name for joint in chain.joints]
        ['crank_joint', 'coupler_joint', 'rocker_joint']
    """

    closures: tuple[Closure, ...]
    joints: tuple[Joint, ...]
    joint_constraints: tuple[JointConstraint, ...] = ()


def moving_joints(closure: Closure) -> tuple[Joint, ...]:
    """Return the joints whose motion changes the gap of a closure, in the order of creation.

    These are the moving joints above exactly one of the two ends; a joint above both ends does not change their
    relative pose. For a goal that constrains only some of the translations or rotations in world axes, joints above
    both ends count too, since they rotate both ends relative to these axes. A mimic joint is replaced by the
    independent joint that determines its value.
    """
    start_dofs, end_dofs = _dofs_above(closure.joint.parent), _dofs_above(closure.link)
    relative_dofs = start_dofs | end_dofs if _gap_depends_on_world_axes(closure) else start_dofs ^ end_dofs
    joints = {
        joint if (coupling := joint._couplings.get(dof)) is None else coupling.resolve()[0]
        for joint, dof in relative_dofs
    }
    return tuple(sorted(joints, key=lambda joint: joint._serial))


def independent_chains(
    closures: Iterable[Closure], joint_constraints: Iterable[JointConstraint] = ()
) -> tuple[IndependentChain, ...]:
    """Partition closures and joint constraints into groups that share no moving joint.

    Args:
        closures: closures of joints and goals.
        joint_constraints: joint constraints.

    Returns:
        The groups; each group lists its closures and joint constraints in the order of the arguments.

    Example:
        >>> linkage = mk.gallery.four_bar()
        >>> len(mk.independent_chains(linkage.closures.values()))
        1
    """
    closure_list, constraint_list = list(closures), list(joint_constraints)
    joint_sets = [
        *(set(moving_joints(closure)) for closure in closure_list),
        *({joint for joint, _ in constraint.resolve_couplings()[0]} for constraint in constraint_list),
    ]
    groups: list[tuple[set[int], set[Joint]]] = []
    for i, joint_set in enumerate(joint_sets):
        member_indices, joints = {i}, joint_set
        separate_groups: list[tuple[set[int], set[Joint]]] = []
        for group in groups:
            if group[1] & joints:
                member_indices, joints = member_indices | group[0], joints | group[1]
            else:
                separate_groups.append(group)
        groups = [*separate_groups, (member_indices, joints)]
    return tuple(
        IndependentChain(
            tuple(closure_list[i] for i in sorted(member_indices) if i < len(closure_list)),
            tuple(sorted(joints, key=lambda joint: joint._serial)),
            tuple(constraint_list[i - len(closure_list)] for i in sorted(member_indices) if i >= len(closure_list)),
        )
        for member_indices, joints in sorted(groups, key=lambda group: min(group[0]))
    )


def _gap_depends_on_world_axes(closure: Closure) -> bool:
    """Return whether the closure constrains one or two of the translations or rotations, in world axes."""
    if not isinstance(closure.joint, Goal) or closure.joint.axes != "world":
        return False
    return any(0 < len([dof for dof in block if dof in closure.free_dof]) < 3 for block in (TRANSLATIONS, ROTATIONS))


def _dofs_above(frame: Frame | None) -> set[tuple[Joint, DoF]]:
    """Return the dofs of all joints from `frame` to the root."""
    dofs: set[tuple[Joint, DoF]] = set()
    while frame is not None:
        if isinstance(frame, Joint):
            dofs.update((frame, dof) for dof in frame.dof)
        frame = frame.parent
    return dofs


READ_ONLY_ATTRIBUTES = {"_position", "_wxyz", "_X_parent_frame", "_axes", "_rotation_wxyz"}
"""Attributes of frames whose arrays are read-only; copying and pickling lose this flag."""
COPIED_TYPES: tuple[type, ...] = (np.ndarray, dict, list)
"""Types of attributes that `restore_graph` copies, since a frame may change them."""
OMITTED_ATTRIBUTES = {
    "_parent",
    "_children",
    "_closure",
    "_closures",
    "_couplings",
    "_mimic_couplings",
    "_joint_constraints",
    "_X_world_frame",
    "_serial",
}
"""Attributes that the flat form omits: references to other objects, and values that `restore_graph` creates again."""


def flatten_graph(roots: Iterable[Frame], returned_frames: Iterable[Frame]) -> dict[str, Any]:
    """Convert the trees below `roots` to the flat form: lists in which frames refer to each other by index.

    Args:
        roots: the roots of all trees that closures, couplings and joint constraints connect.
        returned_frames: the frames that `restore_graph` returns.
    """
    frames = sorted((frame for root in roots for frame in root.traverse()), key=lambda frame: frame._serial)
    index_of = {frame: i for i, frame in enumerate(frames)}
    joints = [frame for frame in frames if isinstance(frame, Joint)]
    closures = [frame.closure for frame in frames if isinstance(frame, Joint | Goal) and frame.closure is not None]
    constraints = sorted(
        {constraint for joint in joints for constraint in joint.joint_constraints},
        key=lambda constraint: constraint._serial,
    )
    return {
        "returned": [index_of[frame] for frame in returned_frames],
        "frames": [
            (
                type(frame),
                {attribute: value for attribute, value in vars(frame).items() if attribute not in OMITTED_ATTRIBUTES},
            )
            for frame in frames
        ],
        "children": [[index_of[child] for child in frame.children] for frame in frames],
        "closures": [(index_of[closure.joint], index_of[closure.link], closure.at) for closure in closures],
        "couplings": [
            (
                index_of[coupling.mimic],
                coupling.dof,
                index_of[coupling.leader],
                coupling.leader_dof,
                coupling.ratio,
                coupling.offset,
            )
            for joint in joints
            for coupling in joint.couplings
        ],
        "joint_constraints": [
            (
                [(index_of[term.joint], term.dof, term.coefficients) for term in constraint.terms],
                constraint.constant,
                constraint.name,
            )
            for constraint in constraints
        ],
    }


def restore_graph(flat_graph: dict[str, Any]) -> list[Frame]:
    """Create the frames, closures, couplings and joint constraints of a flat form again.

    Returns:
        The frames that were passed to `flatten_graph` as `returned_frames`.
    """
    frames: list[Frame] = []
    for frame_type, fields in flat_graph["frames"]:
        restored_frame: Frame = frame_type()
        # values of other types, such as shapes, are immutable and need no copy
        vars(restored_frame).update(
            {
                attribute: deepcopy(value) if isinstance(value, COPIED_TYPES) else value
                for attribute, value in fields.items()
            }
        )
        for key in READ_ONLY_ATTRIBUTES & vars(restored_frame).keys():
            read_only(vars(restored_frame)[key])
        frames.append(restored_frame)
    for frame, children in zip(frames, flat_graph["children"], strict=True):
        for child in children:
            frame.add_child(frames[int(child)])
    untyped_frames: list[Any] = list(frames)
    for joint, link, at in flat_graph["closures"]:
        Closure(untyped_frames[joint], untyped_frames[link], at)
    for mimic, dof, leader, leader_dof, ratio, offset in flat_graph["couplings"]:
        Coupling(untyped_frames[mimic], dof, untyped_frames[leader], leader_dof, ratio, offset)
    for terms, constant, name in flat_graph["joint_constraints"]:
        JointConstraint(
            {(untyped_frames[joint], dof): coefficients for joint, dof, coefficients in terms}, constant, name=name
        )
    return [frames[i] for i in flat_graph["returned"]]
