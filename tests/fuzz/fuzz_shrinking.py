"""The smallest part of a case that still has a fault: parts are left out one by one while the fault stays."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from fuzz_cases import FuzzCase
from fuzz_mechanisms import Parts, make_mechanism

MAX_SECONDS = 120.0
"""Processor time after which a case is small enough."""


@dataclass(frozen=True, slots=True)
class SmallCase:
    """What is left of a case.

    Attributes:
        seed, without, joints: arguments of `FuzzCase`.
    """

    seed: int
    without: frozenset[str] = frozenset()
    joints: int | None = None

    def make(self) -> FuzzCase:
        return FuzzCase(self.seed, self.without, self.joints)

    def command(self, function: str) -> str:
        """Return the command that runs the case again."""
        words = [f"python tests/fuzz/run_fuzz.py {function} --case {self.seed}"]
        words += [f"--joints {self.joints}"] if self.joints is not None else []
        words += [f'--without "{name}"' for name in sorted(self.without)]
        return " ".join(words)


def shrink(seed: int, has_fault: Callable[[FuzzCase], bool]) -> SmallCase:
    """Return the smallest case found that still has the fault.

    Args:
        seed: of the case.
        has_fault: whether a case has the fault.
    """
    best, end = SmallCase(seed), time.process_time() + MAX_SECONDS

    def attempt(smaller: SmallCase) -> bool:
        nonlocal best
        if smaller == best or time.process_time() > end:
            return False
        try:
            works = has_fault(smaller.make())
        except Exception:  # the parts that are left do not fit together
            return False
        best = smaller if works else best
        return works

    calls = [name for name in best.make().part_names if name.startswith("call ") and name.count(" ") == 1]
    for name in reversed(calls):  # a single call, if the fault needs no others
        if attempt(SmallCase(seed, frozenset(set(calls) - {name}))):
            break
    joint_count = len(make_mechanism(Parts(seed))[1].joints)
    is_smaller = True
    while is_smaller and time.process_time() < end:
        is_smaller = False
        for name in best.make().part_names:
            if name not in best.without:
                is_smaller |= attempt(SmallCase(seed, best.without | {name}, best.joints))
        count = joint_count if best.joints is None else best.joints
        for fewer in (count // 2, count - 1):
            if 0 < fewer < count:
                is_smaller |= attempt(SmallCase(seed, best.without, fewer))
    needless = {name for name in best.without if name.startswith("call ") and name.rsplit(" ", 1)[0] in best.without}
    return SmallCase(seed, best.without - needless, best.joints)
