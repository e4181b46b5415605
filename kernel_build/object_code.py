"""Compile kernels to an object file for the processor that the environment names. Runs in a process of its own.

Each kernel is compiled as the JIT compiler would, up to optimised LLVM code. The code of all kernels is linked into
one module, in which only the entries are visible from outside. An entry takes its arguments as a row of 64-bit values,
so that one C function (`kernels.c`) can check the arguments of any kernel and call it:

    int32_t entry(const int64_t *arguments, int64_t *results, const Failure **failure)

Numbers are one value each, arrays the address of their data and then their lengths. An entry returns 0, or another
number after an exception, which `failure` then describes.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import os
import sys
import time
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.callconv import CPUCallConv
from numba.core.cpu import CPUContext
from numba.core.registry import cpu_target
from numba.core.runtime import nrtdynmod
from numba.np import arrayobj

from kernel_build.levels import level
from mechanik.kernels.compiler import INTERNAL_OPTIONS
from mechanik.tiers.kernel_sources import declared_kernels
from mechanik.tiers.numba_kernels import compiled_package, numba_signature

PROVIDED = {
    "NRT_Allocate", "NRT_Free", "NRT_MemInfo_alloc", "NRT_MemInfo_alloc_aligned", "NRT_MemInfo_alloc_safe",
    "NRT_MemInfo_alloc_safe_aligned", "NRT_MemInfo_call_dtor", "numba_attempt_nocopy_reshape",
}  # fmt: skip
"""Functions of Numba's runtime that `kernels.c` has."""
SYSTEM = {
    "memcpy", "memmove", "memset", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "exp", "log", "pow", "sqrt",
    "hypot", "fmod", "floor", "ceil",
}  # fmt: skip
"""Functions of every C library."""
NEVER_CALLED = ("Py", "_Py", "numba_gil_", "numba_unpickle")
"""Functions of Python, by how their names begin. Numba has two uses for them that do not occur here: putting shapes of
arrays into the message of an exception when it reaches Python, and finding a kernel whose address is not given."""
I32, I64, DOUBLE, BYTES = ir.IntType(32), ir.IntType(64), ir.DoubleType(), ir.IntType(8).as_pointer()


def entry_name(level_identifier: str, module: str, kernel: str) -> str:
    """The name of a kernel in an object file."""
    return f"mechanik_{level_identifier}__{module.replace('.', '_')}__{kernel}"


def compile_object(level_identifier: str, modules: list[str]) -> bytes:
    """The object file with all kernels of some modules, each under its `entry_name`."""
    _prepare_numba()
    linked: Any = None
    entries: set[str] = set()
    for module in modules:
        start = time.process_time()
        for name in _dispatchers(module):
            entry = entry_name(level_identifier, module, name)
            entries.add(entry)
            compiled = _compiled(module, name)
            callees = [_compiled(*callee.split(":")) for callee in declared_kernels(module)[name].calls]
            for code in (compiled.library.get_llvm_str(), _entry_code(entry, compiled, callees)):
                module_code = llvm.parse_assembly(code)
                if linked is None:
                    linked = module_code
                else:
                    linked.link_in(module_code)
        print(f"{level_identifier}: {module} {time.process_time() - start:.1f} s", flush=True)
    runtime, _ = nrtdynmod.create_nrt_module(cpu_target.target_context)
    linked.link_in(llvm.parse_assembly(cgutils.normalize_ir_text(str(runtime))))
    _hide_all_but(linked, entries)
    start = time.process_time()
    content = _target_machine(linked).emit_object(linked)
    print(
        f"{level_identifier}: machine code {time.process_time() - start:.1f} s, {len(content) / 1e6:.1f} MB", flush=True
    )
    return content


def _prepare_numba() -> None:
    """Let Numba stop after optimised LLVM code: nothing is run in this process, and this may be another processor.

    Exceptions are stored without their source locations, which are paths of this machine.
    """

    def no_executable(context: Any, library: Any, description: Any, environment: Any) -> Any:
        library._ensure_finalized()  # linked with the subroutines that it calls, and optimised
        return [description].append  # a builtin function of its own for each kernel, which is all that Numba needs

    def exception(convention: Any, kind: Any, arguments: Any, location: Any, function: Any) -> Any:
        return kind, arguments, None

    CPUContext.get_executable = no_executable
    CPUCallConv.build_excinfo_struct = exception


def _dispatchers(module: str) -> dict[str, Any]:
    """The kernels of a module as Numba's dispatchers, by name."""
    package = compiled_package()
    importlib.import_module(f"{package}.{module}")
    kernels = importlib.import_module(f"{package}.compiler").KERNELS[module]
    return {name: kernel.function for name, kernel in kernels.items()}


@functools.cache
def _compiled(module: str, name: str) -> Any:
    """The compile result of Numba for a kernel."""
    dispatcher = _dispatchers(module)[name]
    dispatcher.targetoptions.update(INTERNAL_OPTIONS)
    dispatcher.compile(numba_signature(module, name))
    (compiled,) = dispatcher.overloads.values()
    return compiled


def _entry_code(name: str, compiled: Any, callees: list[Any]) -> str:
    """LLVM code of the function that takes a row of values, and calls a kernel as Numba's functions call each other.

    Args:
        callees: the kernels that the kernel takes as its first arguments.
    """
    context = cpu_target.target_context
    module = context.codegen()._create_empty_module(name)
    function_type = ir.FunctionType(I32, [I64.as_pointer(), I64.as_pointer(), BYTES.as_pointer()])
    function = ir.Function(module, function_type, name)
    values, results, failure = function.args
    builder = ir.IRBuilder(function.append_basic_block())
    positions = iter(range(1 << 16))
    remaining_callees = iter(callees)

    def value() -> Any:
        return builder.load(builder.gep(values, [ir.Constant(I64, next(positions))]))

    def argument(numba_type: Any) -> Any:
        if isinstance(numba_type, types.FunctionType):
            pointer = context.make_helper(builder, numba_type)  # all other addresses are null
            address = context.declare_function(module, next(remaining_callees).fndesc)
            pointer.jit_addr = builder.bitcast(address, pointer.jit_addr.type)
            return pointer._getvalue()
        if not isinstance(numba_type, types.Array):
            return _as_number(builder, value(), numba_type)
        array = context.make_array(numba_type)(context, builder)
        data = builder.inttoptr(value(), array.data.type)
        shape = [value() for _ in range(numba_type.ndim)]
        item = context.get_abi_sizeof(context.get_data_type(numba_type.dtype))
        strides: list[Any] = [ir.Constant(I64, item)]
        for length in reversed(shape[1:]):
            strides.insert(0, builder.mul(length, strides[0]))
        arrayobj.populate_array(array, data, shape, strides, ir.Constant(I64, item), None)
        return array._getvalue()

    signature = compiled.signature
    arguments = [argument(numba_type) for numba_type in signature.args]
    callee = context.declare_function(module, compiled.fndesc)
    status, result = context.call_conv.call_function(builder, callee, signature.return_type, signature.args, arguments)
    builder.store(builder.bitcast(status.excinfoptr, BYTES), failure)
    with builder.if_then(status.is_ok):
        for k, (number, numba_type) in enumerate(_numbers(builder, result, signature.return_type)):
            builder.store(_as_value(builder, number, numba_type), builder.gep(results, [ir.Constant(I64, k)]))
    builder.ret(builder.select(status.is_ok, ir.Constant(I32, 0), ir.Constant(I32, 1)))
    return cgutils.normalize_ir_text(str(module))


def _numbers(builder: Any, result: Any, numba_type: Any) -> list[tuple[Any, Any]]:
    """The numbers of a result, with their types."""
    if numba_type in (types.void, types.none):
        return []
    if isinstance(numba_type, types.UniTuple):
        return [(builder.extract_value(result, k), numba_type.dtype) for k in range(numba_type.count)]
    return [(result, numba_type)]


def _as_number(builder: Any, value: Any, numba_type: Any) -> Any:
    if numba_type == types.float64:
        return builder.bitcast(value, DOUBLE)
    if numba_type == types.boolean:
        return builder.icmp_unsigned("!=", value, ir.Constant(I64, 0))
    assert numba_type == types.int64, numba_type
    return value


def _as_value(builder: Any, number: Any, numba_type: Any) -> Any:
    if numba_type == types.float64:
        return builder.bitcast(number, I64)
    return builder.zext(number, I64) if number.type.width < 64 else number


def _hide_all_but(linked: Any, entries: set[str]) -> None:
    """Make all symbols but the entries internal, so that levels do not mix, and remove unused code."""
    for group, stub in (
        (linked.functions, "define ptr @{}() {{ ret ptr null }}"),
        (linked.global_variables, "@{} = global ptr null"),
    ):
        for name in [symbol.name for symbol in group if symbol.is_declaration and symbol.name.startswith(NEVER_CALLED)]:
            linked.link_in(llvm.parse_assembly(stub.format(name)))
    for symbol in (*linked.functions, *linked.global_variables):
        if not symbol.is_declaration and symbol.name not in entries:
            symbol.linkage = "internal"
    builder = llvm.create_pass_builder(_target_machine(linked), llvm.create_pipeline_tuning_options())
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(linked, builder)
    needed = {symbol.name for symbol in (*linked.functions, *linked.global_variables) if symbol.is_declaration}
    needed = {name for name in needed if not name.startswith("llvm.")}
    if unknown := needed - PROVIDED - SYSTEM:
        raise SystemExit(f"kernels need functions that kernels.c does not have: {', '.join(sorted(unknown))}")


def _target_machine(linked: Any) -> Any:
    codegen = cpu_target.target_context.codegen()
    oldest = os.environ.get("MACOSX_DEPLOYMENT_TARGET")
    if sys.platform == "darwin" and oldest:
        linked.triple = f"{linked.triple.split('-')[0]}-apple-macosx{oldest}"  # else that of this machine
    return llvm.Target.from_triple(linked.triple).create_target_machine(
        cpu=codegen._get_host_cpu_name(), features=codegen._tm_features, opt=3, reloc="pic", codemodel="default"
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m kernel_build.object_code")
    parser.add_argument("level")
    parser.add_argument("file", type=Path)
    parser.add_argument("modules", nargs="+")
    options = parser.parse_args()
    content = compile_object(level(options.level).identifier, options.modules)
    partial = options.file.with_suffix(".part")
    partial.write_bytes(content)
    os.replace(partial, options.file)


if __name__ == "__main__":
    main()
