"""MuJoCo's qpos and our q: the same numbers in the same order, but that joints which follow others are not in q.

A hinge or slide is one number (with MuJoCo's `ref` in it), a ball wxyz, a free joint xyz and wxyz, in both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from mechanik.errors import NotARotation, ShapeError, UnknownName
from mechanik.mechanism.dof import DoF
from mechanik.mechanism.joint import Joint
from mechanik.mechanism.kinematics import Slot
from mechanik.mechanism.mechanism import Mechanism
from mechanik.spatial.array import Array, ArrayLike


def from_qpos(mechanism: Mechanism, qpos: ArrayLike) -> Array:
    """q (..., nq) of a mechanism that was read from MJCF, from MuJoCo's qpos (..., its nq).

    What has been added to the mechanism since stands where `neutral` has it; of followers, qpos is not looked at.
    """
    size, table = _table(mechanism)
    given = np.asarray(qpos, dtype=np.float64)
    if given.ndim < 1 or given.shape[-1] != size:
        raise ShapeError(f"qpos must have {size} numbers along its last axis, but its shape is {given.shape}")
    q = np.broadcast_to(mechanism.neutral(), (*given.shape[:-1], mechanism.nq)).copy()
    for joint, slot in mechanism.kinematics.slots.items():
        address = table.get(mechanism.name_of(joint))
        if address is not None:
            for k, place in enumerate(_places(joint, slot)):
                if place is not None:
                    q[..., place] = given[..., address + k]
    for k in mechanism.space.balls_q:
        length = np.linalg.norm(q[..., k : k + 4], axis=-1, keepdims=True)
        if not (length > 1e-9).all():
            raise NotARotation(f"qpos holds a zero quaternion for {mechanism.space.q_names[k]!r}")
        q[..., k : k + 4] /= length
    return q


def to_qpos(mechanism: Mechanism, q: ArrayLike | None = None) -> Array:
    """MuJoCo's qpos (..., its nq) at q (..., nq), followers included.

    Args:
        q: the present configuration if it is not given.
    """
    size, table = _table(mechanism)
    values = mechanism.space.check_q(mechanism.q if q is None else q)
    qpos = np.zeros((*values.shape[:-1], size))
    slots = mechanism.kinematics.slots
    for joint, slot in slots.items():
        address = table.get(mechanism.name_of(joint))
        if address is None:
            continue
        for k, place in enumerate(_places(joint, slot)):
            if place is not None:
                qpos[..., address + k] = values[..., place]
            else:
                leader, dof, ratio, offset = joint.couplings[0].resolve()
                qpos[..., address + k] = ratio * values[..., slots[leader].q[dof]] + offset
    return qpos


def _places(joint: Joint, slot: Slot) -> list[int | None]:
    """Where the numbers that MuJoCo has for a joint stand in q; None for one that follows another joint."""
    turn = [] if slot.ball_q is None else [slot.ball_q + k for k in range(4)]
    if slot.ball_q is None and len(joint.dof) > 1:
        raise ShapeError(f"{joint} was given other freedoms than it has in MuJoCo, so qpos has no meaning for it")
    shifts = [dof for dof in joint.dof if slot.ball_q is None or dof in (DoF.X, DoF.Y, DoF.Z)]
    return [*(slot.q.get(dof) for dof in shifts), *turn]


def _table(mechanism: Mechanism) -> tuple[int, Mapping[str, int]]:
    kept: Any = mechanism.extras.get("qpos")
    if not isinstance(kept, Mapping):
        raise UnknownName("extra", "qpos", mechanism.extras)
    table = cast("Mapping[str, Any]", kept)
    addresses = cast("Mapping[str, Any]", table["at"])
    return int(table["size"]), {name: int(address) for name, address in addresses.items()}
