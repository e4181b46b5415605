"""Klampt's robots, configurations and objectives, as its data files write them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from mechanik.formats.urdf.reader import read_urdf
from mechanik.model import Mechanism
from mechanik.objectives.pose_constraints import (
    AlignedAxes,
    FixedRotation,
    LineConstraint,
    PlaneConstraint,
    PointConstraint,
    PositionConstraint,
    RotationConstraint,
)
from mechanik.objectives.pose_goals import LinkGoal

FOLDER = Path(__file__).parent.parent / "data" / "klampt"
FLOATING = ("base0", "base1", "base2", "base3", "base4", "base")
"""Klampt's floating base: x, y, z, then rotations about the moving axes z, y, x."""


def cases(file: str) -> list[dict[str, Any]]:
    return json.loads((FOLDER / file).read_text())["cases"]


@cache
def robot(name: str) -> Mechanism:
    return read_urdf(FOLDER / f"{name}.urdf", base="free" if name.endswith("floating") else "fixed")


def configuration(mechanism: Mechanism, values: dict[str, float]) -> np.ndarray:
    values = dict(values)
    if "base0" in values:
        x, y, z, ez, ey, ex = (values.pop(name) for name in FLOATING)
        values["floating_base"] = [x, y, z, ex, ey, ez]
    return mechanism.configuration(values)


def steps(mechanism: Mechanism, values: dict[str, float], active: list[str]) -> np.ndarray:
    """Return (nv, active), the step v for a unit of each of Klampt's coordinates."""
    names = list(mechanism.space.v_names)
    columns = np.zeros((mechanism.nv, len(active)))
    for column, name in enumerate(active):
        if name in names:
            columns[names.index(name), column] = 1.0
            continue
        k = FLOATING.index(name)
        first_rotation = int(mechanism.space.quaternions_v[0])
        if k < 3:
            columns[names.index(f"floating_base.{'XYZ'[k]}"), column] = 1.0
        else:  # an angle rotates about an axis that moves with the later angles; v is along the axes of the body
            c, s = np.cos, np.sin
            ey, ex = values["base4"], values["base"]
            axis = {
                3: [-s(ey), c(ey) * s(ex), c(ey) * c(ex)],
                4: [0.0, c(ex), -s(ex)],
                5: [1.0, 0.0, 0.0],
            }[k]
            columns[first_rotation : first_rotation + 3, column] = axis
    return columns


def constraints(objective: dict[str, Any]) -> tuple[PositionConstraint | None, RotationConstraint | None]:
    p, r = objective["position"], objective["rotation"]
    position: PositionConstraint | None = None
    if p["type"] == "fixed":
        position = PointConstraint(p["target"], p["local"])
    elif p["type"] != "free":
        position = {"linear": LineConstraint, "planar": PlaneConstraint}[p["type"]](
            p["target"], p["direction"], p["local"]
        )
    rotation: RotationConstraint | None = None
    if r["type"] == "fixed":
        rotation = FixedRotation(r["R"])
    elif r["type"] == "axis":
        rotation = AlignedAxes(r["target_axis"], r["local_axis"])
    return position, rotation


def link_goal(objective: dict[str, Any]) -> LinkGoal:
    position, rotation = constraints(objective)
    return LinkGoal(objective["link"], position, rotation, relative_to=objective["ref"])
