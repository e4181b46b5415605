"""Obstacles: added, moved, resized, taken by hand, removed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mechanik.collision import Obstacle
from mechanik.errors import Refused
from mechanik.mechanism import Box, Capsule, Cylinder, Sphere
from mechanik.mechanism.shapes import Shape
from mechanik.studio.messages import requests
from mechanik.studio.messages.requests import ObstacleKind
from mechanik.studio.session.model_info import is_flat_linkage
from mechanik.studio.session.plan import Held
from mechanik.studio.session.poses import matrix_of
from mechanik.studio.session.room_beside import room_beside

if TYPE_CHECKING:
    from mechanik.studio.session.session import Session


def add_obstacle(session: Session, request: requests.AddObstacle) -> None:
    """What bumps is shown from then on, if it was not; of a flat linkage only what it bumps into, since its bars lie
    above each other."""
    stage = session.on_stage
    taken = {*session.mechanism.links, *(one.name for one in stage.setup.collisions.obstacles)}
    shape = usual_shape(request.kind, session.radius)
    if request.pose is None:
        place, wxyz = room_beside(stage.table, stage.q, stage.setup.collisions.obstacles), (1.0, 0.0, 0.0, 0.0)
    else:
        X = matrix_of(request.pose)  # refuses what is no turn
        place, wxyz = X[:3, 3].tolist(), request.pose[3:]
    name = next(name for k in range(1, len(taken) + 2) if (name := f"{request.kind} {k}") not in taken)
    with session.step(f"add {name}"), stage.still():
        session.add_obstacle(Obstacle(shape, place, wxyz, name=name))
        now = stage.setup.collisions
        if now.mode == "off":
            itself = now.itself and not is_flat_linkage(session.mechanism, stage.q)
            session.change(replace(stage.setup, collisions=replace(now, mode="show", itself=itself)))


def usual_shape(kind: ObstacleKind, radius: float) -> Shape:
    """
    Args:
        radius: of a ball around the mechanism, m; edges and radii are a fraction of it with one digit.
    """
    edge, ball, thickness, length = (float(f"{share * radius:.0e}") for share in (0.25, 0.15, 0.08, 0.4))
    match kind:
        case "box":
            return Box((edge, edge, edge))
        case "sphere":
            return Sphere(ball)
        case "capsule":
            return Capsule(thickness, length)


def move_obstacle(session: Session, request: requests.MoveObstacle) -> None:
    X = matrix_of(request.pose)
    session.on_stage.setup.collisions.obstacle(request.obstacle)
    with session.step(f"move {request.obstacle}"):
        session.move_obstacle(request.obstacle, X)


def resize_obstacle(session: Session, request: requests.ResizeObstacle) -> None:
    setup = session.on_stage.setup
    before = setup.collisions.obstacle(request.obstacle)
    shape = resized(before.shape, request.sizes)
    if shape == before.shape:
        return
    changed = Obstacle(shape, before.pose.position, before.pose.wxyz, name=before.name)
    with session.step(f"resize {request.obstacle}"):
        session.change(replace(setup, collisions=setup.collisions.with_obstacle(changed)))


def resized(shape: Shape, sizes: Sequence[float]) -> Shape:
    """
    Args:
        sizes: edges of a box; radius of a sphere; radius and length of a cylinder or capsule; m.
    """
    match shape, sizes:
        case Box(), (x, y, z):
            return Box((x, y, z))
        case Sphere(), (radius,):
            return Sphere(radius)
        case Cylinder(), (radius, length):
            return Cylinder(radius, length)
        case Capsule(), (radius, length):
            return Capsule(radius, length)
        case _:
            raise Refused(
                "a box has three edges, a sphere a radius, a cylinder or capsule a radius and a length; "
                f"these sizes of {type(shape).__name__} cannot be set"
            )


def remove_obstacle(session: Session, request: requests.RemoveObstacle) -> None:
    session.on_stage.setup.collisions.obstacle(request.obstacle)
    with session.step(f"remove {request.obstacle}"):
        session.remove_obstacle(request.obstacle)


def grab_obstacle(session: Session, request: requests.GrabObstacle) -> None:
    obstacles = session.on_stage.setup.collisions.obstacles
    held = session.on_stage.setup.collisions.obstacle(request.obstacle)
    session.take(Held("obstacle", obstacles.index(held), name=held.name), f"move {held.name}")
