"""Differential inverse kinematics in time: from targets to the next configuration, a step of time later."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from mechanik.collision import Collider
from mechanik.collision.clash import Clash
from mechanik.collision.obstacle import Obstacle
from mechanik.collision.tight import warn_of_tight_pairs
from mechanik.errors import LimitsError, ObjectiveError, StructureError, WrongKind
from mechanik.kernels.tracking import layout
from mechanik.mechanism import Frame, Mechanism
from mechanik.mechanism.door import as_number, read_only
from mechanik.objectives import Objective
from mechanik.objectives.objective import Error
from mechanik.solvers.freedoms import Names, as_bounds, as_mask
from mechanik.solvers.keeping_off import check_alone
from mechanik.solvers.new_targets import Targets
from mechanik.solvers.running import call_functions
from mechanik.spatial.array import Array, ArrayLike
from mechanik.tiers import kernel_module
from mechanik.tracking.aiming import Aiming
from mechanik.tracking.coming_off import TOO_NEAR, gap_rates, time_to_stop
from mechanik.tracking.rates import Rates, as_rates
from mechanik.tracking.rig import build_rig, closing_values, held
from mechanik.tracking.start import check_shut, check_start
from mechanik.tracking.state import BY_CODE, WAS_TOO_NEAR, TrackerState
from mechanik.tracking.task import Task, as_gain, as_tasks

Pairs = tuple[tuple[str, str], ...]

stepping = kernel_module("tracking.step")

OPEN = 1e-8
"""How far (m and rad) a loop may stand open at the start."""
LOOK_ONLY = -1
NEAR = 0.1
"""m beyond the clearance from which on something that comes near is looked at, at least."""
AHEAD = 4.0
"""How many times the way that links go while they stop is looked ahead: two of them may go towards each other."""


class Tracker:
    """Follows targets in steps of time: each step is the best velocity for the tasks within all limits.

        tracker = mk.Tracker(arm, mk.PoseGoal("tool", X_world_tool), dt=1e-3, velocity=2.0, acceleration=10.0)
        while running:
            state = tracker.step(X_world_target)
            send(state.q, state.v)

    At every step values stay within their limits, velocities and accelerations within theirs, and what moves can still
    stop before its limits. Tasks of a lower level only move what those above leave free. Loops stay shut. It never
    moves the mechanism, and has to be made anew when the mechanism is edited.

    Args:
        mechanism: what moves.
        tasks: objectives, or tasks with a gain each.
        dt: s, from one step to the next.
        q0: (nq,) where it stands at first, at rest; where the mechanism stands if not given.
        velocity: the largest, one number for all freedoms, nv numbers, or by the names of joints, m/s and rad/s. Joints
            that are not named, or all if it is None, have what the file of the mechanism says, if it does.
        acceleration: the same, m/s^2 and rad/s^2. None: as large as may be.
        gain: 1/s, of tasks that have none of their own: at which rate errors shrink. None: all in one step, as far as
            limits allow it.
        damping: of velocities at singularities; it fades out with the distance to them.
        lock: joints that stay where they are.
        limits: by joint (lower, upper) in place of the mechanism's own.
        avoid: a `Collider`, or what one is made of: "self", obstacles. What is too near, at the start or because it was
            moved there, is left again, the nearest first.
        clearance: m, to be kept from what is avoided.
        allow, forbid: pairs of names that may touch, or that are checked although they would not be.
        follow: whether targets that move from step to step are followed with their velocity, without lag. A target that
            moves as the mechanism could not is approached instead, slowing down in time.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        tasks: Objective | Task | Iterable[Objective | Task],
        dt: float = 1e-3,
        *,
        q0: ArrayLike | None = None,
        velocity: Rates | None = None,
        acceleration: Rates | None = None,
        gain: float | None = None,
        damping: float = 0.05,
        lock: Names | str | None = None,
        limits: Mapping[str, ArrayLike] | None = None,
        avoid: Collider | Iterable[str | Obstacle] | None = None,
        clearance: float = 0.0,
        allow: Iterable[tuple[str, str]] = (),
        forbid: Iterable[tuple[str, str]] = (),
        follow: bool = True,
    ) -> None:
        if not isinstance(mechanism, Mechanism):
            raise WrongKind(f"a tracker takes a mechanism, not {mechanism!r}")
        self.mechanism = mechanism
        self.dt = as_number(dt, "dt")
        if not self.dt > 0.0:
            raise LimitsError(f"dt must be above 0 seconds, not {self.dt:g}")
        self.tasks = as_tasks(tasks)
        usual = 1.0 / self.dt if gain is None else as_gain(gain, "gain")
        # more would take off more in one step than there is
        self._gains = [min(usual if one.gain is None else one.gain, 1.0 / self.dt) for one in self.tasks]
        given = [task.objective for task in self.tasks]
        self._bounds = as_bounds(mechanism, limits)
        velocities = as_rates(mechanism, velocity, "velocity", from_file=True)
        self._rates = velocities, as_rates(mechanism, acceleration, "acceleration")
        damps = as_number(damping, "damping")
        if damps < 0.0:
            raise ObjectiveError(f"damping must not be below zero, but is {damps:g}")
        active = np.ones(mechanism.nv, dtype=np.bool_)
        if lock is not None:
            active &= ~as_mask(mechanism, lock, False)
        self._clearance = as_number(clearance, "clearance")
        rules = tuple(allow), tuple(forbid)
        check_alone(mechanism, avoid, self._clearance, *rules)
        self._collider = self._as_collider(avoid, *rules)
        if self._collider is not None:
            warn_of_tight_pairs(self._collider, self._clearance)
        start = mechanism.q if q0 is None else mechanism._one(q0)
        self._start = np.array(start)
        objectives = [held(mechanism, one, start, self._bounds) for one in given]
        further = 0 if self._collider is None else len(self._collider.row_names)
        self._rig = rig = build_rig(
            mechanism, objectives, active.tolist(), self._bounds, self._rates, self._gains, further, self.dt,
            damps, follow,
        )  # fmt: skip
        rows = [one.relations(mechanism) for one in objectives]
        self._aiming = Aiming(mechanism, rig, given, rows, self._bounds)
        self._revision, self._edits = mechanism.revision, Frame.edits
        at = rig.part.packed.at
        self._trial, self._q = at["trial"], at["trial"][: mechanism.nq]
        self._mine = np.flatnonzero(rig.columns < mechanism.nv)
        self._places, self._unit = rig.columns[self._mine], at["scale"][self._mine]
        names = mechanism.space.v_names
        self._names: tuple[str, ...] = tuple(names[int(k)] for k in self._places)
        packed = rig.part.packed
        self._kernel_arguments = (
            packed.ints, packed.floats, rig.table, rig.options, *rig.rooms, rig.gains, rig.before, rig.ahead, rig.more,
            rig.edges,
        )  # fmt: skip
        self._v = np.zeros(mechanism.nv)
        self._is_too_near = False
        self.reset(start)

    def __repr__(self) -> str:
        asked = ", ".join(repr(one) for one in self.objectives)
        return f"<tracker of {self.mechanism!r} every {self.dt:g} s: {asked}>"

    # ---- where it stands --------------------------------------------------------------------

    @property
    def q(self) -> Array:
        """(nq,) a copy."""
        return self._q.copy()

    @property
    def v(self) -> Array:
        """(nv,) per second, a copy."""
        return self._v.copy()

    @property
    def time(self) -> float:
        """s, since the start or the last reset."""
        return self._steps * self.dt

    @property
    def velocity(self) -> Array:
        """(nv,) the largest velocities; infinite where there is no limit."""
        return self._rates[0].copy()

    @property
    def acceleration(self) -> Array:
        """(nv,) the largest accelerations; infinite where there is no limit."""
        return self._rates[1].copy()

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """The tasks' objectives with the targets that they have now."""
        return self._aiming.objectives

    def errors(self) -> tuple[Error, ...]:
        """How far each task is from its target now: m and rad. Not for fast loops."""
        return tuple(one.error(self.mechanism, self._q) for one in self.objectives)

    def reset(self, q: ArrayLike | None = None, v: ArrayLike | None = None) -> None:
        """Stand at q (nq,) from now on, moving by v (nv,) per second; where it was made, and at rest, if not given.

        Loops have to be shut at q, and what moves has to be able to stop before its limits; else nothing changes.
        """
        self._check_current()
        mechanism, rig = self.mechanism, self._rig
        here = self._start.copy() if q is None else np.array(mechanism._one(q))
        rates = np.zeros(mechanism.nv) if v is None else mechanism.space.check_v(v).copy()
        for k in mechanism.space.balls_q:
            here[k : k + 4] /= np.linalg.norm(here[k : k + 4])
        check_start(mechanism, here, rates, self._bounds, self._rates, self.dt)
        still = np.ones(mechanism.nv, dtype=np.bool_)
        still[self._places] = False
        if rates[still].any():
            raise LimitsError(f"{mechanism.space.v_names[int(np.flatnonzero(rates * still)[0])]!r} is locked")
        check_shut(mechanism, here, OPEN)
        extra = closing_values(mechanism, here)
        self._trial[:] = 0.0
        self._q[:] = here
        self._trial[mechanism.nq : mechanism.nq + len(extra)] = extra
        self._v[:] = rates
        rig.table[layout.RATE], rig.table[layout.CURVE] = 0.0, 0.0
        rig.table[layout.RATE, self._mine] = rates[self._places] / self._unit
        rig.ahead[:] = 0.0
        self._last: Array | None = None
        self._steps, self._looks, self._is_new = 0, True, True
        self._start = here.copy()

    # ---- moving -----------------------------------------------------------------------------

    def step(self, targets: Targets | None = None) -> TrackerState:
        """One step of time on.

        Args:
            targets: as for `Solver.solve`: that of the only task, or one for each, or some by name. A task that gets
                none keeps the one that it has. It is where the target is at the end of the step.
        """
        code = self.advance(targets)
        near: tuple[Clash, ...] = ()
        if self._is_too_near and self._collider is not None:
            near = self._collider.clashes(self._q, self._clearance)
        return TrackerState(
            read_only(self._q.copy()), read_only(self._v.copy()), self._steps * self.dt, BY_CODE[code], near,
            self._names, self._rig.held[self._mine],
        )  # fmt: skip

    def advance(self, targets: Targets | None = None) -> int:
        """As `step`, for those who read `q` and `v` themselves: returns 0 if all limits were kept, 1, 2 or 3 if not."""
        if Frame.edits != self._edits:
            self._check_current()
        rig = self._rig
        if targets is not None:
            self._aiming.aim(targets, self._q)
            self._looks = True
        given = 0
        if rig.has_functions or self._collider is not None or self._is_new:
            given = self._look()
        code = int(stepping.step(*self._kernel_arguments, given, rig.held, self._looks))
        self._looks = False
        self._steps += 1
        self._v[self._places] = rig.table[layout.RATE, self._mine] * self._unit
        return WAS_TOO_NEAR if self._is_too_near and code == 0 else code

    # ---- inside -----------------------------------------------------------------------------

    def _look(self) -> int:
        """Rows written in Python, and what comes near; returns how many further rows there are."""
        rig, mechanism = self._rig, self.mechanism
        if rig.has_functions:
            call_functions(mechanism, rig.part, rig.relations, mechanism.nq)
        if self._is_new:  # nothing has moved yet, so targets have not either
            stepping.step(*self._kernel_arguments, LOOK_ONLY, rig.held, True)
            self._is_new = False
        if self._collider is None:
            return 0
        here = mechanism.poses(self._q)[:, :3, 3]
        way = 0.0 if self._last is None else float(np.linalg.norm(here - self._last, axis=1).max())
        self._last = here
        stopping = time_to_stop(self._v, self._rates[1], self.dt)
        reach = self._clearance + max(NEAR, AHEAD * stopping * way / self.dt)
        gaps, slopes = self._collider.rows(self._q, reach=reach)
        count, edges = len(gaps), rig.edges
        wanted, least = gap_rates(gaps, self._clearance, stopping, float(rig.options[layout.NEARING]), self.dt)
        edges[:count, 1], edges[:count, layout.WANTED], edges[:count, layout.LEAST] = np.inf, wanted, least
        rig.more[:count] = 0.0
        rig.more[:count, self._mine] = slopes[:, self._places] * self._unit
        self._is_too_near = bool(count) and float(gaps.min()) < self._clearance - TOO_NEAR
        rig.options[layout.TOO_NEAR] = self._is_too_near
        return count

    def _check_current(self) -> None:
        if self.mechanism.revision != self._revision:
            raise StructureError("the mechanism was edited since its tracker was made; make another tracker")
        self._edits = Frame.edits

    def _as_collider(
        self, avoid: Collider | Iterable[str | Obstacle] | None, allow: Pairs, forbid: Pairs
    ) -> Collider | None:
        if avoid is None:
            return None
        if not isinstance(avoid, Collider):
            return Collider(self.mechanism, avoid, allow=allow, forbid=forbid)
        if avoid.mechanism is not self.mechanism:
            raise StructureError("avoid is a collider of another mechanism; make one of this tracker's")
        if allow or forbid:
            raise WrongKind("allow and forbid belong to the collider that is given as avoid; give them to it")
        return avoid
