"""The compiler pipelines for kernels give the same results as the default pipeline of Numba."""

from __future__ import annotations

from pathlib import Path

from kernel_programs import run

COMPILE = """
import sys
from mechanik.tiers import numba_kernels
package = numba_kernels.compiled_package()
import importlib
pipeline = importlib.import_module(package + ".numba_pipeline")
pipeline.IS_AVAILABLE = {is_available}
code = numba_kernels.compile_module("forward")
functions = numba_kernels.load_functions("forward", code)
import numpy as np
import mechanik as mk
arm = mk.gallery.panda()
path = arm.kinematics.paths["panda_link8"]
out = np.empty((3, 4, 4))
assert functions["chain_poses"](path, arm.space.random(np.random.default_rng(0), 3), out)
print(out.tolist())
"""


def test_pipelines_give_the_poses_of_the_default_one(tmp_path: Path) -> None:
    ours, default = (run(COMPILE.format(is_available=available), tmp_path) for available in ("True", "False"))
    assert ours == default
