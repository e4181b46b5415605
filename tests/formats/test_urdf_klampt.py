"""Forward kinematics of URDFs against poses that Klampt computed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from mechanik.formats.urdf.reader import read_urdf
from mechanik.model import Mechanism

FOLDER = Path(__file__).parent.parent / "data" / "klampt"
CASES = json.loads((FOLDER / "forward_kinematics.json").read_text())["cases"]
FLOATING = ("base0", "base1", "base2", "base3", "base4", "base")
"""Klampt's floating base: x, y, z, then rotations about moving z, y, x, each with a link."""


def base_values(numbers: list[float]) -> list[float]:
    x, y, z, ez, ey, ex = numbers
    return [x, y, z, ex, ey, ez]


def error(X: np.ndarray, expected: dict[str, list[float]]) -> float:
    return max(np.abs(X[:3, :3] - expected["R"]).max(), np.abs(X[:3, 3] - expected["t"]).max())


def load(robot: str) -> Mechanism:
    return read_urdf(FOLDER / f"{robot}.urdf", base="free" if robot.endswith("floating") else "fixed")


@pytest.mark.parametrize("number", range(len(CASES)))
def test_link_poses_match_klampt(number: int) -> None:
    case = CASES[number]
    mechanism = load(case["robot"])
    values, expected = dict(case["q"]), dict(case["links"])
    assert len(expected) >= 8
    if case["robot"].endswith("floating"):
        numbers = [values.pop(name) for name in FLOATING]
        for count, name in enumerate(FLOATING[:-1], 1):
            partly = base_values(numbers[:count] + [0.0] * (6 - count))
            X = mechanism.pose("base", mechanism.configuration({"floating_base": partly}))
            assert error(X, expected.pop(name)) < 1e-12
        values["floating_base"] = base_values(numbers)
    q = mechanism.configuration(values)
    assert set(expected) <= set(mechanism.links)
    for name, pose in expected.items():
        assert error(mechanism.pose(name, q), pose) < 1e-12, name


def test_klampt_data_has_twenty_configurations_of_four_robots() -> None:
    assert len(CASES) == 20
    assert len({case["robot"] for case in CASES}) == 4


@pytest.mark.parametrize("robot", sorted({case["robot"] for case in CASES}))
def test_centre_of_mass_matches_klampt(robot: str) -> None:
    """The weighted mean of the masses is the centre of mass of Klampt."""
    for case in CASES:
        if case["robot"] != robot:
            continue
        mechanism = load(robot)
        values = dict(case["q"])
        if robot.endswith("floating"):
            values["floating_base"] = base_values([values.pop(name) for name in FLOATING])
        q = mechanism.configuration(values)
        bodies = [(name, link.inertial) for name, link in mechanism.links.items() if link.inertial is not None]
        total = sum(inertial.mass for _, inertial in bodies)
        weighted = [
            inertial.mass * (mechanism.pose(name, q) @ inertial.pose.matrix)[:3, 3] for name, inertial in bodies
        ]
        assert np.abs(np.sum(weighted, axis=0) / total - case["com"]).max() < 1e-12
