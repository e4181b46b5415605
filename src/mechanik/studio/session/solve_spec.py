"""Problem of the background solver: objectives from goals and drags, adapted to a method, for a `LiveSolver`.

`make_objective` converts a goal for the solver.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self, Unpack

import numpy as np

from mechanik.collision import Collider
from mechanik.errors import (
    InvalidOperation,
    LimitsError,
    ObjectiveError,
)
from mechanik.model import Mechanism
from mechanik.model.dof import ALL_DOFS
from mechanik.motion.live import LiveSolver
from mechanik.objectives import (
    AxisGoal,
    CentreOfMass,
    Distance,
    HingeGoal,
    InBand,
    InBox,
    InCone,
    JointValues,
    LookAt,
    Objective,
    OnLine,
    OnPlane,
    OnTerrain,
    OrientationGoal,
    PoseGoal,
    PositionGoal,
    SurfaceGoal,
    Terrain,
)
from mechanik.objectives.joint_goals import JointObjective, JointTarget, spherical_joint_target
from mechanik.objectives.objective import ObjectiveOptions
from mechanik.solver.methods.method_registry import METHODS, find_method, make_method, option_names
from mechanik.solver.options import OPTION_NAMES, Options, check_option_names
from mechanik.spatial import quaternion
from mechanik.spatial.array import Array, ArrayLike
from mechanik.studio.messages.message_codec import LINK_DRAG_GOAL
from mechanik.studio.messages.requests import (
    GoalKind,
    Value,
)
from mechanik.studio.session.edit_state import (
    DEFAULT_COLLISION_SETTINGS,
    CollisionSettings,
    EditState,
    InteractiveGoal,
    write_limits,
)
from mechanik.studio.session.frame_packer import link_axis
from mechanik.studio.session.loaded_model import LoadedModel
from mechanik.studio.session.model_index import IndexedDof
from mechanik.validation import as_quaternion


def make_objective(goal: InteractiveGoal, terrain: Terrain | None = None) -> Objective:
    """Return the objective of a goal.

    Args:
        goal: the goal.
        terrain: terrain of the scene, for `on_terrain`.

    Raises:
        ObjectiveError: the goal needs a terrain and there is none.
    """
    options: ObjectiveOptions = {"weight": goal.weight, "level": goal.effective_level, "name": goal.name}
    if goal.kind == "on_terrain":
        if terrain is None:
            raise ObjectiveError("there is no terrain; open a scene with terrain, such as the rover")
        return OnTerrain(goal.link, terrain, goal.at, goal.sizes[0], **options)
    return _MAKERS[goal.kind](goal, options)


def _pose(goal: InteractiveGoal, options: ObjectiveOptions) -> Objective:
    constrained = [dof for dof in ALL_DOFS if dof.name not in goal.free]
    return PoseGoal(goal.link, goal.X, at=goal.at, dof=constrained, **options)


def _p(goal: InteractiveGoal) -> Array:
    return goal.X[:3, 3]


def _z(goal: InteractiveGoal) -> Array:
    return goal.X[:3, 2]


_MAKERS: dict[GoalKind, Callable[[InteractiveGoal, ObjectiveOptions], Objective]] = {
    "point": lambda goal, options: PositionGoal(goal.link, _p(goal), goal.at, **options),
    "pose": _pose,
    "orientation": lambda goal, options: OrientationGoal(goal.link, goal.X[:3, :3], **options),
    "axis": lambda goal, options: AxisGoal(goal.link, _z(goal), link_axis(goal), **options),
    "hinge": lambda goal, options: HingeGoal(goal.link, _p(goal), _z(goal), goal.at, **options),
    "surface": lambda goal, options: SurfaceGoal(goal.link, _p(goal), _z(goal), goal.at, **options),
    "on_line": lambda goal, options: OnLine(goal.link, _p(goal), _z(goal), goal.at, **options),
    "on_plane": lambda goal, options: OnPlane(goal.link, _p(goal), _z(goal), goal.at, **options),
    "look_at": lambda goal, options: LookAt(goal.link, _p(goal), link_axis(goal), goal.at, **options),
    "distance": lambda goal, options: Distance(
        goal.link, at=goal.at, other_at=_p(goal), equal=goal.sizes[0], **options
    ),
    "in_box": lambda goal, options: InBox(goal.link, -np.array(goal.sizes), goal.sizes, goal.X, goal.at, **options),
    "in_cone": lambda goal, options: InCone(goal.link, link_axis(goal), _z(goal), goal.sizes[0], **options),
    "in_band": lambda goal, options: InBand(goal.link, "z", goal.sizes[0], goal.sizes[1], goal.X, goal.at, **options),
    "centre_of_mass": lambda goal, options: CentreOfMass(_p(goal), **options),
}


ADVICE_PATTERN = re.compile(r"; use solver='(?P<name>\w+)'(?P<more>.*)$", re.DOTALL)


OPTION_PATTERN = re.compile(r" with (?P<option>\w+)='(?P<value>\w+)'")


OBJECTIVE_PATTERN = re.compile(r"<(?P<kind>\w+)(?: '(?P<name>[^']*)')?[^<>]*>", re.DOTALL)


@contextmanager
def errors_for_users() -> Generator[None]:
    """Rewrite the errors of solver methods inside the context for users of the page, who see no arguments."""
    try:
        yield
    except InvalidOperation as error:
        raise InvalidOperation(rewrite_for_users(str(error))) from error


def rewrite_for_users(text: str) -> str:
    """Return the text of an error with objects and advice in terms of the page."""
    text = OBJECTIVE_PATTERN.sub(
        lambda match: f"the goal '{match['name']}'" if match["name"] else "one of the goals", text
    )
    match = ADVICE_PATTERN.search(text)
    if match is None or match["name"] not in METHODS:
        return text
    option = OPTION_PATTERN.match(match["more"])
    advice = f"choose {find_method(match['name']).title}, which can"
    if option is not None:
        advice = f"set its option {option['option']} to {option['value']}"
    return f"{text[: match.start()]}; {advice}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SphericalJointValue(JointObjective):
    """Objective: the rotation of a spherical joint; `JointValues` would also constrain the translations of the joint.

    Attributes:
        joint: name of the joint.
        wxyz: target quaternion in the frame of the joint, (4,), read-only.
    """

    joint: str
    wxyz: Array

    def __init__(self, joint: str, wxyz: ArrayLike, **options: Unpack[ObjectiveOptions]) -> None:
        JointObjective.__init__(self, "exact", **options)
        object.__setattr__(self, "joint", joint)
        object.__setattr__(self, "wxyz", as_quaternion(wxyz, f"rotation of {joint!r}"))

    def __repr__(self) -> str:
        return f"<{self._label}: {self.joint} at {self.wxyz.tolist()}>"

    def joint_targets(self, mechanism: Mechanism) -> tuple[JointTarget, ...]:
        return (spherical_joint_target(self.joint, self.wxyz, self.weight),)

    def with_target(self, target: ArrayLike) -> Self:
        changed = copy(self)
        object.__setattr__(changed, "wxyz", as_quaternion(target, f"rotation of {self.joint!r}"))
        return changed


DRAG_OBJECTIVE = "dragged dof"
"""Name of the objective that holds a dragged dof."""
DRAG_TOLERANCE = 1e-10
"""Tolerance of a dragged dof, m and rad; a typed value must be met to the last digit that is shown."""
PROBLEM_FIELDS = ("goals", "locked", "solver", "options", "objectives", "terrain", "collisions")
"""Fields of an `EditState` that the solver depends on."""


@dataclass(frozen=True, slots=True, eq=False)
class Drag:
    """What is dragged.

    Attributes:
        kind: goal, dof or obstacle.
        number: number of the goal (`LINK_DRAG_GOAL` for a dragged link), index of the dof, or index of the obstacle at
            the start of the drag.
        carried_from: link poses at the start of the drag, (4, 4), by number of the goals that move with their links.
        values: value of the dof, m or rad; of a spherical joint the three numbers of a rotation vector, rad.
        obstacle_name: name of the obstacle.
    """

    kind: Literal["goal", "dof", "obstacle"]
    number: int
    carried_from: Mapping[int, Array] = field(default_factory=dict[int, Array])
    values: tuple[float, ...] = (0.0,)
    obstacle_name: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class SolveSpec:
    """Problem and method for the solver, in the form that `LiveSolver` and `Solver` take.

    Attributes:
        goals: objectives.
        solver: name of the method.
        lock: names of locked dofs.
        rest: whether rest values are soft objectives.
        options: options of the method.
        adaptation_text: what the method cannot do as requested; empty: nothing.
        collisions: collision settings.
        collider: what is avoided; None: nothing.
    """

    goals: tuple[Objective, ...]
    solver: str
    lock: tuple[str, ...]
    rest: bool
    options: Mapping[str, Any]
    adaptation_text: str = ""
    collisions: CollisionSettings = DEFAULT_COLLISION_SETTINGS
    collider: Collider | None = None

    @property
    def avoidance_arguments(self) -> dict[str, Any]:
        """The arguments `avoid` and `clearance` for `LiveSolver` and `Solver`."""
        arguments: dict[str, Any] = {"avoid": self.collider}
        return arguments if self.collider is None else {**arguments, "clearance": self.collisions.clearance}

    def format_targets(self, by_name: Mapping[str, Any]) -> Any:
        """Return new targets in the form that a solver takes.

        A solver with a single objective takes the bare target, since the target of `JointValues` is itself a mapping of
        names. Rest values count as an objective.
        """
        return next(iter(by_name.values())) if len(self.goals) == 1 and not self.rest else by_name


def make_solve_spec(
    edit_state: EditState, dofs: tuple[IndexedDof, ...], drag: Drag | None, collider: Collider | None = None
) -> SolveSpec:
    """Return the problem of an edit state and a drag.

    While a dof or a link is dragged, the method is "lm", which supports every objective, and goals that move with their
    links are left out.
    """
    carried: Mapping[int, Array] = {} if drag is None else drag.carried_from
    objectives = [
        make_objective(goal, edit_state.terrain)
        for goal in edit_state.goals
        if goal.enabled and goal.number not in carried
    ]
    objectives += edit_state.objectives.values()
    if drag is not None and drag.kind == "dof":
        objectives.append(drag_objective(dofs, drag.number, drag.values))
    tracks_drag = drag is not None and (drag.kind == "dof" or drag.number == LINK_DRAG_GOAL)
    lock = tuple(dofs[k].name for k in sorted(edit_state.locked))
    options = {} if tracks_drag else {name: value for name, value in edit_state.options.items() if value is not None}
    rest = any(value is not None for value in edit_state.rest_values)
    solver = "lm" if tracks_drag else edit_state.solver
    return SolveSpec(
        tuple(objectives), solver, lock, rest, options, collisions=edit_state.collisions, collider=collider
    )


def drag_objective(
    dofs: tuple[IndexedDof, ...], number: int, values: tuple[float, ...]
) -> JointValues | SphericalJointValue:
    """Return the objective that holds a dragged dof, at level 1: pins have priority over it.

    A mimic dof is held through its leader.

    Args:
        dofs: dofs of the model.
        number: index of the dof.
        values: see `Drag`; further numbers are ignored.
    """
    if dofs[number].is_spherical:
        wxyz = quaternion.exp(values[:3])
        return SphericalJointValue(
            dofs[number].joint,
            wxyz,
            level=1,
            tolerance=DRAG_TOLERANCE,
            angle_tolerance=DRAG_TOLERANCE,
            name=DRAG_OBJECTIVE,
        )
    dof, leader_value = leading_dof(dofs, number, values[0])
    return JointValues(
        {dof.name: leader_value},
        angle_mode="exact",
        level=1,
        tolerance=DRAG_TOLERANCE,
        angle_tolerance=DRAG_TOLERANCE,
        name=DRAG_OBJECTIVE,
    )


def with_drag(spec: SolveSpec, dofs: tuple[IndexedDof, ...], drag: Drag) -> tuple[SolveSpec, dict[str, Any]]:
    """Return the problem with the new value of the dragged dof, and the target by name for the solver."""
    objective = drag_objective(dofs, drag.number, drag.values)
    return replace(spec, goals=(*spec.goals[:-1], objective)), {DRAG_OBJECTIVE: drag_target(objective)}


def drag_target(objective: JointValues | SphericalJointValue) -> Any:
    """Return the argument of `with_target` for an objective of a dragged dof."""
    return objective.wxyz if isinstance(objective, SphericalJointValue) else dict(objective.values)


def leading_dof(dofs: tuple[IndexedDof, ...], number: int, value: float) -> tuple[IndexedDof, float]:
    """Return the independent dof that moves dof `number`, and the value it needs so that `number` has `value`."""
    dof = dofs[number]
    if dof.leader < 0:
        return dof, value
    if dof.ratio == 0.0:
        raise InvalidOperation(f"{dof.name} is a mimic joint with a multiplier of 0 and cannot be moved")
    return dofs[dof.leader], (value - dof.offset) / dof.ratio


def with_spec_targets(spec: SolveSpec, targets: Mapping[str, Any]) -> SolveSpec:
    """Return the problem with new targets, by name."""
    return replace(
        spec, goals=tuple(goal.with_target(targets[goal.name]) if goal.name in targets else goal for goal in spec.goals)
    )


def same_problem(a: EditState, b: EditState) -> bool:
    """Return whether two edit states give the solver the same problem."""
    return all(getattr(a, name) is getattr(b, name) for name in PROBLEM_FIELDS)


def drag_changes_problem(drag: Drag | None, before: Drag | None) -> bool:
    """Return whether a change of the drag changes the problem; a dragged goal is an objective like any other."""
    return drag is not before and any(
        present is not None and (present.kind == "dof" or present.carried_from) for present in (drag, before)
    )


FULL_METHOD = "lm"
"""The method that supports priority levels, soft objectives and loops."""
LEVEL_WEIGHT_RATIO, MAX_WEIGHT_RATIO = 30.0, 900.0
"""Weight ratio of neighbouring levels, and maximum ratio of the first to the last level.

Tuned on all scenes: with 30, damped least squares meets all goals as soon as without levels, and the error of pins that
cannot be held is at most 1/30 of the error of the goals.
"""


def adapt_to_method(spec: SolveSpec, solver: str = "") -> SolveSpec:
    """Return the problem in the form that a method supports.

    A method without priority levels gets weights instead. A method without soft objectives gets none. What a method
    cannot support at all stays, and the method rejects it.

    Args:
        spec: the problem.
        solver: name of the method; default: that of the problem.
    """
    name = solver or spec.solver
    spec = spec if name == spec.solver else replace(spec, solver=name, options={})
    kind = find_method(name)
    if name == FULL_METHOD:
        return spec
    required = [goal for goal in spec.goals if goal.required]
    soft = [goal for goal in spec.goals if not goal.required]
    if not required and kind.supports_loops and not kind.supports_soft_objectives:
        full_method = find_method(FULL_METHOD).title
        text = f"{kind.title} does not support soft objectives, and there are no other goals: {full_method} is used"
        return replace(spec, solver=FULL_METHOD, options={}, adaptation_text=text if soft or spec.rest else "")
    levels = sorted({goal.level for goal in required})
    texts: list[str] = []
    if len(levels) > 1:
        ratio = min(LEVEL_WEIGHT_RATIO, MAX_WEIGHT_RATIO ** (1.0 / (len(levels) - 1)))
        factors = {level: ratio**k for k, level in enumerate(reversed(levels))}
        required = [_with_priority(goal, 0, goal.weight * factors[goal.level]) for goal in required]
        texts.append(f"{kind.title} does not support priority levels: {_levels_text(levels, ratio)}")
    lowest = max((goal.level for goal in required), default=0)
    soft = [_with_priority(goal, lowest, goal.weight) if goal.level < lowest else goal for goal in soft]
    rest = spec.rest
    if not kind.supports_soft_objectives and (soft or rest):
        soft, rest = [], False
        texts.append(
            f"{'it' if texts else kind.title} does not support rest values or other soft objectives: they are ignored"
        )
    return replace(spec, goals=(*required, *soft), rest=rest, adaptation_text="; ".join(texts))


def _with_priority(objective: Objective, level: int, weight: float) -> Objective:
    changed = copy(objective)
    object.__setattr__(changed, "level", level)
    object.__setattr__(changed, "weight", weight)
    return changed


def _levels_text(levels: list[int], ratio: float) -> str:
    if len(levels) == 2 and levels[0] == 0:
        return f"pins have {ratio:.3g} times the weight of other goals"
    return f"each level has {ratio:.3g} times the weight of the next"


MAX_INTEGER_OPTION, MAX_ITERATIONS, MAX_RESTARTS = 1_000, 10_000, 100
"""Maximum values of integer options.

The solver checks its time limit only after each iteration, and an iteration with a large population is long.
"""
MAX_OPTION_VALUES = {"max_iterations": MAX_ITERATIONS, "restarts": MAX_RESTARTS}


def parse_solver_options(solver: str, options: Mapping[str, Value | None]) -> dict[str, Value | None]:
    """Return the validated options of a method; None values are left out.

    Raises:
        InvalidOperation: the method does not take these values.
        LimitsError: a value is too large.
    """
    kind = find_method(solver)
    check_option_names(options, option_names(kind))
    given = {name: value for name, value in options.items() if value is not None}
    if "max_seconds" in given:
        raise InvalidOperation("max_seconds cannot be set: the studio sets the time of each solve")
    for name, value in given.items():
        if isinstance(value, float) and value.is_integer() and _is_integer_option(kind, name):
            given[name] = value = int(value)
        limit = MAX_OPTION_VALUES.get(name, MAX_INTEGER_OPTION)
        if isinstance(value, int) and not isinstance(value, bool) and value > limit:
            raise LimitsError(f"{name} can be at most {limit} in the studio, not {value}")
    try:
        _, common = make_method(solver, dict(given))
        Options(**common)  # type: ignore[arg-type]
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise InvalidOperation(f"{kind.title} does not accept these options: {error}") from None
    return dict(given)


def _is_integer_option(kind: type, name: str) -> bool:
    """Return whether an option is an integer by its annotation; JSON does not distinguish 3.0 from 3."""
    hints: dict[str, str] = {}
    for owner in (Options, *reversed(kind.__mro__)):
        hints |= {key: str(hint) for key, hint in getattr(owner, "__annotations__", {}).items()}
    hint = hints.get(name, "")
    return name in ("restarts", "max_iterations") or (
        name not in OPTION_NAMES and "int" in hint and "float" not in hint
    )


DEFAULT_OPTIONS: dict[str, Any] = {name: getattr(Options(), name) for name in OPTION_NAMES if name != "max_seconds"} | {
    "restarts": 0
}
"""Defaults of the options that every method takes; no restarts, so that a dragged mechanism does not jump."""


def make_live_solver(mechanism: Mechanism, spec: SolveSpec, q: Array) -> LiveSolver:
    """Return a live solver at q (nq,) that does not run yet.

    Args:
        mechanism: the mechanism.
        spec: problem in the form that its method supports, see `adapt_to_method`.
        q: initial configuration.
    """
    with errors_for_users():
        return LiveSolver(
            mechanism,
            spec.goals,
            spec.solver,
            q0=q,
            lock=spec.lock,
            rest=spec.rest,
            **spec.avoidance_arguments,
            **spec.options,
        )


def update_live_solver(live: LiveSolver, spec: SolveSpec, before: SolveSpec) -> SolveSpec:
    """Give a live solver another problem, adapted to its method, and return the adapted problem.

    A live solver keeps common options between calls, so options that are no longer given are reset to their defaults.
    """
    adapted = adapt_to_method(spec)
    defaults = {
        name: DEFAULT_OPTIONS[name]
        for name in before.options
        if name in DEFAULT_OPTIONS and name not in adapted.options
    }
    with errors_for_users():
        live.set(
            goals=adapted.goals,
            solver=adapted.solver,
            lock=adapted.lock,
            rest=adapted.rest,
            **adapted.avoidance_arguments,
            **defaults,
            **adapted.options,
        )
    return adapted


def update_limits_and_solver(
    live: LiveSolver, model: LoadedModel, edit_state: EditState, spec: SolveSpec, before: SolveSpec
) -> SolveSpec:
    """Write limits and rest values of an edit state to the mechanism, then do `update_live_solver`."""
    with live.edit() as mechanism:
        write_limits(mechanism, model.index.dofs, edit_state)
        return update_live_solver(live, spec, before)
