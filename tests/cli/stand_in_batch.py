"""`Solver.solve_batch` and `solve_all` until they are there, by the general kernel whatever the mechanism is."""

from __future__ import annotations

from dataclasses import fields

import mechanik as mk
from mechanik.batch import Asked, General, run_batch


def install():
    if not hasattr(mk.Solver, "solve_batch"):
        mk.Solver.solve_batch = solve_batch
    if not hasattr(mk.Solver, "solve_all"):
        mk.Solver.solve_all = solve_all


def solve_all(self, targets=None, *, limit=None, q0=None):
    from mechanik.search.all_solutions import all_solutions
    from mechanik.search.question import asked

    with self._alone(), asked(self, targets, q0) as question:
        return all_solutions(question, limit=limit)


def solve_batch(self, targets, q0=None, **how):
    def twin():
        common = {field.name: getattr(self.options, field.name) for field in fields(self.options)}
        space = self.mechanism.space
        still = [space.v_names[v] for v in space.scalars_v if not self._moving[v]]
        return mk.Solver(self.mechanism, self.objectives, lock=still, **common)

    asked = Asked(self.mechanism, self.objectives, (self.method, self.options, self._bounds, self._moving))
    return run_batch(asked, General(self.mechanism, self.objectives, twin), targets, q0, **how)
