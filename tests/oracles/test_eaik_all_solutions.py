"""All solutions of a UR5 are those that EAIK finds (D. Ostermeier, J. Külz, M. Althoff, RA-L 2025)."""

from __future__ import annotations

import numpy as np
import pytest
from test_eaik import Eaik, angle_distance

import mechanik as mk
from mechanik import gallery
from mechanik.solver.request import SolveRequest
from mechanik.solver.search.all_solutions import all_solutions
from mechanik.solver.search.closed_form import closed_form

pytestmark = pytest.mark.eaik


def test_solution_sets_of_1000_ur5_poses_match_eaik():
    arm = gallery.ur5()
    solver = mk.Solver(arm, mk.PoseGoal("tool0", np.eye(4)))
    X = arm.pose("tool0", arm.random(np.random.default_rng(1), 1000))
    for target, theirs in zip(X, Eaik(closed_form(arm, "tool0")).solve(X), strict=True):
        with solver.pipeline.search_context(SolveRequest(targets=target, q0=np.zeros(6))) as question:
            ours = all_solutions(question)
        assert ours.complete
        assert len(ours) == len(theirs)
        apart = angle_distance(ours.q[:, None], theirs)
        assert apart.min(axis=1).max() < 1e-6
        assert apart.min(axis=0).max() < 1e-6
