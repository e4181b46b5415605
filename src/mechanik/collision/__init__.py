"""Collision checking: shapes of links and obstacles, the pairs to check, distances and their Jacobians.

Input: a mechanism with shapes on its links, obstacles, and the pairs that may touch. Output: a `Collider`, which
computes distances and contacts at any configuration. This package does not depend on objectives or solvers.
"""

from mechanik.collision.collider import Collider, Contact
from mechanik.collision.collision_body import Obstacle
from mechanik.collision.collision_pairs import find_allowed_collisions
from mechanik.collision.shape_fitting import fit_shapes

__all__ = ["Collider", "Contact", "Obstacle", "find_allowed_collisions", "fit_shapes"]
