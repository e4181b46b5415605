"""Startup time in each kernel tier: python benchmarks/startup.py [--before FILE]

Each line is a process of its own that imports Mechanik, loads a Panda and solves for a pose, with the kernels prebuilt
(if this installation has them), from the cache, in plain Python with an empty cache, and compiled while it waits. Then
the processor seconds that each module takes to compile, and the size of what has to be installed. Goals refer to
processor time. Fails if a goal is missed.

`--before FILE` takes a file of lines "module seconds" for a column of older times; `benchmarks/startup_before.txt` has
those of the last version without tiers, on the machine that its first line names.
"""

from __future__ import annotations

import argparse
import compileall
import importlib.metadata
import os
import platform
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from mechanik.errors import KernelsUnavailable
from mechanik.tiers import KERNEL_MODULES, use_kernels
from mechanik.tiers.compile_service import LOG_FILE

FIRST_SOLUTION_GOAL_S, IMPORT_GOAL_S, WARM_GOAL_S = 1.5, 0.1, 1.5
COMPILE_GOAL_S, GENERAL_GOAL_S, INSTALL_GOAL_MB = 100.0, 35.0, 80.0
SOLVE = """
import sys
import mechanik as mk
arm = mk.gallery.panda()
assert mk.solve(arm, mk.PoseGoal("panda_link8", position=(0.5, 0.2, 0.4), wxyz=(0, 1, 0, 0))).success
if {blocks_numba}: assert "numba" not in sys.modules
"""
BEFORE = Path(__file__).with_name("startup_before.txt")


class Cost(NamedTuple):
    """Of a whole process, without the processes that compile for it."""

    wall: float
    processor: float
    megabytes: float


def cost(code: str, times: int = 5, **environment: str) -> Cost:
    """The best of several processes that run `code`."""
    best = Cost(float("inf"), float("inf"), float("inf"))
    measured = code + "\nimport resource, time, sys; r = resource.getrusage(resource.RUSAGE_SELF)\n"
    measured += "print(r.ru_utime + r.ru_stime, r.ru_maxrss / (1024 if sys.platform == 'linux' else 1024**2))"
    for _ in range(times):
        start = time.perf_counter()
        whole = {**os.environ, **environment}
        done = subprocess.run([sys.executable, "-c", measured], check=True, env=whole, capture_output=True, text=True)
        processor, megabytes = map(float, done.stdout.split()[-2:])
        best = Cost(*map(min, best, (max(0.0, time.perf_counter() - start), processor, megabytes)))
    return best


class Report:
    """Lines on the terminal, and whether a goal was missed."""

    def __init__(self) -> None:
        self.missed = False

    def mark(self, value: float, goal: float | None, unit: str = "s") -> str:
        if goal is None:
            return ""
        late = value > goal
        self.missed |= late
        return f"  goal {goal:g} {unit}{'  <- missed' if late else ''}"

    def line(self, what: str, spent: Cost, goal: float | None = None) -> None:
        text = f"{what:52} {spent.wall:8.2f} s {spent.processor:8.2f} s {spent.megabytes:6.0f} MB"
        print(text + self.mark(spent.processor, goal))


def has(tier: str) -> bool:
    try:
        use_kernels(tier)
    except KernelsUnavailable:
        return False
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, default=BEFORE)
    before = read_before(parser.parse_args().before)
    report = Report()
    print(f"{platform.processor() or platform.machine()}, Python {platform.python_version()}\n")
    print(f"{'':52} {'wall':>10} {'processor':>10} {'memory':>9}")
    numpy, ours = cost("import numpy", 10), cost("import mechanik", 10)
    report.line("import numpy", numpy)
    beyond = Cost(*(max(0.0, a - b) for a, b in zip(ours, numpy, strict=True)))
    report.line("import mechanik, beyond that", beyond, IMPORT_GOAL_S)
    solve, without_numba = SOLVE.format(blocks_numba=False), SOLVE.format(blocks_numba=True)
    if has("prebuilt"):
        report.line("first solution, prebuilt kernels", cost(without_numba, MECHANIK_KERNELS="prebuilt"), WARM_GOAL_S)
    report.line("first solution, plain Python", cost(without_numba, MECHANIK_KERNELS="plain"), FIRST_SOLUTION_GOAL_S)
    if not has("jit"):
        print("Numba is not installed: nothing is compiled")
        return report.missed
    with tempfile.TemporaryDirectory() as cache:
        settings = {"MECHANIK_CACHE_DIR": cache, "MECHANIK_KERNELS": "auto"}
        report.line("first solution, empty cache, tier auto", cost(without_numba, 1, **settings), FIRST_SOLUTION_GOAL_S)
    with tempfile.TemporaryDirectory() as cache:
        settings = {"MECHANIK_CACHE_DIR": cache, "MECHANIK_KERNELS": "jit"}
        report.line("first solution, empty cache, waiting for the compiler", cost(solve, 1, **settings))
        report.line("first solution, compiled kernels in the cache", cost(solve, **settings), WARM_GOAL_S)
        start = time.perf_counter()
        cost("import mechanik as mk; mk.warm_up()", 1, **settings)
        print(f"\nall modules compiled, in parallel: {max(0.0, time.perf_counter() - start):.0f} s wall")
        show_compiling(read_log(Path(cache, "kernels", LOG_FILE)), before, report)
    show_sizes(report)
    print("\na goal was missed" if report.missed else "\nall goals met")
    return report.missed


def read_log(file: Path) -> dict[str, float]:
    """Processor seconds by module, as the compile service wrote them down."""
    return {line.split()[0]: float(line.split()[1]) for line in file.read_text().splitlines()}


def read_before(file: Path) -> dict[str, float]:
    if not file.exists():
        return {}
    lines = [line.split() for line in file.read_text().splitlines() if line and not line.startswith("#")]
    return {name: float(seconds) for name, seconds in lines}


def show_compiling(seconds: dict[str, float], before: dict[str, float], report: Report) -> None:
    print(f"\n{'processor seconds to compile':32} {'before':>8} {'now':>8}")
    for name in KERNEL_MODULES:
        old = f"{before[name]:8.1f}" if name in before else " " * 8
        goal = GENERAL_GOAL_S if name == "descent" else None
        print(f"{name:32} {old} {seconds[name]:8.1f}{report.mark(seconds[name], goal)}")
    total = sum(seconds[name] for name in KERNEL_MODULES)
    print(f"{'all':32} {sum(before.values()):8.1f} {total:8.1f}{report.mark(total, COMPILE_GOAL_S)}")


def show_sizes(report: Report) -> None:
    """Megabytes of the packages installed here and of the newest wheel in dist, with the bytecode that pip writes."""
    sizes = {name: size_of(name) for name in ("numpy", "defusedxml", "numba", "llvmlite")}
    wheels = sorted(Path(__file__).parents[1].glob("dist/*abi3*.whl"), key=lambda file: file.stat().st_mtime)
    each = ", ".join(f"{name} {size:.0f} ({bytecode:.0f})" for name, (size, bytecode) in sizes.items())
    print(f"\ninstalled size in MB (how much of it is bytecode): {each}")
    if wheels:
        sizes["mechanik"] = size_of_wheel(wheels[-1])
        total, bytecode = (sum(sizes[name][k] for name in ("mechanik", "numpy", "defusedxml")) for k in (0, 1))
        packed, own = wheels[-1].stat().st_size / 1e6, sizes["mechanik"]
        print(f"wheel {packed:.1f} MB, installed {own[0]:.1f} MB ({own[1]:.1f}); with all it needs:")
        print(f"  without bytecode {total - bytecode:.0f} MB" + report.mark(total - bytecode, INSTALL_GOAL_MB, "MB"))
        print(f"  with bytecode {total:.0f} MB" + report.mark(total, INSTALL_GOAL_MB, "MB"))


def size_of(package: str) -> tuple[float, float]:
    """Megabytes of an installed package, and how many of them are bytecode."""
    try:
        files = importlib.metadata.files(package) or []
    except importlib.metadata.PackageNotFoundError:
        return 0.0, 0.0
    return megabytes(Path(file.locate()) for file in files)


def size_of_wheel(wheel: Path) -> tuple[float, float]:
    """The same of a wheel, as pip would install it."""
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(wheel) as packed:
            packed.extractall(folder)
        compileall.compile_dir(folder, quiet=1)
        return megabytes(Path(folder).rglob("*"))


def megabytes(files: Iterable[Path]) -> tuple[float, float]:
    sizes = [(file.stat().st_size / 1e6, file.suffix == ".pyc") for file in files if file.is_file()]
    return sum(size for size, _ in sizes), sum(size for size, is_bytecode in sizes if is_bytecode)


if __name__ == "__main__":
    sys.exit(main())
