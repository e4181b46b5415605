"""How freely a mechanism moves: counted by formula, and found from its Jacobian."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mechanik.errors import WrongKind
from mechanik.mechanism.closure import Closure
from mechanik.mechanism.constraints import closure_rows
from mechanik.mechanism.mechanism import Mechanism
from mechanik.mechanism.motions import Motions
from mechanik.mechanism.nearby import shut_motions
from mechanik.mechanism.placed import Placed
from mechanik.spatial.array import Array, ArrayLike


@dataclass(frozen=True, slots=True)
class Mobility:
    """
    Attributes:
        freedoms: of the tree without its closures; those that their limits hold in one place are not counted.
        constraints: rows that closures and laws take away, were they independent.
        gruebler: freedoms - constraints, the count of Grübler and Kutzbach; wrong for special geometry.
        dof: the true number of freedoms at that configuration; None while a loop stands open or a law is broken.
        redundant: constraint rows that say nothing new there.
    """

    freedoms: int
    constraints: int
    gruebler: int
    dof: int | None
    redundant: int | None


def mobility(mechanism: Mechanism, tolerance: float = 1e-6, q: ArrayLike | None = None) -> Mobility:
    """The freedoms of the mechanism.

    Args:
        tolerance: how far (m and rad) a closure may stand open and still count as shut; a law, in shares of its largest
            factor.
        q: (nq,), where; as the joints stand now if it is not given.
    """
    if not isinstance(mechanism, Mechanism):
        raise WrongKind(f"only a mechanism has mobility, not {mechanism!r}")
    return counted_in(shut_motions(mechanism, mechanism.q if q is None else mechanism._one(q)), tolerance)


def counted_in(here: Motions, tolerance: float = 1e-6) -> Mobility:
    """What all rows come to."""
    freedoms, rows = int(here.can_move.sum()), len(here.A)
    if any(np.abs(one.gap).max(initial=0.0) > tolerance for one in here.constraints):
        return Mobility(freedoms, rows, freedoms - rows, None, None)
    return Mobility(freedoms, rows, freedoms - rows, here.dof, rows - here.rank)


def closure_jacobian(mechanism: Mechanism, closure: Closure) -> Array:
    """How fast each direction that a shut closure takes away would open: (constrained, nv), m and rad."""
    return closure_rows(mechanism, closure, Placed(mechanism.kinematics, mechanism.q)).J
