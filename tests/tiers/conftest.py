"""Fixture that selects a tier for a test; kernels in plain Python get arrays that refuse negative indices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

import numpy as np
import pytest

import mechanik as mk
from mechanik.tiers import KERNEL_MODULES, kernel_module
from mechanik.tiers import kernel_modules as modules
from mechanik.tiers.kernel_sources import declared_kernels


class ArrayFromItsStart(np.ndarray):
    """An array without negative indices: compiled kernels do not count them from the end of the array."""

    def __getitem__(self, index: Any) -> Any:
        refuse_negative(index)
        return super().__getitem__(index)

    def __setitem__(self, index: Any, value: Any) -> None:
        refuse_negative(index)
        super().__setitem__(index, value)


def refuse_negative(index: Any) -> None:
    for number in cast("tuple[Any, ...]", index if isinstance(index, tuple) else (index,)):
        if isinstance(number, int | np.integer) and number < 0:
            raise AssertionError(f"a kernel uses the index {number}")


def with_checked_indices(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        views = (a.view(ArrayFromItsStart) if isinstance(a, np.ndarray) else a for a in arguments)
        return function(*views)

    return call


@pytest.fixture
def use_tier() -> Iterator[Callable[[str], None]]:
    """`mk.use_kernels`, undone after the test."""
    before = modules._loader.selected_tier

    def use(tier: str) -> None:
        mk.use_kernels(tier)
        if tier == "plain":
            for module in KERNEL_MODULES:
                if module.startswith(("distance.", "planning.")):  # they would take too long
                    continue
                functions = kernel_module(module)
                for name in declared_kernels(module):
                    setattr(functions, name, with_checked_indices(getattr(functions, name)))

    yield use
    modules._loader.select_tier(before)
