"""Record the arguments of kernel calls in the examples: python record_calls.py OUT.pickle

The file has, for each kernel ("forward:chain_pose"), the arguments of its first calls and of some later ones.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import pickle
import runpy
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import mechanik as mk
from mechanik.tiers import KERNEL_MODULES, kernel_module
from mechanik.tiers.kernel_sources import declared_kernels

ROOT = Path(__file__).parents[2]
EXAMPLES = ("04", "05", "06", "07", "09", "13", "14", "19", "20", "22", "24")
MAX_CALLS = 12
MAX_BYTES = 2_000_000
"""Largest size of the arguments of a recorded call."""

Calls = dict[str, list[tuple[Any, ...]]]


def is_recorded(count: int) -> bool:
    """Whether the call with this number is recorded: the first four, then powers of two."""
    return count <= 4 or (count & (count - 1)) == 0


def copies(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(argument.copy() if isinstance(argument, np.ndarray) else argument for argument in arguments)


def argument_bytes(arguments: tuple[Any, ...]) -> int:
    return sum(argument.nbytes for argument in arguments if isinstance(argument, np.ndarray))


def try_methods() -> None:
    """Solve by every method, with options that only some methods have."""
    arm = mk.gallery.panda(hand=False)
    q0, target = arm.q, arm.pose("panda_link8", arm.q + 0.3)
    goals = (mk.PoseGoal("panda_link8", target), mk.PositionGoal("panda_link8", target[:3, 3]))
    for name, goal, options in itertools.product(mk.METHODS, goals, ({}, {"rest": q0}, {"gradient": "differences"})):
        with contextlib.suppress(mk.MechanikError):  # no method has all options
            mk.Solver(arm, goal, solver=name, max_iterations=20, **options).solve(q0=q0, restarts=0)
    targets = arm.pose("panda_link8", arm.random(np.random.default_rng(0), 50))
    mk.Solver(arm, goals[0]).solve_batch(targets)
    arm.jacobian("panda_link8", arm.random(np.random.default_rng(1), 20))


def record() -> Calls:
    """Record the calls of all kernels during the examples."""
    calls: Calls = {}

    def recorded(key: str, function: Callable[..., Any]) -> Callable[..., Any]:
        count = 0
        recorded_arguments = calls.setdefault(key, [])

        def call(*arguments: Any) -> Any:
            nonlocal count
            count += 1
            if is_recorded(count) and len(recorded_arguments) < MAX_CALLS and argument_bytes(arguments) < MAX_BYTES:
                recorded_arguments.append(copies(arguments))
            return function(*arguments)

        return call

    for module in KERNEL_MODULES:
        functions = kernel_module(module)
        for name in declared_kernels(module):
            setattr(functions, name, recorded(f"{module}:{name}", getattr(functions, name)))
    try_methods()
    for number in EXAMPLES:
        (path,) = (ROOT / "examples").glob(f"{number}_*.py")
        with contextlib.redirect_stdout(io.StringIO()):
            runpy.run_path(str(path), run_name="__main__")
    return calls


def main() -> None:
    out = Path(sys.argv[1]).resolve()
    mk.warm_up()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        calls = record()
    partial = out.with_suffix(f".{os.getpid()}.part")
    partial.write_bytes(pickle.dumps(calls))
    os.replace(partial, out)


if __name__ == "__main__":
    main()
