"""Levels of instructions that machine code is made for."""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Level:
    """A kind of processor.

    Attributes:
        name: as users see it ("x86-64-v3").
        cpu: its name in LLVM; None for the processor of this machine with all that it can do.
        without: features of that processor in LLVM which the level does not have.
        modules: modules of kernels that gain by it; others are taken from the next level. Empty: all are made for it.
    """

    name: str
    cpu: str | None
    modules: tuple[str, ...] = ()
    without: tuple[str, ...] = ()

    @property
    def identifier(self) -> str:
        """The name as a part of names in C."""
        return self.name.replace("-", "_")

    def own_modules(self, modules: list[str]) -> list[str]:
        """Those that are made for this level."""
        return [module for module in modules if module in self.modules] if self.modules else modules

    def environment(self) -> dict[str, str]:
        """What Numba reads from the environment, so that all functions are made for this level."""
        if self.cpu is None:
            return {}
        return {"NUMBA_CPU_NAME": self.cpu, "NUMBA_CPU_FEATURES": ",".join(f"-{feature}" for feature in self.without)}


HOST = Level("host", None)
"""The processor of this machine: the same bits as machine code that is compiled when it is needed."""
V4 = Level("x86-64-v4", "x86-64-v4", ("lane_kernel",))
"""Batches are 1.17 times as fast as on x86-64-v3 (panda, 10,000 rows, AMD EPYC with AVX-512), single solves as fast."""
V3 = Level(
    "x86-64-v3",
    "znver2",
    without=(
        "adx", "aes", "clflushopt", "clwb", "clzero", "fsgsbase", "mwaitx", "pclmul", "prfchw", "rdpid", "rdpru",
        "rdrnd", "rdseed", "sha", "sse4a", "wbnoinvd", "xsavec", "xsaveopt", "xsaves",
    ),
)  # fmt: skip
"""Compiled with LLVM's costs of instructions on AMD's Zen 2: four-bars are solved 1.04 times as fast as with its costs
for x86-64-v3, Stewart platforms 1.03 times, arms 1.02 times (AMD EPYC, Zen 4; Intel's processors were not measured)."""
X86_64 = Level("x86-64", "x86-64")


def default_levels() -> list[Level]:
    """The levels of a wheel for this kind of machine, the best first; any processor of its kind can run the last."""
    if is_x86_64():
        return [V4, V3, X86_64]
    return [Level("baseline", "apple-m1" if sys.platform == "darwin" else "generic")]


def level(name: str) -> Level:
    """A level by its name; ValueError if there is none for this kind of machine."""
    levels = [*default_levels(), HOST]
    for candidate in levels:
        if candidate.name == name:
            return candidate
    raise ValueError(f"there is no level {name!r}; choose from {', '.join(candidate.name for candidate in levels)}")


def is_x86_64() -> bool:
    return platform.machine().lower() in ("x86_64", "amd64")
