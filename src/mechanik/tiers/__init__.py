"""Execution tiers of the kernels: prebuilt machine code, JIT-compiled machine code from a cache, or plain Python.

`kernel_module("forward")` has the functions of a kernel module as attributes. By default each call runs in the fastest
tier that is ready, and never waits for a compiler:

- `prebuilt`: machine code from the installed wheel;
- `jit`: machine code that Numba compiled on this machine, from the cache on disk;
- `plain`: the sources as Python, a few hundred times slower, but available immediately. Meanwhile, if Numba is
  installed, background processes compile the kernels into the cache. The machine code replaces plain Python when it is
  ready.
"""

from mechanik.tiers.compile_progress import CompileMonitor
from mechanik.tiers.kernel_modules import (
    KERNEL_MODULES,
    KernelModule,
    KernelState,
    Tier,
    is_cache_private,
    is_compiling,
    kernel_module,
    kernel_states,
    on_kernel_change,
    request_kernels,
    use_kernels,
    wait_for_kernels,
    warm_up,
)

__all__ = [
    "KERNEL_MODULES",
    "CompileMonitor",
    "KernelModule",
    "KernelState",
    "Tier",
    "is_cache_private",
    "is_compiling",
    "kernel_module",
    "kernel_states",
    "on_kernel_change",
    "request_kernels",
    "use_kernels",
    "wait_for_kernels",
    "warm_up",
]
