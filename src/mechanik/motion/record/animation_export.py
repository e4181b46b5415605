"""Export of a motion as BVH for animation programs, and as an HTML page with a player.

BVH: metres, degrees, z up. BVH has no rotations at rest, so the channels contain the whole rotation of a link relative
to its parent. Programs differ in whether translation channels add to the offset or replace it; a link with translation
channels has a zero offset, so that both give the same result.

HTML: the page works from disk or mail, without a server. The data is in a script element of a type that is not run,
with every "<" escaped. The player is a base64 data URL. So nothing in either can end its element.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from mechanik.model import Frame, Link, Mechanism
from mechanik.motion.record.recorded_motion import Motion, continuous_quaternions
from mechanik.spatial import euler, inverse, quaternion
from mechanik.spatial.array import Array

POSITION_CHANNELS = "Xposition Yposition Zposition"
ROTATION_CHANNELS = "Zrotation Yrotation Xrotation"
MIN_MOTION = 1e-10
"""m: an origin that moves less relative to its parent link counts as fixed."""
END_BONE_LENGTH = 0.05
"""m: drawn length of bones without a child."""


def to_bvh(motion: Motion) -> bytes:
    """Write a motion as BVH; frames are resampled evenly in time, because BVH has no others.

    Returns:
        Bytes of the file.

    Example:
        >>> from mechanik.motion import record
        >>> motion = record.Motion(mk.arm_2d([0.5, 0.4]), [0.0, 1.0], [[0.0, 0.0], [1.0, 0.5]])
        >>> record.to_bvh(motion).decode().split()[:3]
        ['HIERARCHY', 'ROOT', 'link0']
    """
    even = motion.resample_evenly()
    mechanism, count = even.mechanism, len(even.times)
    parents = parent_indices(mechanism)
    X_world = even.poses()
    X_parent = X_world.copy()
    for k, parent in enumerate(parents):
        if parent >= 0:
            X_parent[:, k] = inverse(X_world[:, parent]) @ X_world[:, k]
    children: dict[int, list[int]] = {k: [] for k in range(-1, len(parents))}
    for k, parent in enumerate(parents):
        children[parent].append(k)
    roots = children[-1]
    names = bone_names([*mechanism.links] if len(roots) == 1 else [*mechanism.links, "world"])  # index -1 is the last
    lines, columns = ["HIERARCHY"], list[Array]()
    # depth first with an explicit stack: arms of a thousand links exceed the recursion limit of Python
    stack: list[tuple[int, int, str]] = [(roots[0] if len(roots) == 1 else -1, 0, "ROOT")]
    while stack:
        k, depth, kind = stack.pop()
        pad = "  " * depth
        if kind == "}":
            lines.append(f"{pad}}}")
            continue
        X = np.broadcast_to(np.eye(4), (count, 4, 4)) if k < 0 else X_parent[:, k]
        p, angles = X[:, :3, 3], continuous_euler_angles(X[:, :3, :3])
        is_fixed = kind != "ROOT" and np.abs(p - p[0]).max() < MIN_MOTION
        columns.append(angles if is_fixed else np.concatenate([p, angles], axis=1))
        lines += [f"{pad}{kind} {names[k]}", f"{pad}{{", f"{pad}  OFFSET {_row(p[0] if is_fixed else np.zeros(3))}"]
        channels = f"3 {ROTATION_CHANNELS}" if is_fixed else f"6 {POSITION_CHANNELS} {ROTATION_CHANNELS}"
        lines.append(f"{pad}  CHANNELS {channels}")
        if not children[k]:
            lines += [f"{pad}  End Site", f"{pad}  {{", f"{pad}    OFFSET 0 0 {END_BONE_LENGTH:g}", f"{pad}  }}"]
        stack.append((k, depth, "}"))
        stack.extend((child, depth + 1, "JOINT") for child in reversed(children[k]))
    step = even.duration / (count - 1) if count > 1 else 1 / 60
    lines += ["MOTION", f"Frames: {count}", f"Frame Time: {step:.9g}"]
    lines += [_row(row) for row in np.concatenate(columns, axis=1)]
    return ("\n".join(lines) + "\n").encode()


def parent_indices(mechanism: Mechanism) -> list[int]:
    """Index of the parent link of each link; -1 for links whose parent is the world."""
    link_indices = {link: k for k, link in enumerate(mechanism.links.values())}
    parents: list[int] = []
    for link in link_indices:
        ancestor: Frame | None = link.parent
        while ancestor is not None and not isinstance(ancestor, Link):
            ancestor = ancestor.parent
        parents.append(-1 if ancestor is None else link_indices[ancestor])
    return parents


def bone_names(names: list[str]) -> list[str]:
    """Unique bone names without blanks and characters that end a word in BVH."""
    bones: list[str] = []
    used_names: set[str] = set()
    for name in names:
        bone = re.sub(r"[^\w.\-]+", "_", name) or "link"
        while bone in used_names:
            bone += "_"
        used_names.add(bone)
        bones.append(bone)
    return bones


def continuous_euler_angles(R: Array) -> Array:
    """Euler angles (N, 3) about z, y, x in degrees of rotations (N, 3, 3), continuous from frame to frame."""
    angles = np.empty((len(R), 3))
    near = None
    for k, R_frame in enumerate(R):
        near = angles[k] = euler.euler_from_matrix(R_frame, order="zyx", axes="moving", near=near)
    return np.degrees(angles)


def _row(numbers: Array) -> str:
    return " ".join(f"{number:.12g}" for number in numbers.tolist())


DECIMALS = 7
"""Decimals of positions (m) and quaternions: finer than a screen shows, at half the size."""

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
<style>html, body {{ margin: 0; height: 100%; overflow: hidden; font-family: system-ui, sans-serif }}</style>
</head>
<body>
<script type="application/json" id="motion">{data}</script>
<script src="data:text/javascript;base64,{player}"></script>
</body>
</html>
"""
POLICY = "default-src 'none'; script-src data:; style-src 'unsafe-inline'; img-src data: blob:; connect-src data: blob:"


def to_html(
    motion: Motion,
    player_js: str,
    model: Mapping[str, Any],
    files: Mapping[str, bytes] | None = None,
    events: Iterable[tuple[float, Mapping[str, Any]]] = (),
) -> bytes:
    """Write a motion as an HTML page that plays it without a server.

    Args:
        motion: the motion.
        player_js: a classic script that reads the data from the element `motion` and plays it.
        model: plain data: the studio's description of the mechanism (its `Model` message).
        files: meshes, by the URLs that the model uses.
        events: (time, message) in order: time in s on the clock of the motion, and a message of the studio.

    Returns:
        UTF-8 bytes of the page. Its data is `{"name", "model", "times", "poses", "files", "events"}`: times in s from
        0; for each time the position and wxyz of all links in a row, in the order of the model's links; files in
        base64.

    Example:
        >>> from mechanik.motion import record
        >>> motion = record.Motion(mk.arm_2d([0.5, 0.4]), [0.0, 1.0], [[0.0, 0.0], [1.0, 0.5]])
        >>> record.to_html(motion, "play()", {}).startswith(b"<!doctype html>")
        True
    """
    start_time = float(motion.times[0])
    data = {
        "name": motion.name,
        "model": model,
        "times": [round(time - start_time, DECIMALS) for time in motion.times.tolist()],
        "files": {address: base64.b64encode(content).decode() for address, content in (files or {}).items()},
        "events": [[round(max(0.0, time_of_event - start_time), DECIMALS), event] for time_of_event, event in events],
    }
    page = PAGE.format(
        policy=POLICY,
        title=html.escape(motion.name),
        data=f'{as_script_text(data)[:-1]},"poses":{_rows_text(link_pose_rows(motion))}}}',
        player=base64.b64encode(player_js.encode()).decode(),
    )
    return page.encode()


def link_pose_rows(motion: Motion) -> list[list[float]]:
    """x y z qw qx qy qz of all links in a row for each time, with continuous signs."""
    poses = motion.poses()
    wxyz = continuous_quaternions(quaternion.from_matrix(poses[..., :3, :3]))
    numbers = np.concatenate([poses[..., :3, 3], wxyz], axis=-1)
    rounded = np.round(numbers.reshape(len(numbers), -1), DECIMALS) + 0.0  # avoids -0.0
    return rounded.tolist()


def _rows_text(rows: list[list[float]]) -> str:
    """Rows of numbers as JSON, encoded row by row: a single call would block all other threads for seconds."""
    return f"[{','.join(json.dumps(row, allow_nan=False, separators=(',', ':')) for row in rows)}]"


def as_script_text(data: object) -> str:
    """JSON without characters that could form a tag or comment, or end a script."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))  # escapes all but ASCII
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
