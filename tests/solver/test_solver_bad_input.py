"""Invalid calls of the solver: each is a clear error at once, or has a defined result; never a crash."""

from __future__ import annotations

import math

import numpy as np
import pytest

import mechanik as mk
from mechanik.errors import (
    InvalidArgument,
    LimitsError,
    MechanikError,
    NotARotation,
    NotFinite,
    ObjectiveError,
    ShapeError,
    UnknownName,
)

BENT = np.array([0.4, 0.7, 0.6])
GOAL = mk.PositionGoal("tool", (1.0, 1.2, 0), name="goal")


def arm(**options):
    return mk.arm_2d([1.0, 0.8, 0.5], **options)


def solver(*goals, **options):
    return mk.Solver(arm(), list(goals) or GOAL, **options)


CASES = {
    # names
    "an unknown link": (lambda: solver(mk.PositionGoal("tol", (1, 1, 0))), UnknownName, "'tool'"),
    "an unknown link to be relative to": (
        lambda: solver(mk.PositionGoal("tool", (1, 1, 0), relative_to="link4")),
        UnknownName,
        "link3",
    ),
    "an unknown joint of values": (lambda: solver(mk.JointValues({"joint4": 1.0})), UnknownName, "joint3"),
    "an unknown joint of a rest pose": (lambda: solver(rest={"jont1": 1.0}), UnknownName, "joint1"),
    "an unknown joint to lock": (lambda: solver(lock="joint11"), UnknownName, "joint1"),
    "an unknown joint to lock in a call": (lambda: solver().solve(lock=["joint11"]), UnknownName, "joint1"),
    "an unknown active joint": (lambda: solver(active=["elbow"]), UnknownName, "joint"),
    "limits of an unknown joint": (lambda: solver(limits={"joint0": (0, 1)}), UnknownName, "Did you mean 'joint"),
    "limits of an unknown joint in a call": (
        lambda: solver().solve(limits={"joint0": (0, 1)}),
        UnknownName,
        "Did you mean 'joint",
    ),
    "a weight of nothing": (lambda: solver(weights={"gaol": 2.0}), UnknownName, "no joint|no objective"),
    "an unknown option": (lambda: solver(max_iteration=5), UnknownName, "max_iterations"),
    "an unknown option of a call": (lambda: solver().solve(max_secnds=5), UnknownName, "max_seconds"),
    "an unknown option of solve": (lambda: mk.solve(arm(), GOAL, dampng=5), UnknownName, "damping"),
    "an unknown option of step": (lambda: solver().step(retarts=5), UnknownName, "restarts"),
    "an unknown option of solve_nearby": (lambda: solver().solve_nearby(0.1, retarts=5), UnknownName, "restarts"),
    "a target for an unknown objective": (
        lambda: solver(GOAL, mk.AxisGoal("tool", (0, 0, 1), name="axis")).solve({"gaol": (1, 1, 0)}),
        UnknownName,
        "goal",
    ),
    "a joint that closes a loop to lock": (
        lambda: mk.Solver(mk.gallery.four_bar(), mk.PositionGoal("coupler", (1, 1, 0)), lock="closing_joint"),
        InvalidArgument,
        "closes a loop",
    ),
    # goals
    "no goals at all": (lambda: mk.Solver(arm(), []), ObjectiveError, "empty"),
    "no goals at all, solved": (lambda: mk.solve(arm(), []), ObjectiveError, "empty"),
    "goals that are no objectives": (lambda: mk.Solver(arm(), [(1, 2, 3)]), InvalidArgument, "objective"),
    "a goal that is a word": (lambda: mk.Solver(arm(), "tool"), InvalidArgument, "objective"),
    "a goal that is a number": (lambda: mk.Solver(arm(), 5), MechanikError, "objective|goals"),
    "an invalid mechanism": (lambda: mk.Solver("panda", GOAL), MechanikError, "panda"),
    "an invalid mechanism, solved": (lambda: mk.solve("panda", GOAL), InvalidArgument, "mechanism"),
    "no mechanism": (lambda: mk.solve(None, GOAL), InvalidArgument, "mechanism"),
    "a target with a NaN": (lambda: mk.PositionGoal("tool", (1, math.nan, 0)), NotFinite, "finite"),
    "an infinite target": (lambda: mk.PositionGoal("tool", (1, math.inf, 0)), NotFinite, "finite"),
    "a direction of no length": (lambda: mk.AxisGoal("tool", (0, 0, 0)), MechanikError, "length|zero|direction"),
    "a direction with a NaN": (lambda: mk.AxisGoal("tool", (0, math.nan, 1)), NotFinite, "finite"),
    "an invalid quaternion": (lambda: mk.OrientationGoal("tool", (1, 1, 0, 0)), NotARotation, "norm"),
    "a rotation that stretches": (lambda: mk.OrientationGoal("tool", 2 * np.eye(3)), NotARotation, "rotation"),
    "a rotation that mirrors": (
        lambda: mk.OrientationGoal("tool", np.diag([1.0, 1, -1])),
        NotARotation,
        "right-handed",
    ),
    "an invalid pose": (lambda: mk.PoseGoal("tool", np.ones((4, 4))), MechanikError, "target|pose|row"),
    "a point of two numbers": (lambda: mk.PositionGoal("tool", (1, 2)), ShapeError, "3"),
    "a negative weight": (lambda: mk.PositionGoal("tool", (1, 1, 0), weight=-1), ObjectiveError, "above zero"),
    "a weight of zero": (lambda: mk.PositionGoal("tool", (1, 1, 0), weight=0), ObjectiveError, "above zero"),
    "a negative tolerance": (lambda: mk.PositionGoal("tool", (1, 1, 0), tolerance=-1e-6), ObjectiveError, "above zero"),
    "a negative level": (lambda: mk.PositionGoal("tool", (1, 1, 0), level=-1), ObjectiveError, "level"),
    "a level and a half": (lambda: mk.PositionGoal("tool", (1, 1, 0), level=1.5), ObjectiveError, "integer"),
    "a negative weight in the solver": (lambda: solver(weights={"goal": -1.0}), ObjectiveError, "above zero"),
    "a NaN for a weight in the solver": (lambda: solver(weights={"joint1": math.nan}), NotFinite, "joint1"),
    "weights that are no mapping": (lambda: solver(weights=[1.0, 2.0]), MechanikError, "weights|name"),
    # targets of a call
    "a new target of the wrong shape": (lambda: solver().solve((1, 2)), MechanikError, "target|3"),
    "a new target with a NaN": (lambda: solver().solve((1, math.nan, 0)), NotFinite, "finite"),
    "a new target with a NaN on the fast path": (
        lambda: solver().solve(np.array([1, math.nan, 0]), BENT),
        NotFinite,
        "finite",
    ),
    "a new target of words": (lambda: solver().solve("there"), MechanikError, "target|numbers|point"),
    "an invalid pose on the fast path": (
        lambda: solver(mk.PoseGoal("tool", np.eye(4))).solve(np.diag([2.0, 2, 2, 1]), BENT),
        MechanikError,
        "rotation|pose",
    ),
    "a pose with a NaN on the fast path": (
        lambda: solver(mk.PoseGoal("tool", np.eye(4))).solve(np.full((4, 4), math.nan), BENT),
        MechanikError,
        "finite|rotation|pose",
    ),
    "a pose whose last row is wrong on the fast path": (
        lambda: solver(mk.PoseGoal("tool", np.eye(4))).solve(np.diag([1.0, 1, 1, 2]), BENT),
        MechanikError,
        "row|pose",
    ),
    "a value that is not finite on the fast path": (
        lambda: solver(mk.JointValues({"joint1": 0.0})).solve(math.inf, BENT),
        NotFinite,
        "joint1",
    ),
    "too few new targets": (
        lambda: solver(GOAL, mk.AxisGoal("tool", (0, 0, 1))).solve([(1, 1, 0)]),
        ShapeError,
        "2 objectives",
    ),
    "a new target for an objective without one": (
        lambda: solver(mk.Custom(lambda m, q: q, residual_size=3)).solve((1, 1, 0)),
        ObjectiveError,
        "no target",
    ),
    # starts
    "a start of the wrong length": (lambda: solver().solve(q0=[0, 0]), ShapeError, "3 numbers"),
    "several starts": (lambda: solver().solve(q0=np.zeros((2, 3))), ShapeError, "q|one"),
    "a start with a NaN for a new angle": (
        lambda: mk.Solver(mk.gallery.four_bar(), mk.JointValues({"crank_joint": 0.6})).solve(0.5, np.full(3, math.nan)),
        NotFinite,
        "finite",
    ),
    "a start with a NaN": (lambda: solver().solve(q0=[0, math.nan, 0]), NotFinite, "joint2"),
    "a start with a NaN on the fast path": (
        lambda: solver().solve(np.array([1.0, 1, 0]), np.array([0, math.nan, 0])),
        NotFinite,
        "joint2",
    ),
    "an infinite start on the fast path": (
        lambda: solver().solve(np.array([1.0, 1, 0]), np.array([0, math.inf, -math.inf])),
        NotFinite,
        "joint2",
    ),
    "a start of words": (lambda: solver().solve(q0="home"), ShapeError, "numbers"),
    "complex numbers": (lambda: solver().solve(q0=np.zeros(3, dtype=complex)), ShapeError, "real"),
    "an array of one number as two targets": (
        lambda: solver(GOAL, mk.RestPose()).solve(np.array(5.0)),
        ShapeError,
        "2 objectives",
    ),
    # limits and locks
    "limits the wrong way round": (lambda: solver(limits={"joint1": (1, 0)}), LimitsError, "lower"),
    "limits the wrong way round in a call": (lambda: solver().solve(limits={"joint1": (1, 0)}), LimitsError, "lower"),
    "limits of one number": (lambda: solver(limits={"joint1": 1.0}), ShapeError, "lower, upper"),
    "limits of three": (lambda: solver(limits={"joint1": (0, 1, 2)}), ShapeError, "lower, upper"),
    "limits with a NaN": (lambda: solver(limits={"joint1": (0, math.nan)}), NotFinite, "joint1"),
    "limits as a list": (lambda: solver(limits=[(0, 1)] * 3), ShapeError, "name"),
    "limits as a list in a call": (lambda: solver().solve(limits=[("joint1", (0, 1))]), ShapeError, "name"),
    "limits of a ball": (
        lambda: mk.Solver(_ball(), mk.AxisGoal("body", (0, 0, 1)), limits={"ball": (0, 1)}),
        LimitsError,
        "ball",
    ),
    "one angle of a ball to lock": (
        lambda: mk.Solver(_ball(), mk.AxisGoal("body", (0, 0, 1)), lock="ball.EX"),
        MechanikError,
        "spherical joint",
    ),
    "a number to lock": (lambda: solver(lock=[3]), InvalidArgument, "name"),
    "True to lock": (lambda: solver(lock=True), MechanikError, "name|joint|lock"),
    # options
    "fewer than no iterations": (lambda: solver(max_iterations=-1), LimitsError, "max_iterations"),
    "half an iteration": (lambda: solver(max_iterations=0.5), LimitsError, "integer"),
    "less than no time": (lambda: solver(max_seconds=-1), LimitsError, "max_seconds"),
    "a time that is no number": (lambda: solver(max_seconds="1"), MechanikError, "max_seconds"),
    "a NaN of time": (lambda: solver().solve(max_seconds=math.nan), MechanikError, "max_seconds"),
    "fewer than no restarts": (lambda: solver(restarts=-1), LimitsError, "restarts"),
    "True restarts": (lambda: solver(restarts=True), LimitsError, "restarts"),
    "no damping": (lambda: solver(damping=0.0), LimitsError, "damping"),
    "a damping that is infinite": (lambda: solver(damping=math.inf), MechanikError, "damping"),
    "a rest factor above one": (lambda: solver(rest_factor=2), LimitsError, "rest_factor"),
    "no weight of positions": (lambda: solver(position_weight=0), LimitsError, "position_weight"),
    "other weights in a call": (lambda: solver().solve(position_weight=2.0), MechanikError, "position_weight"),
    "a generator that is a number": (lambda: solver().solve(rng=3), InvalidArgument, "generator"),
    "a generator that is zero": (
        lambda: solver().solve(np.array([1.0, 1, 0]), BENT, rng=0),
        InvalidArgument,
        "generator",
    ),
    "feasible that cannot be called": (lambda: solver().solve(feasible=3), MechanikError, "feasible"),
    "a negative deviation": (lambda: solver().solve_nearby(-0.1), MechanikError, "max_deviation"),
    "a deviation that is a NaN": (lambda: solver().solve_nearby(math.nan), MechanikError, "max_deviation"),
    "a rest pose of the wrong length": (lambda: solver(rest=[1, 2]).solve(), ShapeError, "3"),
    "a rest pose with a NaN": (lambda: solver(rest=[1, 2, math.nan]), NotFinite, "finite"),
    # masses
    "a centre of mass of what weighs nothing": (lambda: solver(mk.CentreOfMass((0, 0, 0))), ObjectiveError, "no mass"),
}


def _ball():
    builder = mk.Builder()
    builder.spherical("ball", "world", "body")
    return builder.build()


@pytest.mark.parametrize("case", CASES)
def test_an_invalid_call_is_rejected_with_the_reason(case):
    call, kind, words = CASES[case]
    with pytest.raises(kind, match=words) as caught:
        call()
    assert isinstance(caught.value, MechanikError)
    assert len(str(caught.value)) > 10


def test_an_invalid_call_leaves_the_solver_unchanged():
    ik = solver()
    before = ik.solve(np.array([1.0, 1.2, 0.0]), BENT).q
    for wrong in (
        lambda: ik.solve(np.array([1.0, math.nan, 0.0]), BENT),
        lambda: ik.solve(np.array([1.0, 1.0, 0.0]), np.full(3, math.nan)),
        lambda: ik.solve(limits={"joint1": (1, 0)}),
        lambda: ik.solve(lock="nothing"),
        lambda: ik.solve(np.zeros((4, 4)), BENT),
        lambda: ik.solve_nearby(-1),
        lambda: ik.solve(max_iterations="many"),
    ):
        with pytest.raises(MechanikError):
            wrong()
        np.testing.assert_array_equal(ik.solve(np.array([1.0, 1.2, 0.0]), BENT).q, before)
    assert ik.solve(q0=BENT).success


# ---- functions written in Python ----------------------------------------------------------------


def test_a_function_that_raises_is_named_and_the_solver_stays_usable():
    def fails(mechanism, q):
        if q[0] < 0.39:
            raise KeyError("a fault of mine")
        return q - 0.1

    ik = solver(mk.Custom(fails, residual_size=3, name="mine"))
    for _ in range(2):
        with pytest.raises(ObjectiveError, match="a fault of mine") as caught:
            ik.solve(q0=BENT)
        assert "mine" in str(caught.value)
        assert isinstance(caught.value.__cause__, KeyError)
    assert ik.solve(q0=np.array([3.0, 3.0, 3.0]), max_iterations=0).q.tolist() == [3.0, 3.0, 3.0]


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda m, q: q * math.nan, "nan"),
        (lambda m, q: np.array([1.0, math.inf, 0.0]), "inf"),
        (lambda m, q: q[:2], r"\(2,\)"),
        (lambda m, q: np.ones((3, 3)), r"\(3, 3\)"),
        (lambda m, q: "no", "not numeric"),
        (lambda m, q: None, "None|numbers|nan"),
    ],
    ids=["nan", "inf", "short", "square", "word", "nothing"],
)
def test_a_function_that_returns_no_residual_is_rejected(function, words):
    with pytest.raises(ObjectiveError, match=words):
        solver(mk.Custom(function, residual_size=3)).solve(q0=BENT)


def test_a_function_that_returns_a_nan_during_the_solve_is_rejected():
    def sometimes(mechanism, q):
        return np.where(q < 0.3, math.nan, q - 0.1)

    with pytest.raises(ObjectiveError, match="nan"):
        solver(mk.Custom(sometimes, residual_size=3)).solve(q0=BENT)


def test_a_jacobian_of_the_wrong_shape_is_rejected():
    with pytest.raises(ObjectiveError, match="jacobian"):
        solver(mk.Custom(lambda m, q: q, jacobian=lambda m, q: np.eye(2), residual_size=3)).solve(q0=BENT)


def test_a_wrong_jacobian_slows_or_stalls_the_solve_but_never_worsens_it():
    """Its sign is wrong: every step leads up, so none is taken."""
    objective = mk.Custom(lambda m, q: q - 0.1, jacobian=lambda m, q: -np.eye(3), residual_size=3)
    solution = solver(objective).solve(q0=BENT)
    assert not solution.success
    assert np.linalg.norm(solution.q - 0.1) <= np.linalg.norm(BENT - 0.1) + 1e-12


def test_a_function_that_writes_to_q_does_not_change_the_solve():
    def writes(mechanism, q):
        q[:] = q - 0.1
        return q

    solution = solver(mk.Custom(writes, residual_size=3)).solve(q0=BENT)
    assert solution.success
    np.testing.assert_allclose(solution.q, 0.1, atol=1e-6)


def test_an_error_of_the_feasible_function_propagates_and_the_solver_stays_usable():
    ik = solver()

    def fails(q):
        raise RuntimeError("a fault of mine")

    with pytest.raises((RuntimeError, MechanikError), match="a fault of mine"):
        ik.solve(q0=BENT, feasible=fails)
    assert ik.solve(q0=BENT).success


def test_a_function_that_no_joint_changes_is_closest_at_the_start():
    solution = solver(mk.Custom(lambda m, q: np.ones(2), residual_size=2)).solve(q0=BENT)
    assert not solution.success
    assert solution.status is mk.Status.CLOSEST


# ---- numbers at the edge ------------------------------------------------------------------------


def test_huge_and_tiny_targets_are_solved():
    ik = solver()
    for size in (1e-12, 1e6, 1e12, 1e100):
        solution = ik.solve(np.array([size, 0.0, 0.0]), BENT)
        assert np.isfinite(solution.q).all()
        assert size < 1 or not solution.success
        if size == 1e6:
            np.testing.assert_allclose(arm().pose("tool", solution.q)[:3, 3], (2.3, 0, 0), atol=1e-3)


def test_a_start_many_full_turns_away_is_accepted():
    solution = solver().solve(q0=BENT + 2 * math.pi * np.array([1000, -1000, 5]))
    assert solution.success


def test_weights_of_very_different_size_are_solved():
    goals = [mk.PositionGoal("tool", (1.0, 1.2, 0), weight=1e6), mk.AxisGoal("tool", (1, 1, 0), (1, 0, 0), weight=1e-6)]
    solution = solver(*goals).solve(q0=BENT)
    assert np.isfinite(solution.q).all()
    assert goals[0].error(arm(), solution.q).position < 1e-5


@pytest.mark.parametrize("scale", [1e-3, 1e3])
@pytest.mark.parametrize("position_weight", [1e-3, 1.0, 1e3])
def test_neither_units_nor_weights_violate_a_loop_closure(scale, position_weight):
    """A four-bar in mm, or in km: its pin is closed as accurately."""
    mechanism = mk.gallery.four_bar(2.0 * scale, 0.5 * scale, 1.8 * scale, 1.2 * scale)
    ik = mk.Solver(mechanism, mk.JointValues({"crank_joint": 1.0}), position_weight=position_weight)
    q = mechanism.q
    for crank in np.linspace(0.6, 7, 30):
        solution = ik.solve({"crank_joint": float(crank)}, q)
        assert solution.success, solution
        assert solution.closure_errors["closing_joint"].position < 1e-9 * max(scale, 1.0)
        q = solution.q


def test_a_nearly_unit_quaternion_is_normalized():
    mechanism = _ball()
    solution = mk.Solver(mechanism, mk.AxisGoal("body", (0, 1, 1))).solve(q0=[1.0001, 0, 0, 0.0001])
    assert solution.success
    assert abs(np.linalg.norm(solution.q) - 1.0) < 1e-12
    short = mk.Solver(mechanism, mk.PoseGoal("body", np.eye(4))).solve(np.eye(4), np.array([2.0, 0.2, 0.0, 0.0]))
    assert abs(np.linalg.norm(short.q) - 1.0) < 1e-12


def test_a_mechanism_without_dofs_is_solved_at_its_only_pose():
    builder = mk.Builder()
    builder.fixed("weld", "base", "post", at=(0, 1, 0))
    mechanism = builder.build()
    assert mk.solve(mechanism, mk.PositionGoal("post", (0, 1, 0))).success
    solution = mk.solve(mechanism, mk.PositionGoal("post", (1, 1, 0)))
    assert not solution.success
    assert solution.q.shape == (0,)
    str(solution)


def test_lists_tuples_and_arrays_are_equivalent():
    ik = solver()
    q = ik.solve(np.array([1.0, 1.1, 0.0]), BENT).q
    for target in (
        [1, 1.1, 0],
        (1.0, 1.1, 0.0),
        np.array([1.0, 1.1, 0.0], dtype=np.float32),
        np.array([[1.0, 1.1, 0.0]])[0],
    ):
        np.testing.assert_allclose(ik.solve(target, BENT).q, q, atol=1e-5)
    for start in (list(BENT), tuple(BENT), np.asfortranarray(BENT), np.repeat(BENT, 2)[::2]):
        np.testing.assert_allclose(ik.solve(np.array([1.0, 1.1, 0.0]), start).q, q, atol=1e-12)
    integers = ik.solve(np.array([1, 1, 0]), np.array([0, 1, 1]))
    np.testing.assert_allclose(integers.q, ik.solve([1, 1, 0], [0, 1, 1]).q, atol=1e-12)
