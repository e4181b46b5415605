"""A random case from one number: a mechanism, objectives, the options of a solver, and calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from fuzz_mechanisms import Parts, make_mechanism
from fuzz_objectives import KINDS, SIMPLE_KINDS, FuzzObjective, Setting, random_objective
from fuzz_verification import Verifier

import mechanik as mk

SLOW_METHODS = ("annealing", "evolution", "lbfgsb", "newton", "adam", "momentum")
SOFT_METHODS = ("lm", "dls", "pseudo_inverse", "auto")
TREE_METHODS = ("ccd", "fabrik", "closed_form")
METHOD_OPTIONS: dict[str, dict[str, Callable[[np.random.Generator], Any]]] = {
    "lm": {
        "damping": lambda rng: float(10.0 ** rng.uniform(-4, 1)),
        "svd": lambda rng: True,
        "max_perturbations": lambda rng: int(rng.integers(0, 4)),
        "progress_tolerance": lambda rng: float(10.0 ** rng.uniform(-14, -3)),
    },
    "dls": {"damping": lambda rng: float(10.0 ** rng.uniform(-4, 0)), "svd": lambda rng: True},
    "sdls": {"gamma_max": lambda rng: float(rng.uniform(0.1, 1.5))},
    "chan": {"damping": lambda rng: float(10.0 ** rng.uniform(-3, 0))},
    "sugihara": {"w_n_bar": lambda rng: float(10.0 ** rng.uniform(-6, -1))},
    "pseudo_inverse": {"gamma_max": lambda rng: float(rng.uniform(0.1, 1.5)), "divergence_threshold": lambda rng: 10.0},
    "newton": {"damping": lambda rng: float(10.0 ** rng.uniform(-3, 0))},
    "jacobian_transpose": {"step": lambda rng: float(rng.uniform(0.01, 0.3)), "divergence_threshold": lambda rng: 2.0},
    "gradient_descent": {"step": lambda rng: str(rng.choice(["spectral", "backtracking"]))},
    "momentum": {"nesterov": lambda rng: True},
    "ccd": {"blend": lambda rng: float(rng.uniform(0.3, 1)), "largest_turn": lambda rng: float(rng.uniform(0.1, 1))},
}
"""Options of methods, with functions that draw a value."""
CONFIGURATIONS = 5
"""Number of configurations of a case from which targets are taken; the first is met by all objectives."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a solver.

    Attributes:
        function: "solve", "nearby", "step", "batch", "fresh" (`mk.solve`), or "all".
        targets: argument of the call; for a batch one for each row.
        q0: start, or None.
        options: other arguments; functions and generators are made for each run by `make_options`.
    """

    function: str
    targets: Any
    q0: np.ndarray | None
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RandomGenerator:
    """Stands for a generator with this seed; a call changes its generator, so each run makes its own."""

    seed: int


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Stands for a function `feasible`: whether entry k of q is above or below a value."""

    k: int
    value: float
    above: bool

    def __call__(self, q: np.ndarray) -> bool:
        return bool((q[self.k] > self.value) == self.above)


class Interruption(Exception):
    """Raised by a callback in the middle of a search."""


class StopAfter:
    """A callback that stops a solve after a number of iterations, or interrupts it by an exception."""

    def __init__(self, stop: Stop) -> None:
        self.count, self.raises = stop.count, stop.raises

    def __call__(self, _: object) -> bool:
        self.count -= 1
        if self.count < 0 and self.raises:
            raise Interruption
        return self.count < 0


@dataclass(frozen=True, slots=True)
class Stop:
    """Stands for a `StopAfter`, which counts and is made for each run."""

    count: int
    raises: bool = False


def make_options(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options with their generators and callbacks."""
    made = dict(options)
    for name, value in options.items():
        if isinstance(value, RandomGenerator):
            made[name] = np.random.default_rng(value.seed)
        elif isinstance(value, Stop):
            made[name] = StopAfter(value)
    return made


class FuzzCase:
    """A case: everything about it follows from its seed and from what is left out.

    Args:
        seed: of the case.
        without: names of the parts that are left out.
        joints: largest number of joints of a chain or tree.

    Attributes:
        mechanism, size: the mechanism, and its length unit (m).
        objectives: the objectives, with functions that make targets for them.
        solver_options: arguments of `Solver`.
        calls: the calls, in order.
        is_pickled: whether the solver is pickled before its first call.
        part_names: names of all parts that could be left out.
    """

    def __init__(self, seed: int, without: frozenset[str] = frozenset(), joints: int | None = None) -> None:
        self.seed, self.without, self.joints = seed, without, joints
        parts = self._parts = Parts(seed, without, joints)
        self.kind, self.mechanism, self.size = make_mechanism(parts)
        self.verifier = Verifier(self.mechanism, self.size)
        rng = parts.rng("method")
        self.method = "lm"
        if rng.random() < 0.4 and parts.has("method"):
            self.method = str(rng.choice([*mk.METHODS, "auto"]))
            if self.method in SLOW_METHODS and rng.random() < 0.6:
                self.method = "dls"
        self.is_pickled = rng.random() < 0.05 and parts.has("pickled solver")
        self.has_unsupported_combinations = rng.random() < 0.1 and parts.has("unsupported combinations")
        self._closer: mk.Solver | None = None
        self.configurations = self._random_configurations()
        self.objectives = self._random_objectives()
        self.solver_options = self._random_solver_options() if self.objectives else {}
        self.calls = self._random_calls() if self.objectives else []

    def make_solver(self) -> mk.Solver:
        """Return a new solver of the case."""
        return mk.Solver(
            self.mechanism, [item.objective for item in self.objectives], solver=self.method, **self.solver_options
        )

    def run(self, solver: mk.Solver, call: Call) -> Any:
        """Run a call; returns its `Solution`, `BatchResult` or `SolutionSet`."""
        options = make_options(call.options)
        match call.function:
            case "solve":
                return solver.solve(call.targets, call.q0, **options)
            case "nearby":
                return solver.solve_nearby(options.pop("max_deviation"), call.targets, call.q0, **options)
            case "step":
                return solver.step(call.targets, call.q0, **options)
            case "batch":
                return solver.solve_batch(call.targets, call.q0, threads=1, **options)
            case "all":
                return solver.solve_all(call.targets, q0=call.q0, **options)
            case _:
                objectives = [item.objective for item in self.objectives]
                return mk.solve(
                    self.mechanism, objectives, call.q0, solver=self.method, **{**self.solver_options, **options}
                )

    @property
    def part_names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self._parts.names))

    def describe(self) -> str:
        """Return the case in words."""
        dofs = {name: "+".join(dof.name for dof in joint.dof) for name, joint in self.mechanism.joints.items()}
        joints = ", ".join(f"{name} {names or 'fixed'}" for name, names in dofs.items())
        lines = [f"{self.kind} of size {self.size:.3g} m, joints: {joints}"]
        lines += [f"  closed by {name}" for name in self.mechanism.closures]
        lines += [
            f"  objective {item.objective!r} level {item.objective.level}, weight {item.objective.weight:.3g}, "
            f"tolerances {item.objective.tolerance:.3g} m and {item.objective.angle_tolerance:.3g} rad, "
            f"required {item.objective.required}"
            for item in self.objectives
        ]
        lines.append(f"  Solver(solver={self.method!r}, **{self.solver_options!r})")
        lines += [
            f"  call {k}: {call.function}(targets={call.targets!r}, q0={call.q0!r}, **{call.options!r})"
            for k, call in enumerate(self.calls)
        ]
        return "\n".join(lines)

    # ---- configurations ---------------------------------------------------------------------

    def _random_configurations(self) -> np.ndarray:
        """Return configurations (CONFIGURATIONS, nq) inside the limits, with loops closed and constraints met."""
        rng, mechanism = self._parts.rng("configurations"), self.mechanism
        q = mechanism.random(rng, CONFIGURATIONS)
        if not self._is_constrained():
            return q
        home = mechanism.q
        self._closer = mk.Solver(mechanism, mk.RestPose(home), restarts=2)
        for k in range(CONFIGURATIONS):
            reach = 1.0 if not mechanism.closures else 0.4
            start = mechanism.clamp(mechanism.integrate(home, reach * mechanism.difference(home, q[k])))
            closed = self._closer.solve(start, q0=start).q
            q[k] = closed if self._is_closed(closed) else home
        return q

    def _is_constrained(self) -> bool:
        mechanism = self.mechanism
        has_cones = any(joint.cone is not None for joint in mechanism.joints.values())
        return bool(mechanism.closures or mechanism.joint_constraints) or has_cones

    def _is_closed(self, q: np.ndarray) -> bool:
        poses = self.verifier.numpy_poses.poses(q[None])
        return bool(self.verifier.open_by(q[None], poses)[0][0] < 1.0)

    # ---- objectives and options -------------------------------------------------------------

    def _random_objectives(self) -> list[FuzzObjective]:
        parts, rng = self._parts, self._parts.rng("objectives")
        if not self.mechanism.nv:
            return []
        max_level = int(rng.integers(1, 4)) if rng.random() < 0.35 else 1
        has_soft = self.method in SOFT_METHODS
        if not has_soft and not self.has_unsupported_combinations:
            max_level = 1
        if self.method in ("dls", "pseudo_inverse") and not self.has_unsupported_combinations:
            max_level = 1
        count = (
            1 if rng.random() < 0.45 else int(rng.integers(2, 5)) if rng.random() < 0.9 else int(rng.integers(5, 12))
        )
        kinds: tuple[str, ...] = KINDS
        if not self.has_unsupported_combinations and (self.method == "closed_form" or (self.method == "fabrik")):
            count, kinds = 1, SIMPLE_KINDS
        setting = Setting(
            self.mechanism, self.verifier.numpy_poses, self.configurations[0], self.size, max_level, has_soft
        )
        objectives = []
        for k in range(count):
            rng = parts.rng(f"objective {k}")
            item = random_objective(rng, setting, str(kinds[rng.integers(len(kinds))]), f"goal {k}")
            if item is not None and parts.has(f"objective {k}"):
                objectives.append(item)
        return objectives

    def _random_solver_options(self) -> dict[str, Any]:
        parts, mechanism, options = self._parts, self.mechanism, {}
        names = _scalar_names(mechanism)
        rng = parts.rng("solver options")

        def add(name: str, share: float, value: Any) -> None:
            if rng.random() < share and value is not None and parts.has(f"solver {name}"):
                options[name] = value

        joints = [name for name, joint in mechanism.joints.items() if joint.dof and not joint.is_closure]
        add("restarts", 0.25, int(rng.integers(0, 6)))
        add("max_iterations", 0.15, int(rng.integers(0, 60)))
        add("lock", 0.1, _random_names(rng, joints))
        add("active", 0.05, [name for name in joints if rng.random() < 0.8] or None)
        add("limits", 0.12, self._random_limits(rng, names))
        add("weights", 0.1, {name: float(10 ** rng.uniform(-1, 1)) for name in names[:3]} or None)
        if self.method in SOFT_METHODS:
            add("rest", 0.15, mechanism.random(rng))
            add("rest_factor", 0.1, float(rng.random()))
        add("smallest_step", 0.05, float(10 ** rng.uniform(-9, -4)))
        add("position_weight", 0.05, float(10 ** rng.uniform(-1, 1)))
        add("rotation_weight", 0.05, float(10 ** rng.uniform(-1, 1)))
        if self.kind == "gallery arm" and self.method == "lm":
            has_shapes = sum(bool(link.collisions) for link in mechanism.links.values()) > 1
            avoid = "self" if rng.random() < 0.5 else ["self", _random_obstacle(rng)]
            add("avoid", 0.1, avoid if has_shapes else None)
        for name, value in METHOD_OPTIONS.get(self.method, {}).items():
            add(name, 0.1, value(rng))
        if self.method in ("annealing", "evolution"):
            options.pop("restarts", None)
            options["max_iterations"] = int(rng.integers(1, 30))
        return options

    def _random_limits(self, rng: np.random.Generator, names: list[str]) -> dict[str, tuple[float, float]] | None:
        """Return limits of one or two dofs around the first configuration."""
        if not names:
            return None
        limits = {}
        for name in rng.choice(names, min(len(names), int(rng.integers(1, 3))), replace=False).tolist():
            ((joint, dof, _, _),) = self.verifier.named_limits({name: (0.0, 0.0)})
            value = float(self.verifier.numpy_poses.value(joint, dof, self.configurations[:1])[0])
            unit = 1.0 if dof.is_rotation else self.size
            limits[name] = (value - rng.uniform(0.01, 1.5) * unit, value + rng.uniform(0.01, 1.5) * unit)
        return limits

    # ---- calls ------------------------------------------------------------------------------

    def _random_calls(self) -> list[Call]:
        parts, rng = self._parts, self._parts.rng("calls")
        is_slow = self.method in (*SLOW_METHODS, "jacobian_transpose", "gradient_descent") or any(
            item.kind in ("clearance", "manipulability", "custom", "custom band") for item in self.objectives
        )
        count = int(rng.integers(2, 6) if is_slow or "avoid" in self.solver_options else rng.integers(5, 21))
        calls = []
        for k in range(count):
            if parts.has(f"call {k}"):
                calls.append(self._random_call(parts.rng(f"call {k}"), f"call {k}", is_slow))
        return calls

    def _random_call(self, rng: np.random.Generator, name: str, is_slow: bool) -> Call:
        function = str(
            rng.choice(["solve", "nearby", "step", "batch", "fresh", "all"], p=[0.72, 0.07, 0.05, 0.12, 0.03, 0.01])
        )
        if function == "all" and (len(self.objectives) > 1 or is_slow):
            function = "solve"
        goal_q = self.configurations[0 if rng.random() < 0.4 else rng.integers(CONFIGURATIONS)]
        options: dict[str, Any] = {}
        if function == "batch":
            return self._random_batch(rng, name, is_slow)
        start = self._random_start(rng, goal_q)
        targets = None
        if function != "fresh" and (rng.random() < 0.85 or not self._parts.has(f"{name} targets")):
            targets = self._random_targets(self._parts.rng(f"{name} targets"), goal_q)
        if function != "all":
            options = self._random_call_options(self._parts.rng(f"{name} options"), name, function, is_slow)
        else:
            options = {"max_attempts": 20, "limit": 4}
        call = Call(function, targets, start, options)
        rng = self._parts.rng(f"{name} invalid argument")
        if rng.random() < 0.04 and self._parts.has(f"{name} invalid argument"):
            return self._with_invalid_argument(rng, call)
        return call

    def _with_invalid_argument(self, rng: np.random.Generator, call: Call) -> Call:
        """Return the call with an argument that it should reject."""
        nq, name = self.mechanism.nq, str(rng.choice(_scalar_names(self.mechanism) or ["nothing"]))
        draw = int(rng.integers(12))
        if draw < 3:
            return replace(call, q0=(np.zeros(nq + 1), np.full(nq, np.nan), np.full((1, nq), 0.1))[draw])
        if draw < 6 and call.function != "fresh":
            return replace(call, targets=(np.zeros(5), np.full(3, np.nan), "left")[draw - 3])
        invalid_options: tuple[dict[str, Any], ...] = (
            {"lock": "nothing"}, {"limits": {name: (1.0, -1.0)}}, {"rng": 3}, {"steps": 3}, {"max_iterations": -1},
            {"restarts": 1.5}, {"feasible": 3}, {"callback": "stop"}, {"max_seconds": "soon"}, {"max_iterations": 20.0},
        )  # fmt: skip
        invalid = invalid_options[rng.integers(3 if call.function == "all" else len(invalid_options))]
        return replace(call, options={**call.options, **invalid})

    def _random_start(self, rng: np.random.Generator, goal_q: np.ndarray) -> np.ndarray | None:
        mechanism, draw = self.mechanism, rng.random()
        units = np.where(mechanism.space.rotates, 1.0, self.size)
        if draw < 0.12:
            return None
        if draw < 0.45:
            return mechanism.random(rng)
        if draw < 0.55:
            return mechanism.integrate(mechanism.random(rng), rng.standard_normal(mechanism.nv) * units)
        if draw < 0.65:
            return self.configurations[rng.integers(CONFIGURATIONS)].copy()
        distance = 10.0 ** rng.uniform(-9, -0.5)
        return mechanism.clamp(mechanism.integrate(goal_q, rng.standard_normal(mechanism.nv) * units * distance))

    def _random_targets(self, rng: np.random.Generator, goal_q: np.ndarray) -> Any:
        """Return targets in one of the forms that a call takes: of all objectives, by name, or of the only one."""
        far = (0.0, 0.0, 0.0, 1e-3, 0.3, 3.0)[rng.integers(6)]
        targets = [
            None if item.target is None else _special(rng, _moved(rng, item.target(goal_q), far, self.size))
            for item in self.objectives
        ]
        if "rest" in self.solver_options:
            targets.append(None)
        if len(targets) == 1:
            return targets[0]
        if rng.random() < 0.02:
            targets[rng.integers(len(targets))] = {}
        names = [item.objective.name for item in self.objectives]
        if rng.random() < 0.3 and all(names) and "rest" not in self.solver_options:
            return {name: target for name, target in zip(names, targets, strict=True) if target is not None}
        return targets

    def _random_call_options(self, rng, name: str, function: str, is_slow: bool) -> dict[str, Any]:
        parts, mechanism, options = self._parts, self.mechanism, {}
        names = _scalar_names(mechanism)
        joints = [joint_name for joint_name, joint in mechanism.joints.items() if joint.dof and not joint.is_closure]

        def add(option: str, share: float, value: Any) -> None:
            if rng.random() < share and value is not None and parts.has(f"{name} {option}"):
                options[option] = value

        if function in ("solve", "nearby", "fresh"):
            add("max_iterations", 0.15, int(rng.integers(0, 30)))
            add("restarts", 0.15, int(rng.integers(0, 4)))
            add("smallest_step", 0.03, 1e-8)
            add("max_seconds", 0.02, float(10.0 ** rng.uniform(-6, -2)))
            if self.method == "lm":
                add("svd", 0.03, True)
                add("largest_error", 0.03, float(10 ** rng.uniform(-2, 1)) * self.size)
        if function == "nearby":
            options["max_deviation"] = float(10.0 ** rng.uniform(-3, 1))
        if function in ("solve", "fresh"):
            if function == "solve":
                add("lock", 0.08, _random_names(rng, joints))
                add("limits", 0.08, self._random_limits(rng, names))
                add("nearest", 0.01 if not is_slow and len(self.objectives) == 1 else 0.0, True)
            add("rng", 0.1, RandomGenerator(int(rng.integers(1000))))
            k = int(rng.integers(mechanism.nq))
            add("feasible", 0.05, Acceptance(k, float(self.configurations[0][k]), bool(rng.integers(2))))
            add("history", 0.05, True)
            add("callback", 0.06, Stop(int(rng.integers(0, 30)), rng.random() < 0.3))
        if self.method in ("annealing", "evolution"):
            options.pop("restarts", None)
            if "max_iterations" not in self.solver_options:
                options["max_iterations"] = 10
        return options

    def _random_batch(self, rng, name: str, is_slow: bool) -> Call:
        count = int(rng.integers(1, 4)) if is_slow else int(rng.integers(1, 80))
        goals = self.configurations[rng.integers(CONFIGURATIONS, size=count)]
        if not self._is_constrained():
            goals = self.mechanism.random(rng, count)
        columns = []
        for item in self.objectives:
            if item.target is None or item.kind in ("joint values", "rest pose", "support"):
                columns.append(None)
                continue
            rows = [_moved(rng, item.target(q), (0.0, 0.0, 1e-3, 0.5)[rng.integers(4)], self.size) for q in goals]
            is_plain = all(isinstance(row, np.ndarray | float) and np.shape(row) == np.shape(rows[0]) for row in rows)
            columns.append(np.array(rows) if is_plain else rows)
        starts: np.ndarray | None = self.mechanism.random(rng, count)
        draw = rng.random()
        if draw < 0.3 and any(column is not None for column in columns):
            starts = None if draw < 0.15 else starts[0]
        has_chunk = rng.random() < 0.2 and self._parts.has(f"{name} chunk")
        options = {"chunk": int(rng.integers(1, 40))} if has_chunk else {}
        if "rest" in self.solver_options:
            columns.append(None)
        arrays = [array for array in (*columns, starts) if isinstance(array, np.ndarray) and len(array) == count]
        rng = self._parts.rng(f"{name} invalid row")
        if arrays and rng.random() < 0.1 and self._parts.has(f"{name} invalid row"):
            arrays[rng.integers(len(arrays))][rng.integers(count)] = np.nan
        targets = columns[0] if len(columns) == 1 else columns
        if all(column is None for column in columns):
            targets = None
        return Call("batch", targets, starts, options)


def _scalar_names(mechanism: mk.Mechanism) -> list[str]:
    """Return the names of all scalar dofs that may have limits, mimic dofs included."""
    names = []
    for name, joint in mechanism.joints.items():
        if joint.is_closure or not joint.children:
            continue
        scalars = [dof for dof in joint.dof if not (joint.has_quaternion and dof.is_rotation)]
        if joint.couplings and len(joint.dof) > 1:
            continue
        names += [name if len(joint.dof) == 1 else f"{name}.{dof.name}" for dof in scalars]
    return names


def _random_names(rng: np.random.Generator, names: list[str]) -> str | list[str] | None:
    """Return one name or a list of two; None if there are none."""
    if not names:
        return None
    if rng.random() < 0.7:
        return names[rng.integers(len(names))]
    return rng.choice(names, min(len(names), 2), replace=False).tolist()


def _random_obstacle(rng: np.random.Generator) -> mk.Obstacle:
    return mk.Obstacle(mk.Sphere(rng.uniform(0.02, 0.1)), rng.uniform(-0.6, 0.6, 3), name="ball")


def _special(rng: np.random.Generator, target: Any) -> Any:
    """Return a target, sometimes with a value at which other dofs or other rows matter: along an axis, or zero."""
    draw = rng.random()
    if draw > 0.04:
        return target
    if isinstance(target, np.ndarray) and target.shape == (3,) and abs(np.linalg.norm(target) - 1.0) < 1e-12:
        return np.eye(3)[rng.integers(3)]
    return 0.0 if isinstance(target, float) else target


def _moved(rng: np.random.Generator, target: Any, far: float, size: float) -> Any:
    """Return a target moved by about `far`, relative to the size of the mechanism."""
    if not far:
        return target
    if isinstance(target, mk.Pose):
        return mk.Pose.from_matrix(_moved(rng, target.matrix, far, size))
    if isinstance(target, np.ndarray) and target.shape == (4, 4):
        moved = target.copy()
        moved[:3, 3] += rng.standard_normal(3) * far * size
        return moved
    if isinstance(target, np.ndarray) and target.shape == (3,) and abs(np.linalg.norm(target) - 1.0) > 1e-12:
        return target + rng.standard_normal(3) * far * size
    if isinstance(target, float):
        return abs(target + float(rng.standard_normal()) * far * size)
    return target
