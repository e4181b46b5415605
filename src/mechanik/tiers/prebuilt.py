"""Machine code that came with the installed wheel: the extension `mechanik._kernels`."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

from mechanik.tiers.sources import source_stamp


@functools.cache
def _extension() -> Any | None:
    try:
        return importlib.import_module("mechanik._kernels")
    except ImportError:  # none was built, or for another kind of machine
        return None


def prebuilt_functions(module: str) -> dict[str, Callable[..., Any]] | None:
    """The kernels of a module; None if there are none, or if they are of other sources."""
    extension = _extension()
    if extension is None or extension.stamps.get(module) != source_stamp(module):
        return None
    return extension.functions(module)


def prebuilt_level() -> str | None:
    """The level of instructions that is used ("x86-64-v3"), of those in the wheel; None without prebuilt kernels."""
    extension = _extension()
    return None if extension is None else extension.level
