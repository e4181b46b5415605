"""Written URDFs give the same poses in MuJoCo."""

from __future__ import annotations

import numpy as np
import pytest
from random_mechanisms import random_mechanism

from mechanik import Mechanism, gallery
from mechanik.formats.urdf.reader import read_urdf
from mechanik.formats.urdf.writer import write_urdf

pytestmark = pytest.mark.mujoco


def hinges_and_slides(seed: int) -> Mechanism:
    """A random tree of joints with one dof, which is what URDF and MuJoCo have in common."""
    mechanism = random_mechanism(seed, 12, couplings=False)
    for joint in mechanism.joints.values():
        joint.set_dof(joint.dof[:1])
    return mechanism


MECHANISMS = {f"random {seed}": hinges_and_slides(seed) for seed in range(8)}
MECHANISMS |= {name: gallery.make(name) for name in ("panda", "ur10", "iiwa14", "puma560", "scara", "zalo5")}


@pytest.mark.parametrize("name", MECHANISMS)
def test_mujoco_reads_written_urdfs_with_the_same_poses(name):
    mujoco = pytest.importorskip("mujoco")
    text = write_urdf(MECHANISMS[name])
    mechanism = read_urdf(text)
    # MuJoCo drops fixed links, and bodies without mass that move
    for link in mechanism.links.values():
        link.visuals = link.collisions = ()
    options = '<mujoco><compiler fusestatic="false" boundmass="1" boundinertia="1" strippath="false"/></mujoco>'
    model = mujoco.MjModel.from_xml_string(write_urdf(mechanism).replace("</robot>", options + "</robot>"))
    data = mujoco.MjData(model)
    compared = 0
    for q in mechanism.random(np.random.default_rng(3), 5):
        for joint, value in mechanism.values(q).items():
            data.joint(joint).qpos = value
        mujoco.mj_kinematics(model, data)
        for link, X in zip(mechanism.links, mechanism.poses(q), strict=True):
            if mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, link) < 0:
                continue
            np.testing.assert_allclose(data.body(link).xpos, X[:3, 3], atol=1e-12)
            np.testing.assert_allclose(data.body(link).xmat, X[:3, :3].ravel(), atol=1e-12)
            compared += 1
    assert compared >= 5 * (len(mechanism.links) - 1)
