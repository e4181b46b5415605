"""A mechanism as a page is told of it."""

from __future__ import annotations

import math

import numpy as np

from mechanik.mechanism import ConvexMesh, DoF, Mechanism, Mesh, PlacedShape
from mechanik.spatial.array import Array
from mechanik.studio.messages.checks import Vector
from mechanik.studio.messages.events import ClosureInfo, JointInfo, LinkInfo, Model
from mechanik.studio.session.freedoms import freedom_infos
from mechanik.studio.session.poses import numbers_of
from mechanik.studio.session.sizes import is_looked_into
from mechanik.studio.session.table import Table

FROM_ASIDE: Vector = (0.62, -0.68, 0.39)
"""From where what is not planar is seen: from the front, a little from the side and from above."""
SMALLEST = 0.02
"""m; nothing is drawn as if it were smaller."""
PARALLEL = 1e-6
MOST_SENTENCES = 12


def model_info(
    table: Table, q: Array, revision: int, locked: frozenset[int], hidden: frozenset[str], resets_view: bool
) -> Model:
    mechanism, X = table.mechanism, table.anatomy.poses(q)
    centre, radius = ball_around(mechanism, X)
    source_kind, source = table.source
    return Model(
        revision=revision,
        name=mechanism.name,
        title=table.title or mechanism.name,
        links=_links(table, hidden),
        joints=_joints(table),
        freedoms=freedom_infos(mechanism, table.anatomy.freedoms, locked),
        closures=_closures(table),
        configurations=list(mechanism.configurations),
        about=about(mechanism),
        centre=centre,
        radius=radius,
        view_from=view_from(mechanism, q),
        weighs=table.anatomy.centre(X) is not None,
        source_kind=source_kind,
        source=source,
        resets_view=resets_view,
    )


def _links(table: Table, hidden: frozenset[str]) -> list[LinkInfo]:
    joints = {joint: k for k, joint in enumerate(table.mechanism.joints.values())}
    return [
        LinkInfo(
            name=name,
            parent=joints.get(link.parent, -1),  # type: ignore[arg-type]
            visuals=[table.meshes.info(shape) for shape in link.visuals],
            collisions=[table.meshes.info(shape) for shape in link.collisions],
            visible=name not in hidden,
        )
        for name, link in table.mechanism.links.items()
    ]


def _joints(table: Table) -> list[JointInfo]:
    links = {link: k for k, link in enumerate(table.mechanism.links.values())}
    freedoms: dict[int, list[int]] = {}
    for k, one in enumerate(table.anatomy.freedoms):
        freedoms.setdefault(one.number, []).append(k)
    return [
        JointInfo(
            name=name,
            kind=kind_of(joint.dof),
            parent=links.get(joint.parent, -1),  # type: ignore[arg-type]
            child=-1 if joint.is_closure or joint.child is None else links[joint.child],
            pose=numbers_of(joint.matrix),
            freedoms=freedoms.get(number, []),
        )
        for number, (name, joint) in enumerate(table.mechanism.joints.items())
    ]


def _closures(table: Table) -> list[ClosureInfo]:
    links = {link: k for k, link in enumerate(table.mechanism.links.values())}
    return [
        ClosureInfo(
            name=name,
            kind=kind_of(closure.free),
            link_a=links.get(closure.joint.parent, -1),  # type: ignore[arg-type]
            pose_a=numbers_of(closure.joint.matrix),
            link_b=links[closure.link],
            pose_b=numbers_of(closure.at.matrix),
        )
        for name, closure in table.mechanism.closures.items()
    ]


def kind_of(free: tuple[DoF, ...]) -> str:
    """What people call a joint with those freedoms."""
    turns = sum(dof.is_rotation for dof in free)
    names = {
        (0, 0): "weld", (0, 1): "pin", (1, 0): "slider", (0, 2): "universal", (0, 3): "ball", (1, 1): "cylinder",
        (2, 1): "planar", (3, 0): "gantry", (3, 3): "floating",
    }  # fmt: skip
    return names.get((len(free) - turns, turns), " ".join(dof.name for dof in free))


def about(mechanism: Mechanism) -> list[str]:
    """Sentences for people: loops and mobility first, then what a reader found odd."""
    if is_looked_into(mechanism):
        first = mechanism.explain(next(iter(mechanism.links), None)).split("\n\n")[0].replace("\n", " ")
    else:
        name, loops = mechanism.name or "This mechanism", len(mechanism.closures)
        first = f"{name} has {mechanism.nv} freedoms and {loops} loops: too many to work out its mobility here."
    odd = [str(one) for one in mechanism.warnings]
    more = [f"And {len(odd) - MOST_SENTENCES} more such remarks."] if len(odd) > MOST_SENTENCES else []
    return [first, *odd[:MOST_SENTENCES], *more]


def ball_around(mechanism: Mechanism, X: Array) -> tuple[Vector, float]:
    """Centre and radius (m) of a ball that holds all frames and simple shapes with links at X (L, 4, 4)."""
    places: list[Array] = [np.zeros(3)]
    sizes: list[float] = [0.0]
    for X_link, link in zip(X, mechanism.links.values(), strict=True):
        places.append(X_link[:3, 3])
        sizes.append(0.0)
        for shape in (*link.visuals, *link.collisions):
            if not isinstance(shape.shape, Mesh):
                places.append(X_link[:3, :3] @ shape.pose.position + X_link[:3, 3])
                sizes.append(_reach(shape))
    points, radii = np.array(places[1:] or places), np.array(sizes[1:] or sizes)[:, None]
    low, high = (points - radii).min(axis=0), (points + radii).max(axis=0)
    centre = (low + high) / 2
    radius = float((np.linalg.norm(points - centre, axis=1) + radii[:, 0]).max())
    x, y, z = centre.tolist()
    return (x, y, z), max(radius, SMALLEST)


def _reach(placed: PlacedShape) -> float:
    """The farthest point of a shape from its middle, m."""
    shape = placed.shape
    if isinstance(shape, ConvexMesh):
        return float(np.linalg.norm(shape.points, axis=1).max())
    sizes = getattr(shape, "size", None)
    if sizes is not None:
        return 0.5 * math.hypot(*sizes)
    return getattr(shape, "radius", 0.0) + 0.5 * getattr(shape, "length", 0.0)


def view_from(mechanism: Mechanism, q: Array) -> Vector:
    """From where it is best seen: across its plane if all moves in one, upright if it can be; else from aside."""
    axis: Array | None = None
    slides: list[Array] = []
    for name in mechanism.links:  # one after the other: all at once are as many numbers as links times freedoms
        J = mechanism.jacobian(name, q)
        axes = J[3:, np.linalg.norm(J[3:], axis=0) > PARALLEL]
        if axis is None and axes.size:
            axis = axes[:, 0] / np.linalg.norm(axes[:, 0])
        if axis is None:
            slides.append(J[:3, np.linalg.norm(J[:3], axis=0) > PARALLEL])
        elif not _is_in_plane(axis, axes, J[:3]):
            return FROM_ASIDE
    if axis is None or not all(_is_in_plane(axis, None, one) for one in slides):
        return FROM_ASIDE
    # x to the right and z up, or, seen from above, y up
    against = axis @ np.array([1.0, -1.0, 1.0]) < 0.0
    x, y, z = (-axis if against else axis).tolist()
    return x, y, z


def is_flat_linkage(mechanism: Mechanism, q: Array) -> bool:
    """Whether it has loops and moves in one plane: its bars lie one above the other there, and are drawn as if they
    could pass through each other."""
    return bool(mechanism.closures) and view_from(mechanism, q) is not FROM_ASIDE


def _is_in_plane(axis: Array, axes: Array | None, linear: Array) -> bool:
    """Whether turns (3, n) are about the axis, and slides (3, n) across it."""
    about = axes is None or np.abs(axes - axis[:, None] * (axis @ axes)).max(initial=0.0) <= PARALLEL
    return bool(about) and bool(np.abs(axis @ linear).max(initial=0.0) <= PARALLEL)
