"""Arguments of every solver: options, the selection of dofs, limits, weights and the collider, and their validation.

Names of joints and dofs, as users give them, are converted to indices, masks, limits and weights.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, fields
from numbers import Integral
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from mechanik.errors import InvalidArgument, LimitsError, ObjectiveError, ShapeError, StructureError, UnknownName
from mechanik.model import Joint, Mechanism
from mechanik.model.dof import DoF, as_dof
from mechanik.objectives import Objective
from mechanik.spatial.array import Array, ArrayLike
from mechanik.validation import as_number

if TYPE_CHECKING:
    from mechanik.collision import Collider
    from mechanik.collision.collision_pairs import Avoid


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of every solver, independent of its method.

    Example:
        >>> mk.Options(max_seconds=0.01, restarts=20).tolerance
        1e-06

    Raises:
        LimitsError: a value is outside its range, or is a text.
        ShapeError, NotFinite: a value is not a number, or is NaN.

    Attributes:
        max_iterations: maximum number of iterations of an attempt; with priority levels, of each level of each
            subproblem. None: the default of the method.
        max_seconds: maximum time of a whole solve, s; infinite by default.
        restarts: maximum number of further starts if the first does not lead to success. None: for a serial chain with
            a single pose-like goal, as many as take about half a millisecond; otherwise 5 with "lm" if there are no
            loops, joint constraints, cones or clearance constraints, the required goals have no more rows than there
            are dofs, and neither `max_iterations` nor `max_seconds` is given; else none. The kernel of serial chains
            does not support some arguments, such as weights of joints, or limits, locks, a callback or a history in a
            call.
        tolerance, angle_tolerance: tolerances of the goals and targets of a graph, m and rad; objectives have their
            own.
        smallest_step: a step below this ends a level with status STALLED; rad, or m divided by the characteristic
            length of the mechanism. 0: never.
        smallest_gradient: gradient relative to the error; below this a level is at a minimum and ends with status
            CLOSEST.
        divergence_threshold: an attempt ends with status DIVERGED, at its best configuration so far, once the norm of
            its weighted residual is above this multiple of the norm at its start; 1 or more. Infinite: only once the
            norm is not finite. Used by methods whose steps can increase the error (`Method.can_diverge`), before they
            meet the required objectives.
        position_weight, rotation_weight: factors on the weights of all residuals in m, and of all residuals in rad.
        rest_factor: share of the distance to the rest pose that a solve covers, 0 to 1.
    """

    max_iterations: int | None = None
    max_seconds: float = math.inf
    restarts: int | None = None
    tolerance: float = 1e-6
    angle_tolerance: float = 1e-6
    smallest_step: float = 0.0
    smallest_gradient: float = 1e-8
    divergence_threshold: float = math.inf
    position_weight: float = 1.0
    rotation_weight: float = 1.0
    rest_factor: float = 1.0

    @property
    def restart_count(self) -> int:
        """Number of restarts that are given; 0 if none is given."""
        return self.restarts or 0

    def has_weights_of(self, options: Options) -> bool:
        """Return whether the weights are those of `options`."""
        return (self.position_weight, self.rotation_weight) == (options.position_weight, options.rotation_weight)

    def __post_init__(self) -> None:
        for name in ("max_iterations", "restarts"):
            value = getattr(self, name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, Integral) or value < 0:
                raise LimitsError(f"{name} must be an integer of 0 or more, not {value!r}")
        for name in NUMERIC_OPTIONS:
            if isinstance(getattr(self, name), str):
                raise LimitsError(f"{name} must be a number, not the text {getattr(self, name)!r}")
        for name in ("tolerance", "angle_tolerance", "position_weight", "rotation_weight"):
            if not as_number(getattr(self, name), name, allow_infinite=True) > 0:
                raise LimitsError(f"{name} must be above 0, not {getattr(self, name)!r}")
        for name in ("max_seconds", "smallest_step", "smallest_gradient", "rest_factor"):
            if not as_number(getattr(self, name), name, allow_infinite=True) >= 0:
                raise LimitsError(f"{name} cannot be below 0, but is {getattr(self, name)!r}")
        if not as_number(self.divergence_threshold, "divergence_threshold", allow_infinite=True) >= 1:
            raise LimitsError(f"divergence_threshold must be 1 or more, not {self.divergence_threshold!r}")
        if self.rest_factor > 1:
            raise LimitsError(f"rest_factor must be from 0 to 1, not {self.rest_factor!r}")


OPTION_NAMES = tuple(field.name for field in fields(Options))
"""Names of the options of every solver."""
NUMERIC_OPTIONS = tuple(name for name in OPTION_NAMES if name not in ("max_iterations", "restarts"))
"""Names of the options that need not be integers."""


def check_option_names(names: Iterable[str], method_options: Sequence[str]) -> None:
    """Raise `UnknownName` for an option that is neither in `Options` nor in `method_options`."""
    for name in names:
        if name not in OPTION_NAMES and name not in method_options:
            raise UnknownName("option", name, (*method_options, *OPTION_NAMES))


def check_avoid_arguments(
    mechanism: object, avoid: object, clearance: float, *rules: Iterable[tuple[str, str]]
) -> None:
    """Raise if collision arguments are given without `avoid`, or `avoid` without a mechanism."""
    if avoid is None and (as_number(clearance, "clearance") != 0.0 or any(tuple(rule) for rule in rules)):
        raise InvalidArgument("clearance, allow and forbid need avoid, as in avoid=['self']")
    if avoid is not None and not isinstance(mechanism, Mechanism):
        raise StructureError("avoid needs a mechanism; Mechanism(roots) makes one from frames")


def as_collider(
    mechanism: Mechanism,
    avoid: Avoid | Collider | None,
    allow: Iterable[tuple[str, str]],
    forbid: Iterable[tuple[str, str]],
) -> Collider | None:
    """Return the collider given as `avoid`, or a new one for "self" and obstacles; None if `avoid` is None.

    Args:
        allow: pairs of names that are excluded from the collision check.
        forbid: pairs of names that are included although they are excluded by default.

    Raises:
        StructureError: `avoid` is a collider of another mechanism.
        InvalidArgument: `avoid` is a collider, and there are pairs in `allow` or `forbid`.
    """
    if avoid is None:
        return None
    from mechanik.collision import Collider

    if not isinstance(avoid, Collider):
        return Collider(mechanism, avoid, allow=allow, forbid=forbid)
    if avoid.mechanism is not mechanism:
        raise StructureError("avoid is a collider of another mechanism; build one for this mechanism")
    if tuple(allow) or tuple(forbid):
        raise InvalidArgument("allow and forbid have no effect on a collider; give them to Collider(...)")
    return avoid


DofNames = Iterable[str | Joint]
"""Joints by name or object, or dofs by name."""
MIN_DOF_WEIGHT = 1e-6
"""Smallest mobility weight of a dof, reached at user weights of 1e6 and more."""


def dof_indices(mechanism: Mechanism, name: str | Joint) -> tuple[list[int], list[int]]:
    """Return the indices in q and in v of a joint or of a single dof (`base.X`).

    A mimic joint has the indices of its leader.
    """
    space, kinematics = mechanism.space, mechanism.kinematics
    if isinstance(name, Joint):
        name = mechanism.name_of(name)
    if not isinstance(name, str):
        raise InvalidArgument(f"a joint must be a name or a Joint, not {name!r}")
    if name in mechanism.joints:
        joint = mechanism.joint(name)
        joint_indices = kinematics.joint_indices.get(joint)
        if joint_indices is not None:
            q, v = list(joint_indices.q.values()), list(joint_indices.v.values())
            for coupling in joint.couplings:
                leader, dof, _, _ = coupling.resolve()
                q.append(kinematics.joint_indices[leader].q[dof])
                v.append(kinematics.joint_indices[leader].v[dof])
            if joint_indices.quaternion_q is not None and joint_indices.quaternion_v is not None:
                q += range(joint_indices.quaternion_q, joint_indices.quaternion_q + 4)
                v += range(joint_indices.quaternion_v, joint_indices.quaternion_v + 3)
            return q, v
        if joint.is_closure:
            raise InvalidArgument(
                f"joint {name!r} closes a loop, and q has no values for it; lock or limit other joints of the loop"
            )
        return [], []
    if name in space.q_names and name in space.v_names:
        return [space.q_names.index(name)], [space.v_names.index(name)]
    if name in space.v_names or name in space.q_names:
        raise InvalidArgument(f"{name!r} is a component of a spherical joint; name the joint")
    raise UnknownName("joint", name, [*mechanism.joints, *(n for n in space.v_names if n not in mechanism.joints)])


def as_stored_names(names: DofNames | str | Joint | None) -> tuple[str | Joint, ...] | str | None:
    """Return names in a form that can be read again: a tuple of names or joints, a single name, or None.

    Raises:
        InvalidArgument: if `names` is neither a name nor several names.
    """
    if names is None or isinstance(names, str):
        return names
    try:
        return (names,) if isinstance(names, Joint) else tuple(names)
    except TypeError:
        raise InvalidArgument(f"joints must be a name or several names, not {names!r}") from None


Values = TypeVar("Values")


def with_copied_values(values: Values) -> Values:
    """Return a copy of numbers, or of a mapping to numbers, that later changes by the caller do not affect."""
    if isinstance(values, Mapping):
        mapping = cast("Mapping[Any, Any]", values)
        return cast("Values", {name: deepcopy(value) for name, value in mapping.items()})
    return deepcopy(values)


def as_pairs(pairs: Iterable[tuple[str, str]], label: str) -> tuple[tuple[str, str], ...]:
    """Return pairs of names as a tuple; raises `InvalidArgument`, with `label` as the subject, if they are none."""
    try:
        return tuple(pairs)
    except TypeError:
        raise InvalidArgument(f"{label} must be pairs of names, as in [('hand', 'table')], not {pairs!r}") from None


def as_dof_mask(
    mechanism: Mechanism, names: DofNames | str | Joint | None, default: bool
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return a mask (nv,) that is True for the named dofs; all entries are `default` if `names` is None."""
    mask = np.full(mechanism.nv, default and names is None, dtype=np.bool_)
    if names is None:
        return mask
    stored_names = as_stored_names(names)
    for name in [stored_names] if isinstance(stored_names, str) else stored_names or ():
        mask[dof_indices(mechanism, name)[1]] = True
    return mask


def as_bounds(mechanism: Mechanism, *limits: Mapping[str, ArrayLike] | None) -> tuple[Array, Array]:
    """Return lower and upper limits, (nq,) each: those of the mechanism, replaced where `limits` has (lower, upper).

    Limits of a mimic joint are limits of its own value; they narrow those of its leader.

    Args:
        mechanism: the mechanism.
        limits: any number of mappings from joints or dofs to (lower, upper), rad or m; later ones replace earlier ones.
            None: no limits are replaced.
    """
    lower, upper = mechanism.space.lower.copy(), mechanism.space.upper.copy()
    replaced: dict[tuple[Joint, DoF], tuple[float, float]] = {}
    for mapping in limits:
        if mapping is not None:
            replaced |= _limits_by_dof(mechanism, mapping)
    indices = mechanism.kinematics.joint_indices
    for joint, dof in {leader_of(*key) for key in replaced}:
        k = indices[joint].q[dof]
        lower[k], upper[k] = joint.effective_limits(dof, replaced)
    return lower, upper


def _limits_by_dof(
    mechanism: Mechanism, limits: Mapping[str, ArrayLike]
) -> dict[tuple[Joint, DoF], tuple[float, float]]:
    """Return (lower, upper) of each scalar dof that `limits` names; of several limits for a dof the last one."""
    if not isinstance(limits, Mapping):
        raise ShapeError(f"limits must be a mapping from names, as in {{'elbow': (0, 2)}}, not {limits!r}")
    limits_by_dof: dict[tuple[Joint, DoF], tuple[float, float]] = {}
    for name, pair in limits.items():
        if not _is_pair(pair):
            raise ShapeError(f"limits of {name!r} must be (lower, upper), not {pair!r}")
        bounds: list[object] = list(pair)  # type: ignore[arg-type]
        low, high = (as_number(bound, f"limit of {name!r}", allow_infinite=True) for bound in bounds)
        if low > high:
            raise LimitsError(f"limits of {name!r} are {low:g} and {high:g}; the lower must not be above the upper")
        q, v = dof_indices(mechanism, name)
        if len(q) != len(v):
            raise LimitsError(f"spherical joint {name!r} has no limits; Joint.set_cone limits its swing")
        if q:
            limits_by_dof.update(dict.fromkeys(_named_dofs(mechanism, name), (low, high)))
    return limits_by_dof


def _is_pair(pair: object) -> bool:
    try:
        return np.shape(pair) == (2,)  # type: ignore[arg-type]
    except ValueError:  # a list of lists of several lengths
        return False


def leader_of(joint: Joint, dof: DoF) -> tuple[Joint, DoF]:
    """Return the joint and dof whose value determines that of a dof: its leader if it is a mimic, else itself."""
    coupling = next((item for item in joint.couplings if item.dof is dof), None)
    return (joint, dof) if coupling is None else coupling.resolve()[:2]


def _named_dofs(mechanism: Mechanism, name: str | Joint) -> list[tuple[Joint, DoF]]:
    """Return the joint and dof of each scalar dof that a name stands for."""
    if isinstance(name, Joint):
        name = mechanism.name_of(name)
    if name in mechanism.joints:
        joint = mechanism.joint(name)
        return [(joint, dof) for dof in joint.dof]
    joint_name, _, dof_name = name.rpartition(".")
    return [(mechanism.joint(joint_name), as_dof(dof_name))]


def as_weights(
    mechanism: Mechanism, objectives: Sequence[Objective], weights: Mapping[str, float]
) -> tuple[dict[int, float], Array]:
    """Return the factors on objective weights by objective index, and the mobility weight of each dof, (nv,).

    The mobility weight of a dof is the inverse of the user's weight, at least MIN_DOF_WEIGHT; 1 by default.
    """
    factors: dict[int, float] = {}
    dof_weights = np.ones(mechanism.nv)
    for name, weight in weights.items():
        value = as_number(weight, f"weight of {name!r}")
        if value <= 0:
            raise ObjectiveError(f"weight of {name!r} must be above zero, not {value:g}")
        indices = [k for k, objective in enumerate(objectives) if objective.name == name]
        factors |= dict.fromkeys(indices, value)
        if not indices:
            dof_weights[dof_indices(mechanism, name)[1]] = max(1.0 / value, MIN_DOF_WEIGHT)
    return factors, dof_weights
