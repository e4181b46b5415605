"""Forward kinematics beside Klampt itself, on more configurations than the recorded ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mechanik.formats.urdf.reader import read_urdf

pytestmark = pytest.mark.klampt
DATA = Path(__file__).parent.parent / "data" / "klampt"


@pytest.mark.parametrize("name", ["tree9", "panda_nogeom", "ur5_nogeom"])
def test_link_poses_match_klampt(name):
    klampt = pytest.importorskip("klampt")
    world = klampt.WorldModel()
    assert world.readFile(str(DATA / f"{name}.urdf"))
    robot = world.robot(0)
    mechanism = read_urdf(DATA / f"{name}.urdf")
    compared = 0
    for q in mechanism.random(np.random.default_rng(0), 20):
        configuration = robot.getConfig()
        for joint, value in mechanism.values(q).items():
            # Klampt calls a moving link by its joint or by itself, as the file has it
            link = robot.link(mechanism.joint(joint).child.name)
            configuration[link.getIndex()] = value
        robot.setConfig(configuration)
        for link, X in zip(mechanism.links, mechanism.poses(q), strict=True):
            theirs = robot.link(link)
            if theirs.getIndex() < 0:
                continue
            turn, place = theirs.getTransform()
            np.testing.assert_allclose(X[:3, 3], place, atol=1e-12)
            np.testing.assert_allclose(X[:3, :3], np.array(turn).reshape(3, 3).T, atol=1e-12)
            compared += 1
    assert compared >= 20 * mechanism.nv
