"""Closures beside a URDF, which has no words for loops.

They come from a small file `NAME.closures.json` (or `.yaml`, `.yml`) beside `NAME.urdf`, from the block
<mechanik> in the URDF, and from links that are named in pairs, `closing_NAME_1` and `closing_NAME_2`, which
exporters from CAD leave behind and whose origins shall meet (a ball). The file holds a list, or {"closures": list} with
what `bonds_file.py` knows beside it, of

    {"name": "loop", "kind": "pin", "link": "coupler", "at": {"xyz": [1.8, 0, 0]},
     "onto_link": "rocker", "onto": {"xyz": [1.2, 0, 0], "rpy": [0, 0, 0]}, "axis": "z"}

with `free`, a list of freedoms, in place of `kind` where no kind fits, and without `onto` where the loop is shut as it
stands. The other keys are `axes_wxyz`, the turn to the closure's axes where `axis` does not say it all,
`lower` and `upper`, limits of its freedoms, and `cone` and `cone_axes`, how far which of its axes may tilt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np

from mechanik.errors import ClosureError, MechanikError, UnknownName
from mechanik.formats.beside_urdf import Beside, ClosureSpec
from mechanik.formats.urdf_shapes import read_place, wxyz_of_rpy
from mechanik.formats.xml_text import Node
from mechanik.mechanism.builder import CLOSURES
from mechanik.mechanism.closure import Closure
from mechanik.mechanism.dof import DoF, as_dofs
from mechanik.mechanism.door import as_vector
from mechanik.mechanism.joint import Joint
from mechanik.mechanism.link import Link
from mechanik.mechanism.placing import as_axes
from mechanik.spatial import Pose, inverse, quaternion
from mechanik.spatial.array import Array

KEYS = ("name", "kind", "free", "link", "at", "onto_link", "onto", "axis", "axes_wxyz", "lower", "upper")
CONE = ("cone", "cone_axes")
PAIR = re.compile(r"closing_(.+)_([12])")


# ---- the three places -------------------------------------------------------------------------


def closures_of(said: Beside, robot: Node, links: Mapping[str, Link]) -> list[ClosureSpec]:
    """All closures of a URDF: those beside it, those in its blocks, and those that links are named for."""
    specs = said.items("closures")
    specs += [_from_node(node) for block in robot.all("mechanik") for node in block.all("closure")]
    return specs + _pairs(robot, links, {str(spec.said.get("name")) for spec in specs})


def _from_node(node: Node) -> ClosureSpec:
    said: dict[str, Any] = dict(node.attributes)
    if "free" in said:
        said["free"] = said["free"].split()
    if said.get("axis", "").lstrip("-") not in ("", "x", "y", "z"):
        said["axis"] = node.numbers("axis", 3)
    if "axes_wxyz" in said:
        said["axes_wxyz"] = node.numbers("axes_wxyz", 4)
    for side in ("lower", "upper"):
        if side in said:
            said[side] = [None if word == "none" else word for word in said[side].split()]
    for child in node.children:
        if child.tag not in ("at", "onto"):
            raise child.fault("is unknown in a closure; it holds <at> and <onto>")
        position, wxyz = read_place(child)
        said[child.tag] = {"position": position, "wxyz": wxyz}
    return ClosureSpec(f"{node.where}: closure {node.attributes.get('name', '')!r}", said)


def _pairs(robot: Node, links: Mapping[str, Link], taken: set[str]) -> list[ClosureSpec]:
    specs: list[ClosureSpec] = []
    for link in links:
        match = PAIR.fullmatch(link)
        if match is None or match[1] in taken:
            continue
        other = f"closing_{match[1]}_{'2' if match[2] == '1' else '1'}"
        if other not in links:
            robot.document.warnings.append(f"Link {link!r} has no partner {other!r}, so no loop is closed there.")
        elif match[2] == "1":
            said = {"name": match[1], "kind": "ball", "link": link, "onto_link": other, "onto": (0.0, 0.0, 0.0)}
            specs.append(ClosureSpec(f"links {link!r} and {other!r}", said))
    return specs


# ---- from words to closures -------------------------------------------------------------------


def close_loops(specs: Sequence[ClosureSpec], links: Mapping[str, Link], joint_names: set[str]) -> list[Closure]:
    """Make the closures. Their joints may not be called like one in `joint_names`, or like each other."""
    closures: list[Closure] = []
    taken = set(joint_names)
    for spec in specs:
        try:
            closure = _close(spec.said, links)
        except MechanikError as error:
            raise ClosureError(f"{spec.where}: {error}") from None
        if closure.name in taken:
            raise ClosureError(f"{spec.where}: another joint is called {closure.name!r}; names must be unique")
        taken.add(closure.name)
        closures.append(closure)
    return closures


def _close(said: Mapping[str, Any], links: Mapping[str, Link]) -> Closure:
    for key in said:
        if key not in (*KEYS, *CONE):
            raise UnknownName("key of a closure", key, (*KEYS, *CONE))
    name = said.get("name")
    if not isinstance(name, str) or not name:
        raise ClosureError("it has no name")
    ends: list[Link] = []
    for key in ("link", "onto_link"):
        if key not in said:
            raise ClosureError(f"it does not say its {key}")
        if not isinstance(said[key], str) or said[key] not in links:
            raise UnknownName("link", said[key], links)
        ends.append(links[said[key]])
    parent, link = ends
    joint = Joint(name, dof=_free(said))
    position, wxyz = _place(said.get("at"), "at")
    joint.position, joint.wxyz = position, wxyz
    if "axis" in said and "axes_wxyz" in said:
        raise ClosureError("it has both axis and axes_wxyz; one says it")
    if said.get("axes_wxyz") is not None:
        joint.axes_wxyz = said["axes_wxyz"]
    else:
        joint.axes_wxyz = as_axes(said.get("axis", "z"), name)
    joint.set_limits(
        _limits(said.get("lower"), -np.inf, len(joint.dof)), _limits(said.get("upper"), np.inf, len(joint.dof))
    )
    if said.get("cone") is not None:
        joint.set_cone(_number(said["cone"], "cone"), said.get("cone_axes", "z"))
    elif "cone_axes" in said:
        raise ClosureError("it has cone_axes and no cone")
    parent.add_child(joint)
    try:
        if said.get("onto") is None:
            end = inverse(link.world_matrix) @ joint.world_matrix
        else:
            end = Pose(*_place(said["onto"], "onto"))
        return joint.make_closure(link, end)
    except MechanikError:
        parent.remove_child(joint)
        raise


def _free(said: Mapping[str, Any]) -> tuple[DoF, ...]:
    if ("kind" in said) == ("free" in said):
        raise ClosureError("it needs a kind, or the freedoms that it leaves as free, and not both")
    if "free" in said:
        if isinstance(said["free"], Sequence):
            return as_dofs(cast("Sequence[Any]", said["free"]))
        raise ClosureError(f"free is a list of X Y Z EX EY EZ, not {said['free']!r}")
    if not isinstance(said["kind"], str) or said["kind"] not in CLOSURES:
        raise UnknownName("kind of closure", said["kind"], CLOSURES)
    return CLOSURES[said["kind"]]


def _place(given: Any, what: str) -> tuple[Array, Array]:
    """Position and wxyz from nothing, a point, or {xyz or position, rpy or wxyz}."""
    if given is None:
        return np.zeros(3), quaternion.identity()
    if not isinstance(given, Mapping):
        return as_vector(given, 3, what), quaternion.identity()
    given = cast("Mapping[str, Any]", given)
    for key in given:
        if key not in ("xyz", "position", "rpy", "wxyz"):
            raise UnknownName(f"key of {what}", key, ("xyz", "position", "rpy", "wxyz"))
    if ("xyz" in given and "position" in given) or ("rpy" in given and "wxyz" in given):
        raise ClosureError(f"{what} says the same thing twice: {', '.join(given)}")
    position = as_vector(given.get("xyz", given.get("position", (0, 0, 0))), 3, what)
    if "rpy" in given:
        return position, wxyz_of_rpy(tuple(as_vector(given["rpy"], 3, f"rpy of {what}")))
    pose = Pose(position, given.get("wxyz", (1, 0, 0, 0)))
    return position, pose.wxyz


def _number(given: Any, what: str) -> float:
    try:
        return float(given)
    except (TypeError, ValueError):
        raise ClosureError(f"its {what} is {given!r}, where a number is needed") from None


def _limits(given: Any, missing: float, size: int) -> list[float]:
    if given is None:
        return [missing] * size
    values = list(cast("Sequence[Any]", given)) if isinstance(given, list | tuple) else [given]
    try:
        return [missing if value is None else float(value) for value in values]
    except (TypeError, ValueError):
        raise ClosureError(f"its limits are {given!r}, where numbers are needed") from None


# ---- and back ---------------------------------------------------------------------------------


def describe_closures(
    closures: Mapping[str, Closure], names: Mapping[Any, str], world: str | None = None
) -> Iterator[dict[str, Any]]:
    """Each closure as it stands in a file, to the last digit.

    Args:
        names: of the links.
        world: the link that stands for the world, if there is one.
    """
    kinds = {free: kind for kind, free in CLOSURES.items()}
    for name, closure in closures.items():
        joint = cast(Joint, closure.joint)
        start = world if joint.parent is None else names[joint.parent]
        if start is None:
            raise ClosureError(f"closure {name!r} starts in the world; a file can only say on which link it starts")
        said: dict[str, Any] = {"name": name}
        if joint.dof in kinds:
            said["kind"] = kinds[joint.dof]
        else:
            said["free"] = [dof.name for dof in joint.dof]
        said["link"], said["onto_link"] = start, names[closure.link]
        said["at"] = {"position": joint.position.tolist(), "wxyz": joint.wxyz.tolist()}
        said["onto"] = {"position": closure.at.position.tolist(), "wxyz": closure.at.wxyz.tolist()}
        if not np.array_equal(joint.axes_wxyz, quaternion.identity()):
            said["axes_wxyz"] = joint.axes_wxyz.tolist()
        for side, limits in (("lower", joint.lower), ("upper", joint.upper)):
            if np.isfinite(limits).any():
                said[side] = [value if np.isfinite(value) else None for value in limits.tolist()]
        if joint.cone is not None:
            said["cone"], said["cone_axes"] = joint.cone.angle, joint.cone.axes
        yield said
