"""Messages of methods: what is wrong, and which method to use instead."""

from __future__ import annotations

import re

import pytest

import mechanik as mk
from mechanik.errors import InvalidArgument, InvalidOperation
from mechanik.solver.methods.levenberg_marquardt import LevenbergMarquardt


@pytest.mark.parametrize("method", ["annealing", "evolution"])
def test_errors_of_a_local_method_are_about_the_option_local(method):
    """They were about the option `solver`, and suggested 'auto', which is no local method."""
    arm, goal = mk.arm_2d([1.0, 1.0]), mk.PositionGoal("tool", (0.5, 1.2, 0.0))
    with pytest.raises(InvalidArgument, match=r"local must be the name of a method, .* not 3"):
        mk.Solver(arm, goal, solver=method, local=3)
    for name in ("aut", "auto"):
        with pytest.raises(mk.UnknownName, match=f"no local method is called '{name}'") as error:
            mk.Solver(arm, goal, solver=method, local=name)
        assert "Did you mean 'auto'" not in str(error.value)


def test_an_error_names_every_alternative_method_and_its_option():
    method = LevenbergMarquardt()
    for alternatives, option, advice in [
        (["lm"], "", "use solver='lm'"),
        (["lm", "dls"], "", "use solver='lm' or 'dls'"),
        (["gradient_descent"], "gradient='analytic'", "use solver='gradient_descent' with gradient='analytic'"),
    ]:
        text = str(method.unsupported_error("does not support this", *alternatives, option=option))
        assert text == f"{method.title} does not support this; {advice}"


def test_a_soft_objective_is_refused_with_both_methods_that_support_it():
    goals = [mk.PositionGoal("tool", (0.5, 1.2, 0.0)), mk.RestPose([0.1, 0.2])]
    with pytest.raises(InvalidOperation, match=re.escape("such as a rest pose; use solver='lm' or 'dls'")):
        mk.Solver(mk.arm_2d([1.0, 1.0]), goals, solver="ccd")
