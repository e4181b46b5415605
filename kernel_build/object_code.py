"""Compile kernels to an object file for the processor that environment variables set; runs in a process of its own.

Each kernel is compiled as the JIT compiler would, up to optimised LLVM code. The code of all kernels is linked into
one module, in which only one function for each kernel is visible from outside: its entry. An entry takes the arguments
as a row of 64-bit values, so that one C function (in `kernels.c`) can check the arguments of any kernel and call the
kernel:

    int32_t entry(const int64_t *arguments, int64_t *results, Failure **failure)

A number is one value. An array is the address of its data, and then its lengths. An entry returns 0, or another number
after an exception, which `failure` then describes.
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

PROVIDED_FUNCTIONS = {
    "NRT_Allocate", "NRT_Free", "NRT_MemInfo_alloc", "NRT_MemInfo_alloc_aligned", "NRT_MemInfo_alloc_safe",
    "NRT_MemInfo_alloc_safe_aligned", "NRT_MemInfo_call_dtor", "numba_attempt_nocopy_reshape",
}  # fmt: skip
"""Functions of Numba's runtime that `kernels.c` defines."""
SYSTEM_FUNCTIONS = {
    "memcpy", "memmove", "memset", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "exp", "log", "pow", "sqrt",
    "hypot", "fmod", "floor", "ceil",
}  # fmt: skip
"""Functions of every C library."""
UNUSED_PREFIXES = ("Py", "_Py", "numba_gil_", "numba_unpickle")
"""Prefixes of functions and variables of Python and Numba to which the code refers, but which it never uses.

Numba needs them to write array shapes into the message of an exception, and to find a kernel whose address is not
given.
"""
I32, I64, DOUBLE, BYTES = ir.IntType(32), ir.IntType(64), ir.DoubleType(), ir.IntType(8).as_pointer()


def entry_name(level_identifier: str, module: str, kernel: str) -> str:
    """Return the name of the entry of a kernel in an object file."""
    return f"mechanik_{level_identifier}__{module.replace('.', '_')}__{kernel}"


def compile_object(level_identifier: str, modules: list[str]) -> bytes:
    """Return the content of the object file with all kernels of the modules, each under its `entry_name`."""
    _prepare_numba()
    linked_module: Any = None
    entries: set[str] = set()
    for module in modules:
        start_time = time.process_time()
        for name in _dispatchers(module):
            entry = entry_name(level_identifier, module, name)
            entries.add(entry)
            compile_result = _compile_result(module, name)
            callees = [_compile_result(*callee.split(":")) for callee in declared_kernels(module)[name].calls]
            for code in (compile_result.library.get_llvm_str(), _entry_code(entry, compile_result, callees)):
                module_code = llvm.parse_assembly(code)
                if linked_module is None:
                    linked_module = module_code
                else:
                    linked_module.link_in(module_code)
        print(f"{level_identifier}: {module} {time.process_time() - start_time:.1f} s", flush=True)
    runtime, _ = nrtdynmod.create_nrt_module(cpu_target.target_context)
    linked_module.link_in(llvm.parse_assembly(cgutils.normalize_ir_text(str(runtime))))
    _hide_symbols_except(linked_module, entries)
    start_time = time.process_time()
    content = _target_machine(linked_module).emit_object(linked_module)
    print(
        f"{level_identifier}: machine code {time.process_time() - start_time:.1f} s, {len(content) / 1e6:.1f} MB",
        flush=True,
    )
    return content


def _prepare_numba() -> None:
    """Make Numba stop after optimised LLVM code: the kernels may be for another processor and are not run here.

    Exceptions are stored without their source locations, which are paths of this machine.
    """

    def no_executable(context: Any, library: Any, description: Any, environment: Any) -> Any:
        library._ensure_finalized()  # links the subroutines that the library calls, and optimises
        return [description].append  # Numba only needs a different builtin function for each kernel

    def exception_without_location(convention: Any, kind: Any, arguments: Any, location: Any, function: Any) -> Any:
        return kind, arguments, None

    CPUContext.get_executable = no_executable
    CPUCallConv.build_excinfo_struct = exception_without_location


def _dispatchers(module: str) -> dict[str, Any]:
    """Return the Numba dispatchers of the kernels of a module, by name."""
    package = compiled_package()
    importlib.import_module(f"{package}.{module}")
    kernels = importlib.import_module(f"{package}.compiler").KERNELS[module]
    return {name: kernel.function for name, kernel in kernels.items()}


@functools.cache
def _compile_result(module: str, name: str) -> Any:
    """Compile a kernel and return the compile result of Numba."""
    dispatcher = _dispatchers(module)[name]
    dispatcher.targetoptions.update(INTERNAL_OPTIONS)
    dispatcher.compile(numba_signature(module, name))
    (compile_result,) = dispatcher.overloads.values()
    return compile_result


def _entry_code(name: str, compile_result: Any, callees: list[Any]) -> str:
    """Return the LLVM code of an entry, which calls a kernel with Numba's calling convention.

    Args:
        name: name of the entry.
        compile_result: compile result of the kernel.
        callees: compile results of the kernels that the kernel takes as its first arguments.
    """
    context = cpu_target.target_context
    module = context.codegen()._create_empty_module(name)
    function_type = ir.FunctionType(I32, [I64.as_pointer(), I64.as_pointer(), BYTES.as_pointer()])
    function = ir.Function(module, function_type, name)
    values, results, failure = function.args
    builder = ir.IRBuilder(function.append_basic_block())
    positions = iter(range(1 << 16))
    remaining_callees = iter(callees)

    def next_value() -> Any:
        return builder.load(builder.gep(values, [ir.Constant(I64, next(positions))]))

    def read_argument(numba_type: Any) -> Any:
        if isinstance(numba_type, types.FunctionType):
            pointer = context.make_helper(builder, numba_type)  # all other addresses are null
            address = context.declare_function(module, next(remaining_callees).fndesc)
            pointer.jit_addr = builder.bitcast(address, pointer.jit_addr.type)
            return pointer._getvalue()
        if not isinstance(numba_type, types.Array):
            return _as_number(builder, next_value(), numba_type)
        array = context.make_array(numba_type)(context, builder)
        data = builder.inttoptr(next_value(), array.data.type)
        shape = [next_value() for _ in range(numba_type.ndim)]
        item_size = context.get_abi_sizeof(context.get_data_type(numba_type.dtype))
        strides: list[Any] = [ir.Constant(I64, item_size)]
        for length in reversed(shape[1:]):
            strides.insert(0, builder.mul(length, strides[0]))
        arrayobj.populate_array(array, data, shape, strides, ir.Constant(I64, item_size), None)
        return array._getvalue()

    signature = compile_result.signature
    arguments = [read_argument(numba_type) for numba_type in signature.args]
    callee = context.declare_function(module, compile_result.fndesc)
    status, result = context.call_conv.call_function(builder, callee, signature.return_type, signature.args, arguments)
    builder.store(builder.bitcast(status.excinfoptr, BYTES), failure)
    with builder.if_then(status.is_ok):
        for k, (number, numba_type) in enumerate(_numbers(builder, result, signature.return_type)):
            builder.store(_as_value(builder, number, numba_type), builder.gep(results, [ir.Constant(I64, k)]))
    builder.ret(builder.select(status.is_ok, ir.Constant(I32, 0), ir.Constant(I32, 1)))
    return cgutils.normalize_ir_text(str(module))


def _numbers(builder: Any, result: Any, numba_type: Any) -> list[tuple[Any, Any]]:
    """Return the numbers of a result, with their types."""
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


def _hide_symbols_except(linked_module: Any, entries: set[str]) -> None:
    """Make all symbols but the entries internal, so that levels do not share code, and remove unused code.

    Raises:
        SystemExit: the code needs a function that neither `kernels.c` nor the C library has.
    """
    for group, stub in (
        (linked_module.functions, "define ptr @{}() {{ ret ptr null }}"),
        (linked_module.global_variables, "@{} = global ptr null"),
    ):
        for name in [
            symbol.name for symbol in group if symbol.is_declaration and symbol.name.startswith(UNUSED_PREFIXES)
        ]:
            linked_module.link_in(llvm.parse_assembly(stub.format(name)))
    for symbol in (*linked_module.functions, *linked_module.global_variables):
        if not symbol.is_declaration and symbol.name not in entries:
            symbol.linkage = "internal"
    builder = llvm.create_pass_builder(_target_machine(linked_module), llvm.create_pipeline_tuning_options())
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(linked_module, builder)
    symbols = (*linked_module.functions, *linked_module.global_variables)
    needed_names = {symbol.name for symbol in symbols if symbol.is_declaration}
    needed_names = {name for name in needed_names if not name.startswith("llvm.")}
    if unknown_names := needed_names - PROVIDED_FUNCTIONS - SYSTEM_FUNCTIONS:
        names = ", ".join(sorted(unknown_names))
        raise SystemExit(f"kernels need functions that kernels.c does not define: {names}; define them in kernels.c")


def _target_machine(linked_module: Any) -> Any:
    codegen = cpu_target.target_context.codegen()
    oldest_macos = os.environ.get("MACOSX_DEPLOYMENT_TARGET")
    if sys.platform == "darwin" and oldest_macos:
        # the default is the version of this machine
        linked_module.triple = f"{linked_module.triple.split('-')[0]}-apple-macosx{oldest_macos}"
    return llvm.Target.from_triple(linked_module.triple).create_target_machine(
        cpu=codegen._get_host_cpu_name(), features=codegen._tm_features, opt=3, reloc="pic", codemodel="default"
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m kernel_build.object_code")
    parser.add_argument("level")
    parser.add_argument("file", type=Path)
    parser.add_argument("modules", nargs="+")
    options = parser.parse_args()
    content = compile_object(level(options.level).identifier, options.modules)
    partial_file = options.file.with_suffix(".part")
    partial_file.write_bytes(content)
    os.replace(partial_file, options.file)


if __name__ == "__main__":
    main()
