"""Klampt's robots, configurations and objectives, as its data files write them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from mechanik.formats.urdf.reader import read_urdf
from mechanik.model import Mechanism
from mechanik.objectives.pose_goals import LinkGoal
from mechanik.objectives.pose_rules import (
    AlignedAxes,
    FixedRotation,
    LineConstraint,
    PlaneConstraint,
    PointConstraint,
    PositionConstraint,
    RotationConstraint,
)

FOLDER = Path(__file__).parent.parent / "data" / "klampt"
FLOATING = ("base0", "base1", "base2", "base3", "base4", "base")
"""Klampt's floating base: x, y, z, then turns about z, y, x as they are carried along."""


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
    """(nv, active), the step v for each unit of Klampt's numbers."""
    names = list(mechanism.space.v_names)
    columns = np.zeros((mechanism.nv, len(active)))
    for column, name in enumerate(active):
        if name in names:
            columns[names.index(name), column] = 1.0
            continue
        k = FLOATING.index(name)
        ball = int(mechanism.space.quaternions_v[0])
        if k < 3:
            columns[names.index(f"floating_base.{'XYZ'[k]}"), column] = 1.0
        else:  # an angle turns about an axis that the angles after it carry along; v turns about the body's own axes
            c, s = np.cos, np.sin
            ey, ex = values["base4"], values["base"]
            about = {
                3: [-s(ey), c(ey) * s(ex), c(ey) * c(ex)],
                4: [0.0, c(ex), -s(ex)],
                5: [1.0, 0.0, 0.0],
            }[k]
            columns[ball : ball + 3, column] = about
    return columns


def rules(objective: dict[str, Any]) -> tuple[PositionConstraint | None, RotationConstraint | None]:
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


def placement(objective: dict[str, Any]) -> LinkGoal:
    position, rotation = rules(objective)
    return LinkGoal(objective["link"], position, rotation, relative_to=objective["ref"])
