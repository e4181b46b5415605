"""How a mechanism is laid out for the kernels.

It is a row of nodes, each below its parent and moved by one elementary motion:

    X_world_node = X_world_parent  fixed  motion(q)

A node is a row of 18 floats: fixed as R row by row and p (12); RATIO and OFFSET, by which
value = ratio * q + offset; PARENT (-1 is the world); KIND; FIRST_Q and FIRST_V, where its numbers begin
in q and in v. All of it is one array, since each further array costs a call from Python 0.05 us.

Revolute and prismatic nodes move about and along z, so the fixed part turns z onto the axis. A node's own
motion does not move its axes, so the columns of a Jacobian can be read off the node's pose.
"""

from __future__ import annotations

REVOLUTE, PRISMATIC, SLIDE, BALL, FIXED = 0, 1, 2, 3, 4
"""Kinds: one turn about z; one shift along z; three shifts; a unit quaternion wxyz; no motion."""

RATIO, OFFSET, PARENT, KIND, FIRST_Q, FIRST_V, ROW = 12, 13, 14, 15, 16, 17, 18

LENGTH_OF_Q, IS_PLAIN = FIRST_Q, FIRST_V
"""In the fixed node that ends a chain: how long q must be, and 1 if no node of the chain is a slide or a ball."""
