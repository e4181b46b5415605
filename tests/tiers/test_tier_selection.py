"""Selection of a tier, signatures and source stamps, and argument checks that all tiers share."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from kernel_programs import PACKAGE, POSE, start

import mechanik as mk
from mechanik.errors import KernelsUnavailable
from mechanik.kernels.compiler import Kernel
from mechanik.tiers import KERNEL_MODULES, availability, kernel_module, kernel_states
from mechanik.tiers import kernel_sources as plain
from mechanik.tiers.kernel_sources import (
    KERNEL_FOLDER,
    KernelArgument,
    declared_kernels,
    imported_sources,
    parse_signature,
    source_stamp,
    with_functions,
)

TIERS = ("jit", "plain")


def test_signatures_are_parsed() -> None:
    signature = parse_signature("UniTuple(f8, 2)(i8[::1], f8[:,::1], f8, b1[:,:,::1], i8)")
    assert signature.result == "UniTuple(f8, 2)"
    assert signature.arguments == (
        KernelArgument("i8", 1), KernelArgument("f8", 2), KernelArgument("f8", 0), KernelArgument("b1", 3),
        KernelArgument("i8", 0),
    )  # fmt: skip
    assert with_functions("i8(f8, f8[::1])", ["b1(f8)"]) == "i8(FunctionType(b1(f8)), f8, f8[::1])"
    with pytest.raises(ValueError, match="neither a number nor a contiguous array"):
        parse_signature("i8(f8[:,:])")


@pytest.mark.parametrize("module", KERNEL_MODULES)
def test_every_kernel_has_a_signature_that_fits_its_arguments(module: str) -> None:
    for name, kernel in declared_kernels(module).items():
        taken = kernel.function.__code__.co_argcount
        assert taken == len(kernel.calls) + len(parse_signature(kernel.signature).arguments), name


@pytest.mark.parametrize("module", KERNEL_MODULES)
def test_stamp_covers_every_source_that_is_imported(module: str) -> None:
    """The stamp finds imports by their text; Python's own parser finds the same."""

    def imports(file: Path) -> set[Path]:
        sources: set[Path] = set()
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and node.level:
                base = file.parents[node.level - 1].joinpath(*(node.module or "").split("."))
                sources |= {base.with_suffix(".py")} | {base / f"{alias.name}.py" for alias in node.names}
        return {source for source in sources if source.is_file()}

    reached, waiting = set(), [KERNEL_FOLDER / f"{module.replace('.', '/')}.py"]
    while waiting:
        file = waiting.pop()
        if file not in reached:
            reached.add(file)
            waiting += imports(file)
    assert reached <= set(imported_sources(module))
    assert KERNEL_FOLDER / "compiler.py" in imported_sources(module)


def test_kernels_import_one_another_relatively() -> None:
    for file in KERNEL_FOLDER.rglob("*.py"):
        assert "mechanik.kernels." not in "".join(
            line for line in file.read_text().splitlines(True) if line.startswith(("from ", "import "))
        ), file


def test_a_change_in_one_package_leaves_the_stamps_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert source_stamp("descent") != source_stamp("chain_kernel")
    for name in KERNEL_MODULES:
        packages = {
            file.relative_to(KERNEL_FOLDER).parts[0] for file in imported_sources(name) if file.parent != KERNEL_FOLDER
        }
        assert packages <= {name.partition(".")[0], "distance"}


def test_an_unknown_tier_is_rejected_with_the_names_of_the_tiers(tmp_path: Path) -> None:
    with pytest.raises(KernelsUnavailable, match="auto, prebuilt, jit, plain"):
        mk.use_kernels("fast")
    program = start(POSE, tmp_path, tier="fast")
    out, _ = program.communicate(timeout=60)
    assert "MECHANIK_KERNELS is 'fast', but must be one of auto, prebuilt, jit, plain" in out


def test_without_numba_jit_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(availability, "numba_version", lambda: None)
    with pytest.raises(KernelsUnavailable, match=r"pip install 'mechanik\[jit\]'"):
        mk.use_kernels("jit")


def test_states_name_every_module(use_tier: Callable[[str], None]) -> None:
    use_tier("plain")
    assert [kernel_state.module for kernel_state in kernel_states()] == list(KERNEL_MODULES)
    assert {(str(kernel_state.tier), kernel_state.state) for kernel_state in kernel_states()} == {("plain", "ready")}


def test_an_unknown_function_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="the kernels forward have no function 'nothing'"):
        kernel_module("forward").nothing  # noqa: B018


def arguments() -> dict[str, list[object]]:
    """Of `chain_pose`, (nodes, q, out): right ones, and wrong ones by what is wrong."""
    arm = mk.gallery.planar_2r()
    nodes, q, out = arm.kinematics.paths["tool"], np.zeros(2), np.empty((4, 4))
    read_only = q.copy()
    read_only.flags.writeable = False
    return {
        "right": [nodes, q, out],
        "single precision": [nodes, q.astype("f4"), out],
        "whole numbers": [nodes, q.astype(int), out],
        "other byte order": [nodes, q.astype(">f8"), out],
        "strided": [nodes, np.zeros(4)[::2], out],
        "column order": [nodes, q, np.asfortranarray(out)],
        "two dimensions": [nodes, q[None], out],
        "read-only": [nodes, read_only, out],
        "a list": [nodes, [0.0, 0.0], out],
        "nothing": [nodes, None, out],
        "too few": [nodes, q],
        "too many": [nodes, q, out, out],
        "objects": [nodes, q.astype(object), out],
        "a number": [nodes, 0.0, out],
    }


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("what", [
    "single precision", "whole numbers", "other byte order", "strided", "column order", "two dimensions", "read-only",
    "a list", "nothing", "too few", "too many", "objects", "a number",
])  # fmt: skip
def test_arguments_that_do_not_fit_are_a_type_error(tier: str, what: str, use_tier: Callable[[str], None]) -> None:
    use_tier(tier)
    given = arguments()
    assert kernel_module("forward").chain_pose(*given["right"])
    with pytest.raises(TypeError):
        kernel_module("forward").chain_pose(*given[what])


def test_the_package_imports_kernels_only_through_tiers() -> None:
    """A kernel that is imported by name would stay plain Python for good."""
    for file in PACKAGE.rglob("*.py"):
        if file.is_relative_to(KERNEL_FOLDER) or "tiers" in file.parts or "web" in file.parts:
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mechanik.kernels."):
                module = node.module.removeprefix("mechanik.kernels.")
                functions = set(declared_kernels(module)) if module in KERNEL_MODULES else set()
                assert not functions & {alias.name for alias in node.names}, file


def test_plain_python_divides_by_zero_as_machine_code_does() -> None:
    """With Python's own numbers, which are fast, a division by zero raises: then the call is done again."""

    def invert(x: np.ndarray, y: np.ndarray) -> float:
        x[0] += 1.0
        y[1] = 1.0 / y[0]
        return x[0] + y[1]

    call = plain._with_argument_checks(
        "invert", Kernel(invert, "f8(f8[::1], f8[::1])", True, (), False), plain.FLOAT_VIEWS
    )
    x, y = np.zeros(1), np.zeros(2)
    assert call(x, y) == np.inf
    assert x[0] == 1.0  # and not 2.0
    y[0] = 4.0
    assert call(x, y) == 2.25
