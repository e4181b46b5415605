"""A motion as BVH, which animation programs read: a tree of links, and a line of numbers for each frame.

Metres, degrees, z up. BVH has no turns at rest, so the whole turn of a link against its parent stands in its channels.
Whether shifts are added to a link's offset or take its place is read differently by different programs; a link that
shifts has no offset, so that both come to the same.
"""

from __future__ import annotations

import re

import numpy as np

from mechanik.mechanism import Frame, Link, Mechanism
from mechanik.motion.motion import Motion
from mechanik.spatial import euler, inverse
from mechanik.spatial.array import Array

SHIFTS = "Xposition Yposition Zposition"
TURNS = "Zrotation Yrotation Xrotation"
STILL = 1e-10
"""M: an origin that moves less against its parent link counts as fixed."""
END = 0.05
"""M: how long bones without a child are drawn."""


def to_bvh(motion: Motion) -> bytes:
    """Frames that are not evenly spaced in time are moved to where they would be, since BVH knows no others."""
    even = motion.evenly()
    mechanism, count = even.mechanism, len(even.times)
    parents = parents_of(mechanism)
    X_world = even.poses()
    X_parent = X_world.copy()
    for k, parent in enumerate(parents):
        if parent >= 0:
            X_parent[:, k] = inverse(X_world[:, parent]) @ X_world[:, k]
    children: dict[int, list[int]] = {k: [] for k in range(-1, len(parents))}
    for k, parent in enumerate(parents):
        children[parent].append(k)
    tops = children[-1]
    names = bone_names([*mechanism.links] if len(tops) == 1 else [*mechanism.links, "world"])  # the last is number -1
    lines, columns = ["HIERARCHY"], list[Array]()
    # depth first, with a stack of our own: arms of a thousand links are deeper than Python's
    stack: list[tuple[int, int, str]] = [(tops[0] if len(tops) == 1 else -1, 0, "ROOT")]
    while stack:
        k, depth, kind = stack.pop()
        pad = "  " * depth
        if kind == "}":
            lines.append(f"{pad}}}")
            continue
        X = np.broadcast_to(np.eye(4), (count, 4, 4)) if k < 0 else X_parent[:, k]
        p, turns = X[:, :3, 3], angles_of(X[:, :3, :3])
        is_fixed = kind != "ROOT" and np.abs(p - p[0]).max() < STILL
        columns.append(turns if is_fixed else np.concatenate([p, turns], axis=1))
        lines += [f"{pad}{kind} {names[k]}", f"{pad}{{", f"{pad}  OFFSET {_row(p[0] if is_fixed else np.zeros(3))}"]
        lines.append(f"{pad}  CHANNELS 3 {TURNS}" if is_fixed else f"{pad}  CHANNELS 6 {SHIFTS} {TURNS}")
        if not children[k]:
            lines += [f"{pad}  End Site", f"{pad}  {{", f"{pad}    OFFSET 0 0 {END:g}", f"{pad}  }}"]
        stack.append((k, depth, "}"))
        stack.extend((child, depth + 1, "JOINT") for child in reversed(children[k]))
    step = even.duration / (count - 1) if count > 1 else 1 / 60
    lines += ["MOTION", f"Frames: {count}", f"Frame Time: {step:.9g}"]
    lines += [_row(row) for row in np.concatenate(columns, axis=1)]
    return ("\n".join(lines) + "\n").encode()


def parents_of(mechanism: Mechanism) -> list[int]:
    """For each link the number of the one that carries it, -1 for those that stand in the world."""
    numbers = {link: k for k, link in enumerate(mechanism.links.values())}
    found: list[int] = []
    for link in numbers:
        above: Frame | None = link.parent
        while above is not None and not isinstance(above, Link):
            above = above.parent
        found.append(-1 if above is None else numbers[above])
    return found


def bone_names(names: list[str]) -> list[str]:
    """Without blanks and signs that end a word, each once."""
    found: list[str] = []
    taken: set[str] = set()
    for name in names:
        plain = re.sub(r"[^\w.\-]+", "_", name) or "link"
        while plain in taken:
            plain += "_"
        taken.add(plain)
        found.append(plain)
    return found


def angles_of(R: Array) -> Array:
    """Degrees about z, y, x (N, 3) of turns (N, 3, 3), without jumps from frame to frame."""
    angles = np.empty((len(R), 3))
    near = None
    for k, one in enumerate(R):
        near = angles[k] = euler.euler_from_matrix(one, order="zyx", axes="moving", near=near)
    return np.degrees(angles)


def _row(numbers: Array) -> str:
    return " ".join(f"{number:.12g}" for number in numbers.tolist())
