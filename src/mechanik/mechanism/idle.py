"""Motions that move nothing else: the spin of a rod between two balls, of a roller between two bearings."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from mechanik.kernels.layout import FIRST_V
from mechanik.mechanism.frame import Frame
from mechanik.mechanism.joint import Joint
from mechanik.mechanism.link import Link
from mechanik.mechanism.mechanism import Mechanism
from mechanik.mechanism.motions import Motions, null_space
from mechanik.mechanism.placed import Placed
from mechanik.spatial.array import Array


@dataclass(frozen=True, slots=True, eq=False)
class Idle:
    """A motion of one rigid part of a loop, between two others that stand still.

    Attributes:
        joints: those that move in it, one or two; a joint that closes a loop is not among them.
        links: those that move.
        columns: the numbers of v of these joints.
        v: (nv,), one such motion, unit length in units of `Motions`.
        ends: see `_as_one`.
    """

    joints: tuple[str, ...]
    links: tuple[str, ...]
    columns: tuple[int, ...]
    v: Array
    ends: tuple[str | None, str | None]

    def at(self, here: Motions, placed: Placed) -> Array:
        """The same motion at a place close by, (nv,)."""
        columns = list(self.columns)
        ways = _idle_ways(here, columns, placed, self.ends, _least(here))
        v = np.zeros(len(self.v))
        v[columns] = ways @ (ways.T @ self.v[columns])
        return v / max(float(np.linalg.norm(v)), 1e-12)


def idle_motions(mechanism: Mechanism, here: Motions) -> list[Idle]:
    """All of them, at a place where nothing is special.

    Only the joints at the two ends of such a part move, so its motion is a null vector in their columns alone.
    """
    if here.dof == 0 or not len(here.A):
        return []
    held = _columns(mechanism, here)
    bodies = _bodies(mechanism, here)
    placed, least = Placed(mechanism.kinematics, here.q), _least(here)
    found: list[Idle] = []
    known = np.zeros((0, here.A.shape[1]))
    together = [one.moves for one in here.constraints]
    pairs = (two for two in combinations(held, 2) if any(all(m & {*held[j]} for j in two) for m in together))
    for joints in [*((one,) for one in held), *pairs]:
        columns = [k for joint in joints for k in held[joint]]
        if not _ways(here.A[:, columns], least).shape[1]:
            continue
        ends = _as_one(mechanism, joints)
        for part in _idle_ways(here, columns, placed, ends, least).T:
            v = np.zeros(here.A.shape[1])
            v[columns] = part
            v -= known.T @ (known @ v)
            if np.linalg.norm(v) < 1e-6 or any(np.abs(v[held[joint]]).max() < 1e-6 for joint in joints):
                continue
            links = _between(mechanism, joints, bodies)
            if links:
                v /= np.linalg.norm(v)
                known = np.vstack([known, v])
                names = tuple(mechanism.name_of(joint) for joint in joints)
                found.append(Idle(names, links, tuple(columns), v, ends))
    return found


def _as_one(mechanism: Mechanism, joints: tuple[Joint, ...]) -> tuple[str | None, str | None]:
    """Two links (None is the world) that have the same velocity if what two joints move is one rigid part.

    With one joint below the other that part ends above the lower one, and what this one carries stands still as the
    world does; else each of them carries a piece of it. A closure that lets links slide does not see to either.
    """
    if len(joints) < 2:
        return None, None
    one, other = ({frame for frame in joint.traverse() if isinstance(frame, Link)} for joint in joints)
    pieces = (one & other,) if one & other else (one, other)
    first, *rest = (next(name for name, link in mechanism.links.items() if link in piece) for piece in pieces)
    return first, rest[0] if rest else None


def _idle_ways(
    here: Motions, columns: list[int], placed: Placed, ends: tuple[str | None, str | None], least: float
) -> Array:
    """Motions (columns, k) of these columns that keep all constraints and move both ends alike."""
    apart = placed.carried(ends[0]).twist - placed.carried(ends[1]).twist
    lengths = np.array([here.size] * 3 + [1.0] * 3)
    rows = (apart * here.unit * here.can_move / lengths[:, None])[:, columns]
    return _ways(np.vstack([here.A[:, columns], rows]), least)


def _least(here: Motions) -> float:
    """Singular values up to this count as zero, also of a few columns, which may all be rounding."""
    return here.tolerance * max(float(np.linalg.norm(here.A, 2)), 1e-12)


def _ways(A: Array, least: float) -> Array:
    """Motions (n, k) that A (m, n) takes to zero."""
    return null_space(A, int((np.linalg.svd(A, compute_uv=False) > least).sum()))


def _columns(mechanism: Mechanism, here: Motions) -> dict[Joint, list[int]]:
    """The joints of loops with their numbers of v; those that lead others move those as well, and are left out."""
    shared = np.bincount(mechanism.kinematics.nodes[:, FIRST_V].astype(np.int64), minlength=mechanism.nv)
    in_loops = {k for one in here.constraints for k in one.moves}
    held: dict[Joint, list[int]] = {}
    for joint, slot in mechanism.kinematics.slots.items():
        ball = [] if slot.ball_v is None else [slot.ball_v + k for k in range(3)]
        columns = [k for k in (*slot.v.values(), *ball) if k in in_loops and here.can_move[k] and shared[k] <= 1]
        if columns:
            held[joint] = columns
    return held


def _bodies(mechanism: Mechanism, here: Motions) -> dict[Link, Link]:
    """For each link the first link of its body: what hangs on a loop without being in it goes with it."""
    in_loops = {k for one in here.constraints for k in one.moves}
    bodies: dict[Link, Link] = {}
    for root in mechanism.roots:
        for frame in root.traverse():
            if isinstance(frame, Link):
                joint = frame.parent
                slot = mechanism.kinematics.slots.get(joint) if isinstance(joint, Joint) else None
                columns = [] if slot is None else [*slot.v.values(), *([] if slot.ball_v is None else [slot.ball_v])]
                above = _link_above(frame)
                joined = above is not None and not any(k in in_loops for k in columns)
                bodies[frame] = bodies[above] if joined and above is not None else frame
    return bodies


def _between(mechanism: Mechanism, joints: tuple[Joint, ...], bodies: dict[Link, Link]) -> tuple[str, ...]:
    """The links that move when only these joints do, if two different bodies that stand still hold them; else none."""
    moved: set[Link] = set()
    for joint in joints:  # of two, what stands below one of them moves; below both it stands still, as `_as_one` asks
        moved ^= {frame for frame in joint.traverse() if isinstance(frame, Link)}
    holders: set[Link | None] = set()
    for joint in joints:
        ends = (_link_above(joint), joint.child)
        holders |= {bodies[end] for end in ends if end is not None and end not in moved}
    for closure in mechanism.closures.values():
        start = _link_above(closure.joint)
        for one, other in ((start, closure.link), (closure.link, start)):
            if one in moved and other not in moved:
                holders.add(None if other is None else bodies[other])
    return tuple(name for name, link in mechanism.links.items() if link in moved) if len(holders) > 1 else ()


def _link_above(frame: Frame) -> Link | None:
    return next((one for one in frame.traverse_parents() if isinstance(one, Link)), None)
