"""Compiled versions of functions that only kernels call, for unit tests."""

from __future__ import annotations

import importlib
from types import ModuleType

from mechanik.tiers.numba_kernels import compiled_package


def compiled(module: str) -> ModuleType:
    """A module of kernels whose functions are Numba's dispatchers, to be called from functions under `numba.njit`."""
    return importlib.import_module(f"{compiled_package()}.{module}")
