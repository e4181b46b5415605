"""Build hook of hatchling: builds the studio's page and prebuilt kernels, which are not in git.

The page is in wheels, editable installs and source distributions. A source distribution contains the built page and its
sources, so a wheel can be built from it without Node. Prebuilt kernels are in wheels if MECHANIK_PREBUILT=1 is in the
environment; such a wheel is for one platform and Python 3.11 or later. Other wheels are pure Python.
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
    """Hook that builds the page unless it is up to date or unwanted, and prebuilt kernels for wheels if requested."""

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
        """Return the PyPI package of Node if the page must be built and no suitable Node is on PATH."""
        page = _page_builder(self.root)
        if page.is_page_skipped() or page.is_up_to_date():
            return []
        page.load_one_core().pin_to_one_core(self.app.display_info)
        return [] if page.find_node() is not None else [page.NODE_PACKAGE]

    def _build_page(self) -> None:
        page = _page_builder(self.root)
        if page.is_page_skipped():
            self.app.display_warning(f"{page.SKIP_PAGE_VARIABLE} is set: Mechanik is built without the studio's page")
            return
        try:
            page.build(self.app.display_info)
        except page.PageError as error:
            self.app.abort(
                f"The studio's page cannot be built: {error}\n"
                "The first build of the page needs a connection to the registry of npm. "
                f"With {page.SKIP_PAGE_VARIABLE}=1 in the environment, Mechanik is built without the studio's page."
            )

    # ---- kernels --------------------------------------------------------------------------

    def _has_kernels(self) -> bool:
        return self.target_name == "wheel" and os.environ.get(PREBUILT, "") not in ("", "0")

    def _build_kernels(self) -> Path:
        """Build the extension of prebuilt kernels unless it is up to date, and return its file."""
        self.app.display_info("building kernels; some minutes unless they are up to date")
        process = subprocess.run(
            [sys.executable, "-m", "kernel_build"], cwd=self.root, stdout=subprocess.PIPE, text=True
        )
        self.app.display_info(process.stdout)
        if process.returncode:
            self.app.abort(
                "The kernels cannot be built; a C compiler is needed. "
                f"Without {PREBUILT} in the environment, a wheel of pure Python is built."
            )
        return Path(process.stdout.splitlines()[-1])


def platform_tag() -> str:
    """Return the platform tag of a wheel that is built on this machine, such as `linux_x86_64`."""
    platform = re.sub(r"[-.]", "_", sysconfig.get_platform())
    return platform.replace("universal2", os.uname().machine) if platform.startswith("macosx") else platform


def _page_builder(root: str) -> ModuleType:
    """Load `build_page.py` by its path, since its folder is not a package."""
    path = Path(root, "src", "mechanik", "studio", "web", "build_page.py")
    spec = importlib.util.spec_from_file_location("mechanik_build_page", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look up their module there
    spec.loader.exec_module(module)
    return module
