"""ssik: closed forms of arms with six and seven joints.

By the artifact of `ssik build`, which its documentation recommends over reading the URDF at run time (0.17 instead of
7.8 ms for a Panda); one solution without equivalent full turns of joints is requested, which is its cheapest call.
"""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from arms import WORK
from driver import Driver as Base


class Driver(Base):
    def open(self) -> None:
        folder = WORK / "ssik"
        folder.mkdir(parents=True, exist_ok=True)
        name = f"{self.arm.stem}_ik"
        if not (folder / f"{name}.py").exists():
            build = [str(Path(sys.executable).parent / "ssik"), "build", str(self.arm.urdf)]
            build += ["--base", self.arm.base, "--ee", self.arm.tool, "--no-validate"]
            subprocess.run(build, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        artifact = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(artifact)
        self.call = artifact.solve

    def solve(self, target: Any, seed: Any) -> Any:
        solutions = self.call(target, max_solutions=1, enumerate_windings=False)
        return solutions[0].q if solutions else None

    def follow(self, target: Any, seed: Any) -> Any:
        solutions = self.call(target, max_solutions=1, q_seed=seed)
        return solutions[0].q if solutions else None

    def q(self, solution: Any) -> np.ndarray:
        return np.asarray(solution)
