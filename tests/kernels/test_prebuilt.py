"""Prebuilt kernels: the same results as compiled on this machine, at every level, and no crash on wrong arguments."""

from __future__ import annotations

import functools
import gc
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import mechanik as mk
from mechanik.tiers import KERNEL_MODULES, kernel_module
from mechanik.tiers.kernel_sources import declared_kernels, parse_signature, plain_functions, source_stamp

KERNELS = [(module, name) for module in KERNEL_MODULES for name in declared_kernels(module)]
SOURCES = Path(mk.__file__).parents[1]
TOLERANCES = {"x86-64": 1e-5}
"""Without fused multiply-adds iterations take other steps; their ends differ within the solver's tolerance."""
BEYOND_V3 = re.compile(
    r"\t(?:extrq|insertq|movnts[sd]|sha\d\w+|v?aes\w+|v?pclmul\w*|ad[co]x|rd(?:rand|seed|pid|pru|[fg]sbase)|wr[fg]sbase"
    r"|cl(?:flushopt|wb|zero)|m(?:onitor|wait)x|prefetchw|wbnoinvd|xsave\w+)\b|%zmm\d+|%k[0-7]"
)
"""Instructions and registers, as objdump writes them, of Zen 2 and of AVX-512."""
Calls = dict[str, list[tuple[Any, ...]]]
Function = Callable[..., Any]


def copies(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(argument.copy() if isinstance(argument, np.ndarray) else argument for argument in arguments)


@functools.cache
def jit_functions(module: str) -> dict[str, Function]:
    """The kernels of a module, compiled on this machine."""
    try:
        mk.use_kernels("jit")
        return {name: getattr(kernel_module(module), name) for name in declared_kernels(module)}
    finally:
        mk.use_kernels(os.environ.get("MECHANIK_KERNELS", "auto"))


def outcomes(function: Function, arguments: tuple[Any, ...]) -> list[Any]:
    """The results of a call: its arrays, which it may have changed, and its return value."""
    arguments_copy = copies(arguments)
    result = function(*arguments_copy)
    return [*(argument for argument in arguments_copy if isinstance(argument, np.ndarray)), result]


# ---- the same results ---------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("module", "name"), KERNELS, ids=[":".join(kernel) for kernel in KERNELS])
def test_prebuilt_kernel_gives_the_same_result_as_compiled(
    module: str, name: str, extension: ModuleType, recorded_calls: Calls
) -> None:
    calls = recorded_calls[f"{module}:{name}"]
    assert calls, "no example calls this kernel"
    compiled = jit_functions(module)[name]
    for level in extension.levels:
        prebuilt = extension.functions(module, level)[name]
        for arguments in calls:
            for prebuilt_outcome, compiled_outcome in zip(
                outcomes(prebuilt, arguments), outcomes(compiled, arguments), strict=True
            ):
                assert type(prebuilt_outcome) is type(compiled_outcome)
                if level == "host":
                    assert np.asarray(prebuilt_outcome).tobytes() == np.asarray(compiled_outcome).tobytes()
                elif prebuilt_outcome is not None:
                    tolerance = TOLERANCES.get(level, 1e-9)
                    np.testing.assert_allclose(prebuilt_outcome, compiled_outcome, rtol=tolerance, atol=tolerance)


@pytest.mark.slow
def test_every_level_has_all_kernels(extension: ModuleType) -> None:
    for level in extension.levels:
        for module in KERNEL_MODULES:
            assert set(extension.functions(module, level)) == set(declared_kernels(module))


@pytest.mark.slow
def test_level_v3_uses_only_instructions_of_x86_64_v3(v3_object_file: Path) -> None:
    """The level is compiled with the instruction costs of a processor that has more instructions."""
    if shutil.which("objdump") is None:
        pytest.skip("objdump is not installed")
    command = ["objdump", "-d", "--no-show-raw-insn", str(v3_object_file)]
    listing = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "vfmadd" in listing
    assert sorted(set(BEYOND_V3.findall(listing))) == []


@pytest.mark.slow
def test_stamps_equal_those_of_the_sources(extension: ModuleType) -> None:
    assert extension.stamps == {module: source_stamp(module) for module in KERNEL_MODULES}


# ---- unusual arguments --------------------------------------------------------------------------


class Unreadable:
    """Every conversion raises a KeyError."""

    def __float__(self) -> float:
        raise KeyError("float")

    def __index__(self) -> int:
        raise KeyError("index")

    def __bool__(self) -> bool:
        raise KeyError("bool")


@np.errstate(all="ignore")  # of casts
def wrong_arrays(array: np.ndarray) -> dict[str, Any]:
    """Values that no kernel accepts instead of an array."""
    read_only = array.copy()
    read_only.flags.writeable = False
    wrong: dict[str, Any] = {
        "none": None, "a number": 1.0, "a list": [1.0, 2.0], "a string": "array", "an object": Unreadable(),
        "objects": array.astype(object), "single precision": array.astype("f2"), "complex": array.astype(complex),
        "strings": array.astype("U"), "no dimension": np.array(1.0), "one dimension more": array[None],
        "32 dimensions": array.reshape((1,) * (32 - array.ndim) + array.shape), "read-only": read_only,
        "a record": np.zeros(array.shape, [("x", array.dtype)]), "time": np.zeros(array.shape, "M8[s]"),
        "unsigned": array.astype("u8"),
    }  # fmt: skip
    if array.dtype.itemsize > 1:
        wrong["of another byte order"] = array.astype(array.dtype.newbyteorder())
    if array.dtype.itemsize > 1 and array.size:
        wrong["not aligned"] = np.zeros(array.nbytes + 1, np.uint8)[1:].view(array.dtype).reshape(array.shape)
    if array.size > 1:
        wrong["every other number"] = np.repeat(array, 2, axis=-1)[..., ::2]
        wrong["backwards"] = np.flip(array)
        wrong["one dimension less"] = array.ravel() if array.ndim > 1 else array[0]
    if array.ndim > 1 and min(array.shape) > 1:
        wrong["by columns"] = np.asfortranarray(array)
    return wrong


def wrong_numbers(code: str) -> dict[str, Any]:
    wrong = {"none": None, "a string": "1", "a list": [1], "an array": np.zeros(3), "complex": 1j, "a type": int}
    return {} if code == "b1" else wrong  # every object has a truth value


def tiers(extension: ModuleType, module: str, name: str) -> dict[str, Function]:
    prebuilt = {level: extension.functions(module, level)[name] for level in extension.levels}
    return {**prebuilt, "jit": jit_functions(module)[name], "plain": plain_functions(module)[name]}


@pytest.mark.slow
@pytest.mark.parametrize(("module", "name"), KERNELS, ids=[":".join(kernel) for kernel in KERNELS])
def test_wrong_arguments_raise_type_errors_in_every_tier(
    module: str, name: str, extension: ModuleType, recorded_calls: Calls
) -> None:
    valid = recorded_calls[f"{module}:{name}"][0]
    arguments = parse_signature(declared_kernels(module)[name].signature).arguments
    for tier, function in tiers(extension, module, name).items():
        for wrong_count in (valid[:-1], (*valid, valid[-1]), ()):
            with pytest.raises(TypeError):
                function(*wrong_count)
        for k, argument in enumerate(arguments):
            for description, wrong in (
                wrong_arrays(valid[k]) if argument.ndim else wrong_numbers(argument.code)
            ).items():
                with pytest.raises(TypeError):
                    pytest.fail(f"{tier} takes {description} for {k}: {function(*valid[:k], wrong, *valid[k + 1 :])}")


@pytest.mark.slow
def test_subclasses_of_arrays_are_accepted(extension: ModuleType) -> None:
    class Own(np.ndarray):
        pass

    length = extension.functions("methods.gradient_steps")["longest_step_length"]
    gradient = np.array([3.0, 4.0])
    assert length(gradient.view(Own), 1.0) == length(gradient, 1.0) == length(gradient, 1) == length(gradient, True)
    assert length(gradient, np.float32(1.0)) == length(gradient, np.int8(1)) == length(gradient, 1.0)


@pytest.mark.slow
def test_exceptions_of_argument_conversion_are_passed_on(extension: ModuleType) -> None:
    length = extension.functions("methods.gradient_steps")["longest_step_length"]
    with pytest.raises(KeyError, match="float"):
        length(np.ones(2), Unreadable())


@pytest.mark.slow
def test_integers_beyond_64_bits_are_rejected(extension: ModuleType, recorded_calls: Calls) -> None:
    module, name, k = next(
        (module, name, k)
        for module, name in KERNELS
        for k, argument in enumerate(parse_signature(declared_kernels(module)[name].signature).arguments)
        if (argument.code, argument.ndim) == ("i8", 0)
    )
    valid = recorded_calls[f"{module}:{name}"][0]
    function = extension.functions(module)[name]
    with pytest.raises(OverflowError):
        function(*valid[:k], 1 << 64, *valid[k + 1 :])
    with pytest.raises(TypeError):
        function(*valid[:k], 1.5, *valid[k + 1 :])


@pytest.mark.slow
def test_array_addresses_are_read_after_all_number_conversions(extension: ModuleType) -> None:
    """Else the address of an array would be used after its memory was freed."""
    gradient = np.ones(1 << 20)

    class Shrinking:
        def __float__(self) -> float:
            gradient.resize(2, refcheck=False)
            return 1.0

    length = extension.functions("methods.gradient_steps")["longest_step_length"]
    assert length(gradient, Shrinking()) == length(np.ones(2), 1.0)


ODD_INPUTS = """
import sys, numpy as np, mechanik, mechanik as mk
if sys.argv[2] == "prebuilt":
    mechanik.__path__.append(sys.argv[1])
mk.use_kernels(sys.argv[2])
arm = mk.gallery.panda(); q0 = arm.q.copy(); X = arm.pose("panda_link8", q0 + 0.1)
ik = mk.Solver(arm, mk.PoseGoal("panda_link8", X))
fixed = X.copy(); fixed.flags.writeable = False
targets = {"f4": X.astype("f4"), "fortran": np.asfortranarray(X), "strided": np.tile(X, (2, 2))[::2, ::2],
    "transposed": X.T.copy().T, "ints": np.eye(4, dtype=int), "big-endian": X.astype(">f8"), "1d": X.ravel(),
    "3d": X[None], "3x3": X[:3, :3], "read-only": fixed, "nan": X * np.nan, "inf": X * np.inf, "none": None,
    "object": X.astype(object), "list": X.tolist(), "empty": np.empty((0, 4, 4)), "matrix": np.matrix(X)}
starts = {"f4": q0.astype("f4"), "ints": np.zeros(arm.nq, int), "strided": np.repeat(q0, 2)[::2], "2d": q0[None],
    "short": q0[:-1], "8d": q0.reshape((1,) * 7 + (-1,)), "nan": q0 * np.nan, "strings": q0.astype(str)}
def show(what, call):
    try:
        print(what, np.round(np.asarray(call()).sum(), 5) + 0.0)
    except Exception as error:
        print(what, type(error).__name__, str(error)[:90])
for name, target in targets.items():
    show("target " + name, lambda: ik.solve(target, q0).q)
for name, start in starts.items():
    show("start " + name, lambda: ik.solve(X, start).q)
    show("pose " + name, lambda: arm.pose("panda_link8", start))
    show("jacobian " + name, lambda: arm.jacobian("panda_link8", start))
"""


@pytest.mark.slow
def test_unusual_user_inputs_give_the_same_output_in_every_tier(prebuilt_file: Path) -> None:
    outputs = {tier: run_python(ODD_INPUTS, str(prebuilt_file.parent), tier) for tier in ("prebuilt", "jit", "plain")}
    assert outputs["prebuilt"] == outputs["jit"]
    assert outputs["prebuilt"] == outputs["plain"]


# ---- exceptions inside kernels ------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("columns", "count", "error"), [(18, 1 << 40, MemoryError), (1, 1 << 59, ValueError)])
def test_exceptions_inside_kernels_are_raised(columns: int, count: int, error: type, extension: ModuleType) -> None:
    """The kernel allocates a row for each row of an array that is larger than any memory."""
    nodes = np.lib.stride_tricks.as_strided(np.zeros((1, columns)), (count, columns), (8 * columns, 8))
    other_arguments = np.zeros((1, 18)), np.zeros((1, 1)), np.zeros((1, 1, 4, 4))
    messages: list[str] = []
    for function in (
        *(extension.functions("forward", level)["tree_poses"] for level in extension.levels),
        jit_functions("forward")["tree_poses"],
    ):
        with pytest.raises(error) as raised:
            function(nodes, *other_arguments)
        messages.append(str(raised.value))
    assert len(set(messages)) == 1


# ---- the extension ------------------------------------------------------------------------------


def run_python(code: str, *arguments: str, **environment: str) -> str:
    env = {**os.environ, "PYTHONPATH": str(SOURCES), **environment}
    command = [sys.executable, "-c", code, *arguments]
    process = subprocess.run(command, env=env, capture_output=True, text=True, timeout=1800)
    assert process.returncode == 0, process.stderr
    return process.stdout


LEVEL = """
import sys, mechanik
mechanik.__path__.append(sys.argv[1])
from mechanik.tiers.availability import prebuilt_functions, prebuilt_level
try:
    print(prebuilt_level(), prebuilt_functions("forward")["chain_pose"].__name__, "numba" in sys.modules)
except mechanik.errors.KernelsUnavailable as error:
    print(error)
"""


@pytest.mark.slow
def test_environment_variable_chooses_the_level(prebuilt_file: Path, extension: ModuleType) -> None:
    folder = str(prebuilt_file.parent)
    assert run_python(LEVEL, folder) == f"{extension.level} chain_pose False\n"
    for level in extension.levels:
        assert run_python(LEVEL, folder, MECHANIK_KERNELS_LEVEL=level) == f"{level} chain_pose False\n"
    output = run_python(LEVEL, folder, MECHANIK_KERNELS_LEVEL="z80")
    assert output == f"MECHANIK_KERNELS_LEVEL is 'z80', but must be one of {', '.join(extension.levels)}\n"


@pytest.mark.slow
def test_unknown_modules_are_empty_and_unknown_levels_raise(extension: ModuleType) -> None:
    assert extension.functions("no.such.module") == {}
    for wrong in ((), (1,), ("forward", None), ("forward", extension.level, "")):
        with pytest.raises(TypeError):
            extension.functions(*wrong)
    with pytest.raises(ValueError, match="no machine code of level 'z80'"):
        extension.functions("forward", "z80")


STALE = """
import sys, mechanik
mechanik.__path__.append(sys.argv[1])
from mechanik.tiers import availability as prebuilt
changed = prebuilt.source_stamp
prebuilt.source_stamp = lambda module: "changed" if module == "forward" else changed(module)
print(prebuilt.prebuilt_functions("forward"), prebuilt.prebuilt_functions("dense_evaluation") is None)
"""


@pytest.mark.slow
def test_prebuilt_kernels_of_other_sources_are_ignored(prebuilt_file: Path) -> None:
    assert run_python(STALE, str(prebuilt_file.parent)) == "None False\n"


OTHER_NUMPY = """
import sys, types, numpy
class ndarray:
    pass
sys.modules["numpy"] = other = types.ModuleType("numpy")
other.__dict__.update({name: getattr(numpy, name) for name in ("zeros", "dtype")}, ndarray=ndarray)
sys.path.append(sys.argv[1])
try:
    import _kernels
except ImportError as error:
    print(error)
"""


@pytest.mark.slow
def test_numpy_with_another_array_layout_is_rejected(prebuilt_file: Path) -> None:
    assert "another memory layout" in run_python(OTHER_NUMPY, str(prebuilt_file.parent))


@pytest.mark.slow
def test_other_threads_run_during_a_long_kernel_call(extension: ModuleType, recorded_calls: Calls) -> None:
    arguments = max(
        recorded_calls["lane_kernel:solve_targets"],
        key=lambda call: sum(getattr(argument, "nbytes", 0) for argument in call),
    )
    solve = extension.functions("lane_kernel")["solve_targets"]
    is_over = threading.Event()
    calls = 0

    def work() -> None:
        nonlocal calls
        while not is_over.is_set():
            solve(*copies(arguments))
            calls += 1

    thread = threading.Thread(target=work)
    thread.start()
    iterations, deadline = 0, time.monotonic() + 1.0
    while time.monotonic() < deadline:
        iterations += 1
    is_over.set()
    thread.join()
    assert calls > 0
    assert iterations > 100


@pytest.mark.slow
def test_threads_get_the_same_results(extension: ModuleType, recorded_calls: Calls) -> None:
    arguments = recorded_calls["chain_kernel:solve_target"][0]
    solve = extension.functions("chain_kernel")["solve_target"]
    expected = [np.asarray(outcome).tobytes() for outcome in outcomes(solve, arguments)]
    failures: list[int] = []

    def work(k: int) -> None:
        for _ in range(50):
            if [np.asarray(outcome).tobytes() for outcome in outcomes(solve, arguments)] != expected:
                failures.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


@pytest.mark.slow
def test_calls_leak_no_references(extension: ModuleType) -> None:
    length = extension.functions("methods.gradient_steps")["longest_step_length"]
    gradient, number, wrong = np.ones(3), 1234.5, np.ones(3, "f4")

    def use() -> None:
        for _ in range(1000):
            length(gradient, number)
            with pytest.raises(TypeError):
                length(wrong, number)

    use()
    gc.collect()
    counts_before = [sys.getrefcount(argument) for argument in (gradient, number, wrong)]
    use()
    gc.collect()
    assert [sys.getrefcount(argument) for argument in (gradient, number, wrong)] == counts_before
