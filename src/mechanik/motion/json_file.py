"""A motion as JSON, with its mechanism inside; reads back to an equal one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mechanik.errors import JsonError
from mechanik.formats import describe, read_json
from mechanik.formats.json_value import Value, parse
from mechanik.motion.motion import Motion

VERSION = 1
KEYS = ("mechanik_motion", "name", "freedoms", "times", "q", "mechanism")


def to_json(motion: Motion) -> bytes:
    """An object with `freedoms` (the names of the numbers of q), `times` (s), `q` (a row a frame) and `mechanism`."""
    rows = ",\n  ".join(json.dumps(row) for row in motion.q.tolist())
    head = {
        "mechanik_motion": VERSION,
        "name": motion.name,
        "freedoms": motion.mechanism.space.q_names,
        "mechanism": describe(motion.mechanism),
        "times": motion.times.tolist(),
    }
    lines = [
        f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False, allow_nan=False)}" for key, value in head.items()
    ]
    return ("{\n" + ",\n".join(lines) + f',\n"q": [\n  {rows}\n]\n' + "}\n").encode()


def from_json(source: bytes | str | Mapping[str, Any]) -> Motion:
    """A motion from what `to_json` wrote, or from what `json.load` makes of it.

    Raises:
        JsonError: with the place, such as `q[3]`, and what is expected there.
    """
    if isinstance(source, bytes):
        try:
            source = source.decode()
        except UnicodeDecodeError:
            raise JsonError("a motion in JSON is text in UTF-8, and these bytes are not") from None
    top = Value(source if isinstance(source, Mapping) else parse(source)).object(KEYS)
    if top["mechanik_motion"].number() != VERSION:
        top["mechanik_motion"].fail(f"{VERSION}, the version of the format that is known here")
    content: Any = top["mechanism"].data
    if not isinstance(content, Mapping):
        top["mechanism"].fail("an object")
    mechanism = read_json(content)  # pyright: ignore[reportUnknownArgumentType]
    names = mechanism.space.q_names
    freedoms = tuple(item.text() for item in top["freedoms"].items(len(names), "names"))
    if freedoms != names:
        top["freedoms"].fail(f"the names of the numbers of q, {', '.join(names)}")
    times = top["times"].numbers()
    with top["q"].blamed():
        return Motion(
            mechanism,
            times,
            [row.numbers(len(names)) for row in top["q"].items(len(times), "rows")],
            top["name"].text(),
        )
