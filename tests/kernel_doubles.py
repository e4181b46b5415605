"""Kernel states that a test sets instead of those of this machine."""

from __future__ import annotations

from mechanik.studio.server import session_pool as kernel_watch
from mechanik.tiers import KernelState, Tier

NAMES = ("forward", "dense_evaluation", "write_targets", "descent")


class KernelDouble:
    """In the place of `kernel_states`.

    Attributes:
        states: what is read from now on.
        reads: how often they were read.
    """

    def __init__(self) -> None:
        self.states: list[KernelState] = []
        self.reads = 0

    def __call__(self, only_used: bool = False) -> list[KernelState]:
        assert only_used, "modules that a studio does not use are none of its business"
        self.reads += 1
        return self.states

    def compiling(self, ready: int) -> None:
        """The first `ready` modules are compiled, the others are being compiled."""
        self.states = [
            KernelState(name, Tier.JIT, "ready", 1.0) if k < ready else KernelState(name, Tier.PLAIN, "compiling")
            for k, name in enumerate(NAMES)
        ]

    def failed(self, reason: str) -> None:
        self.states = [KernelState(name, Tier.PLAIN, "failed", None, reason) for name in NAMES]

    def without_numba(self, reason: str) -> None:
        self.states = [KernelState(name, Tier.PLAIN, "not compiled", None, reason) for name in NAMES]


def replace_states(monkeypatch) -> KernelDouble:
    """Servers that are made from now on read the states of the double, and ask for no kernels."""
    double = KernelDouble()
    monkeypatch.setattr(kernel_watch, "kernel_states", double)
    monkeypatch.setattr(kernel_watch, "request_kernels", lambda *names: None)
    monkeypatch.setattr(kernel_watch, "on_kernel_change", lambda listener: lambda: None)
    return double
