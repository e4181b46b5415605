"""Random mechanisms with shapes, and distances of all their pairs by brute force."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from random_mechanisms import random_mechanism, random_turn

from mechanik import Mechanism
from mechanik.collision import Collider, Obstacle
from mechanik.collision.collision_body import link_bodies, obstacle_bodies
from mechanik.kernels.distance.collision_layout import Shape as KernelShape
from mechanik.model.shapes import Box, Capsule, Shape, ShapeInstance, Sphere
from mechanik.spatial import Pose
from mechanik.tiers import kernel_module


def random_shape(rng: np.random.Generator) -> Shape:
    kind = rng.integers(3)
    if kind == 0:
        return Sphere(rng.uniform(0.02, 0.3))
    if kind == 1:
        return Capsule(rng.uniform(0.02, 0.2), rng.uniform(0, 0.6))
    return Box(tuple(rng.uniform(0.05, 0.5, 3)))


def random_mechanism_with_shapes(seed: int, joints: int, *, spheres: bool = False) -> Mechanism:
    """Return a random tree; most links have one to three shapes of all kinds, or one sphere each."""
    mechanism, rng = random_mechanism(seed, joints), np.random.default_rng(seed)
    for link in mechanism.links.values():
        if spheres:
            link.collisions = (ShapeInstance(Sphere(rng.uniform(0.02, 0.3)), Pose(rng.uniform(-0.3, 0.3, 3))),)
        elif rng.random() < 0.8:
            poses = [Pose(rng.uniform(-0.3, 0.3, 3), random_turn(rng)) for _ in range(rng.integers(1, 4))]
            link.collisions = tuple(ShapeInstance(random_shape(rng), pose) for pose in poses)
    if not any(link.collisions for link in mechanism.links.values()):
        next(iter(mechanism.links.values())).collisions = (ShapeInstance(Sphere(0.1)),)
    return mechanism


def random_obstacles(rng: np.random.Generator, count: int, spheres: bool = False) -> list[Obstacle]:
    return [
        Obstacle(
            Sphere(rng.uniform(0.1, 0.5)) if spheres else random_shape(rng), rng.uniform(-3, 3, 3), random_turn(rng)
        )
        for _ in range(count)
    ]


def pair_distances(collider: Collider, q: np.ndarray) -> dict[tuple[str, str], float]:
    """Return the distance of every pair as the minimum over all pairs of shapes."""
    mechanism = collider.mechanism
    poses = dict(zip(mechanism.links, mechanism.poses(q), strict=True))
    bodies = {
        body.name: [(shape, poses[body.name] @ X) for shape, X in body.kernel_shapes]
        for body in link_bodies(mechanism, "auto")
    }
    bodies |= {
        body.name: [(shape, body.X_node_body @ X) for shape, X in body.kernel_shapes]
        for body in obstacle_bodies(collider.obstacles, "auto")
    }
    return {
        (a, b): min(shape_distance(shape_a, shape_b) for shape_a in bodies[a] for shape_b in bodies[b])
        for a, b in collider.pairs
    }


def shape_distance(shape_a: Sequence, shape_b: Sequence) -> float:
    S, P, X, result = KernelShape.allocate_rows(2), [np.zeros((0, 3))], np.empty((2, 12)), np.empty((1, 10))
    for k, (shape, pose) in enumerate((shape_a, shape_b)):
        S[k].kind, S[k].sizes[:] = shape.kind, shape.sizes
        if len(shape.points):
            S[k].sizes[0] = sum(map(len, P))
            P.append(shape.points)
        X[k] = *pose[:3, :3].ravel(), *pose[:3, 3]
    kernel_module("distance.shape_distance").pair_distances(S.rows, np.vstack(P), X, np.array([[0, 1]]), result)
    return float(result[0, 0])
