"""Kernels work in forked processes, without stderr, with a broken Numba and with foreign files in the cache."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from kernel_programs import ANSWER, POSE, compiled, run, wait_until_compiled, wait_until_idle

import mechanik as mk
from mechanik.errors import NotFinite
from mechanik.tiers import code_cache as kernel_cache
from mechanik.tiers import compile_service
from mechanik.tiers import kernel_modules as modules

FORKING = """
import gc, os, shutil, signal, sys, time
import mechanik as mk
from mechanik.errors import NotFinite
from mechanik.tiers import kernel_module
m = mk.gallery.planar_2r(); m.pose('tool')
file, place = sys.argv[1:]
shutil.copy(file, place + '.new'); os.replace(place + '.new', place)
handle, until, children = kernel_module('forward'), time.monotonic() + 100, []
while 'jit' not in repr(handle):
    assert time.monotonic() < until
    if len(children) < 8:
        if (pid := os.fork()) == 0:
            signal.alarm(60)
            mk.solve(m, mk.PositionGoal('tool', (1.0, 0.5, 0.0)))
            while 'jit' not in repr(handle) or not gc.isenabled() or sys.getswitchinterval() < 0.004:
                time.sleep(0.01)  # until machine code has taken over here, too
            os._exit(0)
        children.append(pid)
    time.sleep(0.03)
print(*(os.waitpid(pid, 0)[1] for pid in children))
"""
WRONG_TYPES = '{"module": 1, "file": 2, "python": 3, "path": 4, "numba": 5, "is_urgent": 6}'
WRONG_STDERR = {
    "closed": "sys.stderr.close()",
    "none": "sys.stderr = None",
    "an object": "sys.stderr = type('Out', (), {'write': lambda self, text: None})()",
    "a broken pipe": "a, b = os.pipe(); os.close(a); sys.stderr = os.fdopen(b, 'w')",
}


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "cache"
    wait_until_idle(tmp_path / "cache")


@pytest.fixture
def forward_file(cache: Path) -> Path:
    """Where the machine code of `forward` belongs; its folder is there."""
    file = kernel_cache.cache_file(cache / "kernels", "forward")
    file.parent.mkdir(parents=True)
    return file


@pytest.fixture
def compiled_forward(use_tier: Callable[[str], None]) -> Path:
    """Machine code of `forward`, from the cache of these tests."""
    use_tier("jit")
    mk.gallery.planar_2r().pose("tool")
    folder = kernel_cache.cache_folder()
    assert folder is not None
    return kernel_cache.cache_file(folder, "forward")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing is forked here")
def test_processes_forked_while_machine_code_is_loaded_solve(
    cache: Path, forward_file: Path, compiled_forward: Path, tmp_path: Path
) -> None:
    """They hung on the lock of an import that the thread which loads machine code had begun."""
    for file in compiled_forward.parent.glob("*.kernels"):
        if file != compiled_forward:
            shutil.copy(file, forward_file.parent)
    script = tmp_path / "forking.py"
    script.write_text(f"import sys; sys.argv[1:] = [{str(compiled_forward)!r}, {str(forward_file)!r}]\n{FORKING}")
    assert set(run(f"exec(open({str(script)!r}).read())", cache).split()) == {"0"}


@pytest.mark.parametrize("tier", ["auto", "jit"])
@pytest.mark.parametrize("wrong", WRONG_STDERR)
def test_stderr_that_cannot_be_written_is_no_error(cache: Path, wrong: str, tier: str) -> None:
    assert ANSWER in run(
        f"import os, sys; {WRONG_STDERR[wrong]}; {POSE}; os._exit(sys.stdout.flush() or 0)", cache, tier=tier
    )


def test_program_that_cannot_import_numba_leaves_machine_code_alone(
    cache: Path, forward_file: Path, compiled_forward: Path, tmp_path: Path
) -> None:
    shutil.copy(compiled_forward, forward_file)
    (tmp_path / "script").mkdir()
    (tmp_path / "script" / "numba.py").write_text("x = 1")
    out = run(f"import sys; sys.path.insert(0, {str(tmp_path / 'script')!r}); {POSE}", cache)
    assert ANSWER in out
    assert forward_file.is_file()
    assert compiled(cache) == []


def test_failure_to_import_numba_is_tried_again_by_other_programs(cache: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken" / "numba"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("raise RuntimeError('broken')")
    path = os.pathsep.join([str(broken.parent), str(Path(mk.__file__).parents[1])])
    assert ANSWER in run(POSE, cache, PYTHONPATH=path)
    wait_until_idle(cache)
    assert ANSWER in run(POSE, cache)
    wait_until_compiled(cache, "forward")


@pytest.mark.parametrize("content", ["[]", "{}", "", "[" * 100_000, '{"file": 1}', WRONG_TYPES, None])
def test_invalid_request_files_are_ignored(cache: Path, forward_file: Path, content: str | None) -> None:
    """None: a folder."""
    wrong = forward_file.with_name("x.request")
    if content is None:
        wrong.mkdir()
    else:
        wrong.write_text(content)
    assert ANSWER in run(POSE, cache)
    wait_until_compiled(cache, "forward")
    until = time.monotonic() + 60
    while compile_service.is_running(forward_file.parent):
        assert time.monotonic() < until
        time.sleep(0.1)
    if content is None:
        wrong.rmdir()  # it stays, and the service has ended all the same


def test_folder_with_the_name_of_a_cache_file_is_no_error(cache: Path, forward_file: Path) -> None:
    forward_file.mkdir()
    assert ANSWER in run(POSE, cache)
    with pytest.raises(AssertionError, match="cannot be compiled"):
        run(POSE, cache, tier="jit")


def test_cache_folder_may_be_relative(tmp_path: Path) -> None:
    code = f"import os; os.chdir({str(tmp_path)!r}); {POSE}"
    assert ANSWER in run(code, tmp_path, tier="jit", MECHANIK_CACHE_DIR="here")
    assert compiled(tmp_path / "here") == ["forward"]
    wait_until_idle(tmp_path / "here")


def test_cache_folder_may_be_in_the_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MECHANIK_CACHE_DIR", "~/kernels of mine")
    assert kernel_cache.cache_folder() == Path.home() / "kernels of mine" / "kernels"


def test_settings_of_numba_have_machine_code_of_their_own(cache: Path) -> None:
    first = run("from mechanik.tiers.code_cache import *; print(cache_file(cache_folder(), 'forward'))", cache)
    code = f"{POSE}; from mechanik.tiers.code_cache import *; print(cache_file(cache_folder(), 'forward'))"
    second = run(code, cache, tier="jit", NUMBA_OPT="1")
    assert first.split()[-1] != second.split()[-1]
    assert Path(second.split()[-1]).is_file()


@pytest.mark.parametrize(("value", "compiles"), [("0", True), ("1", False)])
def test_numba_may_be_disabled(cache: Path, value: str, compiles: bool) -> None:
    code = f"{POSE}; from mechanik.tiers import kernel_states; print(kernel_states()[0].state)"
    assert run(code, cache, NUMBA_DISABLE_JIT=value).splitlines()[-1] == ("compiling" if compiles else "not compiled")


def test_states_say_that_there_are_no_prebuilt_kernels(cache: Path) -> None:
    code = "from mechanik.tiers import kernel_states; print({(s.tier.value, s.state) for s in kernel_states()})"
    assert run(code, cache, tier="prebuilt").strip() == "{('prebuilt', 'missing')}"


def test_choosing_a_tier_while_other_threads_solve_is_safe(
    use_tier: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread that looked for a kernel found none, after another had chosen a tier between loading and looking."""
    use_tier("jit")
    load = modules._loader.load
    choosing: list[threading.Thread] = []

    def load_and_be_disturbed(module: modules.KernelModule) -> None:
        load(module)
        if not choosing:
            choosing.append(threading.Thread(target=use_tier, args=("plain",)))
            choosing[0].start()
            choosing[0].join(0.5)  # it comes to its end if nothing holds it back

    monkeypatch.setattr(modules._loader, "load", load_and_be_disturbed)
    assert callable(modules.kernel_module("forward").chain_pose)
    choosing[0].join()


@pytest.mark.parametrize("tier", ["plain", "jit"])
def test_numbers_that_are_not_finite_are_rejected_in_all_tiers(tier: str, use_tier: Callable[[str], None]) -> None:
    use_tier(tier)
    arm = mk.gallery.planar_3r()
    for number in (np.inf, -np.inf, np.nan):
        with pytest.raises(NotFinite):
            arm.pose("tool", [0.0, number, 0.0])
        with pytest.raises(NotFinite):
            arm.jacobian("tool", [0.0, number, 0.0])


def test_compiler_without_a_result_is_tried_again() -> None:
    """As when the cache folder is removed while it compiles."""
    assert compile_service.is_transient(compile_service._exit_reason(0))
    assert not compile_service.is_transient(compile_service._exit_reason(1))
    assert "SIGKILL" in compile_service._exit_reason(-9)
