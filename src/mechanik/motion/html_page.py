"""A motion as one page that plays by itself, from a disk or a mail, without a server.

The data stand in a script element of a type that is not run, with every "<" written as an escape, and the player as a
data address in base64: nothing in either can end its element, whatever names or texts hold.
"""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from mechanik.motion.motion import Motion, continuous
from mechanik.spatial import quaternion

DECIMALS = 7
"""Of positions (m) and quaternions: finer than a screen shows, and half the size."""

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
    """
    Args:
        player_js: a classic script that finds the data in the element `motion` and plays it.
        model: plain data: how the studio describes the mechanism to its page (its `Model` message).
        files: meshes, by the addresses that the model gives them.
        events: what else happened, one after the other: when, s, as the motion counts them, and the studio's message.
    Returns:
        the page. Its data are `{"name", "model", "times", "poses", "files", "events"}`: seconds from 0; for each time
        the position and wxyz of all links in a row, in the order of the model's links; files in base64.
    """
    begun = float(motion.times[0])
    data = {
        "name": motion.name,
        "model": model,
        "times": [round(time - begun, DECIMALS) for time in motion.times.tolist()],
        "files": {address: base64.b64encode(content).decode() for address, content in (files or {}).items()},
        "events": [[round(max(0.0, when - begun), DECIMALS), event] for when, event in events],
    }
    page = PAGE.format(
        policy=POLICY,
        title=html.escape(motion.name),
        data=f'{as_script_text(data)[:-1]},"poses":{_rows_text(link_numbers(motion))}}}',
        player=base64.b64encode(player_js.encode()).decode(),
    )
    return page.encode()


def link_numbers(motion: Motion) -> list[list[float]]:
    """For each time x y z qw qx qy qz of all links in a row, without jumps of sign."""
    poses = motion.poses()
    wxyz = continuous(quaternion.from_matrix(poses[..., :3, :3]))
    numbers = np.concatenate([poses[..., :3, 3], wxyz], axis=-1)
    rounded = np.round(numbers.reshape(len(numbers), -1), DECIMALS) + 0.0  # no minus zeros
    return rounded.tolist()


def _rows_text(rows: list[list[float]]) -> str:
    """Rows of numbers as JSON, one after the other: all at once would keep every other thread waiting for seconds."""
    return f"[{','.join(json.dumps(row, allow_nan=False, separators=(',', ':')) for row in rows)}]"


def as_script_text(data: object) -> str:
    """JSON in which no tag, comment or line end of scripts can stand."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))  # all but ASCII is escaped
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
