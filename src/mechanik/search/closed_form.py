"""Closed forms: every way in which a serial arm reaches a pose, by formula, without a start and without luck."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mechanik.errors import NoClosedForm, NotFinite, ShapeError, StructureError, WrongKind
from mechanik.mechanism import Link, Mechanism
from mechanik.mechanism.recognise import Family, Recognition, recognise
from mechanik.mechanism.screw_axes import ScrewAxes
from mechanik.search.checked import Mask, checked
from mechanik.search.planar_arms import Planar2R, Planar3R
from mechanik.search.spherical_wrist import SphericalWrist
from mechanik.search.srs import SRS
from mechanik.search.three_parallel import ThreeParallel
from mechanik.search.unwinding import unwound
from mechanik.spatial import Pose, as_pose_matrix, inverse, rotation
from mechanik.spatial.array import Array, ArrayLike

CHUNK = 8192
"""Poses at a time, so that what they need on the way stays in the cache."""
FAMILIES = {
    Family.PLANAR_2R: Planar2R,
    Family.PLANAR_3R: Planar3R,
    Family.SPHERICAL_WRIST: SphericalWrist,
    Family.SPHERICAL_SHOULDER: SphericalWrist,
    Family.THREE_PARALLEL: ThreeParallel,
    Family.SRS: SRS,
}


class Formula(Protocol):
    """What each family brings: candidates, of which those that do not exist are NaN or do not reach the target."""

    branches: int
    counts_rotation: bool

    def candidates(self, T: Array, near: Array, elbow: Array | None) -> Array: ...


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ClosedForm:
    """All solutions of one chain of a mechanism, as the mechanism was when this was made. Made by `closed_form`.

    Attributes:
        mechanism: whose joints they are.
        link, base: the chain's ends; the base is None for the world.
        recognition: the family, and how it was told.
        axes: of the chain's n joints.
        formula: the family's equations.
        revision: of the mechanism when this was made; it refuses to answer for another.
    """

    mechanism: Mechanism
    link: str
    base: str | None
    recognition: Recognition
    axes: ScrewAxes
    formula: Formula
    revision: tuple[int, ...]

    def __repr__(self) -> str:
        return f"<closed form of the chain to {self.link!r}: {self.kind}, {', '.join(self.joints)}>"

    @property
    def kind(self) -> str:
        """The family: one of the names in `mechanism/recognise.py`, such as "spherical wrist"."""
        return str(self.recognition.family)

    @property
    def why(self) -> str:
        """How the family was told, in a sentence."""
        return "; ".join(self.recognition.why)

    @property
    def joints(self) -> tuple[str, ...]:
        """The n joints of the chain, base first."""
        return self.axes.names

    def solve_all(
        self, target: Pose | ArrayLike, *, elbow: ArrayLike | None = None, near: ArrayLike | None = None
    ) -> tuple[Array, Mask]:
        """Every branch for every target; limits are not looked at.

        Each branch is checked by forward kinematics to 1e-9 (m, rad). At a singular pose branches that fall together
        are given once, and an angle that is free there is that of `near`.

        Args:
            target: X_base_link (..., 4, 4). Of a planar 2R arm only the position counts.
            elbow: (...) rad, for S-R-S arms: the elbow angle, as `search/srs.py` defines it; that of `near` if it is
                not given.
            near: (..., n) angles of the chain; zero if not given.
        Returns:
            q (..., branches, n) in (-pi, pi], and (..., branches) which of them exist; the others are NaN.
        """
        self._check_fresh()
        X = as_pose_matrix(target, "target")
        leading = X.shape[:-2]
        given = np.zeros(self.axes.n) if near is None else _finite(near, "near")
        if given.shape[-1:] != (self.axes.n,):
            raise ShapeError(f"near has to be shaped (..., {self.axes.n}), not {given.shape}")
        if elbow is None:
            swivel = self._elbow(given) if isinstance(self.formula, SRS) else np.zeros(())
        elif isinstance(self.formula, SRS):
            swivel = _finite(elbow, "elbow")
        else:
            raise WrongKind(f"only an S-R-S arm has an elbow angle; this is a {self.kind} arm")
        leading = np.broadcast_shapes(leading, given.shape[:-1], swivel.shape)
        X = np.broadcast_to(X, (*leading, 4, 4)).reshape(-1, 4, 4)
        start = np.broadcast_to(given, (*leading, self.axes.n)).reshape(-1, self.axes.n)
        swivel = np.broadcast_to(swivel, leading).reshape(-1)
        B = self.formula.branches
        q, exists = np.empty((len(X), B, self.axes.n)), np.empty((len(X), B), dtype=np.bool_)
        for k in range(0, len(X), CHUNK):
            part = slice(k, k + CHUNK)
            q[part], exists[part] = self._solve(_orthogonal(X[part]), start[part], swivel[part])
        return q.reshape(*leading, B, self.axes.n), exists.reshape(*leading, B)

    def branches(
        self,
        target: Pose | ArrayLike,
        q0: ArrayLike | None = None,
        *,
        within_limits: bool = True,
        elbow: float | None = None,
    ) -> Array:
        """The configurations (k, nq) that reach one target, nearest to q0 first; the other joints are as in q0.

        Of angles that differ by full turns, the one nearest to q0 inside the limits is given.

        Args:
            target: X_base_link (4, 4).
            q0: (nq,); the present configuration if it is not given.
            within_limits: whether branches that the limits rule out are left out.
            elbow: rad, for S-R-S arms; that of q0 if not given.
        """
        X, start = self._one(target, q0)
        angles, exists = self.solve_all(X, elbow=elbow, near=start[self.axes.columns])
        return self._configurations(angles[exists], start, within_limits)

    def nearest(self, target: Pose | ArrayLike, q0: ArrayLike | None = None) -> Array | None:
        """The configuration (nq,) inside the limits that reaches one target with the shortest way from q0, or None.

        The way is the root of the summed squares of the angles. For an S-R-S arm the elbow angle is searched too: 360
        of them, and then around the best, to a thousandth of a degree.
        """
        X, start = self._one(target, q0)
        if not isinstance(self.formula, SRS):
            found = self.branches(X, start)
            return found[0] if len(found) else None
        near = start[self.axes.columns]
        best: Array | None = None
        middle, width, count = float(self._elbow(near)), 2 * np.pi, 360
        for _ in range(4):
            elbows = middle + width * (np.arange(count) - count // 2) / count
            angles, exists = self.solve_all(X, elbow=elbows, near=near)
            found = self._configurations(angles[exists], start, True)
            if len(found) and (best is None or _way(found[0], start) < _way(best, start)):
                best = found[0]
            if best is None:
                return None
            middle, width, count = float(self._elbow(best[self.axes.columns])), 4 * width / count, 41
        return best

    def elbow_of(self, q: ArrayLike) -> Array:
        """The elbow angle (...), rad in (-pi, pi], of an S-R-S arm at q (..., nq)."""
        if not isinstance(self.formula, SRS):
            raise WrongKind(f"only an S-R-S arm has an elbow angle; this is a {self.kind} arm")
        self._check_fresh()
        return self._elbow(self.mechanism.space.check_q(q)[..., self.axes.columns])

    def _check_fresh(self) -> None:
        if self.mechanism.revision != self.revision:
            raise StructureError("the mechanism has changed since its closed form was made; make that again")

    def _one(self, target: Pose | ArrayLike, q0: ArrayLike | None) -> tuple[Array, Array]:
        """One target (4, 4) and where to start (nq,), or an error."""
        X = as_pose_matrix(target, "target")
        if X.ndim != 2:
            raise ShapeError(f"one target is needed here, not an array of shape {X.shape}; solve_all takes many")
        self._check_fresh()
        start = self.mechanism.q if q0 is None else self.mechanism.space.check_q(q0)
        if start.ndim != 1:
            raise ShapeError(f"q0 has to be one configuration, not an array of shape {start.shape}")
        return X, start

    def _elbow(self, angles: Array) -> Array:
        assert isinstance(self.formula, SRS)
        return self.formula.elbow_angle(angles.reshape(-1, self.axes.n)).reshape(angles.shape[:-1])

    def _solve(self, X: Array, near: Array, elbow: Array) -> tuple[Array, Mask]:
        T = X @ inverse(self.axes.home)
        if self.recognition.mirrored:
            q = self.formula.candidates(inverse(T), near[:, ::-1], elbow)[..., ::-1]
        else:
            q = self.formula.candidates(T, near, elbow)
        return checked(self.axes, q, X, self.formula.counts_rotation, self.recognition.deviation)

    def _configurations(self, angles: Array, start: Array, within_limits: bool) -> Array:
        """Angles (k, n) as configurations (k', nq), unwound and sorted."""
        columns, axes = self.axes.columns, self.axes
        found, inside = unwound(angles, start[columns], axes.lower, axes.upper)
        if within_limits:
            found = found[inside]
        found = found[np.argsort(_way(found, start[columns]), kind="stable")]
        q = np.tile(start, (len(found), 1))
        q[:, columns] = found
        return q


def closed_form(mechanism: Mechanism, link: str | Link, base: str | Link | None = None) -> ClosedForm:
    """The closed form of the chain from `base` (the world if it is not given) to `link`.

    Raises:
        NoClosedForm: there is none among those known; the error says why.
    """
    end = mechanism._link_name(link)
    top = None if base is None else mechanism._link_name(base)
    found = recognise(mechanism, end, top)
    if found.family is None or found.axes is None:
        raise NoClosedForm(
            f"the chain to {end!r} has no closed form that is known here: {'; '.join(found.why)}. "
            "The general solver, mechanik.solve or mechanik.Solver, takes any chain"
        )
    axes = found.axes
    h, p = (-axes.directions[::-1], axes.points[::-1]) if found.mirrored else (axes.directions, axes.points)
    formula = FAMILIES[found.family](h, p, axes.home, axes.size)
    return ClosedForm(mechanism, end, top, found, axes, formula, mechanism.revision)


def _orthogonal(X: Array) -> Array:
    """Poses whose rotations are rotations to the last digit; those of targets may be off by 1e-6."""
    R = X[:, :3, :3]
    off = np.abs(np.swapaxes(R, -1, -2) @ R - np.eye(3)).max(axis=(-1, -2)) > 1e-14
    if not off.any():
        return X
    X = X.copy()
    X[off, :3, :3] = rotation.nearest(R[off])
    return X


def _way(q: Array, start: Array) -> Array:
    return np.sqrt(((q - start) ** 2).sum(axis=-1))


def _finite(values: ArrayLike, what: str) -> Array:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ShapeError(f"{what} must be an array of real numbers, not {values!r}") from None
    if not np.isfinite(array).all():
        raise NotFinite(f"{what} has an entry that is not finite")
    return array
