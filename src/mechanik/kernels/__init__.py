"""Compiled inner loops. They know nothing but arrays, and nobody imports Numba before they are needed.

Kernels are reached through `Lazy("forward", "chain_pose")`: the first time on a machine it is compiled, which is
said on the terminal, and kept in a cache; after that it comes from the cache.

In: flat arrays of floats and integers, laid out as `layout.py` says. Out: arrays.
"""

from mechanik.kernels.compiler import KERNEL_MODULES, Lazy, cache_folder, load, source_stamp, warm_up

__all__ = ["KERNEL_MODULES", "Lazy", "cache_folder", "load", "source_stamp", "warm_up"]
