"""The trees that hang together through parents, children, closures, couplings and laws."""

from __future__ import annotations

from collections.abc import Iterable

from mechanik.errors import WrongKind
from mechanik.mechanism.frame import Frame
from mechanik.mechanism.goal import Goal
from mechanik.mechanism.joint import Joint
from mechanik.mechanism.link import Link


def find_roots(frames: Frame | Iterable[Frame]) -> tuple[Frame, ...]:
    """The tops of all trees that can be reached from `frames` through closures, couplings and laws.

    Each is named once, in the order in which it was found: those of `frames` first.
    """
    try:
        waiting = [frames] if isinstance(frames, Frame) else list(frames)
    except TypeError:
        raise WrongKind(f"{frames!r} is no link, joint or goal") from None
    for frame in waiting:
        if not isinstance(frame, Frame):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise WrongKind(f"{frame!r} is no link, joint or goal")
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
                waiting.extend(coupling.follower for coupling in frame._followers)
                waiting.extend(joint for law in frame._laws for joint in law.joints)
            elif isinstance(frame, Link):
                waiting.extend(closure.joint for closure in frame.closures)
    return tuple(roots)


def save_rest_pose(frames: Frame | Iterable[Frame]) -> None:
    """Let every joint of the trees rest where it is now."""
    for root in find_roots(frames):
        for frame in root.traverse():
            if isinstance(frame, Joint):
                frame.save_rest_pose()
