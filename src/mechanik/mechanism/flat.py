"""A mechanism without references from frame to frame, for copies and other processes.

Following parents and children would nest as deep as an arm has joints, and Python's stack is not that deep.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from typing import Any

import numpy as np

from mechanik.mechanism.closure import Closure
from mechanik.mechanism.coupling import Coupling
from mechanik.mechanism.door import read_only
from mechanik.mechanism.frame import Frame
from mechanik.mechanism.goal import Goal
from mechanik.mechanism.joint import Joint
from mechanik.mechanism.law import Law

FROZEN = {"_position", "_wxyz", "_X_parent", "_axes", "_turn"}
OWN: tuple[type, ...] = (np.ndarray, dict, list)
REFERENCES = {"_parent", "_children", "_closure", "_closures", "_couplings", "_followers", "_laws"} | {
    "_X_world",
    "_serial",
}


def flatten(roots: Iterable[Frame], given: Iterable[Frame]) -> dict[str, Any]:
    """The trees below `roots` as lists in which frames stand for each other by number."""
    frames = sorted((frame for root in roots for frame in root.traverse()), key=lambda frame: frame._serial)
    number = {frame: i for i, frame in enumerate(frames)}
    joints = [frame for frame in frames if isinstance(frame, Joint)]
    ends = [frame.closure for frame in frames if isinstance(frame, Joint | Goal) and frame.closure is not None]
    laws = sorted({law for joint in joints for law in joint.laws}, key=lambda law: law._serial)
    return {
        "given": [number[frame] for frame in given],
        "frames": [(type(f), {k: v for k, v in vars(f).items() if k not in REFERENCES}) for f in frames],
        "children": [[number[child] for child in frame.children] for frame in frames],
        "closures": [(number[end.joint], number[end.link], end.at) for end in ends],
        "couplings": [
            (number[c.follower], c.dof, number[c.leader], c.leader_dof, c.ratio, c.offset)
            for joint in joints
            for c in joint.couplings
        ],
        "laws": [
            ([(number[term.joint], term.dof, term.factors) for term in law.terms], law.constant, law.name)
            for law in laws
        ],
    }


def restore(flat: dict[str, Any]) -> list[Frame]:
    """The frames that were given, with all that hangs on them, made anew in the order of the old ones."""
    frames: list[Frame] = []
    for kind, fields in flat["frames"]:
        fresh: Frame = kind()
        # shapes and masses cannot change and are shared; what a copy may write into is its own
        vars(fresh).update({k: deepcopy(v) if isinstance(v, OWN) else v for k, v in fields.items()})
        for key in FROZEN & vars(fresh).keys():  # pickling forgets that arrays are read-only
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
        Law({(anything[joint], dof): factors for joint, dof, factors in terms}, constant, name=name)
    return [frames[i] for i in flat["given"]]
