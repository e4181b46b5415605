"""`mechanik info --kernels` and `mechanik warmup`: the tier of each kernel module, and compiling all of them."""

from __future__ import annotations

import json

import pytest

from mechanik.cli import main, warmup_command
from mechanik.tiers import KERNEL_MODULES, KernelState, Tier

HOUR = 3600.0
STATES = [
    KernelState("forward", Tier.JIT, "ready", 2 * HOUR),
    KernelState("descent", Tier.PLAIN, "compiling"),
    KernelState("dense_evaluation", Tier.PLAIN, "failed", None, "Traceback\n  line\nMemoryError: no memory\n"),
    KernelState("chain_kernel", Tier.PLAIN, "not compiled", None, "compiling kernels needs Numba: pip install numba"),
    KernelState("lane_kernel", Tier.PLAIN, "not compiled", None, "compiling kernels needs Numba: pip install numba"),
]


def run(capsys, *arguments):
    code = main(list(arguments))
    out, err = capsys.readouterr()
    return code, out, err


@pytest.fixture
def states(monkeypatch):
    """Both commands get these states, independent of what is compiled on this machine."""
    monkeypatch.setattr(warmup_command, "kernel_states", lambda: STATES)


def test_info_lists_tier_state_and_age_of_each_module(capsys, states):
    code, out, err = run(capsys, "info", "--kernels")
    rows = [line.split() for line in out.splitlines()]
    assert code == 0
    assert rows[0] == ["kernels", "tier", "state", "age"]
    assert ["forward", "jit", "ready", "2", "h"] in rows
    assert ["descent", "plain", "compiling"] in rows
    assert "1 of 5 modules ready" in out
    assert "dense_evaluation cannot be compiled: MemoryError: no memory" in err
    assert err.count("needs Numba") == 1, "a reason that modules share is printed once"


def test_info_as_json_has_the_same_table(capsys, states):
    code, out, _ = run(capsys, "info", "--kernels", "--json")
    modules = json.loads(out)["modules"]
    assert code == 0
    assert [(module["module"], module["tier"], module["state"]) for module in modules] == [
        (state.module, str(state.tier), state.state) for state in STATES
    ]
    assert modules[0]["age"] == 2 * HOUR
    assert modules[1]["age"] is None


def test_info_lists_every_kernel_module(capsys):
    _, out, _ = run(capsys, "info", "--kernels", "--json")
    assert [module["module"] for module in json.loads(out)["modules"]] == list(KERNEL_MODULES)


def test_info_needs_either_a_file_or_kernels(capsys):
    code, out, err = run(capsys, "info")
    assert (code, out) == (2, "")
    assert "FILE, or --kernels" in err
    code, out, err = run(capsys, "info", "gallery:panda", "--kernels")
    assert (code, out) == (2, "")
    assert "not both" in err


def test_warmup_leaves_every_module_ready(capsys):
    code, out, _ = run(capsys, "warmup")
    rows = {line.split()[0]: line for line in out.splitlines() if line}
    assert code == 0
    assert all(" ready" in rows[name] for name in KERNEL_MODULES)


def interrupt_after_first(progress):
    progress.begin({"forward": 5.0, "descent": 65.0})
    progress.finish("forward")
    progress.end()
    raise KeyboardInterrupt


def test_interrupted_warmup_says_what_is_compiled_in_the_background(capsys, monkeypatch, states):
    monkeypatch.setattr(warmup_command, "warm_up", interrupt_after_first)
    code, out, err = run(capsys, "warmup")
    assert (code, out) == (130, "")
    assert "1 of 2 kernel modules compiled" in err
    assert "the compiler continues with 1 kernel module in the background" in err
    monkeypatch.setattr(warmup_command, "is_cache_private", lambda: True)
    assert "compilation ends with this command" in run(capsys, "warmup")[2]


def test_interrupted_warmup_says_if_nothing_is_left_to_compile(capsys, monkeypatch):
    monkeypatch.setattr(warmup_command, "warm_up", interrupt_after_first)
    monkeypatch.setattr(warmup_command, "kernel_states", lambda: STATES[:1])
    code, _, err = run(capsys, "warmup")
    assert code == 130
    assert "no kernel is being compiled in the background" in err


def test_progress_bar_on_a_terminal_names_remaining_modules(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich then treats the stream as a terminal
    monkeypatch.setenv("COLUMNS", "120")
    bar = warmup_command.make_compile_progress()
    assert isinstance(bar, warmup_command.CompileProgressBar)
    bar.begin({"forward": 5.0, "descent": 65.0})
    bar.finish("forward")
    bar.end()
    err = capsys.readouterr().err
    assert "1 of 2 ready" in err
    assert "descent" in err
    assert "1 of 2 kernel modules compiled in 0 s" in err


def test_progress_bar_prints_nothing_if_all_is_compiled(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    bar = warmup_command.make_compile_progress()
    bar.begin({})
    bar.end()
    assert capsys.readouterr().err == ""
