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


COUNT_REFERENCES = """
from mechanik.tiers import numba_kernels
for module in ("forward", "write_targets"):
    for name, dispatcher in numba_kernels.compiled_dispatchers(module).items():
        (compile_result,) = dispatcher.overloads.values()
        if "@NRT_incref" in compile_result.library.get_llvm_str():
            print(name)
"""


def test_only_kernels_that_make_arrays_count_references(tmp_path: Path) -> None:
    # the atomic operations of the counts took a quarter of the time of short kernels
    assert run(COUNT_REFERENCES, tmp_path).split() == ["tree_poses"]


UNDECLARED_ARRAY = """
import importlib
import numpy as np
from mechanik.tiers import numba_kernels
compiler = importlib.import_module(numba_kernels.compiled_package() + ".compiler")

@compiler.subroutine
def new_array(n):
    return np.empty(n)

@compiler.kernel("f8(i8)")
def make_array(n):
    return new_array(n)[0]

try:
    make_array.compile("f8(i8)")
except ValueError as error:
    print(error)
"""


def test_kernel_that_does_not_declare_its_new_arrays_is_rejected(tmp_path: Path) -> None:
    # without references, nothing would free the array
    assert "declare it as kernel(..., allocates=True)" in run(UNDECLARED_ARRAY, tmp_path)


NEGATIVE_INDEX = """
import importlib
import numpy as np
from mechanik.tiers import numba_kernels
compiler = importlib.import_module(numba_kernels.compiled_package() + ".compiler")

@compiler.kernel("f8(f8[::1], f8[:,::1], i8)")
def read(a, b, i):
    return a[i] + b[i, 0]

read.compile("f8(f8[::1], f8[:,::1], i8)")
for i in (1, -1):
    try:
        print(read(np.arange(2.0), np.arange(2.0).reshape(2, 1), i))
    except IndexError as error:
        print(error)
"""


def test_negative_indices_are_not_counted_from_the_end_of_an_array(tmp_path: Path) -> None:
    # so kernels need no code for them, which took a third of the time of solves with closed loops
    lines = run(NEGATIVE_INDEX, tmp_path, NUMBA_BOUNDSCHECK="1").splitlines()
    assert lines == ["2.0", "index is out of bounds"]
