"""Fixture that selects a tier for a test."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import mechanik as mk
from mechanik.tiers import kernel_modules as modules


@pytest.fixture
def use_tier() -> Iterator[Callable[[str], None]]:
    """`mk.use_kernels`, undone after the test."""
    before = modules._loader.selected_tier
    yield mk.use_kernels
    modules._loader.select_tier(before)
