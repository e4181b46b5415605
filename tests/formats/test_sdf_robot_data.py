"""Published SDFs: Cassie with its loops, in the package `example-robot-data`."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

import numpy as np
import pytest

from mechanik.formats import load

pytestmark = pytest.mark.robot_data


def installed() -> list[Path]:
    try:
        listed = files("example-robot-data") or []
    except PackageNotFoundError:
        return []
    return sorted(Path(str(file.locate())).resolve() for file in listed if file.name.endswith(".sdf"))


ROBOTS = installed()
if not ROBOTS:
    pytest.skip("the package example-robot-data is not installed, or has no SDF", allow_module_level=True)


@pytest.mark.parametrize("path", ROBOTS, ids=lambda path: path.stem)
def test_every_loop_of_cassie_is_read_and_closed(path: Path) -> None:
    mechanism = load(path)
    assert len(mechanism.closures) >= 4  # on each side the rods of the foot and of the heel, or of the knee
    assert any("outside their limits" in text for text in mechanism.warnings)
    for joint in mechanism.joints.values():  # drawn where the limits of four joints do not let it be
        joint.set_limits(np.full(len(joint.dof), -np.inf), np.full(len(joint.dof), np.inf))
    mechanism.q = mechanism.neutral()
    for closure in mechanism.closures.values():
        assert closure.gap().is_closed(1e-12), closure
