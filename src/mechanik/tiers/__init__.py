"""Which code runs a kernel: prebuilt machine code, machine code from the cache of the JIT compiler, or plain Python.

`kernel_module("forward")` has the functions of a module of kernels as attributes. Each call runs in the best tier that
is ready, and never waits for a compiler:

- `prebuilt`: machine code that came with the installed wheel;
- `jit`: machine code that Numba compiled on this machine, from the cache on disk;
- `plain`: the sources as Python, some hundred times slower, at once. Meanwhile processes in the background compile
  into the cache, and machine code takes over when it is ready.

In: names of modules of kernels. Out: functions over arrays.
"""

from .modules import (
    KERNEL_MODULES,
    KernelModule,
    KernelState,
    Tier,
    ends_with_process,
    is_compiling,
    kernel_module,
    kernel_states,
    on_kernel_change,
    prepare,
    use_kernels,
    wait_for,
    warm_up,
)
from .progress import Progress

__all__ = [
    "KERNEL_MODULES",
    "KernelModule",
    "KernelState",
    "Progress",
    "Tier",
    "ends_with_process",
    "is_compiling",
    "kernel_module",
    "kernel_states",
    "on_kernel_change",
    "prepare",
    "use_kernels",
    "wait_for",
    "warm_up",
]
