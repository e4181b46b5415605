"""Puts the studio's page into what is built: wheels, editable installs and source distributions.

A source distribution carries the built page beside its sources, so that a wheel made from it needs no Node.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PageHook(BuildHookInterface[Any]):
    """Builds the page unless it is up to date, or unwanted."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Node from PyPI, only where the page has to be built and there is none on PATH that fits."""
        page = _builder(self.root)
        if page.is_unwanted() or page.is_up_to_date():
            return []
        page.load_one_core().pin_to_one_core(self.app.display_info)
        return [] if page.find_node() is not None else [page.FROM_PYPI]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        page = _builder(self.root)
        if page.is_unwanted():
            self.app.display_warning(f"{page.WITHOUT} is set: this is Mechanik without the studio's page")
            return
        try:
            page.build(self.app.display_info)
        except page.PageError as error:
            self.app.abort(
                f"The studio's page cannot be built: {error}\n"
                "npm needs its registry once, to fetch three, uPlot and Vite. "
                f"{page.WITHOUT}=1 in the environment builds all of Mechanik but the studio's page."
            )


def _builder(root: str) -> ModuleType:
    """`build_page.py`, which stands with what it builds and is no part of the package that is installed."""
    path = Path(root, "src", "mechanik", "studio", "web", "build_page.py")
    spec = importlib.util.spec_from_file_location("mechanik_build_page", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where its dataclasses look for it
    spec.loader.exec_module(module)
    return module
