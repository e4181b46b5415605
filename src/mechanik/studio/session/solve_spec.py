"""Problem of a session in the form that its solvers take: objectives from goals and drags, adapted to a method.

The module also validates solver options, and makes and updates live solvers.
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
    write_limits_and_rest_values,
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
    return _OBJECTIVE_MAKERS[goal.kind](goal, options)


def _pose_goal(goal: InteractiveGoal, options: ObjectiveOptions) -> Objective:
    constrained_dofs = [dof for dof in ALL_DOFS if dof.name not in goal.free]
    return PoseGoal(goal.link, goal.X, at=goal.at, dof=constrained_dofs, **options)


def _position(goal: InteractiveGoal) -> Array:
    return goal.X[:3, 3]


def _z_axis(goal: InteractiveGoal) -> Array:
    return goal.X[:3, 2]


_OBJECTIVE_MAKERS: dict[GoalKind, Callable[[InteractiveGoal, ObjectiveOptions], Objective]] = {
    "point": lambda goal, options: PositionGoal(goal.link, _position(goal), goal.at, **options),
    "pose": _pose_goal,
    "orientation": lambda goal, options: OrientationGoal(goal.link, goal.X[:3, :3], **options),
    "axis": lambda goal, options: AxisGoal(goal.link, _z_axis(goal), link_axis(goal), **options),
    "hinge": lambda goal, options: HingeGoal(goal.link, _position(goal), _z_axis(goal), goal.at, **options),
    "surface": lambda goal, options: SurfaceGoal(goal.link, _position(goal), _z_axis(goal), goal.at, **options),
    "on_line": lambda goal, options: OnLine(goal.link, _position(goal), _z_axis(goal), goal.at, **options),
    "on_plane": lambda goal, options: OnPlane(goal.link, _position(goal), _z_axis(goal), goal.at, **options),
    "look_at": lambda goal, options: LookAt(goal.link, _position(goal), link_axis(goal), goal.at, **options),
    "distance": lambda goal, options: Distance(
        goal.link, at=goal.at, other_at=_position(goal), equal=goal.sizes[0], **options
    ),
    "in_box": lambda goal, options: InBox(goal.link, -np.array(goal.sizes), goal.sizes, goal.X, goal.at, **options),
    "in_cone": lambda goal, options: InCone(goal.link, link_axis(goal), _z_axis(goal), goal.sizes[0], **options),
    "in_band": lambda goal, options: InBand(goal.link, "z", goal.sizes[0], goal.sizes[1], goal.X, goal.at, **options),
    "centre_of_mass": lambda goal, options: CentreOfMass(_position(goal), **options),
}


ADVICE_PATTERN = re.compile(r"; use solver='(?P<name>\w+)'(?P<arguments>.*)$", re.DOTALL)
"""Advice at the end of an error message: a method, and what follows its name."""


OPTION_PATTERN = re.compile(r" with (?P<option>\w+)='(?P<value>\w+)'")
"""Option of the method in an advice."""


OBJECTIVE_PATTERN = re.compile(r"<(?P<kind>\w+)(?: '(?P<name>[^']*)')?[^<>]*>", re.DOTALL)
"""Representation of an objective in an error message."""


@contextmanager
def errors_for_users() -> Generator[None]:
    """Rewrite an `InvalidOperation` that the context raises for users of pages, who set no Python arguments."""
    try:
        yield
    except InvalidOperation as error:
        raise InvalidOperation(rewrite_for_users(str(error))) from error


def rewrite_for_users(text: str) -> str:
    """Return the text of an error with the names of goals and methods that the page shows."""
    text = OBJECTIVE_PATTERN.sub(
        lambda match: f"the goal '{match['name']}'" if match["name"] else "one of the goals", text
    )
    match = ADVICE_PATTERN.search(text)
    if match is None or match["name"] not in METHODS:
        return text
    option = OPTION_PATTERN.match(match["arguments"])
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
        changed_objective = copy(self)
        object.__setattr__(changed_objective, "wxyz", as_quaternion(target, f"rotation of {self.joint!r}"))
        return changed_objective


DRAG_OBJECTIVE = "dragged dof"
"""Name of the objective for the value of a dragged dof."""
DRAG_TOLERANCE = 1e-10
"""Tolerance of a dragged dof, m and rad; a value that the user types must be met to the last digit that is shown."""
PROBLEM_FIELDS = ("goals", "locked_dofs", "solver", "options", "objectives", "terrain", "collision_settings")
"""Fields of an `EditState` that the solver depends on, without limits and rest values."""


@dataclass(frozen=True, slots=True, eq=False)
class Drag:
    """The goal, dof or obstacle that is dragged, and the newest value of a dragged dof.

    Attributes:
        kind: what is dragged; a dragged link is a goal.
        number: number of the goal (`LINK_DRAG_GOAL` for a dragged link), index of the dof, or index of the obstacle at
            the start of the drag.
        carried_from: for each goal that moves with its link, by goal number: the pose of the link in the world at the
            start of the drag, (4, 4).
        values: value of a dragged dof, m or rad; the rotation vector (rad) of a spherical joint.
        obstacle_name: name of a dragged obstacle.
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
        goals: objectives of goals, of the program or scene, and of a dragged dof.
        solver: name of the method.
        lock: names of locked dofs.
        rest: whether rest values are soft objectives.
        options: options of the method.
        adaptation_text: which settings the method does not support; empty: it supports all.
        collision_settings: which collisions are avoided.
        collider: the collider for avoidance; None: nothing is avoided.
    """

    goals: tuple[Objective, ...]
    solver: str
    lock: tuple[str, ...]
    rest: bool
    options: Mapping[str, Any]
    adaptation_text: str = ""
    collision_settings: CollisionSettings = DEFAULT_COLLISION_SETTINGS
    collider: Collider | None = None

    @property
    def avoidance_arguments(self) -> dict[str, Any]:
        """The arguments `avoid` and `clearance` for `LiveSolver` and `Solver`."""
        arguments: dict[str, Any] = {"avoid": self.collider}
        return arguments if self.collider is None else {**arguments, "clearance": self.collision_settings.clearance}

    def format_targets(self, targets: Mapping[str, Any]) -> Any:
        """Return new targets, given by name, in the form that a solver takes.

        A solver with a single objective takes the bare target, since the target of `JointValues` is itself a mapping of
        names. Rest values count as an objective.
        """
        return next(iter(targets.values())) if len(self.goals) == 1 and not self.rest else targets


def make_solve_spec(
    edit_state: EditState, dofs: tuple[IndexedDof, ...], drag: Drag | None, collider: Collider | None = None
) -> SolveSpec:
    """Return the problem of an edit state and a drag.

    While a dof or a link is dragged, the method is "lm", which supports every objective, and goals that move with their
    links are left out.
    """
    carried_goals: Mapping[int, Array] = {} if drag is None else drag.carried_from
    objectives = [
        make_objective(goal, edit_state.terrain)
        for goal in edit_state.goals
        if goal.enabled and goal.number not in carried_goals
    ]
    objectives += edit_state.objectives.values()
    if drag is not None and drag.kind == "dof":
        objectives.append(drag_objective(dofs, drag.number, drag.values))
    is_link_drag = drag is not None and drag.kind == "goal" and drag.number == LINK_DRAG_GOAL
    tracks_drag = is_link_drag or (drag is not None and drag.kind == "dof")
    lock = tuple(dofs[k].name for k in sorted(edit_state.locked_dofs))
    options = {} if tracks_drag else {name: value for name, value in edit_state.options.items() if value is not None}
    rest = any(value is not None for value in edit_state.rest_values)
    solver = "lm" if tracks_drag else edit_state.solver
    return SolveSpec(
        tuple(objectives),
        solver,
        lock,
        rest,
        options,
        collision_settings=edit_state.collision_settings,
        collider=collider,
    )


def drag_objective(
    dofs: tuple[IndexedDof, ...], dof_index: int, values: tuple[float, ...]
) -> JointValues | SphericalJointValue:
    """Return the objective for the value of a dragged dof, at level 1: pinned goals have priority over it.

    For a mimic dof, the objective sets the value of the leader.

    Args:
        dofs: dofs of the model.
        dof_index: index of the dragged dof.
        values: see `Drag.values`; numbers after those of the dof are ignored.
    """
    if dofs[dof_index].is_spherical:
        wxyz = quaternion.exp(values[:3])
        return SphericalJointValue(
            dofs[dof_index].joint,
            wxyz,
            level=1,
            tolerance=DRAG_TOLERANCE,
            angle_tolerance=DRAG_TOLERANCE,
            name=DRAG_OBJECTIVE,
        )
    dof, leader_value = independent_dof_and_value(dofs, dof_index, values[0])
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


def independent_dof_and_value(dofs: tuple[IndexedDof, ...], dof_index: int, value: float) -> tuple[IndexedDof, float]:
    """Return the leader of a mimic dof, and the value of the leader at which the mimic dof has `value`, m or rad.

    For an independent dof, return the dof itself and `value`.

    Raises:
        InvalidOperation: the mimic dof has a ratio of 0.
    """
    dof = dofs[dof_index]
    if dof.leader_index < 0:
        return dof, value
    if dof.ratio == 0.0:
        raise InvalidOperation(
            f"{dof.name} is a mimic joint with a ratio of 0 and cannot be moved; change the ratio in the model"
        )
    return dofs[dof.leader_index], (value - dof.offset) / dof.ratio


def with_spec_targets(spec: SolveSpec, targets: Mapping[str, Any]) -> SolveSpec:
    """Return the problem with new targets, by name."""
    return replace(
        spec, goals=tuple(goal.with_target(targets[goal.name]) if goal.name in targets else goal for goal in spec.goals)
    )


def same_problem(a: EditState, b: EditState) -> bool:
    """Return whether two edit states give the solver the same problem, apart from limits and rest values."""
    return all(getattr(a, name) is getattr(b, name) for name in PROBLEM_FIELDS)


def drag_changes_problem(drag: Drag | None, previous_drag: Drag | None) -> bool:
    """Return whether a change of the drag changes the problem; a dragged goal is an objective like any other."""
    return drag is not previous_drag and any(
        candidate is not None and (candidate.kind == "dof" or candidate.carried_from)
        for candidate in (drag, previous_drag)
    )


FULL_METHOD = "lm"
"""The only method that supports priority levels; it also supports soft objectives and loops."""
LEVEL_WEIGHT_RATIO, MAX_WEIGHT_RATIO = 30.0, 900.0
"""Weight ratio of neighbouring levels, and maximum weight ratio of the first to the last level.

Tuned on all scenes: with a ratio of 30, damped least squares needs no more time to meet all goals than without levels.
If pinned goals conflict with other goals, most of the error remains at the other goals.
"""


def adapt_to_method(spec: SolveSpec, solver: str = "") -> SolveSpec:
    """Return the problem in the form that a method supports.

    For "lm", the objectives do not change. For other methods, weights replace the priority levels of required
    objectives, and a soft objective gets no higher priority than any required one. Soft objectives are left out if the
    method does not support them; if it supports loops and there are no required objectives, "lm" replaces the method
    instead. Other settings that the method does not support stay in the problem, and the method rejects them.

    Args:
        spec: the problem.
        solver: name of the method; default: the method of the problem.
    """
    name = solver or spec.solver
    spec = spec if name == spec.solver else replace(spec, solver=name, options={})
    method = find_method(name)
    if name == FULL_METHOD:
        return spec
    required_goals = [goal for goal in spec.goals if goal.required]
    soft_goals = [goal for goal in spec.goals if not goal.required]
    if not required_goals and method.supports_loops and not method.supports_soft_objectives:
        lm_title = find_method(FULL_METHOD).title
        text = f"{method.title} does not support soft objectives, and there are no other goals: {lm_title} is used"
        return replace(spec, solver=FULL_METHOD, options={}, adaptation_text=text if soft_goals or spec.rest else "")
    levels = sorted({goal.level for goal in required_goals})
    texts: list[str] = []
    if len(levels) > 1:
        ratio = min(LEVEL_WEIGHT_RATIO, MAX_WEIGHT_RATIO ** (1.0 / (len(levels) - 1)))
        factors = {level: ratio**k for k, level in enumerate(reversed(levels))}
        required_goals = [_with_priority(goal, 0, goal.weight * factors[goal.level]) for goal in required_goals]
        texts.append(f"{method.title} does not support priority levels: {_levels_text(levels, ratio)}")
    lowest_level = max((goal.level for goal in required_goals), default=0)
    soft_goals = [
        _with_priority(goal, lowest_level, goal.weight) if goal.level < lowest_level else goal for goal in soft_goals
    ]
    rest = spec.rest
    if not method.supports_soft_objectives and (soft_goals or rest):
        soft_goals, rest = [], False
        texts.append(
            f"{'it' if texts else method.title} does not support rest values or other soft objectives: they are ignored"
        )
    return replace(spec, goals=(*required_goals, *soft_goals), rest=rest, adaptation_text="; ".join(texts))


def _with_priority(objective: Objective, level: int, weight: float) -> Objective:
    changed_objective = copy(objective)
    object.__setattr__(changed_objective, "level", level)
    object.__setattr__(changed_objective, "weight", weight)
    return changed_objective


def _levels_text(levels: list[int], ratio: float) -> str:
    if len(levels) == 2 and levels[0] == 0:
        return f"pins have {ratio:.3g} times the weight of other goals"
    return f"each level has {ratio:.3g} times the weight of the next"


MAX_INTEGER_OPTION, MAX_ITERATIONS, MAX_RESTARTS = 1_000, 10_000, 100
"""Maximum values of integer options, of `max_iterations` and of `restarts`.

The solver checks its time limit only after each iteration, and an iteration with a large population takes long.
"""
MAX_OPTION_VALUES = {"max_iterations": MAX_ITERATIONS, "restarts": MAX_RESTARTS}


def parse_solver_options(solver: str, options: Mapping[str, Value | None]) -> dict[str, Value | None]:
    """Return the validated options of a method; None values are left out.

    Raises:
        UnknownName: there is no such method, or the method has no such option.
        InvalidOperation: the method does not accept these values, or `max_seconds` is set.
        LimitsError: a value is too large.
    """
    method = find_method(solver)
    check_option_names(options, option_names(method))
    option_values = {name: value for name, value in options.items() if value is not None}
    if "max_seconds" in option_values:
        raise InvalidOperation("max_seconds cannot be set: the studio sets the time of each solve")
    for name, value in option_values.items():
        if isinstance(value, float) and value.is_integer() and _is_integer_option(method, name):
            option_values[name] = value = int(value)
        max_value = MAX_OPTION_VALUES.get(name, MAX_INTEGER_OPTION)
        if isinstance(value, int) and not isinstance(value, bool) and value > max_value:
            raise LimitsError(f"{name} can be at most {max_value} in the studio, not {value}")
    try:
        _, common_options = make_method(solver, dict(option_values))
        Options(**common_options)  # type: ignore[arg-type]
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise InvalidOperation(f"{method.title} does not accept these options: {error}") from None
    return dict(option_values)


def _is_integer_option(method: type, name: str) -> bool:
    """Return whether an option is an integer by its annotation; JSON does not distinguish 3.0 from 3."""
    hints: dict[str, str] = {}
    for owner in (Options, *reversed(method.__mro__)):
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


def update_live_solver(live: LiveSolver, spec: SolveSpec, previous_spec: SolveSpec) -> SolveSpec:
    """Set another problem of a live solver, adapted to its method, and return the adapted problem.

    A live solver keeps common options between calls, so options that are no longer given are reset to their defaults.
    """
    adapted_spec = adapt_to_method(spec)
    defaults = {
        name: DEFAULT_OPTIONS[name]
        for name in previous_spec.options
        if name in DEFAULT_OPTIONS and name not in adapted_spec.options
    }
    with errors_for_users():
        live.set(
            goals=adapted_spec.goals,
            solver=adapted_spec.solver,
            lock=adapted_spec.lock,
            rest=adapted_spec.rest,
            **adapted_spec.avoidance_arguments,
            **defaults,
            **adapted_spec.options,
        )
    return adapted_spec


def update_limits_and_solver(
    live: LiveSolver, model: LoadedModel, edit_state: EditState, spec: SolveSpec, previous_spec: SolveSpec
) -> SolveSpec:
    """Write limits and rest values of an edit state to the mechanism, then call `update_live_solver`."""
    with live.edit() as mechanism:
        write_limits_and_rest_values(mechanism, model.index.dofs, edit_state)
        return update_live_solver(live, spec, previous_spec)
