"""Puts into what is built what is not in git: the studio's page, and kernels as machine code.

The page is in wheels, editable installs and source distributions; a source distribution carries the built page beside
its sources, so that a wheel made from it needs no Node. Machine code is in wheels if MECHANIK_PREBUILT=1 is in the
environment; such a wheel is for one platform and all Python versions. Without it wheels are pure Python.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PREBUILT = "MECHANIK_PREBUILT"
KERNEL_DEPENDENCIES = ["numba>=0.61", "numpy>=2.0", "setuptools>=70.1"]
PYTHON_TAG = "cp311-abi3"


class BuildHook(BuildHookInterface[Any]):
    """Builds the page unless it is up to date or unwanted, and kernels if they are wanted."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        kernels = KERNEL_DEPENDENCIES if self._has_kernels() else []
        return [*self._page_dependencies(), *kernels]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self._has_kernels() and version != "editable":
            extension = self._build_kernels()  # before the page, which may keep this process on one core
            build_data["force_include"][str(extension)] = f"mechanik/{extension.name}"
            build_data["pure_python"] = False
            build_data["tag"] = f"{PYTHON_TAG}-{platform_tag()}"
        self._build_page()

    # ---- the page -------------------------------------------------------------------------

    def _page_dependencies(self) -> list[str]:
        """Node from PyPI, only where the page has to be built and there is none on PATH that fits."""
        page = _page_builder(self.root)
        if page.is_page_skipped() or page.is_up_to_date():
            return []
        page.load_one_core().pin_to_one_core(self.app.display_info)
        return [] if page.find_node() is not None else [page.NODE_PACKAGE]

    def _build_page(self) -> None:
        page = _page_builder(self.root)
        if page.is_page_skipped():
            self.app.display_warning(f"{page.SKIP_PAGE_VARIABLE} is set: this is Mechanik without the studio's page")
            return
        try:
            page.build(self.app.display_info)
        except page.PageError as error:
            self.app.abort(
                f"The studio's page cannot be built: {error}\n"
                "npm needs its registry once, to fetch three, uPlot and Vite. "
                f"{page.SKIP_PAGE_VARIABLE}=1 in the environment builds all of Mechanik but the studio's page."
            )

    # ---- kernels --------------------------------------------------------------------------

    def _has_kernels(self) -> bool:
        return self.target_name == "wheel" and os.environ.get(PREBUILT, "") not in ("", "0")

    def _build_kernels(self) -> Path:
        """The extension, below `build/kernels`, where the next build finds it while the sources stay as they are."""
        self.app.display_info("building kernels; some minutes unless they are up to date")
        done = subprocess.run([sys.executable, "-m", "kernel_build"], cwd=self.root, stdout=subprocess.PIPE, text=True)
        self.app.display_info(done.stdout)
        if done.returncode:
            self.app.abort(
                "The kernels cannot be built; a C compiler is needed. "
                f"Without {PREBUILT} in the environment a wheel of Python alone is built."
            )
        return Path(done.stdout.splitlines()[-1])


def platform_tag() -> str:
    """The platform of a wheel that is built here, such as `linux_x86_64`."""
    platform = re.sub(r"[-.]", "_", sysconfig.get_platform())
    return platform.replace("universal2", os.uname().machine) if platform.startswith("macosx") else platform


def _page_builder(root: str) -> ModuleType:
    """`build_page.py`, which stands with what it builds and is no part of the package that is installed."""
    path = Path(root, "src", "mechanik", "studio", "web", "build_page.py")
    spec = importlib.util.spec_from_file_location("mechanik_build_page", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where its dataclasses look for it
    spec.loader.exec_module(module)
    return module
