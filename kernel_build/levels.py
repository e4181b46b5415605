"""Instruction set levels for which machine code is compiled."""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Level:
    """An instruction set level: the instructions that machine code may use.

    Attributes:
        name: name of the level for users ("x86-64-v3").
        cpu: name of a processor in LLVM; None for the processor of this machine with all its instructions.
        modules: kernel modules that are compiled for this level; other modules are taken from the next level that has
            them. Empty: all modules.
        missing_features: LLVM features of the processor `cpu` that the level does not have.
    """

    name: str
    cpu: str | None
    modules: tuple[str, ...] = ()
    missing_features: tuple[str, ...] = ()

    @property
    def identifier(self) -> str:
        """The name as a part of identifiers in C."""
        return self.name.replace("-", "_")

    def own_modules(self, modules: list[str]) -> list[str]:
        """Return those of the given modules that are compiled for this level."""
        return [module for module in modules if module in self.modules] if self.modules else modules

    def environment(self) -> dict[str, str]:
        """Return the environment variables with which Numba compiles all functions for this level."""
        if self.cpu is None:
            return {}
        features = ",".join(f"-{feature}" for feature in self.missing_features)
        return {"NUMBA_CPU_NAME": self.cpu, "NUMBA_CPU_FEATURES": features}


HOST = Level("host", None)
"""The processor of this machine: results have the same bits as those of JIT-compiled kernels."""
V4 = Level("x86-64-v4", "x86-64-v4", ("lane_kernel",))
"""Only the kernel of batches is compiled for this level: batches are 1.17 times as fast as on x86-64-v3 (panda, 10,000
rows, AMD EPYC with AVX-512), and single solves are equally fast."""
V3 = Level(
    "x86-64-v3",
    "znver2",
    missing_features=(
        "adx", "aes", "clflushopt", "clwb", "clzero", "fsgsbase", "mwaitx", "pclmul", "prfchw", "rdpid", "rdpru",
        "rdrnd", "rdseed", "sha", "sse4a", "wbnoinvd", "xsavec", "xsaveopt", "xsaves",
    ),
)  # fmt: skip
"""Compiled with LLVM's instruction costs for AMD's Zen 2, not with those for x86-64-v3: four-bars are solved 1.04 times
as fast, Stewart platforms 1.03 times, arms 1.02 times (AMD EPYC, Zen 4; Intel's processors were not measured)."""
X86_64 = Level("x86-64", "x86-64")


def default_levels() -> list[Level]:
    """Return the levels of a wheel for this kind of machine, the best first.

    Every processor of this kind of machine can run the code of the last level.
    """
    if is_x86_64():
        return [V4, V3, X86_64]
    return [Level("baseline", "apple-m1" if sys.platform == "darwin" else "generic")]


def level(name: str) -> Level:
    """Return a level by its name; raises `ValueError` if there is none for this kind of machine."""
    levels = [*default_levels(), HOST]
    for candidate in levels:
        if candidate.name == name:
            return candidate
    raise ValueError(
        f"there is no instruction set level {name!r}; choose from {', '.join(candidate.name for candidate in levels)}"
    )


def is_x86_64() -> bool:
    return platform.machine().lower() in ("x86_64", "amd64")
