"""Export of a motion as BVH for animation programs, and as an HTML page with a player.

BVH files are in metres and degrees with z up. BVH has no rest orientations, so the channels contain the whole rotation
of a link relative to its parent. Some programs add translation channels to the offset, others replace the offset by the
channels. A link with translation channels has a zero offset, so that both kinds of programs give the same result.

The HTML page needs no server and can be opened from disk or mail. The data is in a script element of a type that is not
run, with every "<" escaped. The player is a base64 data URL. So neither the data nor the player can contain a tag that
ends its script element.
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
"""m; an origin that moves less relative to its parent link is treated as fixed."""
END_BONE_LENGTH = 0.05
"""m; drawn length of bones without a child."""


def to_bvh(motion: Motion) -> bytes:
    """Write a motion as BVH; uneven frames are resampled evenly in time, because BVH requires a constant frame time.

    Returns:
        Bytes of the file.

    Example:
        >>> from mechanik.motion import record
        >>> motion = record.Motion(mk.arm_2d([0.5, 0.4]), [0.0, 1.0], [[0.0, 0.0], [1.0, 0.5]])
        >>> record.to_bvh(motion).decode().split()[:3]
        ['HIERARCHY', 'ROOT', 'link0']
    """
    even_motion = motion.resample_evenly()
    mechanism, frame_count = even_motion.mechanism, len(even_motion.times)
    parents = parent_indices(mechanism)
    X_world_link = even_motion.poses()
    X_parent_link = X_world_link.copy()
    for k, parent in enumerate(parents):
        if parent >= 0:
            X_parent_link[:, k] = inverse(X_world_link[:, parent]) @ X_world_link[:, k]
    children: dict[int, list[int]] = {k: [] for k in range(-1, len(parents))}
    for k, parent in enumerate(parents):
        children[parent].append(k)
    roots = children[-1]
    names = bone_names(
        [*mechanism.links] if len(roots) == 1 else [*mechanism.links, "world"]
    )  # the world has index -1 and is needed only with several roots
    lines, columns = ["HIERARCHY"], list[Array]()
    # depth first with an explicit stack, because arms with a thousand links exceed the recursion limit of Python
    stack: list[tuple[int, int, str]] = [(roots[0] if len(roots) == 1 else -1, 0, "ROOT")]
    while stack:
        k, depth, keyword = stack.pop()
        indent = "  " * depth
        if keyword == "}":
            lines.append(f"{indent}}}")
            continue
        X_parent_bone = np.broadcast_to(np.eye(4), (frame_count, 4, 4)) if k < 0 else X_parent_link[:, k]
        positions, angles = X_parent_bone[:, :3, 3], continuous_euler_angles(X_parent_bone[:, :3, :3])
        is_fixed = keyword != "ROOT" and np.abs(positions - positions[0]).max() < MIN_MOTION
        columns.append(angles if is_fixed else np.concatenate([positions, angles], axis=1))
        lines += [
            f"{indent}{keyword} {names[k]}",
            f"{indent}{{",
            f"{indent}  OFFSET {_format_row(positions[0] if is_fixed else np.zeros(3))}",
        ]
        channels = f"3 {ROTATION_CHANNELS}" if is_fixed else f"6 {POSITION_CHANNELS} {ROTATION_CHANNELS}"
        lines.append(f"{indent}  CHANNELS {channels}")
        if not children[k]:
            lines += [
                f"{indent}  End Site",
                f"{indent}  {{",
                f"{indent}    OFFSET 0 0 {END_BONE_LENGTH:g}",
                f"{indent}  }}",
            ]
        stack.append((k, depth, "}"))
        stack.extend((child, depth + 1, "JOINT") for child in reversed(children[k]))
    frame_time = even_motion.duration / (frame_count - 1) if frame_count > 1 else 1 / 60
    lines += ["MOTION", f"Frames: {frame_count}", f"Frame Time: {frame_time:.9g}"]
    lines += [_format_row(row) for row in np.concatenate(columns, axis=1)]
    return ("\n".join(lines) + "\n").encode()


def parent_indices(mechanism: Mechanism) -> list[int]:
    """Return the index of the parent link of each link; -1 for links whose parent is the world."""
    link_indices = {link: k for k, link in enumerate(mechanism.links.values())}
    parents: list[int] = []
    for link in link_indices:
        ancestor: Frame | None = link.parent
        while ancestor is not None and not isinstance(ancestor, Link):
            ancestor = ancestor.parent
        parents.append(-1 if ancestor is None else link_indices[ancestor])
    return parents


def bone_names(names: list[str]) -> list[str]:
    """Return unique bone names without blanks and without characters that end a word in BVH."""
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
    """Return the Euler angles (N, 3) about z, y, x, degrees, of rotations R (N, 3, 3), continuous over the frames."""
    angles = np.empty((len(R), 3))
    previous_angles = None
    for k, R_frame in enumerate(R):
        previous_angles = angles[k] = euler.euler_from_matrix(R_frame, order="zyx", axes="moving", near=previous_angles)
    return np.degrees(angles)


def _format_row(numbers: Array) -> str:
    return " ".join(f"{number:.12g}" for number in numbers.tolist())


DECIMALS = 7
"""Decimals of positions (m), quaternions and times (s) in a page: finer than a screen can show; the page is half as
large as with all digits."""

PAGE_TEMPLATE = """<!doctype html>
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
SECURITY_POLICY = (
    "default-src 'none'; script-src data:; style-src 'unsafe-inline'; img-src data: blob:; connect-src data: blob:"
)


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
        UTF-8 bytes of the page. Its data is `{"name", "model", "times", "poses", "files", "events"}`. Times are in s
        and begin at 0. Poses are a row for each time with position and wxyz of all links, in the order of the
        mechanism's links. Files are in base64.

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
        "files": {url: base64.b64encode(content).decode() for url, content in (files or {}).items()},
        "events": [[round(max(0.0, event_time - start_time), DECIMALS), event] for event_time, event in events],
    }
    page = PAGE_TEMPLATE.format(
        policy=SECURITY_POLICY,
        title=html.escape(motion.name),
        data=f'{as_script_text(data)[:-1]},"poses":{_format_rows(link_pose_rows(motion))}}}',
        player=base64.b64encode(player_js.encode()).decode(),
    )
    return page.encode()


def link_pose_rows(motion: Motion) -> list[list[float]]:
    """Return a row for each time: x y z qw qx qy qz of all links, with continuous signs of the quaternions."""
    poses = motion.poses()
    wxyz = continuous_quaternions(quaternion.from_matrix(poses[..., :3, :3]))
    link_poses = np.concatenate([poses[..., :3, 3], wxyz], axis=-1)
    rounded_rows = np.round(link_poses.reshape(len(link_poses), -1), DECIMALS) + 0.0  # avoids -0.0
    return rounded_rows.tolist()


def _format_rows(rows: list[list[float]]) -> str:
    """Format rows of numbers as JSON, row by row, because a single call would block all other threads for seconds."""
    return f"[{','.join(json.dumps(row, allow_nan=False, separators=(',', ':')) for row in rows)}]"


def as_script_text(data: object) -> str:
    """Format data as JSON without characters that could form a tag or a comment, or end a script."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))  # escapes all characters that are not ASCII
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
