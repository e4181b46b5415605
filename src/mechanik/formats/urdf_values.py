"""Where the joints stand, for which URDF has no words: elements of the block <mechanik>.

    <values joint="crank" values="0.6"/>
    <values joint="base" values="0 0 1 0.1 0.2 0.3" wxyz="0.98 0.03 0.11 0.14"/>

They hold one number for each freedom, m or rad, and, for a joint that turns freely, its quaternion where the angles
alone would lose bits. A joint that is not named stands at zero, or at the limit nearest to it; one that closes a loop
stands where the links have it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from xml.etree.ElementTree import Element

import numpy as np

from mechanik.formats.json_state import AGREE
from mechanik.formats.urdf_mimic import contradicts
from mechanik.formats.urdf_text import row, text_of
from mechanik.formats.xml_text import Node
from mechanik.mechanism.dof import DoF
from mechanik.mechanism.door import read_only
from mechanik.mechanism.joint import Joint
from mechanik.mechanism.measure import measure
from mechanik.spatial import euler, quaternion
from mechanik.spatial.array import Array

# ---- writing ----------------------------------------------------------------------------------


def values_elements(name: str, joint: Joint, parts: Mapping[DoF, str]) -> Iterator[Element]:
    """What is to be said about one joint; nothing where reading would put it there anyway.

    Args:
        parts: for a joint that is split, the names of the single joints that stand for its freedoms.
    """
    if parts:
        values = _exact_values(joint)
        for dof, part in parts.items():
            if dof not in joint._couplings and not _stands_by_itself(joint, dof, float(values[dof])):
                yield Element("values", joint=part, values=text_of(values[dof]))
    elif joint.closure is not None:
        if not _rests(joint):
            # read off the links again, to the last bit; only which of equivalent angles is meant has to be said
            yield Element("values", joint=name, values=row(np.clip(joint.values.round(6), joint.lower, joint.upper)))
    elif joint.dof and not joint._couplings and not _rests(joint):
        element = Element("values", joint=name, values=row(joint.values))
        if joint.is_ball and not np.array_equal(joint.turn_wxyz, _turn_of(joint._values)):
            element.set("wxyz", row(joint.turn_wxyz))
        yield element


def _stands_by_itself(joint: Joint, dof: DoF, value: float) -> bool:
    # where followers contradict each other, the order in which they are read decides what is nearest
    followers = [one for one in joint._followers if one.leader_dof is dof]
    return value == joint._clamp(dof, 0.0) and not any(contradicts(one) for one in followers)


def _rests(joint: Joint) -> bool:
    if joint.closure is None:
        turned = joint.is_ball and not np.array_equal(joint.turn_wxyz, quaternion.identity())
        return not turned and all(_stands_by_itself(joint, dof, joint.value(dof)) for dof in joint.dof)
    lower, upper = joint._lower, joint._upper
    start = np.clip(np.zeros(6), lower, upper)
    there = measure(joint.closure._relative(), joint.dof, start, lower, upper)[list(joint.dof)]
    return bool((np.abs(there - joint.values) <= 1e-9 * (1.0 + np.abs(there))).all())


def _exact_values(joint: Joint) -> Array:
    """All six values; those of a ball give back its quaternion, which may know better than they."""
    values = np.array(joint._values)
    if joint.is_ball and quaternion.angle_between(_turn_of(values), joint.turn_wxyz) > 1e-15:
        near = values[[5, 4, 3]]
        values[[5, 4, 3]] = euler.euler_from_quaternion(joint.turn_wxyz, order="zyx", axes="moving", near=near)
    return values


def _turn_of(values: Array) -> Array:
    return euler.quaternion_from_euler(values[[5, 4, 3]], order="zyx", axes="moving")


# ---- reading ----------------------------------------------------------------------------------


def values_nodes(robot: Node) -> dict[str, Node]:
    """The elements <values>, by joint."""
    nodes: dict[str, Node] = {}
    for node in (one for block in robot.all("mechanik") for one in block.all("values")):
        name = node.need("joint")
        if name in nodes:
            raise node.fault(f"of joint {name!r} is a second one; the first is in line {nodes[name].line}")
        nodes[name] = node
    return nodes


def put_joints(nodes: dict[str, Node], joints: Mapping[str, Joint]) -> None:
    """Move the joints that `nodes` name, and take those out of it."""
    named = [(nodes.pop(name), name, joint) for name, joint in joints.items() if name in nodes]
    for node, name, joint in named:
        if not joint._couplings:
            _put(joint, name, node)
    for node, name, joint in named:  # once all that lead stand
        if joint._couplings:
            value, led = _numbers(joint, name, node)[0], float(joint.values[0])
            if abs(value - led) > AGREE * (1.0 + abs(led)):
                leader = joint.couplings[0].leader.name
                raise node.fault(f"puts joint {name!r} at {value:g}; it follows {leader!r}, which puts it at {led:g}")


def _put(joint: Joint, name: str, node: Node) -> None:
    """Past the setters, which may move the last bit."""
    numbers = dict(zip(joint.dof, _numbers(joint, name, node), strict=True))
    for dof, value in numbers.items():
        lower, upper = joint.limits(dof)
        if not lower <= value <= upper:
            raise node.fault(f"puts joint {name!r} at {value:g}, outside its limits {lower:g} to {upper:g}")
    joint._assign(numbers)
    for dof, value in numbers.items():
        joint._values[dof] = value
    wxyz = node.numbers("wxyz", 4)
    if wxyz is not None:
        _turn(joint, name, node, wxyz)
    for coupling in joint._followers:
        coupling.pull()
    joint._invalidate()


def _numbers(joint: Joint, name: str, node: Node) -> tuple[float, ...]:
    count, size = len(node.need("values").split()), len(joint.dof)
    if count != size:
        free = f"its freedoms {' '.join(dof.name for dof in joint.dof)} need {size}" if size else "it has no freedom"
        raise node.fault(f"of joint {name!r} has {count} numbers; {free}")
    return node.numbers("values", size) or ()


def _turn(joint: Joint, name: str, node: Node, wxyz: tuple[float, ...]) -> None:
    if not joint.is_ball:
        raise node.fault(f"of joint {name!r} has a wxyz, which only a joint has that turns freely about all axes")
    if not 1e-9 < math.hypot(*wxyz) < 1e9:
        raise node.fault(f"has wxyz={node.attributes['wxyz']!r}, where a quaternion of length 1 is needed")
    turn = joint._unit(wxyz)
    if quaternion.angle_between(turn, _turn_of(joint._values)) > AGREE:
        node.warn(f"of joint {name!r} has values and a wxyz that disagree; the values are taken")
    else:
        joint._turn = read_only(turn)
