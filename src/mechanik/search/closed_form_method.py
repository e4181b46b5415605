"""Closed forms: every branch by formula, and the one nearest to the start; if there is none, the closest pose."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from mechanik.errors import NoClosedForm
from mechanik.kernels.problem import FRAME_A
from mechanik.mechanism.door import as_number
from mechanik.objectives.relation import Kind, Relation
from mechanik.search.closed_form import ClosedForm, closed_form
from mechanik.solvers.method import Method
from mechanik.solvers.problem import Problem
from mechanik.spatial import inverse, make
from mechanik.spatial.array import Array

ALL_ROWS, PLACE = (0, 1, 2, 3, 4, 5), (0, 1, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedFormMethod(Method):
    """One iteration: all branches by formula, and of those inside the limits the one nearest to the start.

    Where there is none the default solver goes from the start to the closest pose. `mk.closed_form` gives all branches.

    Attributes:
        elbow: rad, for S-R-S arms: the angle of the elbow about the line from shoulder to wrist. None: the one that
            makes the way shortest.
    """

    name: ClassVar[str] = "closed_form"
    title: ClassVar[str] = "the closed form"
    citation: ClassVar[str] = (
        "D. L. Pieper, The kinematics of manipulators under computer control, Stanford, 1968; B. Paden, Kinematics and"
        " control of robot manipulators, Berkeley, 1986"
    )
    usual_iterations: ClassVar[int] = 1
    takes_loops: ClassVar[bool] = False

    elbow: float | None = None

    def __post_init__(self) -> None:
        if self.elbow is not None:
            as_number(self.elbow, "elbow")

    def check(self, problem: Problem) -> None:
        super(ClosedFormMethod, self).check(problem)
        relation, form = self._form(problem)
        columns = set(problem.column_x[problem.free].tolist())
        if not columns.issuperset(form.axes.columns):
            raise self.refusal("moves every joint of the arm, and one is locked", "lm")
        if relation.rows == PLACE and form.formula.counts_rotation:
            raise self.refusal(f"of a {form.kind} arm is for whole poses, not for points", "lm")

    def iterate(self, problem: Problem) -> Iterator[float | None]:
        relation, form = self._form(problem)
        columns = form.axes.columns
        limits = {"lower": problem.q_lower[columns], "upper": problem.q_upper[columns]}
        form = replace(form, axes=replace(form.axes, **limits))
        at = problem.part.packed.at["data"][FRAME_A:]
        X_world_link = make(at[:9].reshape(3, 3), at[9:12]) @ inverse(relation.X_b)
        found = self._nearest(form, X_world_link, problem.q)
        if found is None:
            yield problem.descend()
        else:
            problem.place(found)
            yield

    def _nearest(self, form: ClosedForm, X_world_link: Array, q0: Array) -> Array | None:
        if self.elbow is None:
            return form.nearest(X_world_link, q0)
        found = form.branches(X_world_link, q0, elbow=self.elbow)
        return found[0] if len(found) else None

    def _form(self, problem: Problem) -> tuple[Relation, ClosedForm]:
        """What is asked, if it is one pose of one link, and the formula for it."""
        relation = problem.relations[0]
        is_pose = relation.kind is Kind.POSE and relation.a is None and relation.rows in (ALL_ROWS, PLACE)
        if len(problem.relations) != 1 or not is_pose or relation.b is None or relation.lower is not None:
            raise self.refusal("is for one goal, the pose of a link in the world", "lm")
        if relation.rows == PLACE and np.any(relation.X_b[:3, 3]):
            raise self.refusal("for a point is for the origin of a link", "lm")
        form = problem.kept.get(relation.b)
        if not isinstance(form, ClosedForm):
            try:
                form = problem.kept[relation.b] = closed_form(problem.mechanism, relation.b)
            except NoClosedForm as error:
                raise self.refusal(f"is not for this arm: {str(error).split('. ')[0]}", "lm") from None
        return relation, form
