"""From results to tables, and which goals they meet."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from loop_race import Result

OURS = "Mechanik"
ORIGINAL, PEERS = "closed-chain-ik", ("placo", "Klampt")
CLOSURE_TOLERANCE = 1e-9

Table = Mapping[str, Result | str]
"""By entry: the result, or the reason why there is none."""
Results = Mapping[str, Table]
"""By case."""


@dataclass(frozen=True)
class Goal:
    """A goal and its measured value; `measured` None: not measured. `sign` -1: less is better."""

    name: str
    wanted: float
    measured: float | None
    note: str = ""
    sign: int = 1

    @property
    def is_met(self) -> bool:
        return self.measured is not None and self.sign * self.measured >= self.sign * self.wanted

    def row(self) -> str:
        measured = "-" if self.measured is None else f"{self.measured:.3g}"
        verdict = "yes" if self.is_met else "not measured" if self.measured is None else "**no**"
        bound = "at least" if self.sign > 0 else "at most"
        return f"| {self.name} | {bound} {self.wanted:g} | {measured} | {self.note} | {verdict} |"


OWN, BEST = f"{ORIGINAL}, own", f"{ORIGINAL}, best"
RATIOS = (
    *((who, case, wanted) for case, wanted in (
        ("arm_3r", 4.0), ("four_bar", 4.0), ("four_bar_weld", 4.0),
        ("platform_single_weld", 30.0), ("platform_multi_weld", 80.0),
    ) for who in (OWN, BEST)),
    (PEERS, "four_bar", 4.0),
    (PEERS, "platform_single_point", 8.0),
    (PEERS, "platform_single_weld", 8.0),
)  # fmt: skip
"""Row or rows to compare with, case, and required ratio. The original's own hexapod closes its legs by welds."""


def goals(results: Results, titles: Mapping[str, str]) -> list[Goal]:
    all_goals: list[Goal] = []
    for who, case, wanted in RATIOS:
        table = results.get(case, {})
        mine, rival = table.get(OURS), best(table, who)
        ratio = rival[1].us / mine.us if rival and isinstance(mine, Result) else None
        against = who if isinstance(who, str) else "the better of " + " and ".join(who)
        note = f"{rival[0]}: {brief(rival[1].us)} us" if rival else ""
        all_goals.append(Goal(f"{titles.get(case, case)}: times as fast as {against}", wanted, ratio, note))
    for case, table in results.items():
        mine = table.get(OURS)
        missed = mine.missed if isinstance(mine, Result) else None
        note = mine if isinstance(mine, str) else f"of {mine.ticks}" if mine else ""
        all_goals.append(Goal(f"{titles[case]}: ticks missed", 0, missed, note, sign=-1))
        if isinstance(mine, Result) and mine.closure > 0:
            all_goals.append(Goal(f"{titles[case]}: largest closure error", CLOSURE_TOLERANCE, mine.closure, sign=-1))
    return all_goals


def best(table: Table, who: str | tuple[str, ...]) -> tuple[str, Result] | None:
    """The fastest row of these libraries that misses no tick; if all miss ticks, the fastest."""
    rows = [(name, row) for name, row in table.items() if isinstance(row, Result) and name.startswith(who)]
    right = [row for row in rows if row[1].missed == 0]
    return min(right or rows, key=lambda row: row[1].us, default=None)


def markdown(results: Results, titles: Mapping[str, str], machine: str, versions: str, met: list[Goal]) -> str:
    lines = [f"Machine: {machine}", "", f"Versions: {versions}", ""]
    for case, table in results.items():
        lines += [f"### {titles[case]}", "", *_table(table), ""]
    lines += ["### Goals", "", "| | goal | measured | | met |", "|---|---|---|---|---|"]
    lines += [goal.row() for goal in met]
    return "\n".join(lines) + "\n"


def _table(table: Table) -> list[str]:
    heads = "| | us per tick | [cpu] | closure error | goal error | missed | times ours |"
    return [heads, "|---" * 7 + "|", *(_row(name, row, table.get(OURS)) for name, row in table.items())]


def _row(name: str, row: Result | str, mine: Result | str | None) -> str:
    if isinstance(row, str):
        return f"| {name} | {row} | | | | | |"
    ratio = brief(row.us / mine.us) if isinstance(mine, Result) else ""
    missed = f"{row.missed} of {row.ticks}"
    return (
        f"| {name} | {brief(row.us)} | {brief(row.cpu_us)} | {tiny(row.closure)} | {tiny(row.goal)} "
        f"| {missed} | {ratio} |"
    )


def brief(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def tiny(value: float) -> str:
    return "no solution" if math.isinf(value) else f"{value:.0e}" if value else "-"
