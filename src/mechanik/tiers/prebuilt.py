"""Machine code that came with the installed wheel: the extension `mechanik._kernels`, built by `kernel_build`."""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable
from typing import Any

from mechanik.errors import KernelsUnavailable
from mechanik.tiers.sources import source_stamp

LEVEL = "MECHANIK_KERNELS_LEVEL"
"""The environment variable that chooses another level of instructions than the best, for tests and comparisons."""


@functools.cache
def _extension() -> Any | None:
    try:
        return importlib.import_module("mechanik._kernels")
    except ImportError:  # none was built, or for another kind of machine or NumPy
        return None


def prebuilt_functions(module: str) -> dict[str, Callable[..., Any]] | None:
    """The kernels of a module; None if there are none, or if they are of other sources.

    Raises:
        KernelsUnavailable: a level was chosen that is not in the wheel, or that this processor cannot run.
    """
    extension = _extension()
    if extension is None or extension.stamps.get(module) != source_stamp(module):
        return None
    return extension.functions(module, _level(extension))


def prebuilt_level() -> str | None:
    """The level of instructions that is used ("x86-64-v3"), of those in the wheel; None without prebuilt kernels."""
    extension = _extension()
    return None if extension is None else _level(extension)


def _level(extension: Any) -> str:
    chosen = os.environ.get(LEVEL) or extension.level
    if chosen not in extension.levels:
        raise KernelsUnavailable(f"{LEVEL} is {chosen!r}, but must be one of {', '.join(extension.levels)}")
    return chosen
