"""What a batch was asked, in a few short texts: so that a result is never gone on with for something else.

What counts is what the answers depend on: where links stand and not how a file spells them, targets and starts as they
are given.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, cast

import numpy as np

from mechanik.batch.starts import Starts
from mechanik.batch.targets import Targets
from mechanik.errors import MechanikError
from mechanik.mechanism import Mechanism
from mechanik.objectives import Objective
from mechanik.objectives.closures import closure_relations
from mechanik.objectives.laws import law_relations
from mechanik.spatial.array import Array

AT_A_TIME = 1 << 16
"""Rows."""
DIGITS = 9
"""Of poses: they may differ in the last bits from machine to machine."""

Fingerprint = Mapping[str, str]


def fingerprint(
    mechanism: Mechanism,
    objectives: Sequence[Objective],
    settings: object,
    targets: Targets,
    starts: Starts,
    kept: dict[str, str],
) -> Fingerprint:
    """A text of 16 letters for each part of what is asked.

    Args:
        settings: whatever else the answers depend on: numbers, texts, arrays, dataclasses, and containers of those.
        kept: what was found out before of the same mechanism and settings.
    """
    wanted, began = _all_rows(targets, starts)
    if not kept:
        kept |= {"mechanism": digest(_mechanism(mechanism)), "options": digest(settings)}
    return {
        "mechanism": kept["mechanism"],
        "goals": digest([_objective(mechanism, one, targets, k) for k, one in enumerate(objectives)]),
        "options": kept["options"],
        "targets": wanted,
        "starts": began,
    }


def _all_rows(targets: Targets, starts: Starts) -> tuple[str, str]:
    """Digests of all targets and of all starts, some rows at a time, so that files need not fit into memory."""
    asked, began = (hashlib.blake2b(digest_size=8) for _ in range(2))
    # without starts the present configuration is one, or holds what is not moved
    _feed(began.update, (starts.given is None, starts.count is None, starts.home if starts.given is None else None))
    for first in range(0, targets.count, AT_A_TIME):
        rows = np.arange(first, min(first + AT_A_TIME, targets.count))
        wanted, good = targets.take(rows, True)
        for k, taken in enumerate(wanted.taken):
            if isinstance(taken, np.ndarray):
                _feed(asked.update, _checksum(cast("Array", taken)))
            else:
                _feed(asked.update, [wanted.target(k, i) for i in range(wanted.count)])
        _feed(asked.update, good)
        if (given := starts.take(rows)[0]) is not None:
            _feed(began.update, _checksum(given))
        targets.release()
        starts.release()
    return asked.hexdigest(), began.hexdigest()


def _checksum(numbers: Array) -> object:
    """The shape, and sums of all bits by rows and by columns, weighed by their places: much quicker than a digest."""
    bits = np.ascontiguousarray(numbers, dtype=np.float64).view(np.uint64).reshape(len(numbers), -1)
    by_row, by_column = bits.sum(axis=1), bits.sum(axis=0)
    return numbers.shape, int(by_row @ (2 * np.arange(len(by_row), dtype=np.uint64) + 1)), by_column


def row_seed(seed: int, row: object, q0: object) -> int:
    """A seed for one row, from what the row is: wherever it stands among the others, it fares alike."""
    return int(digest(seed, row, q0), 16)


def digest(*things: object) -> str:
    """16 hexadecimal letters that change with anything in `things`."""
    sink = hashlib.blake2b(digest_size=8)
    _feed(sink.update, things)
    return sink.hexdigest()


def _feed(put: Callable[[bytes], None], thing: object) -> None:
    if isinstance(thing, np.ndarray | np.generic):
        numbers = np.ascontiguousarray(cast("Any", thing))
        put(f"array {numbers.dtype.str} {numbers.shape} ".encode())
        put(numbers.tobytes())
    elif isinstance(thing, Enum):
        put(f"{type(thing).__name__}.{thing.name} ".encode())
    elif isinstance(thing, bool) or thing is None:
        put(f"{thing} ".encode())
    elif isinstance(thing, int | str):
        put(f"{type(thing).__name__} {len(str(thing))} {thing} ".encode())
    elif isinstance(thing, float):
        put(b"float " + struct.pack("<d", thing))
    elif isinstance(thing, Mapping):
        items = cast("Mapping[Any, Any]", thing)
        put(f"mapping {len(items)} ".encode())
        for key in sorted(items, key=str):
            _feed(put, (str(key), items[key]))
    elif isinstance(thing, list | tuple):
        items = cast("Sequence[Any]", thing)
        put(f"items {len(items)} ".encode())
        for item in items:
            _feed(put, item)
    elif is_dataclass(thing) and not isinstance(thing, type):
        put(f"{type(thing).__name__} ".encode())
        _feed(put, {field.name: getattr(thing, field.name, None) for field in fields(thing)})
    else:  # a function, or something of the user's: by its name, as its contents cannot be known
        put(f"{getattr(thing, '__qualname__', type(thing).__qualname__)} ".encode())


def _mechanism(mechanism: Mechanism) -> object:
    space = mechanism.space
    q = mechanism.random(np.random.default_rng(0), 2)
    poses = np.round(mechanism.poses(q), DIGITS) + 0.0  # not -0
    closures = {name: closure_relations(mechanism, closure) for name, closure in mechanism.closures.items()}
    return (
        space.q_names,
        space.v_names,
        space.lower,
        space.upper,
        space.rotates,
        tuple(mechanism.links),
        poses,
        closures,
        law_relations(mechanism),
        {name: joint.cone and (joint.cone.angle, joint.cone.axes) for name, joint in mechanism.joints.items()},
    )


def _objective(mechanism: Mechanism, objective: Objective, targets: Targets, k: int) -> object:
    """All of an objective but a target that the batch replaces."""
    column = targets.columns[k]
    target = None if column is None else column.probe()
    aimed = objective
    if target is not None:
        try:
            aimed = objective.at(target)  # type: ignore[arg-type]
        except MechanikError:
            aimed = objective
    wish = (aimed.weight, aimed.level, aimed.tolerance, aimed.angle_tolerance, aimed.required, aimed.name)
    return (type(aimed).__name__, wish, aimed.relations(mechanism))
