"""Numba compiler pipelines that optimise a kernel once, together with all functions that it calls.

By default Numba compiles every function as if it were called from Python: LLVM optimises it and translates it to
machine code; then its module is linked into the module of each caller and is optimised and translated again. In a deep
call tree LLVM processes the innermost functions once for each level. It is enough to optimise internal functions as
part of the kernels that call them.

Numba itself is not changed. `njit` takes a pipeline class, and the classes here extend those of Numba:

- `SubroutineLibrary` contains the module of an internal function, which is neither optimised nor executable.
- `KernelLibrary` links the modules of all direct and indirect callees into the module of a kernel, and then optimises
  it as Numba does. In a kernel that makes no new arrays, the caller holds all arrays, and references are not counted:
  the atomic operations took a quarter of the time of the chain kernel.
- `CachedTyping` resolves the types of an operator or built-in function once for each combination of argument types.
  Indices of arrays become unsigned, so that code which counts negative indices from the end of an array is not needed:
  without it, solves with closed loops take 0.65 of the time.
- `FastFlags` compares compiler options fast.
- `SubroutineCompiler` and `KernelCompiler` are Numba's default pipeline with these classes and without the passes
  that kernels do not need.

With a version of Numba outside the range `TESTED_VERSIONS`, or without one of the extended classes, `pipeline_options`
returns no options, and Numba uses its default pipeline. Compiling then takes about twice as long; results are the same
up to the rounding of reordered sums.
"""

from __future__ import annotations

import gc
import operator
from typing import Any

TESTED_VERSIONS = (0, 61), (0, 68)
"""The first and the last Numba version, (major, minor), with which these pipelines are tested."""

REFERENCE_COUNTING = {"NRT_incref", "NRT_decref", "NRT_MemInfo_call_dtor", "NRT_MemInfo_data_fast"}
"""Functions of Numba's runtime in code that makes no new arrays."""

try:
    from llvmlite import binding as llvm
    from numba import version_info
    from numba.core import types
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import Compiler, Flags
    from numba.core.compiler_machinery import register_pass
    from numba.core.typed_passes import NativeLowering, NopythonTypeInference

    DEFAULT_FLAGS = {name: option.default for name, option in Flags.options.items()}
    IS_AVAILABLE = TESTED_VERSIONS[0] <= version_info.short <= TESTED_VERSIONS[1]
except (ImportError, AttributeError):
    IS_AVAILABLE = False

UNUSED_PASSES = ("inline_closure_likes", "nopython_rewrites")
"""Numba passes for comprehensions, closures and whole-array arithmetic, which kernels do not use."""
ALLOCATIONS_PER_COLLECTION = 50_000
"""Threshold of the garbage collector while a kernel compiles; trades memory for compile time.

The largest kernel takes 26 s to compile with a threshold of 700 (the default of Python 3.11), 24 s with 10,000 and 23 s
without any collection. Collection is not switched off, since memory would grow: with Numba's default pipeline to 1.6
times.
"""


def pipeline_options(is_kernel: bool) -> dict[str, Any]:
    """Return the options for `njit` that select the pipeline of a kernel or of an internal function."""
    if not IS_AVAILABLE:
        return {}
    return {"pipeline_class": KernelCompiler if is_kernel else SubroutineCompiler}


if IS_AVAILABLE:

    class SubroutineLibrary(JITCodeLibrary):
        """The LLVM module of an internal function, which is optimised later as part of each kernel."""

        def finalize(self) -> None:
            self._raise_if_finalized()
            for function in self._final_module.functions:
                if not function.is_declaration and function.linkage == llvm.Linkage.external:
                    function.linkage = "linkonce_odr"  # several kernels may contain this function
            for library in self._linking_libraries:
                _inherit_reload_functions(self, library)
            self._finalized = True

        def _optimize_functions(self, module: Any) -> None:
            module.data_layout = self._codegen._data_layout  # optimisation happens in the kernel

        @property
        def codegen(self) -> Any:
            return _NoEnvironment

        def get_pointer_to_function(self, name: str) -> int:
            self._ensure_finalized()
            return 0  # Numba's value for a function that cannot be called from Python

        def _get_module_for_linking(self) -> Any:
            """Return this module with all its callees, for a caller that uses Numba's default pipeline."""
            self._ensure_finalized()
            if self._shared_module is None:
                module = self._final_module.clone()
                for library in callees(self):
                    module.link_in(_own_module(library), preserve=True)
                self._shared_module = module
            return self._shared_module

    class _NoEnvironment:
        """Code generator of a function without machine code: no variable has the address of Numba's environment."""

        @staticmethod
        def set_env(name: str, environment: object) -> None:
            pass

    class KernelLibrary(JITCodeLibrary):
        """The code of a kernel and of all its direct and indirect callees."""

        counts_references = True

        def finalize(self) -> None:
            for library in callees(self):
                _inherit_reload_functions(self, library)
                self._final_module.link_in(_own_module(library), preserve=True)
            if not self.counts_references:
                _remove_reference_counts(self._final_module)
            for function in self._final_module.functions:
                if not function.is_declaration and function.linkage == llvm.Linkage.linkonce_odr:
                    function.linkage = "internal"  # LLVM then inlines single-caller functions: up to 8 % faster
            self._linking_libraries = []
            super().finalize()

    def _remove_reference_counts(module: Any) -> None:
        """Replace the functions that count references to arrays by functions without effect.

        Raises:
            ValueError: the code makes new arrays.
        """
        names = {function.name for function in module.functions if function.name.startswith("NRT_")}
        if names - REFERENCE_COUNTING:
            raise ValueError(f"{module.name} makes new arrays; declare it as kernel(..., allocates=True)")
        for name in names & {"NRT_incref", "NRT_decref"}:
            # this definition replaces the one of Numba, which may be replaced (linkonce_odr)
            pointer = next(module.get_function(name).arguments).type  # LLVM 15 has i8* instead of ptr
            module.link_in(llvm.parse_assembly(f"define void @{name}({pointer} %array) alwaysinline {{ ret void }}"))
            module.get_function(name).linkage = "internal"

    def callees(library: Any) -> list[Any]:
        """Return all libraries that a library needs, callers first, since LLVM links only referenced functions."""
        order: list[Any] = []
        visited: set[int] = set()

        def visit(caller: Any) -> None:
            for callee in caller._linking_libraries if isinstance(caller, SubroutineLibrary | KernelLibrary) else ():
                if id(callee) not in visited:
                    visited.add(id(callee))
                    visit(callee)
                    order.append(callee)

        visit(library)
        return order[::-1]

    def _own_module(library: Any) -> Any:
        library._ensure_finalized()
        return library._final_module if isinstance(library, SubroutineLibrary) else library._get_module_for_linking()

    def _inherit_reload_functions(caller: Any, callee: Any) -> None:
        """Copy the functions that run when a cached caller is loaded; older Numba versions have none."""
        if hasattr(caller, "_reload_init"):
            caller._reload_init.update(callee._reload_init)

    class CachedTyping:
        """A typing context that caches the signatures of operators and other built-in functions of Numba.

        Numba tries up to 30 declarations for each `a + b`. The result depends on the argument types, the compiler
        options and the declarations. A new declaration makes Numba replace the type of the function, which
        invalidates the entry of this cache.
        """

        signatures: dict[int, tuple[Any, dict[Any, Any]]] = {}  # noqa: RUF012, shared by all compilations

        def __init__(self, context: Any, flags: Any) -> None:
            self._context, self._flags = context, flags

        def __getattr__(self, name: str) -> Any:
            return getattr(self._context, name)

        def resolve_function_type(self, function: Any, args: Any, kws: Any) -> Any:
            function_type = function if isinstance(function, types.Type) else self._context._lookup_global(function)
            if kws or not isinstance(function_type, types.Function):
                return self._context.resolve_function_type(function, args, kws)
            if isinstance(args[0], types.Array) and function_type.typing_key in (operator.getitem, operator.setitem):
                args = args[0], _without_sign(args[1]), *args[2:]
            _, signatures = self.signatures.setdefault(
                id(function_type), (function_type, {})
            )  # with the stored reference, Python does not use the id again
            key = (tuple(args), self._flags)
            signature = signatures.get(key)
            if signature is None:
                signature = signatures[key] = self._context.resolve_function_type(function, args, kws)
            return signature

        def resolve_getitem(self, target: Any, index: Any) -> Any:
            return self.resolve_function_type(operator.getitem, (target, index), {})

        def resolve_setitem(self, target: Any, index: Any, value: Any) -> Any:
            return self.resolve_function_type(operator.setitem, (target, index, value), {})

    def _without_sign(index: Any) -> Any:
        """Return the type of an index with unsigned integers, which are not counted from the end of an array."""
        if isinstance(index, types.BaseTuple):
            return types.BaseTuple.from_types(tuple(_without_sign(number) for number in index))
        if index == types.intp:
            return types.uintp
        return index

    class FastFlags(Flags):
        """Compiler options with a fast hash: Numba compares them 200,000 times for the largest kernel."""

        HASH = hash(Flags())  # depends on the names of the options only

        def values(self) -> dict[str, Any]:
            return {**DEFAULT_FLAGS, **self._values}

        def __eq__(self, flags: object) -> bool:
            return super().__eq__(flags)

        def __hash__(self) -> int:
            return self.HASH

    @register_pass(mutates_CFG=True, analysis_only=False)
    class CachedTypeInference(NopythonTypeInference):
        _name = "mechanik_type_inference"

        def run_pass(self, state: Any) -> bool:
            context, state.typingctx = state.typingctx, CachedTyping(state.typingctx, state.flags)
            try:
                return super().run_pass(state)
            finally:
                state.typingctx = context

    @register_pass(mutates_CFG=True, analysis_only=False)
    class SubroutineLowering(NativeLowering):
        _name = "mechanik_subroutine_lowering"

        def run_pass(self, state: Any) -> bool:
            state.library = SubroutineLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
            return super().run_pass(state)

    @register_pass(mutates_CFG=True, analysis_only=False)
    class KernelLowering(NativeLowering):
        _name = "mechanik_kernel_lowering"

        def run_pass(self, state: Any) -> bool:
            state.library = KernelLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
            state.library.counts_references = state.flags.nrt
            state.library.enable_object_caching()
            return super().run_pass(state)

    class SubroutineCompiler(Compiler):
        """The compiler pipeline of an internal function."""

        lowering: type[NativeLowering] = SubroutineLowering

        def __init__(
            self, typingctx: Any, targetctx: Any, library: Any, args: Any, return_type: Any, flags: Any, locals: Any
        ) -> None:
            super().__init__(typingctx, targetctx, library, args, return_type, FastFlags(flags), locals)

        def define_pipelines(self) -> list[Any]:
            replacements = {NopythonTypeInference: CachedTypeInference, NativeLowering: self.lowering}
            pipelines = super().define_pipelines()
            for pipeline in pipelines:
                pipeline.passes = [
                    (replacements.get(pass_class, pass_class), description)
                    for pass_class, description in pipeline.passes
                    if pass_class._name not in UNUSED_PASSES
                ]
                pipeline.finalize()
            return pipelines

    class KernelCompiler(SubroutineCompiler):
        """The compiler pipeline of a kernel."""

        lowering = KernelLowering

        def compile_extra(self, function: Any) -> Any:
            threshold = gc.get_threshold()
            gc.set_threshold(ALLOCATIONS_PER_COLLECTION, *threshold[1:])
            try:
                return super().compile_extra(function)
            finally:
                gc.set_threshold(*threshold)
