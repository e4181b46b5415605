"""How freely a link moves: along how many directions, and turned in how many ways while it stays in its place."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass

import numpy as np

from mechanik.errors import LimitsError
from mechanik.kernels.layout import BALL, FIRST_Q, FIXED, KIND, PRISMATIC, SLIDE
from mechanik.mechanism import Joint, Mechanism
from mechanik.mechanism.law_rows import law_jacobian
from mechanik.mechanism.mobility import closure_jacobian
from mechanik.spatial.array import Array

RANK_TOLERANCE = 1e-7
"""Singular values below this share of the largest count as zero; lengths are in sizes of the mechanism."""
LOOKS = 24
"""At how many configurations it is looked: what holds at most of them holds, whatever happens at special ones."""


@dataclass(frozen=True, slots=True, eq=False)
class Turning:
    """
    Attributes:
        ways: in how many ways the link turns about its origin while that stays, 0 to 3.
        points: whether its z axis can point in any direction nearby meanwhile.
        axis: the only axis of the world about which it ever turns, (3,); None if there are several, or none.
    """

    ways: int
    points: bool
    axis: Array | None


def turning(mechanism: Mechanism, link: str, q: Array, locked: Array) -> Turning:
    """How freely a link turns.

    Args:
        q: configurations (n, nq) to look at, with all loops shut.
        locked: (nv,) freedoms that do not move.
    """
    some = q[:LOOKS]
    X, J = mechanism.pose(link, some), mechanism.jacobian(link, some)
    J = np.stack([one @ free for one, free in zip(J, _free_ways(mechanism, some, locked), strict=True)])
    J[:, :3] /= max(float(np.abs(J[:, :3]).max(initial=0.0)), 1e-12)
    shifts, ways = _usual_rank(J[:, :3]), _usual_rank(J)
    across = np.stack([np.vstack([one[:3], R[:, :2].T @ one[3:]]) for one, R in zip(J, X[:, :3, :3], strict=True)])
    points = _usual_rank(across) - shifts == 2
    turns = np.concatenate(list(J[:, 3:]), axis=1)
    axis = np.linalg.svd(turns)[0][:, 0] if turns.size and _rank(turns) == 1 else None
    if axis is not None:
        axis *= np.sign(axis[np.abs(axis).argmax()])  # the same one, whatever was looked at
    return Turning(ways - shifts, points, axis)


def check_ends(mechanism: Mechanism, link: str, lower: Array, upper: Array, locked: Iterable[int]) -> None:
    """Refuse a link that slides without an end: its reach is endless, too.

    Args:
        lower, upper: (nq,).
        locked: numbers of q that do not move, or that loops hold.
    """
    held, names = set(locked), mechanism.space.q_names
    for node in mechanism.kinematics.path(link):
        kind, first = int(node[KIND]), int(node[FIRST_Q])
        slides = {PRISMATIC: [first], SLIDE: [first, first + 1, first + 2]}.get(kind, [])
        endless = [k for k in slides if k not in held and not (np.isfinite(lower[k]) and np.isfinite(upper[k]))]
        if not endless:
            continue
        joint = names[endless[0]].rpartition(".")[0] or names[endless[0]]
        if len(endless) == 3:
            raise LimitsError(
                f"joint {joint!r} floats, so link {link!r} reaches every place; "
                f"lock={joint!r} maps what it reaches while {joint!r} stays"
            )
        some = names[endless[0]]
        raise LimitsError(
            f"{some!r} slides without an end, so the reach of link {link!r} has none; "
            f"give it limits, as limits={{{some!r}: (0, 1)}}, or lock it"
        )


def numbers_above(mechanism: Mechanism, link: str) -> set[int]:
    """The numbers of q that move a link."""
    sizes = {SLIDE: 3, BALL: 4, FIXED: 0}
    found: set[int] = set()
    for node in mechanism.kinematics.path(link):
        first = int(node[FIRST_Q])
        found.update(range(first, first + sizes.get(int(node[KIND]), 1)))
    return found


def joints_in_loops(mechanism: Mechanism, link: str) -> set[Joint]:
    """The joints of the loops that have a say in where the link is; empty if it hangs on an open chain."""
    above = {frame for frame in mechanism.link(link).traverse_parents() if isinstance(frame, Joint)}
    leaders = {coupling.resolve()[0] for joint in above for coupling in joint.couplings}
    loops = list(mechanism.closures.values())
    found: set[Joint] = set()
    for chain in mechanism.chains():
        closes = bool(chain.laws) or any(closure in loops for closure in chain.closures)
        if closes and (above | leaders) & set(chain.joints):
            found |= set(chain.joints)
    return found


def _free_ways(mechanism: Mechanism, q: Array, locked: Array) -> list[Array]:
    """At each q, the steps v (nv, k) that leave the loops shut and the locked freedoms where they are."""
    free = np.eye(mechanism.nv)[:, ~locked.astype(np.bool_)]
    if not (mechanism.closures or mechanism.laws) or not free.size:
        return [free] * len(q)
    copy = deepcopy(mechanism)  # loops are measured where the joints stand
    ways: list[Array] = []
    for one in q:
        copy.set_q(one)
        loops = [closure_jacobian(copy, closure) for closure in copy.closures.values()]
        rows = np.concatenate([*loops, law_jacobian(copy, one)]) @ free
        _, sizes, V = np.linalg.svd(rows)
        rank = int((sizes > 1e-8 * max(float(sizes[0]), 1e-12)).sum()) if len(sizes) else 0
        ways.append(free @ V[rank:].T)
    widest = max(way.shape[1] for way in ways)
    # columns of zeros, so that all have one shape
    return [np.pad(way, ((0, 0), (0, widest - way.shape[1]))) for way in ways]


def _usual_rank(several: Array) -> int:
    """The rank that most of the matrices (n, rows, columns) have."""
    return int(np.bincount([_rank(J) for J in several]).argmax())


def _rank(J: Array) -> int:
    if not J.size:
        return 0
    sizes = np.linalg.svd(J, compute_uv=False)
    return int((sizes > RANK_TOLERANCE * max(float(sizes[0]), 1e-6)).sum())
