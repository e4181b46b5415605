"""Figures of the solutions, tables of the figures, and the goals they meet."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from arms import ARMS, PROTOCOLS
from race import Solutions

SAME_BRANCH = {"panda": 0.6, "ur5": 0.05}
"""rad, of each joint between a solution and the values that made the target. The eight solutions of a UR5 are isolated,
so each is either reached again or lost; those of a Panda are continuous families. A solution is also in the branch of
the seed if it is nearer to the seed than those values: close to a singular pose another branch may be."""
JUMP = 3.0
"""Largest joint step that is allowed, as multiple of the largest step of the path itself."""
MIN_SOLVED_SHARE = 0.9
"""Share of targets that a peer must solve to count as best peer."""


@dataclass(frozen=True)
class Figures:
    """Of one library on one arm and protocol.

    Attributes:
        count: targets in a round.
        solved: share of them with a verified solution, over all rounds.
        us: processor time for each verified solution; all targets' time counts, solved or not.
        cpu_us: of the whole process in a round, likewise.
        same_branch: share of solutions in the branch of the seed (near).
        step: the largest step of a joint from one solution to the next, in the path's own largest steps (B).
    """

    count: int
    solved: float
    us: float
    cpu_us: float
    same_branch: float = math.nan
    step: float = math.nan


Table = Mapping[str, Figures | str]
"""By the names of rows: figures, or why there are none."""
Results = Mapping[tuple[str, str], Table]
"""By protocol and arm."""


def figures(solutions: Solutions, protocol: str, arm: str, data: Mapping[str, Any]) -> Figures:
    """A target counts with the median of its times in all rounds; a batch with its best round."""
    count = solutions.q.shape[1]
    middle = np.min if protocol == "C" else np.median
    seconds, cpu = float(middle(solutions.times, axis=0).sum()), float(middle(solutions.cpu))
    solved = float(solutions.right.mean())
    each = 1e6 / (solved * count) if solved else math.inf
    same_branch = step = math.nan
    if protocol == "near":
        distance = np.abs(solutions.q - data["q_made"][:count]).max(axis=2)
        seed, made = data["q_near"][:count], data["q_made"][:count]
        nearer = np.linalg.norm(solutions.q - seed, axis=2) < np.linalg.norm(made - seed, axis=1)
        same_branch = float((solutions.right & ((distance <= SAME_BRANCH[arm]) | nearer)).mean())
    if protocol == "B":
        step = max(largest_step(data["q_start"], q) for q in solutions.q) / float(data["largest_step"])
    return Figures(count, solved, each * seconds, each * cpu, same_branch, step)


def largest_step(q_start: np.ndarray, q: np.ndarray) -> float:
    """Largest step of any joint between successive solutions; NaN rows are skipped."""
    solved = q[~np.isnan(q).any(axis=1)]
    return float(np.abs(np.diff(np.vstack([q_start, solved]), axis=0)).max(initial=0.0))


def best_peer(table: Table, ours: frozenset[str], only: str = "") -> tuple[str, Figures] | None:
    """The fastest peer that solves enough targets; `only` restricts it to one peer."""
    rows = [
        (name, row)
        for name, row in table.items()
        if isinstance(row, Figures) and name not in ours and row.solved >= MIN_SOLVED_SHARE and only in ("", name)
    ]
    return min(rows, key=lambda row: row[1].us, default=None)


# ---- goals ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Goal:
    """A goal and its measured value; `measured` None: not measured.

    `sign` -1: less is better.
    """

    name: str
    wanted: float
    measured: float | None
    note: str = ""
    unit: str = ""
    sign: int = 1

    @property
    def is_met(self) -> bool:
        return self.measured is not None and self.sign * self.measured >= self.sign * self.wanted

    def row(self) -> str:
        measured = "-" if self.measured is None else f"{self.measured:.4g}{self.unit}"
        verdict = "yes" if self.is_met else "not measured" if self.measured is None else "**no**"
        bound = "at least" if self.sign > 0 else "at most"
        return f"| {self.name} | {bound} {self.wanted:g}{self.unit} | {measured} | {self.note} | {verdict} |"


RATIOS = (
    ("A", "panda", 20.0, ""),
    ("A", "ur5", 6.0, ""),
    ("B", "panda", 7.0, ""),
    ("B", "ur5", 7.0, ""),
    ("C", "panda", 100.0, ""),
    ("C", "ur5", 4.0, "EAIK"),
)
"""Protocol, arm, how many times faster than the best peer, or than this one."""
SAME_BRANCH_GOALS = {"ur5": 97.0, "panda": 93.0}


def goals(results: Results, us: str, ours: frozenset[str]) -> list[Goal]:
    """
    Args:
        us: the row whose ratios count.
        ours: all rows that are no peers; each has to solve everything, and to make no jump.
    """
    all_goals: list[Goal] = []
    for protocol, arm, wanted, only in RATIOS:
        table = results.get((protocol, arm), {})
        mine, peer = table.get(us), best_peer(table, ours, only)
        ratio = peer[1].us / mine.us if peer is not None and isinstance(mine, Figures) else None
        note = f"against {peer[0]}" if peer else ""
        all_goals.append(Goal(f"{protocol}, {ARMS[arm].name}: times as fast", wanted, ratio, note))
    for arm, wanted in SAME_BRANCH_GOALS.items():
        mine = results.get(("near", arm), {}).get(us)
        same_branch = 100 * mine.same_branch if isinstance(mine, Figures) else None
        all_goals.append(Goal(f"near, {ARMS[arm].name}: in the seed's branch", wanted, same_branch, unit=" %"))
    for (protocol, arm), table in results.items():
        for name in sorted(ours & set(table)):
            row = table[name]
            solved = 100 * row.solved if isinstance(row, Figures) else None
            why = row if isinstance(row, str) else ""
            all_goals.append(Goal(f"{protocol}, {ARMS[arm].name}: {name} solves", 100.0, solved, why, " %"))
            if protocol == "B" and isinstance(row, Figures):
                jump = f"B, {ARMS[arm].name}: largest step of {name}"
                all_goals.append(Goal(jump, JUMP, row.step, "times the path's own", sign=-1))
    return all_goals


# ---- tables ---------------------------------------------------------------------------------


def markdown(results: Results, us: str, machine: str, versions: str, met: list[Goal]) -> str:
    lines = [f"Machine: {machine}", "", f"Versions: {versions}", ""]
    for protocol, what in PROTOCOLS.items():
        tables = {arm: results[protocol, arm] for arm in ARMS if (protocol, arm) in results}
        if tables:
            lines += [f"### {protocol}: {what}", "", *_table(protocol, tables, us), ""]
    lines += ["### Goals", "", "| | goal | measured | | met |", "|---|---|---|---|---|"]
    lines += [goal.row() for goal in met]
    return "\n".join(lines) + "\n"


def _table(protocol: str, tables: Mapping[str, Table], us: str) -> list[str]:
    unit = "solves/s" if protocol == "C" else "us"
    heads = [f"{ARMS[arm].name}, {unit} (solved) [cpu] | times ours" for arm in tables]
    names = dict.fromkeys(name for table in tables.values() for name in table)
    lines = ["| | " + " | ".join(heads) + " |", "|---" * (1 + 2 * len(tables)) + "|"]
    for name in names:
        cells = [_cells(protocol, table.get(name), table.get(us)) for table in tables.values()]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def _cells(protocol: str, row: Figures | str | None, mine: Figures | str | None) -> str:
    if not isinstance(row, Figures):
        return f"{row or '-'} | "
    if row.solved == 0:
        return "(0 %) | "
    if protocol == "C":
        cell = f"{1e6 / row.us:,.0f} ({share(row.solved)}) [{1e6 / row.cpu_us:,.0f}]"
    else:
        cell = f"{brief(row.us)} ({share(row.solved)}) [{brief(row.cpu_us)}]"
    if protocol == "near":
        cell += f", same branch {100 * row.same_branch:.1f} %"
    if protocol == "B" and row.step > JUMP:
        cell += f", jumps: {row.step:.0f} x the path's step"
    ratio = brief(row.us / mine.us) if isinstance(mine, Figures) and mine.us < math.inf else ""
    return f"{cell} | {ratio}"


def share(value: float) -> str:
    """100 % only where it is all of them."""
    return "100 %" if value == 1.0 else f"{min(100 * value, 99.99):.4g} %"


def brief(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
