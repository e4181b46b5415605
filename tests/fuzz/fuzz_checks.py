"""Runs all calls of a case and verifies the answers; whatever is wrong is a `Fault`."""

from __future__ import annotations

import pickle
import traceback
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from fuzz_cases import Acceptance, Call, FuzzCase, Interruption
from fuzz_verification import LIMIT_TOLERANCE

import mechanik as mk
from mechanik.errors import MechanikError
from mechanik.objectives.clearance import CLEARANCE_TOLERANCE
from mechanik.solver.batch import Interrupted

WRONG_SUCCESS = "wrong success"
FALSE_FAILURE = "false failure"
NOT_REACHED = "near start not reached"
LIMIT_BROKEN = "limit broken"
LOCKED_MOVED = "locked dof moved"
RAW_EXCEPTION = "raw exception"
CHANGED_INPUT = "changed input"
NOT_FINITE = "not finite"
WRONG_REPORT = "wrong report"
CATEGORIES = (
    WRONG_SUCCESS, FALSE_FAILURE, NOT_REACHED, LIMIT_BROKEN, LOCKED_MOVED, RAW_EXCEPTION, CHANGED_INPUT, NOT_FINITE,
    WRONG_REPORT,
)  # fmt: skip
"""What can be wrong:

- wrong success: success although a required objective is not met, a loop is open, a joint constraint or cone does not
  hold, `feasible` rejects q, or a pair is in collision.
- false failure: no success although all of these hold.
- near start not reached: no success from a start at most NEAR from a configuration that meets everything, with default
  options of the default method.
- limit broken: a dof is outside its limits and has moved, or is farther from the start than the call allows.
- locked dof moved: a dof that the solver or the call locks is not where it was.
- raw exception: an exception that is not a `MechanikError`, or a warning of NumPy.
- changed input: an argument, or the configuration of the mechanism, is not what it was before.
- not finite: q is not finite, or a quaternion has another length than 1.
- wrong report: the status contradicts the configuration, or errors in the result are not those at q.
"""
NEAR = 1e-3
"""rad, or m relative to the size of the mechanism: the largest distance of a near start, in each dof."""
HARMLESS_OPTIONS = frozenset({"weights", "position_weight", "rotation_weight", "restarts", "history", "rng"})
"""Options with which a near start must lead to success."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault in the answer of a call.

    Attributes:
        category: one of CATEGORIES.
        detail: in words.
        call: index of the call in the case as it was drawn; -1: the solver could not be made.
    """

    category: str
    detail: str
    call: int = -1


@dataclass(slots=True)
class Tally:
    """Counts of a case or of many, and the faults found.

    Attributes:
        counts: solves by kind of mechanism, objective, method, function and outcome, as "method lm"; "solves" is their
            number. "rejected ..." counts errors that say that a combination is not supported.
        faults: faults, each with the seed of its case.
    """

    counts: Counter[str] = field(default_factory=Counter)
    faults: list[tuple[int, Fault]] = field(default_factory=list)

    def add(self, tally: Tally) -> None:
        self.counts.update(tally.counts)
        self.faults += tally.faults


def check_case(case: FuzzCase) -> Tally:
    """Run a case and verify all answers."""
    tally = Tally()

    def add_fault(category: str, detail: str, call: int = -1) -> None:
        tally.faults.append((case.seed, Fault(category, detail, call)))

    if not case.objectives:
        return tally
    before = pickle.dumps((case.solver_options, case.mechanism.q))
    try:
        solver = case.make_solver()
        if case.is_pickled:
            solver = pickle.loads(pickle.dumps(solver))
    except MechanikError as error:
        tally.counts[f"rejected solver: {type(error).__name__}"] += 1
        return tally
    except Exception:
        add_fault(RAW_EXCEPTION, traceback.format_exc())
        return tally
    for k, call in enumerate(case.calls):
        arguments = pickle.dumps((call, case.mechanism.q))
        try:
            answer = case.run(solver, call)
        except MechanikError as error:
            tally.counts[f"rejected call: {type(error).__name__}"] += 1
            continue
        except Interruption:
            tally.counts["interrupted call"] += 1
            continue
        except (Exception, Interrupted):
            add_fault(RAW_EXCEPTION, traceback.format_exc(), k)
            continue
        if pickle.dumps((call, case.mechanism.q)) != arguments:
            add_fault(CHANGED_INPUT, "an argument of the call, or the configuration of the mechanism", k)
        check = _AnswerCheck(case, solver, call, answer)
        for category, detail in check.faults():
            add_fault(category, detail, k)
        if check.is_reachable(np.inf):
            tally.counts["reachable with default options"] += 1
            tally.counts["reachable with default options, not reached"] += not answer.success
        _count(tally, case, call, answer)
    if pickle.dumps((case.solver_options, case.mechanism.q)) != before:
        add_fault(CHANGED_INPUT, "an argument of the solver, or the configuration of the mechanism")
    return tally


def _count(tally: Tally, case: FuzzCase, call: Call, answer: Any) -> None:
    count = _row_count(answer)
    tally.counts["solves"] += count
    for label in (f"mechanism {case.kind}", f"method {case.method}", f"call {call.function}"):
        tally.counts[label] += count
    for label in {f"objective {item.kind}" for item in case.objectives} | {f"option {name}" for name in call.options}:
        tally.counts[label] += count
    tally.counts["successes"] += count if call.function == "all" else int(np.sum(answer.success))


def _row_count(answer: Any) -> int:
    return len(answer.q) if answer.q.ndim == 2 else 1


class _AnswerCheck:
    """Verifies the answer of one call, all rows of a batch at once."""

    def __init__(self, case: FuzzCase, solver: mk.Solver, call: Call, answer: Any) -> None:
        self.case, self.solver, self.call, self.answer = case, solver, call, answer
        self.q = np.atleast_2d(np.asarray(answer.q))
        self.success = np.atleast_1d(np.ones(len(self.q), dtype=bool) if call.function == "all" else answer.success)
        self.limits = {**case.solver_options.get("limits", {}), **call.options.get("limits", {})}

    def faults(self) -> list[tuple[str, str]]:
        """Return the category and description of each fault."""
        if not self.q.size:
            return []
        if not np.isfinite(self.q).all():
            return [(NOT_FINITE, f"q = {self.q.tolist()}")]
        for k in self.case.mechanism.space.quaternions_q:
            length = np.linalg.norm(self.q[:, k : k + 4], axis=1)
            if (np.abs(length - 1.0) > 1e-9).any():
                return [(NOT_FINITE, f"quaternions of length {length.tolist()}")]
        poses = self.case.verifier.numpy_poses.poses(self.q)
        self.open_by, self.open_label = self.case.verifier.open_by(self.q, poses)
        self.unmet = self._unmet(poses)
        self.starts = self._starts()
        self.excess = self.case.verifier.limit_excess(self.q, self.limits)
        return [*self._limit_faults(), *self._lock_faults(), *self._success_faults(), *self._report_faults(poses)]

    def _objectives(self, row: int) -> tuple[mk.Objective, ...]:
        """Return the objectives with the targets of a row, by `with_target`."""
        objectives = [item.objective for item in self.case.objectives]
        targets = self.call.targets
        if targets is None:
            return tuple(objectives)
        if isinstance(targets, dict) and (not targets or {item.name for item in objectives} & set(targets)):
            targets = [targets.get(item.name) for item in objectives]
        elif len(objectives) == 1 and "rest" not in self.case.solver_options:
            targets = [targets]
        if self.call.function == "batch":
            targets = [None if column is None else column[row] for column in targets]
        return tuple(
            item if target is None else item.with_target(target)
            for item, target in zip(objectives, targets, strict=False)
        )

    def _unmet(self, poses: dict[str, np.ndarray]) -> np.ndarray:
        if self.call.function != "batch":
            return self.case.verifier.unmet(self._objectives(0), self.q, poses)
        rows = []
        for k in range(len(self.q)):
            row_poses = {name: X[k : k + 1] for name, X in poses.items()}
            try:
                objectives = self._objectives(k)
            except MechanikError:  # the target of the row is not valid
                rows.append(np.inf)
                continue
            rows.append(self.case.verifier.unmet(objectives, self.q[k : k + 1], row_poses)[0])
        return np.array(rows)

    def _starts(self) -> np.ndarray | None:
        """Return the starts of all rows, (N, nq); None for calls that choose them."""
        q0 = self.call.q0
        if q0 is None or not np.isfinite(q0).all():
            return None
        starts = np.broadcast_to(np.asarray(q0), self.q.shape).copy()
        for k in self.case.mechanism.space.quaternions_q:
            starts[:, k : k + 4] /= np.linalg.norm(starts[:, k : k + 4], axis=1, keepdims=True)
        return starts

    # ---- limits and locks -------------------------------------------------------------------

    def _movable(self) -> np.ndarray:
        """Return the mask (nq,) of entries of q that neither the solver nor the call locks."""
        return ~self._locked_mask()

    def _locked_mask(self) -> np.ndarray:
        mechanism = self.case.mechanism
        locked = np.zeros(mechanism.nq, dtype=bool)
        for name in (self.case.solver_options.get("lock"), self.call.options.get("lock")):
            for joint_name in [name] if isinstance(name, str) else name or []:
                locked |= self._mask_of(joint_name)
        active = self.case.solver_options.get("active")
        if active is not None:
            locked |= ~np.any([self._mask_of(name) for name in active], axis=0)
        return locked

    def _mask_of(self, name: str) -> np.ndarray:
        """Return the mask (nq,) of the entries of a joint; of its leaders for a mimic joint."""
        mechanism, numpy_poses = self.case.mechanism, self.case.verifier.numpy_poses
        mask, joint = np.zeros(mechanism.nq, dtype=bool), mechanism.joints[name]
        if not joint.children:
            return mask
        for dof in joint.dof:
            if joint.has_quaternion and dof.is_rotation:
                k = numpy_poses.quaternion_column(joint)
                mask[k : k + 4] = True
                continue
            coupling = next((item for item in joint.couplings if item.dof is dof), None)
            leader, leader_dof = (joint, dof) if coupling is None else coupling.resolve()[:2]
            mask[numpy_poses.column(leader, leader_dof)] = True
        return mask

    def _limit_faults(self) -> list[tuple[str, str]]:
        faults = []
        has_moved = np.ones(self.q.shape, dtype=bool) if self.starts is None else self.q != self.starts
        broken = (self.excess > LIMIT_TOLERANCE) & has_moved & self._movable()
        if self.starts is None:  # a dof may stay outside its limits where the mechanism or the row of a batch is
            broken &= self.q != self.case.mechanism.q
            if self.call.q0 is not None:
                broken &= self.q != self.call.q0
        if broken.any():
            row, column = np.argwhere(broken)[0]
            name = self.case.mechanism.space.q_names[column]
            faults.append((LIMIT_BROKEN, f"row {row}: {name} by {self.excess[row, column]:.3g}"))
        deviation = self.call.options.get("max_deviation")
        if deviation is not None and self.starts is not None:
            clamped = np.clip(self.starts, *self._bounds())
            moved = np.abs(self.q - clamped)
            for k in self.case.mechanism.space.quaternions_q:
                moved[:, k : k + 4] = 0.0
            moved[:, self._locked_mask()] = 0.0
            moved[self.q == self.starts] = 0.0
            if moved.max() > deviation + LIMIT_TOLERANCE:
                faults.append((LIMIT_BROKEN, f"{moved.max():.6g} from the start, allowed are {deviation:.6g}"))
        return faults

    def _bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the limits of q, (nq,) each."""
        from mechanik.solver.options import as_bounds

        return as_bounds(self.case.mechanism, self.limits or None)

    def _lock_faults(self) -> list[tuple[str, str]]:
        if self.starts is None and self.call.q0 is not None:
            return []  # some rows have no start
        reference = np.broadcast_to(self.case.mechanism.q, self.q.shape) if self.starts is None else self.starts
        moved = (np.abs(self.q - reference) > 1e-15) & self._locked_mask()
        if not moved.any():
            return []
        row, column = np.argwhere(moved)[0]
        distance = abs(self.q[row, column] - reference[row, column])
        return [(LOCKED_MOVED, f"row {row}: {self.case.mechanism.space.q_names[column]} by {distance:.3g}")]

    # ---- success ----------------------------------------------------------------------------

    def _success_faults(self) -> list[tuple[str, str]]:
        faults = []
        accepts = self.call.options.get("feasible")
        is_accepted = np.array([not isinstance(accepts, Acceptance) or accepts(row) for row in self.q])
        is_free = self._is_free()
        is_wrong = self.success & ((self.unmet > 1.0) | (self.open_by > 1.0) | ~is_accepted | ~is_free)
        if is_wrong.any():
            row = int(np.argmax(is_wrong))
            faults.append((WRONG_SUCCESS, self._state(row, is_accepted[row], is_free[row])))
        inside = (self.excess[:, self._movable()] < LIMIT_TOLERANCE).all(axis=1)
        is_met = (self.unmet < 1.0) & (self.open_by < 1.0) & is_accepted & is_free & inside & self._has_valid_start()
        if (is_met & ~self.success).any():
            row = int(np.argmax(is_met & ~self.success))
            faults.append((FALSE_FAILURE, f"{self._state(row, True, True)}; {self._status(row)}"))
        elif not self.success.all() and self.is_reachable(NEAR):
            faults.append((NOT_REACHED, f"{self._state(0, True, True)}; {self._status(0)}"))
        return faults

    def _has_valid_start(self) -> np.ndarray:
        """Return the mask (N,) of rows whose start is finite."""
        if self.call.q0 is None:
            return np.ones(len(self.q), dtype=bool)
        return np.broadcast_to(np.isfinite(self.call.q0).all(axis=-1), (len(self.q),))

    def _state(self, row: int, is_accepted: bool, is_free: bool) -> str:
        return (
            f"row {row}: worst objective at {self.unmet[row]:.4g} of its tolerance, loops at {self.open_by[row]:.4g} "
            f"of theirs {self.open_label}, limits exceeded by {self.excess[row].max(initial=0.0):.3g}, "
            f"accepted {is_accepted}, free {is_free}"
        )

    def _status(self, row: int) -> str:
        if self.call.function == "batch":
            return f"status {self.answer.status[row]}"
        return f"{self.answer.status!r}: {self.answer.message}"

    def _is_free(self) -> np.ndarray:
        if "avoid" not in self.case.solver_options:
            return np.ones(len(self.q), dtype=bool)
        return (
            np.atleast_1d(mk.Collider(self.case.mechanism, self.case.solver_options["avoid"]).distance(self.q))
            >= -2 * CLEARANCE_TOLERANCE
        )

    def is_reachable(self, max_distance: float) -> bool:
        """Return whether a configuration of the case meets everything, and the call has default options.

        Args:
            max_distance: largest distance of the start from this configuration in each dof, as NEAR; infinite: any.
        """
        case, call = self.case, self.call
        if call.function != "solve" or case.method != "lm" or (call.q0 is None and max_distance < np.inf):
            return False
        if (set(case.solver_options) | set(call.options)) - HARMLESS_OPTIONS:
            return False
        objectives = self._objectives(0)
        required = [item.level for item in objectives if item.required]
        if any(not item.required and item.level < max(required, default=0) for item in objectives):
            return False
        mechanism = case.mechanism
        units = np.where(mechanism.space.rotates, 1.0, case.size)
        start = mechanism.q if call.q0 is None else call.q0
        distances = np.abs(mechanism.difference(case.configurations, start) / units).max(axis=1)
        for k in np.flatnonzero(distances <= max_distance):
            q = case.configurations[k : k + 1]
            poses = case.verifier.numpy_poses.poses(q)
            if case.verifier.unmet(objectives, q, poses)[0] < 0.5 and case.verifier.open_by(q, poses)[0][0] < 1.0:
                return True
        return False

    # ---- reports ----------------------------------------------------------------------------

    def _report_faults(self, poses: dict[str, np.ndarray]) -> list[tuple[str, str]]:
        if self.call.function == "all":
            return []
        if self.call.function == "batch":
            return self._batch_error_faults(poses)
        status = self.answer.status
        if status is mk.Status.NOT_CLOSED and self.open_by[0] < 0.5:
            return [(WRONG_REPORT, f"NOT_CLOSED, but loops are at {self.open_by[0]:.3g} of their tolerance")]
        is_rejected = "feasible" in self.call.options
        if self.answer.success != (status is mk.Status.CONVERGED) and not is_rejected:
            return [(WRONG_REPORT, f"success is {self.answer.success}, but the status is {status!r}")]
        str(self.answer)  # the message names everything that is wrong
        return []

    def _batch_error_faults(self, poses: dict[str, np.ndarray]) -> list[tuple[str, str]]:
        row = len(self.q) - 1
        if not (self._has_valid_start()[row] and np.isfinite(self.unmet[row])):
            return []  # rows with an invalid target or start have no errors
        row_poses = {name: X[row:] for name, X in poses.items()}
        for k, objective in enumerate(self._objectives(row)):
            if isinstance(objective, mk.JointValues | mk.RestPose):
                continue  # angles are nearest to the start
            errors = np.ravel(self.case.verifier.errors(objective, self.q[row:], row_poses))
            allowed = np.ravel(self.case.verifier.rounding(objective, row_poses)) + 1e-8 * max(self.case.size, 1.0)
            if (np.abs(self.answer.errors[row, k] - errors) > allowed + 1e-6 * errors).any():
                reported = self.answer.errors[row, k].tolist()
                return [(WRONG_REPORT, f"row {row}: errors of objective {k} {reported}, at q {errors.tolist()}")]
        return []
