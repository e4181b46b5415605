"""Published URDFs: the robots of the package `example-robot-data`, against Pinocchio."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mechanik.formats.urdf.reader import read_urdf
from mechanik.formats.urdf.writer import write_urdf
from mechanik.model import Mechanism

pytestmark = pytest.mark.robot_data

EMPTY = "ur3.urdf"
"""A <robot> with nothing in it, left behind by a failed expansion; Pinocchio refuses it, we warn."""


def installed() -> list[Path]:
    """The data has no module to import, so the installed files are listed by the name of the package."""
    try:
        listed = files("example-robot-data") or []
    except PackageNotFoundError:
        return []
    return sorted(Path(str(file.locate())).resolve() for file in listed if file.name.endswith(".urdf"))


ROBOTS = installed()
if not ROBOTS:
    pytest.skip("the package example-robot-data is not installed", allow_module_level=True)
robots = pytest.mark.parametrize("path", [path for path in ROBOTS if path.name != EMPTY], ids=lambda path: path.stem)


def test_robot_data_has_60_robots_and_one_empty_file() -> None:
    assert len(ROBOTS) >= 60
    for path in ROBOTS:
        if path.name == EMPTY:
            nothing = read_urdf(path)
            assert (len(nothing.links), nothing.nq) == (0, 0)
            assert any("no link" in warning for warning in nothing.warnings)


@robots
def test_urdf_round_trip_of_published_robots_is_exact(path: Path) -> None:
    mechanism = read_urdf(path)
    text = write_urdf(mechanism)
    again = read_urdf(text)
    assert list(again.links) == list(mechanism.links)
    assert list(again.joints) == list(mechanism.joints)
    assert again.space.q_names == mechanism.space.q_names
    assert np.array_equal(again.space.lower, mechanism.space.lower)
    assert np.array_equal(again.space.upper, mechanism.space.upper)
    for name, link in mechanism.links.items():
        link_again = again.links[name]
        assert (link_again.visuals, link_again.collisions, link_again.inertial) == (
            link.visuals,
            link.collisions,
            link.inertial,
        )
    q = mechanism.random(np.random.default_rng(1), 2)
    assert np.abs(again.poses(q) - mechanism.poses(q)).max() < 1e-12
    assert write_urdf(again) == text


@pytest.mark.pinocchio
@robots
@pytest.mark.parametrize("base", ["fixed", "free"])
def test_link_poses_match_pinocchio(path: Path, base: Any) -> None:
    pin = pytest.importorskip("pinocchio")
    name = read_urdf(path, base=base).roots[0].name  # floating_base, or, where a joint is called so, with a _
    root = (pin.JointModelFreeFlyer(), name) if base == "free" else ()
    mimic = True
    try:
        model = pin.buildModelFromUrdf(str(path), *root, mimic=True)
    except ValueError:  # Pinocchio follows no joint that comes later, or that does not exist
        mimic = False
        model = pin.buildModelFromUrdf(str(path), *root, mimic=False)
    mechanism = read_urdf(path, base=base, mimic=mimic)
    data = model.createData()
    bodies = {frame.name: k for k, frame in enumerate(model.frames) if frame.type == pin.FrameType.BODY}
    assert set(mechanism.links) <= set(bodies)
    for q in mechanism.random(np.random.default_rng(len(path.stem)), 3):
        pin.framesForwardKinematics(model, data, pinocchio_q(pin, model, mechanism, q))
        expected = np.array([data.oMf[bodies[name]].homogeneous for name in mechanism.links])
        assert np.abs(mechanism.poses(q) - expected).max() < 1e-12


def pinocchio_q(pin: Any, model: Any, mechanism: Mechanism, q: np.ndarray) -> np.ndarray:
    """Our configuration in Pinocchio's order: cos and sin for turns without limits, xyzw for a free body."""
    values = mechanism.values(q)
    theirs = pin.neutral(model)
    moving = 0
    for joint, name in zip(model.joints[1:], model.names[1:], strict=False):
        kind, i, value = joint.shortname(), joint.idx_q, values[name]
        if kind == "JointModelMimic":
            continue
        moving += 1
        if joint.nq == 7:
            k = mechanism.space.q_names.index(f"{name}.X")
            theirs[i : i + 7] = q[[k, k + 1, k + 2, k + 4, k + 5, k + 6, k + 3]]
        elif joint.nq == 2:
            theirs[i : i + 2] = np.cos(value), np.sin(value)
        else:
            assert joint.nq == 1
            theirs[i] = value
    assert moving == sum(1 for slot in mechanism.kinematics.joint_indices.values() if slot.q)
    return theirs
