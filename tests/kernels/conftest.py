"""Prebuilt kernels for tests, built once on a machine for the current sources by the first process that needs them."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from mechanik.tiers import KERNEL_MODULES
from mechanik.tiers.code_cache import cache_folder
from mechanik.tiers.kernel_sources import source_stamp

ROOT = Path(__file__).parents[2]
BUILD_SECONDS = 3600.0
"""Timeout of a build, which takes some minutes of processor time."""


def build_folder() -> Path:
    """The build folder, next to the cache of compiled kernels: it can be removed as safely."""
    caches = cache_folder()
    folder = Path(tempfile.gettempdir()) / "mechanik" if caches is None else caches.parent
    folder = folder / "prebuilt"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def run(command: list[str], **environment: str) -> str:
    """Run a command and return its output; assert that it succeeds."""
    env = {**os.environ, "MECHANIK_BUILD_DIR": str(build_folder()), **environment}
    process = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=BUILD_SECONDS)
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout


def kernel_build(name: str) -> ModuleType:
    """A module of `kernel_build`, which is not installed."""
    if str(ROOT) not in sys.path:
        sys.path.append(str(ROOT))
    return importlib.import_module(f"kernel_build.{name}")


def require_compilers() -> None:
    for name in ("numba", "setuptools"):
        pytest.importorskip(name)


@pytest.fixture(scope="session")
def prebuilt_file() -> Path:
    """The extension with the levels of a wheel, and the level of this processor last."""
    require_compilers()
    levels = [*(level.name for level in kernel_build("levels").default_levels()), "host"]
    options = [word for level in levels for word in ("--level", level)]
    return Path(run([sys.executable, "-m", "kernel_build", *options]).splitlines()[-1])


@pytest.fixture(scope="session")
def v3_object_file(prebuilt_file: Path) -> Path:
    """The machine code of the level x86-64-v3, from which the extension was linked."""
    levels = kernel_build("levels")
    if not levels.is_x86_64():
        pytest.skip("another kind of processor")
    return kernel_build("extension").object_file(build_folder(), levels.V3)


@pytest.fixture(scope="session")
def load_extension(prebuilt_file: Path) -> Callable[[], ModuleType]:
    """A function that imports the extension without registering it as that of Mechanik."""

    def load() -> ModuleType:
        spec = importlib.util.spec_from_file_location("mechanik._kernels", prebuilt_file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


@pytest.fixture(scope="session")
def extension(load_extension: Callable[[], ModuleType]) -> ModuleType:
    return load_extension()


@pytest.fixture(scope="session")
def recorded_calls() -> dict[str, list[tuple[Any, ...]]]:
    """Arguments of kernel calls in the examples, by names such as "forward:chain_pose"."""
    require_compilers()
    script = Path(__file__).with_name("record_calls.py")
    key = hashlib.sha256(script.read_bytes() + repr([source_stamp(name) for name in KERNEL_MODULES]).encode())
    file = build_folder() / f"calls-{key.hexdigest()[:16]}.pickle"
    with kernel_build("lock").hold_lock(build_folder() / "calls.lock"):
        if not file.exists():
            for outdated in build_folder().glob("calls-*.pickle"):
                outdated.unlink()
            run([sys.executable, str(script), str(file)], PYTHONPATH=str(ROOT / "src"), MECHANIK_KERNELS="jit")
    return pickle.loads(file.read_bytes())


@dataclass(frozen=True)
class Installation:
    """A virtual environment with a wheel, without Numba.

    Attributes:
        wheel: the installed wheel.
        python: the interpreter.
        minimal_bytes: size of Mechanik, NumPy and defusedxml, without optional packages.
        bytecode_bytes: the part of it that is bytecode, which Python writes itself if pip does not.
    """

    wheel: Path
    python: Path
    minimal_bytes: int
    bytecode_bytes: int


@pytest.fixture(scope="session")
def installation() -> Installation:
    """The wheel as users install it, with the command line and the studio; reused until the sources change."""
    require_compilers()
    pytest.importorskip("hatchling")
    with kernel_build("lock").hold_lock(build_folder() / "wheel.lock"), tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
        run(command, MECHANIK_PREBUILT="1", **({} if has_page() else {"MECHANIK_WITHOUT_PAGE": "1"}))
        (wheel,) = Path(folder).glob("*.whl")
        environment = build_folder() / f"installation-{content_key(wheel, Path(__file__))}"
        report = environment / "installation.json"
        if not report.exists():
            for outdated in build_folder().glob("installation-*"):
                remove(outdated)
            environment.mkdir()
            wheel = wheel.rename(environment / wheel.name)
            write_installation(report, install(wheel, environment / "environment"))
        return read_installation(report)


def write_installation(report: Path, created: Installation) -> None:
    report.write_text(json.dumps({**asdict(created), "wheel": str(created.wheel), "python": str(created.python)}))


def read_installation(report: Path) -> Installation:
    fields = json.loads(report.read_text())
    return Installation(**{**fields, "wheel": Path(fields["wheel"]), "python": Path(fields["python"])})


def has_page() -> bool:
    return (ROOT / "src/mechanik/studio/page/index.html").is_file()


def content_key(wheel: Path, installer: Path) -> str:
    """A digest of the contents of a wheel, without its time stamps, and of the installer."""
    digest = hashlib.sha256(installer.read_bytes())
    with zipfile.ZipFile(wheel) as packed:
        for name in sorted(packed.namelist()):
            digest.update(name.encode() + packed.read(name))
    return digest.hexdigest()[:16]


def install(wheel: Path, environment: Path) -> Installation:
    run([sys.executable, "-m", "venv", str(environment)])
    python = environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    packages = Path(run([str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]).strip())
    files_before = {path for path in packages.rglob("*") if path.is_file()}
    run([*pip, str(wheel)])
    added = [path for path in packages.rglob("*") if path.is_file() and path not in files_before]
    # httpx for the client of the studio's tests; SciPy for two examples, without the rest of `plan`
    run([*pip, f"{wheel}[cli,yaml,studio]", "httpx", "scipy>=1.13"])
    return Installation(
        wheel,
        python,
        sum(path.stat().st_size for path in added),
        sum(path.stat().st_size for path in added if path.suffix == ".pyc"),
    )


def remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
