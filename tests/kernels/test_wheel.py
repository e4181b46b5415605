"""The wheel with prebuilt kernels in a virtual environment without Numba: all features work without compilation."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from mechanik.tiers import KERNEL_MODULES

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("[0-9]*.py"))
LARGEST_INSTALL = 80e6
"""Bytes of Mechanik, NumPy and defusedxml, without the bytecode that pip writes next to all sources: with it they
take 86 MB on Python 3.11, of which NumPy takes 71, which `benchmarks/startup.py` reports as a missed goal."""

pytestmark = pytest.mark.slow


def run(installation, folder: Path, *arguments: str, **environment: str) -> str:
    """Run the installed Python in a folder and return its output."""
    hidden = ("PYTHONPATH", "MECHANIK_KERNELS")
    env = {name: value for name, value in os.environ.items() if name not in hidden}
    env |= {"PYTHONIOENCODING": "utf-8", "MECHANIK_KERNELS": "prebuilt", **environment}
    command = [str(installation.python), *arguments]
    process = subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, timeout=600, encoding="utf-8"
    )
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout


def test_wheel_is_for_this_platform_and_all_python_versions(installation) -> None:
    assert re.fullmatch(r"mechanik-[^-]+-cp311-abi3-[\w.]+\.whl", installation.wheel.name)
    with zipfile.ZipFile(installation.wheel) as packed:
        names = packed.namelist()
        (metadata,) = (name for name in names if name.endswith(".dist-info/WHEEL"))
        assert "Root-Is-Purelib: false" in packed.read(metadata).decode()
    assert [name for name in names if name.startswith("kernel_build")] == []
    (extension,) = (name for name in names if name.startswith("mechanik/_kernels"))
    assert re.fullmatch(r"mechanik/_kernels(\.abi3\.so|\.pyd)", extension)


def test_minimal_installation_is_small(installation) -> None:
    size = installation.minimal_bytes - installation.bytecode_bytes
    seconds = "import time; start = time.process_time(); import mechanik; print(time.process_time() - start)"
    import_time = min(float(run(installation, ROOT / "tests", "-c", seconds)) for _ in range(3))
    sys.stdout.write(
        f"wheel {installation.wheel.stat().st_size / 1e6:.1f} MB; minimal installation {size / 1e6:.1f} MB, with "
        f"bytecode {installation.minimal_bytes / 1e6:.1f} MB; import {import_time:.2f} s of processor time\n"
    )
    assert size <= LARGEST_INSTALL


def test_all_kernels_are_prebuilt_without_numba(installation, tmp_path: Path) -> None:
    code = """
import importlib.util, sys
import mechanik as mk
from mechanik.tiers import kernel_states
assert importlib.util.find_spec("numba") is None
mk.warm_up()
print(*(state.module for state in kernel_states() if (state.tier, state.state) == ("prebuilt", "ready")))
"""
    assert run(installation, tmp_path, "-W", "error", "-c", code, MECHANIK_KERNELS="auto").split() == [*KERNEL_MODULES]


def test_every_level_solves(installation, tmp_path: Path) -> None:
    output = run(installation, tmp_path, str(ROOT / "tests" / "smoke_wheel.py"))
    assert "best level" in output


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_runs(path: Path, installation, tmp_path: Path) -> None:
    if path.stem == "18_studio" and not (ROOT / "src/mechanik/studio/page/index.html").is_file():
        pytest.skip("the page is not built; make page")
    assert run(installation, tmp_path, "-W", "error", str(path)).strip()


def test_the_demo_runs(installation, tmp_path: Path) -> None:
    assert run(installation, tmp_path, "-m", "mechanik", "demo").strip()


def test_large_batch_is_solved(installation, tmp_path: Path) -> None:
    code = """
import numpy as np
import mechanik as mk
arm = mk.gallery.panda()
targets = arm.pose("panda_link8", arm.random(np.random.default_rng(0), 100_000))
result = mk.Solver(arm, mk.PoseGoal("panda_link8", np.eye(4))).solve_batch(targets)
reached = arm.pose("panda_link8", result.q[result.success])
assert np.abs(reached - targets[result.success]).max() < 1e-4
print(result.success.mean())
"""
    assert float(run(installation, tmp_path, "-W", "error", "-c", code)) > 0.97


def test_objective_written_in_python_is_solved(installation, tmp_path: Path) -> None:
    code = """
import numpy as np
import mechanik as mk
arm = mk.gallery.planar_3r()
level = mk.Custom(lambda mechanism, q: q.sum() - 0.5, name="level")
solution = mk.solve(arm, [level])
print(abs(solution.q.sum() - 0.5))
"""
    assert float(run(installation, tmp_path, "-W", "error", "-c", code)) < 1e-6


def test_drag_in_the_studio_moves_the_mechanism(installation, tmp_path: Path) -> None:
    page = tmp_path / "page"
    page.mkdir()
    (page / "index.html").write_text("<!doctype html><title>studio</title>")
    code = f"""
import sys
from pathlib import Path
sys.path.append({str(ROOT / "tests" / "studio" / "server")!r})
from wire_client import WireClient
from mechanik.studio.scenes import SCENES
from mechanik.studio.server.server import serve
server = serve(("scene", next(iter(SCENES))), port=0, page=Path({str(page)!r}))
with WireClient(server) as client:
    goal = client.goal()["number"]
    assert client.ask("StartGoalDrag", goal=goal)["is"] == "RequestDone"
    client.wait(lambda: client.frame is not None)
    pose = client.goal_pose().copy()
    pose[0] += 0.01
    frame = client.drag(goal, pose)
    assert client.ask("EndDrag")["is"] == "RequestDone"
server.close()
print(frame.header.tag == 1)
"""
    assert run(installation, tmp_path, "-c", code).strip() == "True"
