"""Gain of a table of starts for trees with several goals and for loops; prints the tables of docs/seed_tables.md.

    python benchmarks/seed_tables.py [--count 200]

Counts, not times: attempts until success, iterations, and how many targets are solved with 10, 30 and 100 restarts.
Every solve begins at a random configuration, with open loops; every target is reachable. The second
table has times of the processor, which are rough.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from time import process_time as clock
from typing import Any

import numpy as np

import mechanik as mk
from mechanik.solver import restarts as attempts
from mechanik.solver.methods.least_squares_problem import LeastSquaresProblem
from mechanik.solver.monitor import Monitor
from mechanik.solver.restarts import RestartRequest, restart_sequence
from mechanik.solver.start_configurations import (
    SeedTable,
    close_loops_of_starts,
    halton_configurations,
    halton_points,
    movable_configuration_mask,
)
from mechanik.solver.workspace import Workspace
from mechanik.spatial import make_pose, rotation
from mechanik.spatial.array import Array

RESTARTS, SIZES, SEED, ROUNDS = 100, (64, 256, 1024), 11, 20
Starts = Callable[[RestartRequest, LeastSquaresProblem, Array], Iterator[Array]]


@dataclass(frozen=True, slots=True)
class Case:
    """A mechanism with its goals; `target` returns the targets that a configuration reaches."""

    name: str
    mechanism: mk.Mechanism
    goals: Sequence[mk.Objective] | None
    target: Callable[[Array], Any]


# ---- the mechanisms -----------------------------------------------------------------------------


def two_arms() -> mk.Mechanism:
    """Two arms with the lengths of a UR5 on a torso that turns; 13 dofs."""
    joints = (
        ((0, 0, 0.089159), "z"), ((0, 0.13585, 0), "y"), ((0, -0.1197, 0.425), "y"),
        ((0, 0, 0.39225), "y"), ((0, 0.093, 0), "z"), ((0, 0, 0.09465), "y"),
    )  # fmt: skip
    body = mk.Builder("two_arms")
    body.revolute("torso", "world", "chest", limits=(-1.5, 1.5))
    for side, sign in (("left", 1.0), ("right", -1.0)):
        at = make_pose(rotation.about_x(-sign * math.pi / 2), (0.0, 0.2 * sign, 0.5))
        body.fixed(f"{side}_mount", "chest", f"{side}_0", at=at)
        for k, (place, axis) in enumerate(joints):
            most = math.pi if k == 2 else 2 * math.pi
            body.revolute(f"{side}{k + 1}", f"{side}_{k}", f"{side}_{k + 1}", at=place, axis=axis, limits=(-most, most))
        body.fixed(f"{side}_flange", f"{side}_6", f"{side}_hand", at=(0, 0.0823, 0))
    return body.build()


def three_rrr() -> mk.Mechanism:
    """A triangle in the plane on three cranks with rods."""
    robot = mk.Builder("three_rrr")
    robot.joint("platform_joint", "base", "platform", ["X", "Y", "EZ"])
    for k in range(3):
        out = np.array([math.cos(2.1 * k), math.sin(2.1 * k), 0.0])
        robot.revolute(f"crank{k}_joint", "base", f"crank{k}", at=0.5 * out)
        robot.revolute(f"rod{k}_joint", f"crank{k}", f"rod{k}", at=(0.35, 0, 0))
        robot.close(f"pin{k}", f"rod{k}", "platform", "pin", at=(0.35, 0, 0), onto=0.15 * out)
    return robot.build()


def cases() -> Iterator[Case]:
    """Trees first, then loops."""
    X, o = np.eye(4), (0.0, 0.0, 0.0)

    def of(name: str, mechanism: mk.Mechanism, poses: list[str], points: list[str]) -> Case:
        goals = [mk.PoseGoal(link, X, name=link) for link in poses] + [
            mk.PositionGoal(link, o, name=link) for link in points
        ]

        def target(q: Array) -> Any:
            targets = [mechanism.pose(link, q) for link in poses]
            targets += [mechanism.pose(link, q)[:3, 3] for link in points]
            return targets if len(goals) > 1 else targets[0]

        return Case(name, mechanism, goals, target)

    hands, feet = ["left_hand", "right_hand"], ["left_foot", "right_foot"]
    yield of("two UR5 on a torso, 2 poses", two_arms(), hands, [])
    yield of("two UR5 on a torso, 2 points", two_arms(), [], hands)
    yield of("humanoid, feet and 2 hands", mk.gallery.humanoid(), feet + hands, [])
    yield of("humanoid, feet and 2 points", mk.gallery.humanoid(), feet, hands)
    yield of("Stewart platform, balls close", mk.gallery.stewart_platform(ends="closure"), ["platform"], [])
    yield of("Stewart platform, welds close", mk.gallery.stewart_platform(ends="joint"), ["platform"], [])
    yield of("delta robot, point", mk.gallery.delta_robot(), [], ["platform"])
    yield of("3-RRR, pose", three_rrr(), ["platform"], [])
    yield of("five-bar, point", mk.gallery.five_bar(), [], ["tool"])
    yield of("four-bar, rocker's pose", mk.gallery.four_bar(), ["rocker"], [])
    driven = mk.gallery.four_bar()
    yield Case("four-bar, crank's angle", driven, [mk.JointValues({"crank_joint": 0.0})], lambda q: float(q[0]))
    yield Case("delta robot, loops alone", mk.gallery.delta_robot(), None, lambda q: None)
    yield Case("Stewart platform, loops alone", mk.gallery.stewart_platform(), None, lambda q: None)


# ---- orders of starts ---------------------------------------------------------------------------


def in_halton_order(call: RestartRequest, problem: LeastSquaresProblem, q: Array) -> Iterator[Array]:
    """The order without tables."""
    yield halton_configurations(problem.mechanism.space, RESTARTS)


def from_table(entries: int, closed: bool) -> Starts:
    """Best first from a cached table; further starts come in Halton order."""
    tables: dict[int, SeedTable] = {}

    def starts(call: RestartRequest, problem: LeastSquaresProblem, q: Array) -> Iterator[Array]:
        if id(problem) not in tables:
            tables[id(problem)] = make_table(problem, entries)
        table = tables[id(problem)]
        best = table.closed_starts_by_cost(problem, entries, Monitor()) if closed else table.starts_by_cost(problem)
        more = halton_configurations(problem.mechanism.space, RESTARTS, entries)
        yield np.ascontiguousarray(np.concatenate([best, more])[:RESTARTS])

    return starts


def make_table(problem: LeastSquaresProblem, entries: int) -> SeedTable:
    space = problem.mechanism.space
    mine = movable_configuration_mask(problem, np.zeros(space.nv, dtype=np.bool_))
    return SeedTable(problem, space, halton_points(space, entries), mine, problem.mechanism.q)


# ---- measuring ----------------------------------------------------------------------------------


def seed_problem(solver: mk.Solver) -> LeastSquaresProblem:
    """The least-squares problem of the only subproblem."""
    return Workspace(solver.pipeline.backends().compiled).parts[0]


def closed_configurations(case: Case, solver: mk.Solver, rng: np.random.Generator, count: int) -> list[Array]:
    """Configurations with all loops closed."""
    configurations: list[Array] = []
    while len(configurations) < count:
        drawn = case.mechanism.random(rng, count)
        if case.mechanism.closures:
            drawn = close_loops_of_starts(seed_problem(solver), drawn, Monitor())[0]
        configurations += list(drawn)
    return configurations[:count]


def measure(case: Case, order: Starts, count: int) -> tuple[str, ...]:
    """Attempts of those that are solved, iterations of all, percent solved with 10, 30 and 100 restarts."""
    rng = np.random.default_rng(SEED)
    solver = mk.Solver(case.mechanism, case.goals)
    targets = [case.target(q) for q in closed_configurations(case, solver, rng, count)]
    tries, iterations = np.full(count, np.inf), np.zeros(count)
    before, attempts.restart_sequence = attempts.restart_sequence, order
    try:
        for i, (target, q0) in enumerate(zip(targets, case.mechanism.random(rng, count), strict=True)):
            solution = solver.solve(target, q0, restarts=RESTARTS)
            tries[i] = solution.attempts if solution.success else np.inf
            iterations[i] = solution.iterations
    finally:
        attempts.restart_sequence = before
    solved = tries[np.isfinite(tries)]
    shares = "/".join(f"{100 * np.mean(tries <= most + 1):.4g}" for most in (10, 30, RESTARTS))
    return f"{solved.mean() if len(solved) else math.nan:.2f}", f"{iterations.mean():.1f}", shares


def costs(case: Case) -> str:
    """Microseconds, the least of some rounds: to draw starts, to make a table, to rank it, to close its loops."""
    solver = mk.Solver(case.mechanism, case.goals)
    problem = seed_problem(solver)
    space = case.mechanism.space

    def least(call: Callable[[], object], rounds: int = ROUNDS) -> float:
        best = math.inf
        for _ in range(rounds):
            start = clock()
            call()
            best = min(best, clock() - start)
        return 1e6 * best

    table = make_table(problem, 256)
    drawing = least(lambda: halton_configurations(space, RESTARTS))
    building, ranking = least(lambda: make_table(problem, 256)), least(lambda: table.starts_by_cost(problem))
    closing = "" if not table.has_constraints else f"{least(lambda: close_table_loops(problem, table), 3):.0f}"
    return f"{drawing:.0f} | {building:.0f} | {ranking:.0f} | {closing}"


def close_table_loops(problem: LeastSquaresProblem, table: SeedTable) -> Array:
    return close_loops_of_starts(problem, table.starts, Monitor())[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--count", type=int, default=200, help="targets of each case")
    count = parser.parse_args().count
    orders: dict[str, Callable[[], Starts]] = {"Halton's order": lambda: in_halton_order}
    orders |= {f"{size}": partial(from_table, size, closed=False) for size in SIZES}
    orders |= {f"{size} closed": partial(from_table, size, closed=True) for size in SIZES}
    orders["as it is"] = lambda: restart_sequence
    results = {
        case.name: [
            measure(case, make(), count) if case.mechanism.closures or "closed" not in name else ("", "", "")
            for name, make in orders.items()
        ]
        for case in cases()
    }
    titles = "Attempts until success", "Iterations", "Percent solved with 10/30/100 restarts"
    for k, title in enumerate(titles):
        print(f"{title}\n\n| case | {' | '.join(orders)} |\n|---|{'---:|' * len(orders)}")
        for name, row in results.items():
            print(f"| {name} | {' | '.join(cell[k] for cell in row)} |")
        print()
    print("Microseconds of the processor\n")
    print("| case | drawing 100 starts | making a table of 256 | ranking it | closing its loops |")
    print("|---|---:|---:|---:|---:|")
    for case in cases():
        print(f"| {case.name} | {costs(case)} |", flush=True)


if __name__ == "__main__":
    main()
