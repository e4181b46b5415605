"""Compiler pipelines for Numba that optimise a kernel once, together with all functions that it calls.

By default Numba compiles every function as if Python called it: LLVM optimises it and translates it to machine code,
then its module is linked into that of each caller, where all of it is optimised and translated again. In a deep call
tree the innermost functions go through LLVM once for each level. A function that only kernels call needs none
of that: it is enough to optimise the kernel.

Nothing of Numba is patched. `njit` takes a pipeline class, and the classes here extend Numba's own:

- `PartLibrary` holds the module of a function that only kernels call, which is neither optimised nor executable.
- `KernelLibrary` links the modules of all direct and indirect callees into that of a kernel, and then optimises it in
  the way of Numba.
- `CachedTyping` finds the types of an operator once for each combination of argument types.
- `FastFlags` compares compiler options fast.
- `PartCompiler` and `KernelCompiler` are Numba's default pipeline with these classes, and without the passes that
  kernels have no use for.

If a version of Numba lacks one of the extended classes, `pipeline_options` returns no options, and Numba uses its
default pipeline. Compiling then takes about twice as long; results are the same up to the rounding of reordered sums.
"""

from __future__ import annotations

import gc
import operator
from typing import Any

try:
    from llvmlite import binding as llvm
    from numba.core import types
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import Compiler, Flags
    from numba.core.compiler_machinery import register_pass
    from numba.core.typed_passes import NativeLowering, NopythonTypeInference

    DEFAULT_FLAGS = {name: option.default for name, option in Flags.options.items()}
    IS_AVAILABLE = True
except (ImportError, AttributeError):
    IS_AVAILABLE = False

UNUSED_PASSES = ("inline_closure_likes", "nopython_rewrites")
"""Passes for comprehensions, closures and arithmetic of whole arrays, none of which kernels use."""
ALLOCATIONS_PER_COLLECTION = 50_000
"""Python's default of 700 costs 7 % of the time; without any collection it takes 1.6 times the memory."""


def pipeline_options(is_kernel: bool) -> dict[str, Any]:
    """Options for `njit` that select the pipeline of a kernel, or of a function that only kernels call."""
    if not IS_AVAILABLE:
        return {}
    return {"pipeline_class": KernelCompiler if is_kernel else PartCompiler}


if IS_AVAILABLE:

    class PartLibrary(JITCodeLibrary):
        """The LLVM module of a function that only kernels call."""

        def finalize(self) -> None:
            self._raise_if_finalized()
            for function in self._final_module.functions:
                if not function.is_declaration and function.linkage == llvm.Linkage.external:
                    function.linkage = "linkonce_odr"  # several kernels may contain it
            for library in self._linking_libraries:
                self._reload_init.update(library._reload_init)
            self._finalized = True

        def _optimize_functions(self, module: Any) -> None:
            module.data_layout = self._codegen._data_layout  # the rest is left to the kernel

        @property
        def codegen(self) -> Any:
            return _NoEnvironment

        def get_pointer_to_function(self, name: str) -> int:
            self._ensure_finalized()
            return 0  # Numba's value for a function that cannot be called from Python

        def _get_module_for_linking(self) -> Any:
            """This module with all that it calls, for a caller that uses Numba's default pipeline."""
            self._ensure_finalized()
            if self._shared_module is None:
                module = self._final_module.clone()
                for library in callees(self):
                    module.link_in(_own_module(library), preserve=True)
                self._shared_module = module
            return self._shared_module

    class _NoEnvironment:
        """Replaces the code generator of a function without machine code into which an address could be written."""

        @staticmethod
        def set_env(name: str, environment: object) -> None:
            pass

    class KernelLibrary(JITCodeLibrary):
        """The code of a kernel and of all functions that it calls, directly or not."""

        def finalize(self) -> None:
            for library in callees(self):
                self._reload_init.update(library._reload_init)
                self._final_module.link_in(_own_module(library), preserve=True)
            for function in self._final_module.functions:
                if not function.is_declaration and function.linkage == llvm.Linkage.linkonce_odr:
                    function.linkage = "internal"  # lets LLVM inline what has one caller: solves are up to 10 % faster
            self._linking_libraries = []
            super().finalize()

    def callees(library: Any) -> list[Any]:
        """All libraries that a library needs, callers first: LLVM only links functions that are referred to."""
        order: list[Any] = []
        seen: set[int] = set()

        def visit(caller: Any) -> None:
            for callee in caller._linking_libraries if isinstance(caller, PartLibrary | KernelLibrary) else ():
                if id(callee) not in seen:
                    seen.add(id(callee))
                    visit(callee)
                    order.append(callee)

        visit(library)
        return order[::-1]

    def _own_module(library: Any) -> Any:
        library._ensure_finalized()
        return library._final_module if isinstance(library, PartLibrary) else library._get_module_for_linking()

    class CachedTyping:
        """A typing context that remembers the signatures of operators and other functions that Numba has built in.

        Numba tries up to 30 declarations for each `a + b`. The result depends on the types of the arguments, on the
        compiler options and on the declarations; whoever adds one makes Numba replace the function's type, and with
        it the entry here.
        """

        signatures: dict[int, tuple[Any, dict[Any, Any]]] = {}  # noqa: RUF012, shared by all compilations

        def __init__(self, context: Any, flags: Any) -> None:
            self._context, self._flags = context, flags

        def __getattr__(self, name: str) -> Any:
            return getattr(self._context, name)

        def resolve_function_type(self, function: Any, args: Any, kws: Any) -> Any:
            known = function if isinstance(function, types.Type) else self._context._lookup_global(function)
            if kws or not isinstance(known, types.Function):
                return self._context.resolve_function_type(function, args, kws)
            _, signatures = self.signatures.setdefault(
                id(known), (known, {})
            )  # kept alive, so that the id stays its own
            key = (tuple(args), self._flags)
            signature = signatures.get(key)
            if signature is None:
                signature = signatures[key] = self._context.resolve_function_type(function, args, kws)
            return signature

        def resolve_getitem(self, target: Any, index: Any) -> Any:
            return self.resolve_function_type(operator.getitem, (target, index), {})

        def resolve_setitem(self, target: Any, index: Any, value: Any) -> Any:
            return self.resolve_function_type(operator.setitem, (target, index, value), {})

    class FastFlags(Flags):
        """Compiler options with a fast comparison: Numba compares them 200 000 times for the largest kernel."""

        HASH = hash(Flags())  # depends on the names of the options only

        def values(self) -> dict[str, Any]:
            return {**DEFAULT_FLAGS, **self._values}

        def __eq__(self, other: object) -> bool:
            return super().__eq__(other)

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
    class PartLowering(NativeLowering):
        _name = "mechanik_part_lowering"

        def run_pass(self, state: Any) -> bool:
            state.library = PartLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
            return super().run_pass(state)

    @register_pass(mutates_CFG=True, analysis_only=False)
    class KernelLowering(NativeLowering):
        _name = "mechanik_kernel_lowering"

        def run_pass(self, state: Any) -> bool:
            state.library = KernelLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
            state.library.enable_object_caching()
            return super().run_pass(state)

    class PartCompiler(Compiler):
        """The pipeline of a function that only kernels call."""

        lowering: type[NativeLowering] = PartLowering

        def __init__(
            self, typingctx: Any, targetctx: Any, library: Any, args: Any, return_type: Any, flags: Any, locals: Any
        ) -> None:
            super().__init__(typingctx, targetctx, library, args, return_type, FastFlags(flags), locals)

        def define_pipelines(self) -> list[Any]:
            replaced = {NopythonTypeInference: CachedTypeInference, NativeLowering: self.lowering}
            pipelines = super().define_pipelines()
            for pipeline in pipelines:
                pipeline.passes = [
                    (replaced.get(each, each), text)
                    for each, text in pipeline.passes
                    if each._name not in UNUSED_PASSES
                ]
                pipeline.finalize()
            return pipelines

    class KernelCompiler(PartCompiler):
        """The pipeline of a kernel."""

        lowering = KernelLowering

        def compile_extra(self, function: Any) -> Any:
            before = gc.get_threshold()
            gc.set_threshold(ALLOCATIONS_PER_COLLECTION, *before[1:])
            try:
                return super().compile_extra(function)
            finally:
                gc.set_threshold(*before)
