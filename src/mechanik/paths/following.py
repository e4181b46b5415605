"""What came of following a path."""

from __future__ import annotations

from dataclasses import dataclass

from mechanik.errors import NotFollowed
from mechanik.mechanism import Mechanism
from mechanik.paths.path import Path
from mechanik.spatial.array import Array


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Following:
    """
    Attributes:
        mechanism: which was to follow; it is not moved.
        path: all knots; or, if it breaks, those before the break; None if there is not even a first.
        success: whether all knots are reached, without a jump.
        broken_at: the s where it breaks; None if it does not. The same branch can be followed up to there.
        why: "out of reach", "at a limit of joint ...", "in collision: ...", "in collision between two knots: ...",
            "singular: ...", "no single branch: ...", "too fast: ..."; empty if it does not break.
        parts: (from, to) in s: the pieces in which all can be followed with a jump from each to the next, as far as
            there are any; one piece if it does not break. Where one ends after the next begins, there is a choice of
            where to jump.
        reach: (nq,) where it stood at the break; None if it does not break, or if it never began.
    """

    mechanism: Mechanism
    path: Path | None
    success: bool
    broken_at: float | None = None
    why: str = ""
    parts: tuple[tuple[float, float], ...] = ()
    reach: Array | None = None

    @property
    def message(self) -> str:
        """For people."""
        if self.success and self.path is not None:
            return (
                f"followed through all {len(self.path)} knots; largest step {self.path.largest_step:.3g} rad or m, "
                f"median {self.path.median_step:.3g}"
            )
        return f"cannot be followed beyond s = {self.broken_at:.6g}: {self.why}"

    def __repr__(self) -> str:
        return f"<{'followed' if self.success else 'not followed'}: {self.message}>"

    def require(self) -> Path:
        """The path, or an exception that says where it breaks and why."""
        if not self.success or self.path is None:
            raise NotFollowed(self.message, self)
        return self.path
