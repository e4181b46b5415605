"""Arms in a plane, as in the first chapter of every textbook, and the SCARA, which is one on a column."""

from __future__ import annotations

import math

from mechanik.errors import ArmError
from mechanik.formats.arms import arm_2d
from mechanik.formats.dh import from_dh
from mechanik.gallery.bones import BLUE, DARK, GREY, ORANGE, bone, dress, put_on, rod
from mechanik.gallery.home import stand
from mechanik.mechanism import Mechanism


def planar_2r(lengths: tuple[float, float] = (1.0, 0.8)) -> Mechanism:
    """Two joints about z, half a turn to either side."""
    return _planar("planar_2r", lengths, [0.5, 0.9])


def planar_3r(lengths: tuple[float, float, float] = (1.0, 0.8, 0.5)) -> Mechanism:
    """Three joints about z: a point in the plane leaves one freedom over."""
    return _planar("planar_3r", lengths, [0.4, 0.7, 0.6])


def scara() -> Mechanism:
    """Turn, turn, slide, turn, tool down: of the size of an Adept Cobra 600.

    Column 0.387 m, links 0.325 and 0.275 m, stroke 0.21 m: the table that P. Corke's Robotics Toolbox has for it;
    the limits are those usual for its kind.
    """
    arm = from_dh(
        [[0.387, 0.325, 0, 0], [0.0, 0.275, 180, 0], [0.0, 0.0, 0, 0], [0.0, 0.0, 0, 0]],
        convention="classic",
        columns="d a alpha theta",
        degrees=True,
        kinds="RRPR",
        limits=[(-105, 105), (-150, 150), (0.0, 0.21), (-360, 360)],
        joints=["shoulder", "elbow", "quill", "spin"],
        links=["column", "upper_arm", "forearm", "quill", "chuck", "tool"],
        name="scara",
    )
    # z points down from the forearm on: the quill stands up out of it as far as it can go down
    put_on(arm.link("quill"), rod((0.0, 0.0, -0.26), (0.0, 0.0, 0.0), 0.012, GREY))
    put_on(arm.link("chuck"), rod((0.0, 0.0, -0.03), (0.0, 0.0, 0.0), 0.022, DARK))
    return stand(dress(arm, 0.05, 0.035, BLUE, DARK), [0.5, 0.9, 0.08, 0.0])


def _planar(name: str, lengths: tuple[float, ...], home: list[float]) -> Mechanism:
    if len(lengths) != len(home):
        raise ArmError(f"{name} has {len(home)} links, but {len(lengths)} lengths were given")
    arm = arm_2d(lengths, name=name, limits=(-math.pi, math.pi))
    radius = 0.03 * sum(lengths) / len(lengths)
    last = arm.link(f"link{len(lengths)}")
    dress(arm, radius, radius, ORANGE, DARK)
    put_on(last, bone((lengths[-1], 0.0, -radius), (lengths[-1], 0.0, radius), 0.8 * radius, DARK))
    return stand(arm, home)
