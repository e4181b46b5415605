"""Mechanik on loops beside the original, placo and Klampt, in one run on one core.

    python benchmarks/loops/run.py [--quick] [--only four_bar,arm_3r] [--out FILE.md]

Installs the original by npm, placo and Klampt by pip, each in a folder of its own below .bench/ (or MECHANIK_BENCH).
All get the same mechanisms and ticks, each tick from the previous solution. Rounds of all alternate; a tick counts with
the best of its times, and the mean over the ticks is printed, as the original's benchmark does. Independent forward
kinematics computes the errors of all solutions. Fails if a goal is missed, unless --quick.
"""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from cases import CASES
from loop_race import HERE, Entry, Result, race, take_one_core
from node_package import ORIGINAL as PACKAGE
from node_package import node_packages
from tables import ORIGINAL, OURS, goals, markdown

import mechanik as mk
from mechanik.comparison.benchmark_records import describe_machine

sys.path.append(str(HERE.parent / "peers"))
from arms import WORK
from environments import PEERS, environment, version_of

LOOPS = ("four_bar", "platform_single_point", "platform_single_weld")
WORKER = str(HERE / "loop_worker.py")
PAGE = """# Loops compared

Mechanisms with closed loops, and two arms, followed along paths by Mechanik, by closed-chain-ik, on whose ideas it
is based, and by placo and Klampt where they support it. Made by `benchmarks/loops/run.py`, in one run on one core.

All get the same mechanisms and ticks, each tick from the previous solution. *us per tick*: processor time, the mean
over ticks, each of which counts with the best of its rounds. *cpu*: of the whole process, in the best round. *closure
error*, *goal error*: the largest, m or rad, computed independently of all libraries. *missed*: ticks with a goal or
closure error above 3e-5 or a violated limit. The tolerances are 1e-5 for goals and 1e-9 for loops; closed-chain-ik
computes in single precision and has 1e-5 for both, Klampt has one tolerance for both, 1e-9.

*own*: with the options of its own hexapod demo, and of its own benchmark. *best*: with the fastest options that we
know. *by hand*: the crank's value is set and only the rest is solved for; else it is a goal, as for Mechanik.

"""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer ticks and rounds; missed goals do not fail")
    parser.add_argument("--only", default="", help=f"cases, of {', '.join(CASES)}")
    parser.add_argument("--original", default=PACKAGE, help="package that npm installs as the original (%(default)s)")
    parser.add_argument("--out", type=Path, help="also write the page here")
    arguments = parser.parse_args()
    only = [name.strip() for name in arguments.only.split(",") if name.strip()] or list(CASES)
    if unknown := set(only) - set(CASES):
        parser.error(f"--only knows {', '.join(CASES)}; not {', '.join(sorted(unknown))}")
    rounds, ticks = (3, 100) if arguments.quick else (9, 600)
    work = WORK / "loops"
    work.mkdir(parents=True, exist_ok=True)

    entries, absent, versions = make_entries(arguments.original)
    mk.warm_up()  # so that compiling is over before processes wait for it
    take_one_core()
    results: dict[str, dict[str, Result | str]] = {}
    titles: dict[str, str] = {}
    for name in only:
        case = CASES[name](min(ticks, 100) if name == "arm_100" else ticks)
        titles[name] = case.title
        results[name] = race([entry for entry in entries if entry.runs(name)], case, rounds, work) | absent
    met = goals(results, titles)
    page = markdown(results, titles, machine(), versions, met)
    missed = [goal.name for goal in met if not goal.is_met and goal.measured is not None]
    if not arguments.only:
        text, is_met = run_big_loops(arguments.quick)
        page += text
        missed += [] if is_met else ["big mechanisms"]
    print(page)
    if arguments.out:
        arguments.out.write_text(PAGE + page, encoding="utf-8")
    print("all goals met" if not missed else "missed: " + "; ".join(missed), file=sys.stderr)
    return int(bool(missed) and not arguments.quick)


def make_entries(original: str) -> tuple[list[Entry], dict[str, Result | str], str]:
    """Return all entries, the reasons why libraries are missing, and the versions."""
    entries = [Entry(OURS, (sys.executable, WORKER), {"driver": "mechanik"}, is_ours=True)]
    versions, absent = [f"Mechanik {mk.__version__}"], dict[str, Result | str]()
    try:
        folder, version = node_packages(WORK / "node", original)
        versions.append(f"closed-chain-ik {version}")
        for variant, cases in (("own", ()), ("best", tuple(name for name in CASES if name != "arm_100"))):
            command, settings = ("node", str(HERE / "drive_node.mjs")), {"packages": str(folder), "variant": variant}
            entries.append(Entry(f"{ORIGINAL}, {variant}", command, settings, cases))
    except RuntimeError as reason:
        absent[ORIGINAL] = str(reason)
    for driver, name in (("placo", "placo"), ("klampt", "Klampt")):
        peer = next(peer for peer in PEERS if peer.driver == driver)
        try:
            python = environment(driver, peer.needs)
        except RuntimeError as reason:
            absent[name] = str(reason)
            continue
        versions.append(f"{name} {version_of(peer)}")
        command = str(python), WORKER
        entries.append(Entry(name, command, {"driver": driver}, LOOPS))
        entries.append(Entry(f"{name}, by hand", command, {"driver": driver, "variant": "by hand"}, LOOPS[:1]))
    return entries, absent, ", ".join(versions)


def run_big_loops(quick: bool) -> tuple[str, bool]:
    """Return the output of `big_loops.py`, and whether it met its goals."""
    print("big mechanisms", file=sys.stderr, flush=True)
    command = [sys.executable, str(HERE.parent / "big_loops.py"), *(["--quick"] if quick else [])]
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    text = f"\n### Big mechanisms\n\nBy `benchmarks/big_loops.py`.\n\n```\n{completed.stdout or completed.stderr}```\n"
    return text, completed.returncode == 0


def machine() -> str:
    facts = describe_machine()
    cores = f"{facts['cores']} cores of which one is used"
    return f"{facts['processor']}, {cores}, {facts['system']}, Python {facts['python']}, {facts['date']}"


if __name__ == "__main__":
    sys.exit(main())
