"""The kinematic graph: its roots, its independent chains, and its flat form for copies and pickles.

The flat form has no references from frame to frame. Pickling the graph itself would recurse as deep as an arm has
joints, which is deeper than Python's stack.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np

from mechanik.errors import InvalidArgument
from mechanik.model.dof import ROTATIONS, TRANSLATIONS, DoF
from mechanik.model.frame import Frame, Goal, Link
from mechanik.model.joint import Joint
from mechanik.model.joint_constraint import Coupling, JointConstraint
from mechanik.model.loop_closure import Closure
from mechanik.validation import read_only


def find_roots(frames: Frame | Iterable[Frame]) -> tuple[Frame, ...]:
    """Find the root frames of all trees that are reachable from `frames` by closures, couplings and joint constraints.

    Args:
        frames: a frame, or several.

    Returns:
        Each root, in the order of discovery; the roots of `frames` first.

    Raises:
        InvalidArgument: an entry is not a frame.

    Example:
        >>> linkage = mk.gallery.four_bar()
        >>> [root.name for root in mk.find_roots(linkage.link("rocker"))]
        ['ground']
    """
    try:
        waiting = [frames] if isinstance(frames, Frame) else list(frames)
    except TypeError:
        raise InvalidArgument(f"{frames!r} is no link, joint or goal") from None
    for frame in waiting:
        if not isinstance(frame, Frame):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidArgument(f"{frame!r} is no link, joint or goal")
    roots: dict[Frame, None] = {}
    while waiting:
        root = waiting.pop(0).root
        if root in roots:
            continue
        roots[root] = None
        for frame in root.traverse():
            if isinstance(frame, Joint | Goal) and frame.closure is not None:
                waiting.append(frame.closure.link)
            if isinstance(frame, Joint):
                waiting.extend(coupling.leader for coupling in frame.couplings)
                waiting.extend(coupling.mimic for coupling in frame._followers)
                waiting.extend(joint for law in frame._laws for joint in law.joints)
            elif isinstance(frame, Link):
                waiting.extend(closure.joint for closure in frame.closures)
    return tuple(roots)


def save_rest_pose(frames: Frame | Iterable[Frame]) -> None:
    """Make the present values the rest pose of every joint in the trees of `frames`.

    Args:
        frames: a frame, or several; trees that are reachable from them are included.

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

    These are the moving joints above exactly one of its two ends; a joint above both moves both alike. A mimic joint is
    replaced by the leader at the head of its couplings.
    """
    one, other = _freedoms(closure.joint.parent), _freedoms(closure.link)
    # a joint above both ends rotates both, but not the world axes in which a goal's directions may be defined
    apart = one | other if _is_partial_in_world(closure) else one ^ other
    movers = {joint if (led := joint._couplings.get(dof)) is None else led.resolve()[0] for joint, dof in apart}
    return tuple(sorted(movers, key=lambda joint: joint._serial))


def independent_chains(
    closures: Iterable[Closure], joint_constraints: Iterable[JointConstraint] = ()
) -> tuple[IndependentChain, ...]:
    """Partition closures and joint constraints into groups that share no moving joint.

    Args:
        closures: closures of joints and goals.
        joint_constraints: joint constraints.

    Returns:
        The groups; the members of each group are in the given order.

    Example:
        >>> linkage = mk.gallery.four_bar()
        >>> len(mk.independent_chains(linkage.closures.values()))
        1
    """
    shut, kept = list(closures), list(joint_constraints)
    given = [
        *(set(moving_joints(closure)) for closure in shut),
        *({joint for joint, _ in law.resolve_couplings()[0]} for law in kept),
    ]
    groups: list[tuple[set[int], set[Joint]]] = []
    for i, moving in enumerate(given):
        mine, joints = {i}, moving
        apart: list[tuple[set[int], set[Joint]]] = []
        for group in groups:
            if group[1] & joints:
                mine, joints = mine | group[0], joints | group[1]
            else:
                apart.append(group)
        groups = [*apart, (mine, joints)]
    return tuple(
        IndependentChain(
            tuple(shut[i] for i in sorted(mine) if i < len(shut)),
            tuple(sorted(joints, key=lambda joint: joint._serial)),
            tuple(kept[i - len(shut)] for i in sorted(mine) if i >= len(shut)),
        )
        for mine, joints in sorted(groups, key=lambda group: min(group[0]))
    )


def _is_partial_in_world(closure: Closure) -> bool:
    if not isinstance(closure.joint, Goal) or closure.joint.axes != "world":
        return False
    return any(0 < len([dof for dof in block if dof in closure.free_dof]) < 3 for block in (TRANSLATIONS, ROTATIONS))


def _freedoms(frame: Frame | None) -> set[tuple[Joint, DoF]]:
    """Return the dofs of all joints from `frame` to the root."""
    freedoms: set[tuple[Joint, DoF]] = set()
    while frame is not None:
        if isinstance(frame, Joint):
            freedoms.update((frame, dof) for dof in frame.dof)
        frame = frame.parent
    return freedoms


READ_ONLY_ATTRIBUTES = {"_position", "_wxyz", "_X_parent", "_axes", "_turn"}
COPIED_TYPES: tuple[type, ...] = (np.ndarray, dict, list)
REFERENCE_ATTRIBUTES = {"_parent", "_children", "_closure", "_closures", "_couplings", "_followers", "_laws"} | {
    "_X_world",
    "_serial",
}


def flatten_graph(roots: Iterable[Frame], given: Iterable[Frame]) -> dict[str, Any]:
    """Convert the trees below `roots` to lists in which frames refer to each other by index.

    Args:
        roots: all roots of the trees.
        given: the frames that `restore_graph` returns.
    """
    frames = sorted((frame for root in roots for frame in root.traverse()), key=lambda frame: frame._serial)
    number = {frame: i for i, frame in enumerate(frames)}
    joints = [frame for frame in frames if isinstance(frame, Joint)]
    ends = [frame.closure for frame in frames if isinstance(frame, Joint | Goal) and frame.closure is not None]
    laws = sorted({law for joint in joints for law in joint.joint_constraints}, key=lambda law: law._serial)
    return {
        "given": [number[frame] for frame in given],
        "frames": [(type(f), {k: v for k, v in vars(f).items() if k not in REFERENCE_ATTRIBUTES}) for f in frames],
        "children": [[number[child] for child in frame.children] for frame in frames],
        "closures": [(number[end.joint], number[end.link], end.at) for end in ends],
        "couplings": [
            (number[c.mimic], c.dof, number[c.leader], c.leader_dof, c.ratio, c.offset)
            for joint in joints
            for c in joint.couplings
        ],
        "laws": [
            ([(number[term.joint], term.dof, term.coefficients) for term in law.terms], law.constant, law.name)
            for law in laws
        ],
    }


def restore_graph(flat: dict[str, Any]) -> list[Frame]:
    """Create the frames of `flatten_graph` again, in their order of creation; returns the `given` frames."""
    frames: list[Frame] = []
    for kind, fields in flat["frames"]:
        fresh: Frame = kind()
        # shapes and masses are immutable and shared; a copy owns all that it may write to
        vars(fresh).update({k: deepcopy(v) if isinstance(v, COPIED_TYPES) else v for k, v in fields.items()})
        for key in READ_ONLY_ATTRIBUTES & vars(fresh).keys():  # pickling loses the read-only flag
            read_only(vars(fresh)[key])
        frames.append(fresh)
    for frame, children in zip(frames, flat["children"], strict=True):
        for child in children:
            frame.add_child(frames[int(child)])
    anything: list[Any] = list(frames)
    for joint, link, at in flat["closures"]:
        Closure(anything[joint], anything[link], at)
    for follower, dof, leader, leader_dof, ratio, offset in flat["couplings"]:
        Coupling(anything[follower], dof, anything[leader], leader_dof, ratio, offset)
    for terms, constant, name in flat["laws"]:
        JointConstraint({(anything[joint], dof): factors for joint, dof, factors in terms}, constant, name=name)
    return [frames[i] for i in flat["given"]]
