"""One call of a prepared solver, laid open for those who look for more than one answer."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mechanik.errors import NoClosedForm
from mechanik.objectives.relation import Kind, Relation
from mechanik.search.closed_form import ClosedForm, closed_form
from mechanik.search.conditions import Conditions, Mask
from mechanik.search.descents import Attempts, descents
from mechanik.solvers.freedoms import Names, as_bounds, as_mask
from mechanik.solvers.new_targets import Targets, aimed
from mechanik.solvers.prepared import Prepared
from mechanik.solvers.starts import halton_starts, random_starts
from mechanik.spatial import inverse
from mechanik.spatial.array import Array, ArrayLike

WHOLE_POSE, PLACE = (0, 1, 2, 3, 4, 5), (0, 1, 2)
PLACES = 8
"""Random configurations that are looked at to see what matters."""
NOTHING = 1e-9
MATTERS = "what matters"
"""Where that is kept; no link is called so."""


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """
    Attributes:
        conditions: what has to hold, and within which limits.
        q0: (nq,) where the mechanism is.
        stays: (nq,) what is as in q0, since it may not move, or since nothing that is required depends on it.
        form: the closed form, if there is one, with the limits of this call.
        X_world_link: (4, 4) what it has to reach.
        attempts: descents within the limits.
        beyond: descents to which limits of turning joints do not matter; None if there are none that matter.
    """

    conditions: Conditions
    q0: Array
    stays: Mask
    form: ClosedForm | None
    X_world_link: Array
    attempts: Attempts
    beyond: Attempts | None

    def starts(self, first: int, count: int, rng: np.random.Generator | None, beyond: bool = False) -> Array:
        """Configurations (count, nq) from number `first` on, even over the limits; what may not move is as in q0."""
        c = self.conditions
        lower, upper = _wide(c) if beyond else (c.lower, c.upper)
        space = replace(c.mechanism.space, lower=lower, upper=upper)
        drawn = halton_starts(space, count, first) if rng is None else random_starts(space, count, rng)
        return np.where(self.stays, self.q0, drawn)

    def descend(self, starts: Array, beyond: bool = False) -> Array:
        """Where those of the descents from starts (K, nq) lead that lead to a solution."""
        attempts = self.beyond if beyond and self.beyond is not None else self.attempts
        found, success = attempts(starts)
        return np.where(self.stays, self.q0, found[success])  # what is only wished for may have moved the rest


Aids = Callable[[], tuple[Attempts | None, dict[str, Any]]]
"""Descents within the solver's own limits that are faster than the general kernel's, if it has any; and a place to keep
what is worked out about its program, which is empty whenever that is new."""


def _none() -> tuple[None, dict[str, Any]]:
    return None, {}


@contextmanager
def asked(
    solver: Prepared,
    targets: Targets | None,
    q0: ArrayLike | None,
    lock: Names | str | None = None,
    limits: Mapping[str, ArrayLike] | None = None,
    aids: Aids = _none,
) -> Generator[Question]:
    """A question to a solver, whose tables hold it, as in `Solver.solve`, until it is answered.

    Args:
        lock, limits: for this question, besides those of the solver.
        aids: what the solver has besides its tables; called when these hold the question.
    """
    solver._refresh()
    mechanism = solver.mechanism
    start = np.array(mechanism.q if q0 is None else mechanism._one(q0))
    for k in mechanism.space.balls_q:
        start[k : k + 4] /= np.linalg.norm(start[k : k + 4])
    objectives = aimed(solver._objectives, targets)
    solver._rewrite(objectives, start, 1.0)
    lower, upper = solver._bounds if limits is None else as_bounds(mechanism, {**(solver._limits or {}), **limits})
    locked = np.zeros(mechanism.nv, dtype=np.bool_) if lock is None else as_mask(mechanism, lock, False)
    moving = solver._moving & ~locked
    space = mechanism.space
    for k, v in zip(space.scalars_q.tolist(), space.scalars_v.tolist(), strict=True):
        if moving[v] and lower[k] == upper[k]:  # it has one place to be
            start[k], moving[v], locked[v] = lower[k], False, True
    attempts, kept = aids()
    size = solver._program.size
    if MATTERS not in kept:
        kept[MATTERS] = _matters(Conditions(mechanism, objectives, solver._moving, (lower, upper), size))
    moving &= kept[MATTERS]
    conditions = Conditions(mechanism, objectives, moving, (lower, upper), size)
    form, X_world_link = _form(solver, conditions, kept)
    if attempts is None or lock is not None or limits is not None:
        attempts = descents(solver, (lower, upper), locked)
    wide = _wide(conditions)
    matter = conditions.columns[conditions.is_angle]
    is_wider = bool(((wide[0] < lower) | (wide[1] > upper))[matter].any())
    beyond = descents(solver, wide, locked) if is_wider else None
    try:
        yield Question(conditions, start, _stays(conditions), form, X_world_link, attempts, beyond)
    finally:
        solver._is_aimed = True
        solver._set_up()


def _wide(conditions: Conditions) -> tuple[Array, Array]:
    """Limits (nq,) that leave every angle open; those that allow a full turn stay."""
    k = conditions.columns[conditions.is_angle]
    lower, upper = conditions.lower.copy(), conditions.upper.copy()
    narrow = k[upper[k] - lower[k] < 2 * np.pi]
    lower[narrow], upper[narrow] = -np.inf, np.inf
    return lower, upper


def _matters(conditions: Conditions) -> Mask:
    """(nv,) what changes a row that is required, at one of some random places: the rest is idle."""
    space = conditions.mechanism.space
    J = conditions.rows(space.random(np.random.default_rng(0), PLACES))[1]
    matters = np.zeros(space.nv, dtype=np.bool_)
    matters[conditions.moving] = np.abs(J).max(axis=(0, 1), initial=0.0) > NOTHING
    return matters


def _stays(conditions: Conditions) -> Mask:
    """(nq,) which numbers of q do not move."""
    space = conditions.mechanism.space
    moves = np.zeros(space.nv, dtype=np.bool_)
    moves[conditions.moving] = True
    stays = np.ones(space.nq, dtype=np.bool_)
    stays[space.scalars_q] = ~moves[space.scalars_v]
    for k, i in zip(space.balls_q.tolist(), space.balls_v.tolist(), strict=True):
        stays[k : k + 4] = not moves[i]
    return stays


def _form(solver: Prepared, conditions: Conditions, kept: dict[str, Any]) -> tuple[ClosedForm | None, Array]:
    """The closed form of what is asked, and the pose that it has to reach."""
    each = zip(solver._objectives, solver._rows, strict=True)
    rows = [relation for one, relations in each if one.required for relation in relations]
    none = None, np.eye(4)
    program = solver._program
    if len(rows) != 1 or program.closures or program.laws or program.cones or not _is_for_formulas(rows[0]):
        return none
    relation = rows[0]
    name = relation.b or ""
    if name not in kept:
        try:
            kept[name] = closed_form(solver.mechanism, name)
        except NoClosedForm as error:
            kept[name] = error
    form = kept[name]
    if not isinstance(form, ClosedForm):
        return none
    columns = form.axes.columns
    if set(columns.tolist()) != set(conditions.columns.tolist()):
        return none
    if relation.rows == PLACE and form.formula.counts_rotation:
        return none
    axes = replace(form.axes, lower=conditions.lower[columns], upper=conditions.upper[columns])
    return replace(form, axes=axes), relation.X_a @ inverse(relation.X_b)


def _is_for_formulas(relation: Relation) -> bool:
    """Whether it is the pose, or the place, of a link in the world."""
    if relation.kind is not Kind.POSE or relation.a is not None or relation.b is None:
        return False
    if relation.world_axes is not None or relation.lower is not None or relation.upper is not None:
        return False
    return relation.rows == WHOLE_POSE or (relation.rows == PLACE and not np.any(relation.X_b[:3, 3]))
