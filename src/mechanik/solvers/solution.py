"""The answer of a solver, with its reasons."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from mechanik.errors import NotSolved
from mechanik.kernels.solver_state import (
    ATTEMPTS_OUT,
    BROUGHT_IN,
    ITERATIONS_OUT,
    STAGE_COST,
    STAGE_NUMBERS,
    STAGES_OUT,
    STATUS,
    SUCCESS,
)
from mechanik.mechanism import Mechanism
from mechanik.mechanism.door import counted
from mechanik.mechanism.motions import motions
from mechanik.objectives import Error, Objective
from mechanik.solvers.status import BY_CODE, ChainReport, Status
from mechanik.spatial.array import Array

if TYPE_CHECKING:
    from mechanik.collision import Clash
    from mechanik.solvers.prepared import Prepared
    from mechanik.solvers.singular import Singular

AT_LIMIT = 1e-9
AT_EDGE = 1e-8
"""Rad, and m; an axis so near to the edge of its cone, or a closing joint so near to its limit, stands there."""
KEPT = 1e-9
"""A law is kept if it is off by no more than this share of its scale."""


class Solution:
    """What a solve came to. Most of it is worked out only when it is asked for.

    Attributes:
        q: (nq,) the configuration.
        seconds: from the call to the answer.
        history: the error after each iteration, if it was asked for: root of the sum of squares of the level that was
            worked on, weighted, lengths in sizes of the mechanism.
        clashes: what bumps, or comes nearer than the clearance, of all that was to be avoided; the deepest first.
        in_the_way: where nothing clashes and goals are not met: what stands just as near as it may.
    """

    __slots__ = (
        "_asked", "_bounds", "_part_seconds", "_refused", "_report", "_solver", "clashes", "history", "in_the_way",
        "q", "seconds",
    )  # fmt: skip

    def __init__(
        self,
        solver: Prepared,
        asked: tuple[Objective, ...] | Callable[[], tuple[Objective, ...]] | Array | float | None,
        q: Array,
        outs: tuple[Array, ...] | int,
        seconds: float,
        bounds: tuple[Array, Array] | None = None,
        history: Array | None = None,
        refused: bool = False,
        part_seconds: tuple[float, ...] | None = None,
        clashes: tuple[Clash, ...] = (),
    ) -> None:
        """
        Args:
            asked: the objectives, or what makes them, or a new target of the only one, or None: as the solver was made.
            outs: what the kernel reports, for each part of the program; or, of a chain that was solved, the number that
                the chain kernel returned.
            bounds: limits of this call, (nq,) each.
            part_seconds: of each part, if there are several.
            refused: whether a solution was found that the caller does not think feasible.
        """
        self._solver, self._asked, self._report, self._bounds, self._refused = solver, asked, outs, bounds, refused
        # a clock may run backwards between cores; `max` takes 0.1 us longer, of 3 us that a short call takes
        self.q, self.seconds, self.history = q, seconds if seconds > 0.0 else 0.0, history
        self._part_seconds, self.clashes = part_seconds, clashes
        self.in_the_way: tuple[Clash, ...] = ()

    @property
    def _outs(self) -> tuple[Array, ...]:
        """What the kernel reports, for each part."""
        if isinstance(self._report, int):
            size = len(self._solver._program.parts[0].packed.at["out"])
            self._report = (chain_report(self._report, size),)
        return self._report

    # ---- in words ---------------------------------------------------------------------------

    @property
    def success(self) -> bool:
        """Whether every required objective is within its tolerance, all loops and laws hold, and the caller agrees.

        Nothing bumps into what was to be avoided. Every value that may move is within its limits, with success or
        without.
        """
        return not self.clashes and self._is_met

    @property
    def _is_met(self) -> bool:
        """Success, but for what bumps."""
        if type(self._report) is int:
            return True
        return not self._refused and all(out[SUCCESS] == 1.0 for out in self._outs)

    @property
    def status(self) -> Status:
        """How it ended; of several chains, the worst. CONVERGED also where `feasible` refused all that was found."""
        if self.clashes and self._is_met:
            return Status.IN_COLLISION
        return max((BY_CODE[int(out[STATUS])] for out in self._outs), key=BY_CODE.index, default=Status.CONVERGED)

    @property
    def iterations(self) -> int:
        """Steps tried, over all attempts and chains."""
        return int(sum(out[ITERATIONS_OUT] for out in self._outs))

    @property
    def attempts(self) -> int:
        """Starts that were tried."""
        return int(max((out[ATTEMPTS_OUT] for out in self._outs), default=0))

    @property
    def message(self) -> str:
        """Why, in a sentence."""
        if self.success:
            wanted = sum(one.required for one in self.objectives)
            text = f"{wanted} of {wanted} objectives met"
        elif self._refused:
            text = "all that was found is not feasible, as the caller sees it"
        elif self._is_met:
            text = f"all objectives are met, but {in_words(self.clashes)}"
        else:
            unmet = self.unmet
            text = self.status.value
            if broken := self.broken_laws:
                text += f"; not kept: {', '.join(f'law {name} (off by {off:.3g})' for name, off in broken.items())}"
            if unmet:
                text += f"; not met: {', '.join(f'{name} ({self.errors[name]})' for name in unmet)}"
            if self.active_limits:
                text += f"; at a limit: {', '.join(self.active_limits)}"
            if self.conflicts:
                text += f"; {'; '.join(f'{one} pulls against {other}' for one, other in self.conflicts)}"
            if self.clashes:
                text += f"; besides, {in_words(self.clashes)}"
            if self.in_the_way:
                text += "".join(f"; {one.b!r} is in the way of {one.a!r}" for one in self.in_the_way)
        if any(out[BROUGHT_IN] for out in self._outs):
            text += "; the start was outside the limits and was brought inside"
        if self.left_outside:
            text += f"; left where it started, outside its limits: {', '.join(self.left_outside)}"
        return text

    def __repr__(self) -> str:
        verdict = "solved" if self.success else f"not solved, {self.status.name}"
        attempts = "" if self.attempts == 1 else f", {self.attempts} attempts"
        spent = f"{self.iterations} iterations{attempts}, {_seconds(self.seconds)}"
        errors = [error for error, one in zip(self.errors.values(), self.objectives, strict=True) if one.required]
        worst = max((error.position for error in errors), default=0.0)
        angle = max((error.rotation for error in errors), default=0.0)
        return f"<{verdict} in {spent}: off by {worst:.2g} m, {angle:.2g} rad; {self.message}>"

    def require(self) -> Solution:
        """This solution, or an exception that says why it is none."""
        if not self.success:
            raise NotSolved(f"not solved ({self.status.name}): {self.message}", self)
        return self

    def __getitem__(self, joint: str) -> float | Array:
        """The value of a joint, or its values if it has several freedoms."""
        values = self.mechanism.values(self.q)
        self.mechanism.joint(joint)
        return values[joint] if joint in values else self._closing_value(joint)

    @property
    def values(self) -> dict[str, float | Array]:
        """Values by joint; those of closing joints are not among them."""
        return self.mechanism.values(self.q)

    # ---- numbers ----------------------------------------------------------------------------

    @property
    def mechanism(self) -> Mechanism:
        return self._solver.mechanism

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """What was asked for."""
        asked = self._asked
        if asked is None:
            return self._solver.objectives
        if callable(asked):
            asked = self._asked = asked()
        return asked if isinstance(asked, tuple) else (self._solver.objectives[0].at(asked),)

    @property
    def chains(self) -> tuple[ChainReport, ...]:
        """Chains that share no freedom, each with its own status."""
        seconds = self._part_seconds or (self.seconds,) * len(self._outs)
        return tuple(report(self._solver, k, out, seconds[k]) for k, out in enumerate(self._outs))

    @property
    def errors(self) -> Mapping[str, Error]:
        """How far each objective is off, by its name, or by its number and kind."""
        named = zip(self.names, self.objectives, strict=True)
        return {name: objective.error(self.mechanism, self.q) for name, objective in named}

    @property
    def names(self) -> tuple[str, ...]:
        """One for each objective: its own if no other has it, else with its number."""
        own = [one.name or f"{type(one).__name__} {k}" for k, one in enumerate(self.objectives)]
        return tuple(name if own.count(name) == 1 else f"{name} {k}" for k, name in enumerate(own))

    @property
    def unmet(self) -> tuple[str, ...]:
        """Required objectives that are not within their tolerance."""
        found = zip(self.errors.items(), self.objectives, strict=True)
        return tuple(
            name
            for (name, error), one in found
            if one.required and (error.position > one.tolerance or error.rotation > one.angle_tolerance)
        )

    @property
    def closure_errors(self) -> Mapping[str, Error]:
        """How far each loop stands open, by the name of the joint that closes it."""
        from mechanik.objectives.closures import closure_relations
        from mechanik.objectives.evaluate import evaluate

        open_by: dict[str, Error] = {}
        for name, closure in self.mechanism.closures.items():
            position = rotation = 0.0
            for relation in closure_relations(self.mechanism, closure):
                rows, metres = evaluate(self.mechanism, relation, self.q)[0], np.array(relation.in_metres)
                position = max(position, float(np.linalg.norm(rows[metres])))
                rotation = max(rotation, float(np.linalg.norm(rows[~metres])))
            open_by[name] = Error(position, rotation)
        return open_by

    @property
    def law_errors(self) -> Mapping[str, float]:
        """How far each law is off, by name: its terms less its constant, in its own unit."""
        from mechanik.objectives.laws import law_relations, law_sums

        relations = law_relations(self.mechanism)
        return {name: float(law_sums(self.mechanism, relation, self.q)) for name, relation in relations.items()}

    @property
    def broken_laws(self) -> Mapping[str, float]:
        """Those of `law_errors` that are not kept."""
        laws = self.mechanism.laws
        return {name: off for name, off in self.law_errors.items() if abs(off) > KEPT * laws[name].scale}

    @property
    def active_limits(self) -> Mapping[str, str]:
        """Freedoms that stand at a limit: "lower" or "upper", by name; and joints at the edge of their cone: "cone".

        Freedoms of joints that close a loop are among them. Of one that turns in several ways only shifts and the cone
        have limits that solvers keep.
        """
        space = self.mechanism.space
        lower, upper = (space.lower, space.upper) if self._bounds is None else self._bounds
        at: dict[str, str] = {}
        for name, value, low, high in zip(space.q_names, self.q, lower, upper, strict=True):
            if low < high and value <= low + AT_LIMIT:
                at[name] = "lower"
            elif low < high and value >= high - AT_LIMIT:
                at[name] = "upper"
        if self.mechanism.closures:
            at |= self._at_closing_limits()
        if any(joint.cone is not None for joint in self.mechanism.joints.values()):
            at |= self._at_cones()
        return at

    @property
    def left_outside(self) -> tuple[str, ...]:
        """Freedoms that started outside their limits and that nothing asked for moves: they stay as they are."""
        space = self.mechanism.space
        lower, upper = (space.lower, space.upper) if self._bounds is None else self._bounds
        found: list[str] = []
        for k, v in zip(space.scalars_q.tolist(), space.scalars_v.tolist(), strict=True):
            inside = lower[k] - AT_LIMIT <= self.q[k] <= upper[k] + AT_LIMIT
            if not inside and not self._solver._moving[v]:
                found.append(space.q_names[k])
        return tuple(found)

    @property
    def conflicts(self) -> tuple[tuple[str, str], ...]:
        """Pairs of objectives of which the first is not met, and could be followed but for the second.

        What loops and laws forbid is left out of what objectives pull at.
        """
        unmet = set(self.unmet)
        if not unmet:
            return ()
        ways = self._ways()
        pulls = {
            name: ways.T @ (one.jacobian(self.mechanism, self.q).T @ one.residual(self.mechanism, self.q))
            for name, one in zip(self.names, self.objectives, strict=True)
        }
        found: list[tuple[str, str]] = []
        level = dict(zip(self.names, (one.level for one in self.objectives), strict=True))
        for one in unmet:
            for other in (name for name in self.names if level[name] <= level[one]):
                sizes = float(np.linalg.norm(pulls[one]) * np.linalg.norm(pulls[other]))
                opposed = float(pulls[one] @ pulls[other]) < -1e-3 * sizes
                if other != one and sizes > 1e-12 and opposed and (other, one) not in found:
                    found.append((one, other))
        return tuple(found)

    @property
    def condition(self) -> float:
        """The largest over the smallest singular value of what is required; infinite at a singular pose."""
        rows = [one.jacobian(self.mechanism, self.q) for one in self.objectives if one.required]
        J = np.concatenate([np.zeros((0, self.mechanism.nv)), *rows])[:, self._solver._moving]
        if not J.size:
            return 1.0
        sizes = np.linalg.svd(J, compute_uv=False)
        return float(sizes[0] / sizes[-1]) if sizes[-1] > 1e-15 * sizes[0] else np.inf

    @property
    def singular(self) -> Singular:
        """Whether it stands at a singular pose: which kind, how near, and which joints move there without effect.

        False where nothing is singular. Takes milliseconds, and only when it is asked for.
        """
        from mechanik.solvers.singular import singular_at

        return singular_at(self.mechanism, self.objectives, self.q, self._solver._moving)

    def _ways(self) -> Array:
        """Motions (nv, k) that loops and laws allow, lengths in sizes of the mechanism; all where there are none."""
        mechanism = self.mechanism
        if not mechanism.closures and not mechanism.laws:
            return np.eye(mechanism.nv)
        here = motions(mechanism, self.q, self._solver._moving)
        return here.unit[:, None] * here.basis()

    def _at_closing_limits(self) -> dict[str, str]:
        from mechanik.objectives.closures import limits_reached

        return limits_reached(self.mechanism, self.q, AT_EDGE)

    def _at_cones(self) -> dict[str, str]:
        """Joints at the edge of their cone."""
        from mechanik.objectives.closures import tilts

        angles = {name: joint.cone.angle for name, joint in self.mechanism.joints.items() if joint.cone is not None}
        found = tilts(self.mechanism, self.q)
        return {name: "cone" for name, tilt in found.items() if tilt >= angles[name] - AT_EDGE}

    def _closing_value(self, joint: str) -> float | Array:
        """Read off the links, as they stand at q."""
        mechanism = self.mechanism
        before = mechanism.q
        try:
            mechanism.q = self.q
            values = mechanism.closure(joint).measure()
        finally:
            mechanism.q = before
        return float(values[0]) if len(values) == 1 else values


def in_words(clashes: Sequence[Clash]) -> str:
    """The deepest of them, and how many there are besides."""
    more = "" if len(clashes) == 1 else f", besides {counted(len(clashes) - 1, 'other pair')}"
    return f"{clashes[0]}{more}"


def _seconds(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} us"
    return f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.1f} s"


def chain_report(code: int, size: int) -> Array:
    """What the chain kernel says of a target that it solved, as the general kernel would."""
    out = np.zeros(size)
    out[SUCCESS], out[ATTEMPTS_OUT] = 1.0, code >> 32
    out[ITERATIONS_OUT], out[BROUGHT_IN] = (code & 0xFFFFFFFF) >> 1, code & 1
    return out


def goal_cost(out: Array) -> float:
    """Of the one goal of a chain, in the kernel's report: behind the stage of closures, of which there are none."""
    return float(out[STAGES_OUT + STAGE_NUMBERS + STAGE_COST])


def report(solver: Prepared, k: int, out: Array, seconds: float) -> ChainReport:
    """What the kernel says of a part, for people."""
    program = solver._program
    part = program.parts[k]
    owners, closures, laws = dict.fromkeys(part.owners), len(program.closures), tuple(program.laws)
    missed = [out[STAGES_OUT + STAGE_NUMBERS * s + STAGE_COST] for s, wish in enumerate(part.wishes) if not wish]
    codes = [int(out[STAGES_OUT + STAGE_NUMBERS * s]) for s, wish in enumerate(part.wishes) if not wish]
    residual = next((cost for cost, code in zip(missed, codes, strict=True) if code), 0.0)
    return ChainReport(
        objectives=tuple(owner for owner in owners if 0 <= owner < len(solver.objectives)),
        closures=tuple(program.closures[-1 - owner].name for owner in owners if -closures <= owner < 0),
        joints=tuple(name for name, moves in zip(solver.mechanism.space.v_names, part.moving, strict=True) if moves),
        status=BY_CODE[int(out[STATUS])],
        residual=float(np.sqrt(residual)) if np.isfinite(residual) else float("inf"),
        iterations=int(out[ITERATIONS_OUT]),
        seconds=seconds,
        laws=tuple(laws[-1 - owner - closures] for owner in owners if -closures - len(laws) <= owner < -closures),
    )
