"""Poses that are wanted in some of their six directions: the rows that say so.

What is not wanted may move as a joint with those freedoms moves: B stands at A T(x, y, z) Rz Ry Rx, with zeros for
what is wanted. Three turns wanted leave no other rows than those of a pose; two leave one axis on which both frames
must agree; one leaves two axes at right angles:

| free | B turned by | so that at right angles stand |
|---|---|---|
| EX EY | Ry Rx | y of A and x of B |
| EY EZ | Rz Ry | z of A and y of B |
| EX EZ | Rz Rx | z of A and x of B |
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import numpy as np

from mechanik.errors import DoFError
from mechanik.mechanism.dof import ROTATIONS, DoF, DoFLike, as_dofs
from mechanik.mechanism.door import read_only
from mechanik.mechanism.kinematics import ONTO
from mechanik.objectives.relation import Kind, Relation
from mechanik.spatial import make, translation
from mechanik.spatial.array import Array

CROSSED = {DoF.EZ: (0, 1), DoF.EX: (1, 2), DoF.EY: (0, 2)}
"""For the only turn that is wanted: which axis of B (0, 1, 2) stands at right angles to which of A."""


def partial_relations(
    constrained: Iterable[DoFLike],
    *,
    a: str | None,
    X_a: Array,
    b: str | None,
    X_b: Array,
    axes: Literal["goal", "world"] = "goal",
    weight: float = 1.0,
) -> tuple[Relation, ...]:
    """The rows that are zero when B stands where A wants it, in the directions `constrained`.

    Args:
        constrained: in the order X Y Z EX EY EZ; none gives no rows.
        a, X_a: the link that carries the goal (None: the world), and the goal in it, (4, 4).
        b, X_b: the link that should come there, and what of it, (4, 4).
        axes: whether X Y Z EX EY EZ are meant along the axes of A, or along those of the world.
    """
    if axes not in ("goal", "world"):
        raise DoFError(f"axes can be 'goal' or 'world', not {axes!r}")
    wanted = as_dofs(constrained)
    if axes == "world" and a is None:
        # the goal stands still: let it stand unturned, and turn back what should come there
        X_a, X_b, axes = translation(X_a[:3, 3]), X_b @ make(X_a[:3, :3].T, np.zeros(3)), "goal"
    shifts = [dof.direction for dof in wanted if not dof.is_rotation]
    turns = [dof for dof in wanted if dof.is_rotation]
    # all of something, or nothing of it, is the same along any axes
    world_shifts, world_turns = (axes == "world" and 0 < len(some) < 3 for some in (shifts, turns))

    def along(k: int, kind: Kind, shifts: list[int], turn_rows: list[int], in_world: bool) -> Relation:
        """Rows in the chosen axes, turned so that axis k is z."""
        rows = tuple(sorted((i - k - 1) % 3 for i in shifts) + turn_rows)
        onto = np.eye(4) if in_world else ONTO[k]
        C = read_only(ONTO[k][:3, :3].copy()) if in_world else None
        ends = read_only(X_a @ onto), read_only(X_b @ onto)
        return Relation(kind, rows, a, b, *ends, world_axes=C, weight=weight)

    if len(turns) == 1 and not world_turns:
        of_b, of_a = CROSSED[turns[0]]
        ends = read_only(X_a @ ONTO[of_a]), read_only(X_b @ ONTO[of_b])
        crossed = Relation(Kind.COSINE, (0,), a, b, *ends, weight=weight)
        return (*([along(2, Kind.POSE, shifts, [], world_shifts)] if shifts else []), crossed)

    if len(turns) == 3:
        k, kind, turn_rows = 2, Kind.POSE, [3, 4, 5]
    elif len(turns) == 2:
        k, kind, turn_rows = next(dof for dof in ROTATIONS if dof not in turns).direction, Kind.AXIS, [3, 4]
    elif turns:
        # the cosine would need axes that turn with A; but of the axis k of B, one component must vanish
        k, of_a = CROSSED[turns[0]]
        kind, turn_rows = Kind.AXIS, [3 + (of_a - k - 1) % 3]
    else:
        k, kind, turn_rows = 2, Kind.POSE, []
    if shifts and turn_rows and world_shifts != world_turns:
        return along(2, Kind.POSE, shifts, [], world_shifts), along(k, kind, [], turn_rows, world_turns)
    return (along(k, kind, shifts, turn_rows, world_shifts or world_turns),) if wanted else ()
