"""Objective for collision avoidance: every checked pair of bodies keeps a clearance."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack, cast

import numpy as np

from mechanik.errors import InvalidArgument, StructureError
from mechanik.model import Mechanism
from mechanik.objectives.objective import ErrorNorms, Objective, ObjectiveOptions
from mechanik.objectives.relation import Relation, RelationKind
from mechanik.spatial.array import Array, ArrayLike
from mechanik.validation import as_number, read_only

if TYPE_CHECKING:
    from mechanik.collision import Collider, Obstacle

CLEARANCE_TOLERANCE = 1e-9
"""m; a distance up to this much below the clearance still meets the objective. It is also the angle tolerance, since
solvers compare the rows of FUNCTION relations with the angle tolerance."""
ACTIVATION_DISTANCE = 0.2
"""m beyond the clearance; pairs farther apart are not measured. With a larger value a solver reacts earlier and needs
more distance queries."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Clearance(Objective):
    """Goal: links keep a clearance from each other and from obstacles.

    A residual row is the distance of a pair minus the clearance (m) if this is negative, otherwise zero.
    At level 0, the default, goals of lower levels cannot violate the clearance: a goal behind a wall is approached as
    far as the wall allows. At the same level as other goals, the weights decide. The number of rows is constant;
    `Collider.distances_and_jacobian` describes which pairs the rows measure.

    Args:
        avoid: a `Collider` of the mechanism, which may be shared and whose obstacles may move; or the argument `avoid`
            of a `Collider`: "self" and obstacles.
        clearance: m; 0 allows contact without penetration, a negative value -d allows penetration up to the depth d.
        allow, forbid: as for `Collider`, if `avoid` is not a `Collider`.
        **options: `weight`, `level`, `tolerance` and the other fields of `Objective`.

    Raises:
        InvalidArgument: `allow` or `forbid` is given together with a `Collider`.

    Example:
        >>> arm = mk.gallery.panda()
        >>> print(mk.Clearance("self", 0.05).error(arm, arm.q))
        0.0378 m
    """

    avoid: object
    clearance: float
    _collider_cache: list[Collider]

    def __init__(
        self,
        avoid: Collider | str | Obstacle | Iterable[str | Obstacle] = "self",
        clearance: float = 0.0,
        *,
        allow: Iterable[tuple[str, str]] = (),
        forbid: Iterable[tuple[str, str]] = (),
        **options: Unpack[ObjectiveOptions],
    ) -> None:
        options.setdefault("level", 0)
        options.setdefault("tolerance", CLEARANCE_TOLERANCE)
        options.setdefault("angle_tolerance", CLEARANCE_TOLERANCE)
        Objective.__init__(self, **options)
        from mechanik.collision import Collider

        pair_rules = _as_pairs(allow), _as_pairs(forbid)
        if isinstance(avoid, Collider) and any(pair_rules):
            raise InvalidArgument(
                "allow and forbid cannot be combined with a Collider; pass them to the Collider instead"
            )
        stored_avoid = avoid if isinstance(avoid, Collider) else (_as_tuple(avoid), *pair_rules)
        object.__setattr__(self, "avoid", stored_avoid)
        object.__setattr__(self, "clearance", as_number(clearance, f"clearance of {self._label}"))
        object.__setattr__(self, "_collider_cache", [avoid] if isinstance(avoid, Collider) else [])

    def __repr__(self) -> str:
        return f"<{self._label} of {self.clearance:g} m>"

    def __hash__(self) -> int:
        return hash((type(self), self.name, self.level, self.weight, self.clearance))  # a collider can change

    def __reduce__(self) -> tuple[Any, ...]:
        reduction = Objective.__reduce__(self)
        caches_collider = self._collider_cache and self._collider_cache[0] is self.avoid
        reduction[1][1]["_collider_cache"] = [self.avoid] if caches_collider else []
        return reduction

    def _compared_fields(self) -> dict[str, object]:
        from mechanik.collision import Collider

        values = Objective._compared_fields(self)
        if isinstance(self.avoid, Collider):
            values["avoid"] = self.avoid.fingerprint_data()
        return values

    def collider(self, mechanism: Mechanism) -> Collider:
        """Return the given collider, or a collider of the mechanism, which is created at the first call.

        Raises:
            StructureError: a given collider belongs to another mechanism.
        """
        from mechanik.collision import Collider

        if isinstance(self.avoid, Collider):
            if self.avoid.mechanism is not mechanism:
                raise StructureError(
                    f"{self._label}: its Collider belongs to another mechanism; create a Collider of this mechanism"
                )
            return self.avoid
        avoid, allow, forbid = cast("tuple[Any, Any, Any]", self.avoid)
        cache = self._collider_cache
        if not cache or cache[-1].mechanism is not mechanism:
            cache[:] = [Collider(mechanism, avoid, allow=allow, forbid=forbid)]
        return cache[-1]

    def relations(self, mechanism: Mechanism) -> tuple[Relation, ...]:
        distances = PairDistances(self.collider(mechanism), self.clearance + ACTIVATION_DISTANCE)
        row_count = len(distances.collider.distance_names)
        lower, upper = read_only(np.full(row_count, self.clearance)), read_only(np.full(row_count, np.inf))
        rows = tuple(range(row_count))
        return (
            Relation(RelationKind.FUNCTION, rows, function=distances, lower=lower, upper=upper, weight=self.weight),
        )

    def error(self, mechanism: Mechanism, q: ArrayLike) -> ErrorNorms:
        """Return the amount (m) by which the smallest distance at q (nq,) is below the clearance, as position error.

        Args:
            mechanism: the mechanism whose shapes are checked.
            q: one configuration, (nq,).
        """
        distance = self.collider(mechanism).distance(q)
        return ErrorNorms(max(0.0, self.clearance - float(distance)), 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class PairDistances:
    """Function of a `Clearance` relation: distances of pairs and their Jacobian.

    The band of the relation, from the clearance to infinity, turns distances into residuals.

    Attributes:
        collider: collider of the mechanism.
        max_distance: m; larger distances are returned as this value, with zero derivative.
    """

    collider: Collider
    max_distance: float

    def __call__(self, mechanism: Mechanism, q: Array) -> tuple[Array, Array]:
        return self.collider.distances_and_jacobian(q, self.max_distance)


def _as_tuple(avoid: object) -> tuple[object, ...]:
    """Return the argument `avoid` as a tuple, since an iterator can be read only once."""
    if isinstance(avoid, str) or not isinstance(avoid, Iterable):
        return (avoid,)
    return tuple(cast("Iterable[object]", avoid))


def _as_pairs(pairs: Iterable[Any]) -> tuple[Any, ...]:
    """Return pairs as a tuple of tuples; a collider checks them."""
    return tuple(tuple(cast("list[Any]", pair)) if isinstance(pair, list) else pair for pair in pairs)
