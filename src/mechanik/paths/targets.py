"""What is asked for along the way: targets as a function of s, whatever form they come in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np

from mechanik.errors import MechanikError, NotARotation, NotFinite, ObjectiveError, ShapeError, WrongKind
from mechanik.objectives import Objective, PoseGoal
from mechanik.objectives.objective import as_objectives
from mechanik.paths.path import as_parameters
from mechanik.paths.pose_path import PosePath
from mechanik.solvers.new_targets import aimed
from mechanik.spatial import Pose, interpolation
from mechanik.spatial.array import Array, ArrayLike
from mechanik.spatial.pose import as_pose_matrix

KNOTS = 200
"""Where targets are a function and nobody says how many knots there shall be."""

Goals = str | Objective | Iterable[Objective] | Callable[[float], Objective | Iterable[Objective]]
"""A link, of which the pose is meant; objectives whose targets change; or a function of s that gives objectives."""


class Wanted:
    """
    Attributes:
        s: (N,) the knots.
        objectives: as they are at the first knot.
        has_targets: whether they stay the same but for their targets.
    """

    def __init__(self, goals: Goals, targets: Any, s: int | ArrayLike | None) -> None:
        self._function: Callable[[float], Any] | None = None
        self._list: Sequence[Any] | Array = ()
        self._at_knots: Array | None = None
        self.has_targets = not callable(goals)
        given: Any = goals if callable(goals) else targets
        if given is None:
            raise ObjectiveError("nothing changes along the way: give targets too, or goals as a function of s")
        if callable(goals) and targets is not None:
            raise ObjectiveError("goals that are a function of s bring their targets; give no others")
        if callable(given):
            self._function = given
            self.s = _parameters(s)
        else:
            self._list = _listed(given)
            if is_count(s) and s != len(self._list):
                raise ShapeError(f"there are {len(self._list)} targets, which are the knots, so s cannot be {s} knots")
            self.s = as_parameters(None if is_count(s) else s, len(self._list))
        first = self.target(float(self.s[0]))
        if callable(goals):
            self.objectives = as_objectives(first)
        elif isinstance(goals, str):
            self.objectives = (PoseGoal(goals, first),)
        else:
            self.objectives = as_objectives(goals)
        if not self.objectives:
            raise ObjectiveError("nothing is asked for: the list of goals is empty")
        if self.has_targets:
            for k, target in enumerate(self._list):
                self._check(k, target)

    def _check(self, k: int, target: Any) -> None:
        """Refuse a target of a list that is none, and say which."""
        if target is None:
            raise ShapeError(f"target {k} of {len(self._list)} is None; every knot needs one")
        try:
            aimed(self.objectives, target)
        except MechanikError as error:
            raise placed(error, f"target {k} of {len(self._list)}") from error

    def target(self, s: float) -> Any:
        """What is asked for at s: targets for the objectives, or objectives if those change."""
        if self._function is not None:
            try:
                return self._function(s)
            except Exception as error:
                error.add_note(f"It was asked for what is wanted at s = {s:g}.")
                raise
        k = min(max(int(np.searchsorted(self.s, s, side="right")) - 1, 0), len(self.s) - 1)
        if s <= self.s[k] or k == len(self.s) - 1:
            return self._list[k]
        share = float((s - self.s[k]) / (self.s[k + 1] - self.s[k]))
        return between(self._list[k], self._list[k + 1], share)

    def targets(self, s: Array) -> Array:
        """(K, ...) where all targets are arrays of one shape; those of the knots are kept."""
        k = np.minimum(np.searchsorted(self.s, s), len(self.s) - 1)
        if (self.s[k] == s).all():
            if self._at_knots is None:
                self._at_knots = self._targets(self.s)
            return self._at_knots[k]
        return self._targets(s)

    def _targets(self, s: Array) -> Array:
        if isinstance(self._function, PosePath):
            return self._function(s)
        found = [np.asarray(self.target(one), dtype=np.float64) for one in s.tolist()]
        for at, one in zip(s.tolist(), found, strict=True):
            if one.shape != found[0].shape:
                raise ShapeError(f"the target at s = {at:g} is of shape {one.shape}, and others are {found[0].shape}")
        X = np.array(found)
        if X.shape[1:] != (4, 4):
            return X
        try:
            return as_pose_matrix(X)
        except MechanikError:
            for at, one in zip(s.tolist(), X, strict=True):
                as_pose_matrix(one, f"the target at s = {at:g}")
            raise


def placed(error: MechanikError, where: str) -> MechanikError:
    """The same complaint about a target, with the place where it is."""
    kind = type(error) if type(error) in (NotFinite, NotARotation) else ShapeError
    return kind(f"{where}: {error}")


def between(a: Any, b: Any, share: float) -> Any:
    """A target between two others: poses as a line has them, rotations the shortest way, numbers straight."""
    if a is None or b is None:
        return a
    if isinstance(a, Mapping):
        return {name: between(one, b[name], share) for name, one in a.items()}  # type: ignore[misc]
    if isinstance(a, Pose):
        return interpolation.poses(a.matrix, np.asarray(b), np.float64(share))
    try:
        x, y = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    except (TypeError, ValueError):
        return tuple(between(one, other, share) for one, other in zip(a, b, strict=True))
    if x.shape == (4, 4):
        return interpolation.poses(x, y, np.float64(share))
    if x.shape == (3, 3):
        return interpolation.rotations(x, y, np.float64(share))
    if x.shape == (4,):
        return interpolation.slerp(x, y, np.float64(share))
    return (1.0 - share) * x + share * y


def is_count(s: int | ArrayLike | None) -> TypeGuard[int]:
    """Whether s is a number of knots, and not their values."""
    return isinstance(s, int | np.integer) and not isinstance(s, bool)


def _parameters(s: int | ArrayLike | None) -> Array:
    if s is None:
        return np.linspace(0.0, 1.0, KNOTS)
    if is_count(s):
        if s < 2:
            raise ShapeError(f"a path has 2 knots or more, not {s}")
        return np.linspace(0.0, 1.0, s)
    try:
        values = np.asarray(s, dtype=np.float64)
    except (TypeError, ValueError):
        raise ShapeError(f"s is a number of knots, or their values (N,), not {s!r}") from None
    if values.ndim != 1 or len(values) < 2:
        raise ShapeError(f"s is a number of knots, or their values (N,), 2 or more, not of shape {values.shape}")
    return as_parameters(values, len(values))


def _listed(targets: Any) -> Sequence[Any] | Array:
    if isinstance(targets, Mapping | str) or not hasattr(targets, "__len__"):
        raise WrongKind(f"targets are a path of poses, a function of s, or a list with one for each knot: {targets!r}")
    if len(targets) < 2:
        raise ShapeError(f"a path has 2 knots or more, and here are {len(targets)} targets")
    return targets
