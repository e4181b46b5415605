"""Serial chains from Python on one core: python benchmarks/chains.py [--quick]

Arms of 4 to 30 joints, of all kinds, to 1e-6 m and rad: random targets one at a time and in lanes, the lane kernel
beside the scalar one, targets that are out of reach, and two threads beside one. Forward kinematics checks the
solutions independently of the solver. Rounds of all arms alternate; the best time of each target, and of each batch,
counts. All but the two threads is timed by the processor's time, since a busy machine cuts a run to pieces. Fails if a
goal is missed; with --quick only if lanes are less than 2.5 times as fast as the scalar kernel, in the mean over all
arms (of logarithms), since that is how a lost vectorisation shows.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np
from processor_clock import clock, intervals

import mechanik as mk
from mechanik.kernels.chain_layout import FROM_TABLE, REPORT_FLOATS
from mechanik.solver.search.chain_search import chain_kernel
from mechanik.spatial import rotation

TOLERANCE = 1e-6
RATE, LANES, THREADS, OUT_OF_REACH_MS = 400_000.0, 2.5, 1.8, 1.0
"""Goals: solves a second on one core, lanes beside scalar, two threads beside one, ms for what is out of reach."""
SCALAR_TARGETS, FAR_TARGETS = 1_000, 50


ARMS: dict[str, tuple[Callable[[], mk.Mechanism], str]] = {
    "Panda": (lambda: mk.gallery.panda(hand=False), "panda_link8"),
    "UR5": (mk.gallery.ur5, "tool0"),
    "Puma 560": (mk.gallery.puma560, "tool"),
    "iiwa 14": (mk.gallery.iiwa14, "iiwa_link_ee"),
    "SCARA": (mk.gallery.scara, "tool"),
    "rail and 6R": (mk.gallery.rail_arm, "tool"),
    "6R from DH": (mk.gallery.dh6, "tool"),
    "10R": (mk.gallery.grippy10, "tool"),
    "30R": (mk.gallery.snake, "tool"),
}


@dataclass
class Case:
    """An arm, its targets and the best times so far.

    Attributes:
        seconds: by what was timed: of each target, or of the batch, (1,).
        solved: by what was timed: the share of targets with a correct solution.
    """

    name: str
    arm: mk.Mechanism
    tool: str
    solver: mk.Solver
    X: np.ndarray
    X_far: np.ndarray
    seconds: dict[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])
    solved: dict[str, float] = field(default_factory=dict[str, float])

    def record(self, what: str, times: list[float]) -> None:
        best = intervals(times)
        self.seconds[what] = np.minimum(best, self.seconds[what]) if what in self.seconds else best

    def us(self, what: str) -> float:
        return 1e6 * float(self.seconds[what].mean())

    @property
    def rate(self) -> float:
        return len(self.X) / float(self.seconds["lanes"][0])

    @property
    def lanes_to_scalar(self) -> float:
        """The kernels alone: the overhead of a call is subtracted from the scalar one, and is negligible in lanes."""
        return (self.us("scalar") - self.us("call")) / (1e6 * float(self.seconds["lane kernel"][0]) / SCALAR_TARGETS)

    # ---- one round ------------------------------------------------------------------------------

    def round(self) -> None:
        self._one_by_one()
        self._in_lanes()
        self._kernels()
        self._out_of_reach()

    def _one_by_one(self) -> None:
        solve, solutions, times = self.solver.solve, list[mk.Solution](), [clock()]
        for X in self.X:
            solutions.append(solve(X))
            times.append(clock())
        self.record("one", times)
        claimed, q = (
            np.array([solution.success for solution in solutions]),
            np.array([solution.q for solution in solutions]),
        )
        self.solved["one"] = float((claimed & self._is_right(q)).mean())

    def _in_lanes(self) -> None:
        start = clock()
        result = self.solver.solve_batch(self.X, threads=1)
        self.record("lanes", [start, clock()])
        self.solved["lanes"] = float((result.success & self._is_right(result.q)).mean())

    def _kernels(self) -> None:
        """Both kernels on the same targets, and the scalar one without work: a target of NaN."""
        assert self.solver.chain is not None, f"{self.name} is not seen as a chain"
        chain = self.solver.chain.search
        solve, work, q0 = chain_kernel.solve_target, chain.allocate_workspace(), np.array(self.arm.q)
        X, q, none = np.ascontiguousarray(self.X[:SCALAR_TARGETS]), np.empty_like(q0), np.full((4, 4), np.nan)
        for what, targets in (("scalar", list(X)), ("call", [none] * len(X))):
            times = [clock()]
            for target in targets:
                solve(work, target, q0, FROM_TABLE, 0.0, q)
                times.append(clock())
            self.record(what, times)
        starts, report = np.tile(q0, (len(X), 1)), np.empty((len(X), REPORT_FLOATS))
        start = clock()
        chain.solve_rows(X, starts, FROM_TABLE, 0.0, np.empty_like(starts), report)
        self.record("lane kernel", [start, clock()])

    def _out_of_reach(self) -> None:
        solve, solutions, times = self.solver.solve, list[mk.Solution](), [clock()]
        for X in self.X_far:
            solutions.append(solve(X))
            times.append(clock())
        self.record("far", times)
        assert not any(solution.success for solution in solutions), (
            f"{self.name} claims success for an unreachable target"
        )

    def _is_right(self, q: np.ndarray) -> np.ndarray:
        X = self.arm.pose(self.tool, q)
        position_error = np.linalg.norm(X[:, :3, 3] - self.X[:, :3, 3], axis=1)
        rotation_error = np.linalg.norm(rotation.log(np.swapaxes(X[:, :3, :3], 1, 2) @ self.X[:, :3, :3]), axis=1)
        inside = ((q >= self.arm.space.lower) & (q <= self.arm.space.upper)).all(axis=1)
        return inside & (position_error <= TOLERANCE * 1.0001) & (rotation_error <= TOLERANCE * 1.0001)


def make_case(name: str, count: int) -> Case:
    make, tool = ARMS[name]
    arm, rng = make(), np.random.default_rng(7)
    q = rng.uniform(arm.space.lower, arm.space.upper, (count, arm.nq))
    X = np.ascontiguousarray(arm.pose(tool, q))
    X_far = X[:FAR_TARGETS].copy()
    reach = np.linalg.norm(X[:, :3, 3], axis=1).max()
    X_far[:, :3, 3] *= 1.5 * reach / np.linalg.norm(X_far[:, :3, 3], axis=1)[:, None]
    goal = mk.PoseGoal(tool, X[0], tolerance=TOLERANCE, angle_tolerance=TOLERANCE)
    return Case(name, arm, tool, mk.Solver(arm, goal), X, X_far)


def two_threads(case: Case, seconds: float) -> float:
    """How many times as fast as one, on ten times the targets, by wall time: processor time does not show it.

    Batches alternate until each kind has taken so many seconds, which are 20 ticks and more of a coarse clock.
    """
    X = np.tile(case.X, (10, 1, 1))
    spent = {1: 0.0, 2: 0.0}
    while min(spent.values()) < seconds:
        for threads in spent:
            start = perf_counter()
            case.solver.solve_batch(X, threads=threads)
            spent[threads] += perf_counter() - start
    return spent[1] / spent[2]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer targets and rounds; only lanes can fail")
    quick = parser.parse_args().quick
    cases = [make_case(name, 1_000 if quick else 10_000) for name in ARMS]
    for number in range(rounds := 3 if quick else 7):
        for case in cases:
            print(f"\rround {number + 1} of {rounds}: {case.name:12}", end="", file=sys.stderr, flush=True)
            case.round()
    print("\r" + " " * 40 + "\r", end="", file=sys.stderr)

    print(f"{len(cases[0].X)} random targets, to {TOLERANCE:g} m and rad; one core")
    print(
        f"{'':12} {'joints':>6} {'one, us':>8} {'solved':>9} {'lanes, 1/s':>11} {'solved':>9} {'lanes : scalar':>15}",
        end="",
    )
    print(f" {'out of reach, ms':>17}")
    missed: list[str] = []
    for case in cases:
        far = 1e3 * float(case.seconds["far"].max())
        print(
            f"{case.name:12} {case.arm.nq:6} {case.us('one'):8.2f} {100 * case.solved['one']:7.2f} % "
            f"{case.rate:11,.0f} {100 * case.solved['lanes']:7.2f} % {case.lanes_to_scalar:15.2f} {far:17.2f}"
        )
        missed += [] if quick else shortfalls(case, far)
    gain = float(np.exp(np.mean([np.log(case.lanes_to_scalar) for case in cases])))
    print(f"lanes are {gain:.2f} times as fast as the scalar kernel, goal {LANES:g}")
    missed += [f"lanes are only {gain:.2f} times the scalar kernel"] if gain < LANES else []
    if (os.cpu_count() or 1) >= 2:
        ratio = two_threads(cases[0], 1.0 if quick else 3.0)
        print(f"two threads are {ratio:.2f} times as fast as one, goal {THREADS:g}")
        missed += [f"two threads are only {ratio:.2f} times one"] if ratio < THREADS and not quick else []
    met = "lanes meet their goal; the other goals need a run without --quick" if quick else "all goals met"
    print(met if not missed else "missed: " + "; ".join(missed))
    return bool(missed)


def shortfalls(case: Case, far_ms: float) -> list[str]:
    texts: list[str] = []
    for what, share in case.solved.items():
        if share < 1.0:
            texts.append(f"{case.name}: {round((1 - share) * len(case.X))} targets not solved ({what})")
    if case.rate < RATE:
        texts.append(f"{case.name}: {case.rate:,.0f} solves a second, not {RATE:,.0f}")
    if far_ms > OUT_OF_REACH_MS:
        texts.append(f"{case.name}: {far_ms:.2f} ms for a target that is out of reach")
    return texts


if __name__ == "__main__":
    sys.exit(main())
