"""Small mechanisms with shapes and obstacles whose distances are known in closed form."""

from __future__ import annotations

import numpy as np

import mechanik as mk
from mechanik.collision import Collider, Obstacle
from mechanik.model.shapes import Box, Capsule, ShapeInstance, Sphere

ALONG_X = (np.sqrt(0.5), 0.0, np.sqrt(0.5), 0.0)


def rail():
    """A ball of 0.1 m on a rail along x, from -2 to 2 m."""
    b = mk.Builder("rail")
    b.prismatic("slide", "base", "cart", axis="x", limits=(-2, 2))
    b.link("cart", collisions=[ShapeInstance(Sphere(0.1))])
    return b.build()


def wall(x=1.0, thickness=0.2):
    return Obstacle(Box((thickness, 4.0, 4.0)), (x, 0, 0), name="wall")


def planar_arm(joints=4, length=0.4, radius=0.04):
    """Bars that turn about z, one behind the other, all in one plane; `tip` is at the end of the last."""
    b = mk.Builder("planar arm")
    parent = "base"
    for k in range(joints):
        b.revolute(f"j{k}", parent, f"bar{k}", axis="z", at=(length if k else 0.0, 0, 0), limits=(-2.8, 2.8))
        bar = ShapeInstance(Capsule(radius, length - 0.1), mk.Pose((length / 2, 0, 0), ALONG_X))
        b.link(f"bar{k}", collisions=[bar])
        parent = f"bar{k}"
    b.fixed("end", parent, "tip", at=(length, 0, 0))
    return b.build()


def ball(x, y, z=0.0, radius=0.15, name="ball"):
    return Obstacle(Sphere(radius), (x, y, z), name=name)


def four_bar():
    """A crank, a coupler and a rocker, closed; a ball of 0.05 m where the coupler meets the rocker."""
    b = mk.Builder("four-bar")
    b.revolute("crank", "base", "first", axis="z", value=1.2)
    b.revolute("knee", "first", "coupler", axis="z", at=(0.4, 0, 0), value=-0.9)
    b.revolute("rocker", "base", "last", axis="z", at=(1.0, 0, 0), value=1.6)
    b.link("coupler", collisions=[ShapeInstance(Sphere(0.05), mk.Pose((0.9, 0, 0)))])
    b.close("pin", "coupler", "last", "pin", at=(0.9, 0, 0), onto=(0.7, 0, 0))
    return b.build()


def panda_among(seed=0, count=40):
    """A Panda with things about it, and its collider."""
    arm = mk.gallery.panda(hand=False)
    rng = np.random.default_rng(seed)
    obstacles = ["self"]
    for k in range(count):
        angle, far, height = rng.uniform(-np.pi, np.pi), rng.uniform(0.35, 0.7), rng.uniform(0.0, 1.1)
        shape = (Sphere(rng.uniform(0.04, 0.1)), Capsule(0.04, 0.4), Box(tuple(rng.uniform(0.06, 0.2, 3))))[k % 3]
        turn = rng.normal(size=4)
        place = far * np.cos(angle), far * np.sin(angle), height
        obstacles.append(Obstacle(shape, place, turn / np.linalg.norm(turn), name=f"thing {k}"))
    return arm, Collider(arm, obstacles)


def free_configurations(collider, count, seed=0):
    """(count, nq), drawn inside the limits, of which none bumps."""
    rng, configurations = np.random.default_rng(seed), np.zeros((0, collider.mechanism.nq))
    while len(configurations) < count:
        q = collider.mechanism.random(rng, 1024)
        configurations = np.concatenate([configurations, q[collider.is_free(q)]])
    return configurations[:count]
