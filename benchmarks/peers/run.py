"""Mechanik beside its peers, in one run on one core.

    python benchmarks/peers/run.py [--quick] [--only A,panda,eaik] [--out FILE.md]

Installs the peers into environments of their own under .bench/, runs protocols A, near, B and C on a Panda and a UR5,
and prints Markdown tables. Rounds of all libraries alternate; a target counts with the median of its times. Every
solution is verified by Pinocchio, in a process of its own. Fails if a goal is missed, unless --quick.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import numpy as np
from arms import ARMS, PROTOCOLS, TOLERANCE, WORK
from environments import ORACLE, PEERS, environment, version_of
from race import Entry, Solutions, print_progress, process_environment, race
from report import Figures, Goal, figures, goals, markdown

import mechanik as mk
from mechanik.comparison.benchmark_records import describe_machine

US = "Mechanik"
HERE = Path(__file__).parent


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer targets and rounds; missed goals do not fail")
    parser.add_argument("--only", default="", help="protocols, arms and drivers, such as A,B,panda,eaik,ssik")
    parser.add_argument("--out", type=Path, help="also write the tables here")
    arguments = parser.parse_args()
    only = {word.strip().lower() for word in arguments.only.split(",") if word.strip()}
    known = {*ARMS, *(name.lower() for name in PROTOCOLS), *(peer.driver for peer in PEERS)}
    if only - known:
        parser.error(f"--only knows {', '.join(sorted(known))}; not {', '.join(sorted(only - known))}")
    rounds, budget = (3, 0.12) if arguments.quick else (7, 0.8)

    oracle = environment("oracle", ORACLE)
    entries, absent = make_entries(chosen(only, [peer.driver for peer in PEERS]))
    make_targets(oracle)
    mk.warm_up()  # so that compiling is over before processes wait for it
    results: dict[tuple[str, str], dict[str, Figures | str]] = {}
    for protocol in chosen(only, list(PROTOCOLS)):
        for arm in chosen(only, list(ARMS)):
            running = [entry for entry in entries if protocol in entry.protocols.split()]
            data = dict(np.load(ARMS[arm].targets))
            outcome = race(running, arm, protocol, rounds, budget, oracle)
            rows = {entry.name: outcome[entry.name] for entry in running}
            results[protocol, arm] = {
                name: figures(row, protocol, arm, data) if isinstance(row, Solutions) else row
                for name, row in rows.items()
            } | absent
    ours = frozenset(entry.name for entry in entries if entry.is_ours)
    met = goals(results, US, ours)
    page = markdown(results, US, machine(), versions(), met)
    print(page)
    if arguments.out:
        arguments.out.write_text(page, encoding="utf-8")
    return verdict(met, arguments.quick)


def chosen(only: set[str], among: list[str]) -> list[str]:
    """All names, unless `only` contains some."""
    return [name for name in among if name.lower() in only] or among


def make_entries(drivers: list[str]) -> tuple[list[Entry], dict[str, Figures | str]]:
    """Return all entries, and the reasons why peers are missing."""
    here = Path(sys.executable)
    entries = [
        Entry(US, "mechanik", here, TOLERANCE, is_ours=True),
        Entry(f"{US}, random seed", "mechanik", here, TOLERANCE, "seeded", "A", is_ours=True),
        Entry(f"{US}, to 1e-6", "mechanik", here, 1e-6, "", "A B C", is_ours=True),
    ]
    absent: dict[str, Figures | str] = {}
    for peer in PEERS:
        if peer.driver in drivers:
            try:
                entries.append(Entry(peer.name, peer.driver, environment(peer.driver, peer.needs), TOLERANCE))
            except RuntimeError as reason:
                absent[peer.name] = str(reason)
    return entries, absent


def make_targets(oracle: Path) -> None:
    print_progress("making targets")
    subprocess.run([str(oracle), str(HERE / "oracle.py"), "targets"], check=True, env=process_environment())


def machine() -> str:
    facts = describe_machine()
    cores = f"{facts['cores']} cores of which one is used"
    return f"{facts['processor']}, {cores}, {facts['system']}, Python {facts['python']}, {facts['date']}"


def versions() -> str:
    each = [f"Mechanik {mk.__version__}", *(f"{peer.name} {version_of(peer)}" for peer in PEERS)]
    return ", ".join(each) + f"; verified by Pinocchio {ORACLE[0].partition('==')[2]}"


def verdict(met: list[Goal], quick: bool) -> int:
    missed = [goal for goal in met if not goal.is_met and (goal.measured is not None or goal.note)]
    print_progress("all goals met" if not missed else "missed: " + "; ".join(goal.name for goal in missed))
    return int(bool(missed) and not quick)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print_progress(f"stopped; installed packages remain in {WORK}")
        sys.exit(130)
