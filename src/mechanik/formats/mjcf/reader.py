"""MJCF reader: builds a mechanism from the model that MuJoCo compiles, with joints in the order of MuJoCo.

The world is a link. Each body is a link of the same name; if a body has several joints, there is an intermediate link
between consecutive joints. Named sites are links fixed to their body. <equality> elements are converted as follows:

- connect becomes a closure with a spherical joint.
- weld becomes a rigid closure, or a closure with a spherical joint if its torquescale is 0.
- connect or weld with a mocap body, which a user moves, becomes a goal.
- joint becomes a coupling if it is linear and possible, otherwise a joint constraint. If it has no second joint or is
  constant, it sets both limits of its first joint to one value.
- tendon becomes a joint constraint on the joints in the tendons.

qpos and q contain the same numbers in the same order, except that mimic joints are not in q. A hinge or slide has one
number (which includes MuJoCo's `ref`), a ball joint wxyz, a free joint xyz and wxyz.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.polynomial import Polynomial

from mechanik.errors import CouplingError, NotARotation, ShapeError, UnknownName
from mechanik.formats.mjcf.compiled_model import BALL, FREE, SLIDE, MjcfModel, compile_mjcf, unused_name
from mechanik.formats.mjcf.mjcf_geometry import GeomReader, read_body_inertial
from mechanik.formats.source import Source, open_source
from mechanik.formats.urdf.reader import has_conflicting_limits, list_names, set_axis
from mechanik.model.dof import ALL_DOFS, ROTATIONS, TRANSLATIONS, DoF
from mechanik.model.frame import Goal, Link
from mechanik.model.joint import Joint
from mechanik.model.joint_constraint import JointConstraint
from mechanik.model.kinematics import JointIndices
from mechanik.model.mechanism import Mechanism
from mechanik.spatial import from_position_wxyz, make_pose, rotation, translation
from mechanik.spatial.array import Array, ArrayLike


def from_qpos(mechanism: Mechanism, qpos: ArrayLike) -> Array:
    """Convert MuJoCo's qpos to the configuration q of a mechanism that was read from MJCF.

    Joints that were added to the mechanism after reading have the value that they have in `Mechanism.neutral`. The
    entries of mimic joints in qpos are ignored.

    Args:
        mechanism: a mechanism that `read_mjcf` or `load` has read.
        qpos: (..., nq of MuJoCo); m, rad and quaternions wxyz, which are normalized.

    Returns:
        q, (..., nq).

    Raises:
        ShapeError: qpos has a wrong size, or a joint has other dofs than in MuJoCo.
        NotARotation: a quaternion is zero.
        UnknownName: the mechanism was not read from MJCF.

    Example:
        >>> body = '<body name="arm"><joint name="hinge"/><geom size="1"/></body>'
        >>> arm = mk.load(f"<mujoco><worldbody>{body}</worldbody></mujoco>")
        >>> mk.formats.from_qpos(arm, [0.5]).tolist()
        [0.5]
    """
    size, addresses = _qpos_addresses(mechanism)
    values = np.asarray(qpos, dtype=np.float64)
    if values.ndim < 1 or values.shape[-1] != size:
        raise ShapeError(f"qpos must have {size} numbers along its last axis, but its shape is {values.shape}")
    q = np.broadcast_to(mechanism.neutral(), (*values.shape[:-1], mechanism.nq)).copy()
    for joint, indices in mechanism.kinematics.joint_indices.items():
        address = addresses.get(mechanism.name_of(joint))
        if address is not None:
            for k, index in enumerate(_q_indices(joint, indices)):
                if index is not None:
                    q[..., index] = values[..., address + k]
    for k in mechanism.space.quaternions_q:
        norm = np.linalg.norm(q[..., k : k + 4], axis=-1, keepdims=True)
        if not (norm > 1e-9).all():
            raise NotARotation(f"qpos has a zero quaternion for {mechanism.space.q_names[k]!r}")
        q[..., k : k + 4] /= norm
    return q


def to_qpos(mechanism: Mechanism, q: ArrayLike | None = None) -> Array:
    """Convert a configuration q to MuJoCo's qpos, including the mimic joints.

    Args:
        mechanism: a mechanism that `read_mjcf` or `load` has read.
        q: (..., nq); by default the present configuration.

    Returns:
        qpos, (..., nq of MuJoCo); m, rad and quaternions wxyz.

    Raises:
        ShapeError: q has a wrong size, or a joint has other dofs than in MuJoCo.
        UnknownName: the mechanism was not read from MJCF.

    Example:
        >>> body = '<body name="arm"><joint name="hinge"/><geom size="1"/></body>'
        >>> arm = mk.load(f"<mujoco><worldbody>{body}</worldbody></mujoco>")
        >>> mk.formats.to_qpos(arm, [0.5]).tolist()
        [0.5]
    """
    size, addresses = _qpos_addresses(mechanism)
    values = mechanism.space.check_q(mechanism.q if q is None else q)
    qpos = np.zeros((*values.shape[:-1], size))
    joint_indices = mechanism.kinematics.joint_indices
    for joint, indices in joint_indices.items():
        address = addresses.get(mechanism.name_of(joint))
        if address is None:
            continue
        for k, index in enumerate(_q_indices(joint, indices)):
            if index is not None:
                qpos[..., address + k] = values[..., index]
            else:
                leader, dof, ratio, offset = joint.couplings[0].resolve()
                qpos[..., address + k] = ratio * values[..., joint_indices[leader].q[dof]] + offset
    return qpos


def _q_indices(joint: Joint, indices: JointIndices) -> list[int | None]:
    """Return the indices in q of the numbers that MuJoCo has for a joint; None for a mimic joint."""
    quaternion_indices = [] if indices.quaternion_q is None else [indices.quaternion_q + k for k in range(4)]
    if indices.quaternion_q is None and len(joint.dof) > 1:
        raise ShapeError(f"the dofs of {joint} differ from those in MuJoCo, so qpos has no value for it")
    scalar_dofs = [dof for dof in joint.dof if indices.quaternion_q is None or dof in (DoF.X, DoF.Y, DoF.Z)]
    return [*(indices.q.get(dof) for dof in scalar_dofs), *quaternion_indices]


def _qpos_addresses(mechanism: Mechanism) -> tuple[int, Mapping[str, int]]:
    qpos_extra: Any = mechanism.extras.get("qpos")
    if not isinstance(qpos_extra, Mapping):
        raise UnknownName("extra from MJCF", "qpos", mechanism.extras)
    table = cast("Mapping[str, Any]", qpos_extra)
    addresses = cast("Mapping[str, Any]", table["at"])
    return int(table["size"]), {name: int(address) for name, address in addresses.items()}


PolynomialTerms = dict[int, Polynomial]
"""Terms of a joint constraint: a polynomial in the value of each joint, by joint index."""


class EqualityReader:
    """Converts the equalities of a model to closures, goals, couplings and joint constraints.

    Args:
        model: the compiled model.
        links: links by body index.
        joints: joints by joint index.
    """

    def __init__(self, model: MjcfModel, links: Sequence[Link], joints: Sequence[Joint]) -> None:
        self.model, self.links, self.joints = model, links, joints
        self.constraint_names: set[str] = set()
        self.initial_data: Any = model.mujoco.MjData(model.mj_model)
        """`mujoco.MjData` at MuJoCo's initial configuration."""
        model.mujoco.mj_kinematics(model.mj_model, self.initial_data)

    def read(self) -> None:
        mj_model, equality_types = self.model.mj_model, self.model.mujoco.mjtEq
        for index in range(mj_model.neq):
            equality_type = int(mj_model.eq_type[index])
            type_name = equality_types(equality_type).name.removeprefix("mjEQ_").lower()
            label = self.model.name_of("equality", index) or f"{type_name} {index}"
            if not mj_model.eq_active0[index]:
                self.model.warn(f"equality {label!r} is not active; it is ignored")
            elif equality_type in (equality_types.mjEQ_CONNECT, equality_types.mjEQ_WELD):
                self._connect_bodies(index, label, type_name)
            elif equality_type == equality_types.mjEQ_JOINT:
                self._read_joint_equality(index, label)
            elif equality_type == equality_types.mjEQ_TENDON:
                self._read_tendon_equality(index, label)
            else:
                self.model.warn(f"equality {label!r} has the type {type_name}, which is not supported; it is ignored")

    # ---- bodies -----------------------------------------------------------------------------

    def _connect_bodies(self, index: int, label: str, type_name: str) -> None:
        mj_model = self.model.mj_model
        body1, body2, X_body1_end, X_body2_end = self._ends_of(index, type_name)
        is_mocap1, is_mocap2 = (self._moves_with_mocap(body) for body in (body1, body2))
        weld_groups = [
            0 if is_mocap else int(mj_model.body_weldid[body])
            for body, is_mocap in ((body1, is_mocap1), (body2, is_mocap2))
        ]
        if weld_groups[0] == weld_groups[1]:
            self.model.warn(
                f"equality {label!r} connects {self.model.body_names[body1]!r} and {self.model.body_names[body2]!r}, "
                "which no joint moves relative to each other; it is ignored"
            )
            return
        name = (
            self.model.name_of("equality", index)
            or f"{type_name}_{self.model.body_names[body1]}_{self.model.body_names[body2]}"
        )
        name = unused_name(name, self.model.used_joint_names)
        is_spherical = type_name == "connect" or mj_model.eq_data[index, 10] == 0.0
        if is_mocap1 or is_mocap2:
            if is_mocap2:
                body1, body2, X_body1_end, X_body2_end = body2, body1, X_body2_end, X_body1_end
            goal = Goal(name, dof=TRANSLATIONS if is_spherical else ALL_DOFS)
            goal.matrix = X_body1_end
            self.links[body1].add_child(goal)
            goal.make_closure(self.links[body2], X_body2_end)
            return
        if is_spherical:  # make the rotation of the closing joint the identity at the initial configuration
            R_world_end1, R_world_end2 = (
                self.initial_data.xmat[body].reshape(3, 3) @ X[:3, :3]
                for body, X in ((body1, X_body1_end), (body2, X_body2_end))
            )
            X_body2_end = X_body2_end @ make_pose(R_world_end2.T @ R_world_end1, np.zeros(3))
        joint = Joint(name, dof=ROTATIONS if is_spherical else ())
        joint.matrix = X_body1_end
        self.links[body1].add_child(joint)
        joint.make_closure(self.links[body2], X_body2_end)

    def _moves_with_mocap(self, body: int) -> bool:
        """Return whether a body is a mocap body or is fixed to a mocap body."""
        mj_model = self.model.mj_model
        while body and mj_model.body_mocapid[body] < 0 and not mj_model.body_jntnum[body]:
            body = int(mj_model.body_parentid[body])
        return bool(mj_model.body_mocapid[body] >= 0)

    def _ends_of(self, index: int, type_name: str) -> tuple[int, int, Array, Array]:
        """Return the indices of two bodies, and a pose (4, 4) on each body.

        The equality requires that the poses coincide; for connect only their positions.
        """
        mj_model = self.model.mj_model
        object1, object2 = int(mj_model.eq_obj1id[index]), int(mj_model.eq_obj2id[index])
        if int(mj_model.eq_objtype[index]) == int(self.model.mujoco.mjtObj.mjOBJ_SITE):
            X_body1_end, X_body2_end = self.model.pose_of("site", object1), self.model.pose_of("site", object2)
            return int(mj_model.site_bodyid[object1]), int(mj_model.site_bodyid[object2]), X_body1_end, X_body2_end
        data = mj_model.eq_data[index]
        if type_name == "connect":
            return object1, object2, translation(data[:3]), translation(data[3:6])
        return object1, object2, from_position_wxyz(data[3:6], data[6:10]), translation(data[:3])

    # ---- joints and tendons -----------------------------------------------------------------

    def _read_joint_equality(self, index: int, label: str) -> None:
        """Read a joint equality: value - ref of the first joint is a polynomial of value - ref of the second joint."""
        mj_model = self.model.mj_model
        mimic, leader = int(mj_model.eq_obj1id[index]), int(mj_model.eq_obj2id[index])
        polynomial = _trimmed_polynomial(mj_model.eq_data[index, :5])
        reference = self._reference_value(mimic)
        if leader < 0 or polynomial.degree() == 0:
            self._fix_value(mimic, reference + float(polynomial.coef[0]), label)
            return
        value = reference + polynomial(Polynomial([-self._reference_value(leader), 1.0]))
        if value.degree() == 1:
            try:
                coupling = self.joints[mimic].mimic(self.joints[leader], float(value.coef[1]), float(value.coef[0]))
            except CouplingError:  # the joint already mimics another joint, or the coupling would be cyclic
                pass
            else:
                if has_conflicting_limits(coupling):
                    self.model.warn(
                        f"equality {label!r}: joint {self.joints[mimic].name!r} mimics {self.joints[leader].name!r}, "
                        "and their limits contradict each other; the limits of the mimic joint are ignored"
                    )
                return
        self._add_constraint({mimic: Polynomial([0.0, 1.0]), leader: -value}, label)

    def _read_tendon_equality(self, index: int, label: str) -> None:
        """Read a tendon equality of fixed tendons.

        length - length0 of the first tendon is a polynomial of length - length0 of the second tendon.
        """
        mj_model = self.model.mj_model
        tendon1, tendon2 = int(mj_model.eq_obj1id[index]), int(mj_model.eq_obj2id[index])
        polynomial = _trimmed_polynomial(mj_model.eq_data[index, :5])
        coefficients = [fixed_tendon_coefficients(self.model, tendon) for tendon in (tendon1, tendon2) if tendon >= 0]
        if not all(coefficients):
            self.model.warn(f"equality {label!r} has a spatial tendon, which is not supported; it is ignored")
            return
        terms: PolynomialTerms = {joint: Polynomial([0.0, c]) for joint, c in coefficients[0].items()}
        constant_term = -float(mj_model.tendon_length0[tendon1])
        if tendon2 < 0 or polynomial.degree() == 0:
            constant_term -= float(polynomial.coef[0])
        elif polynomial.degree() == 1 or len(coefficients[1]) == 1:
            offset = -float(mj_model.tendon_length0[tendon2])
            if polynomial.degree() == 1:
                constant_term -= float(polynomial(offset))
                slope = float(polynomial.coef[1])
                second_terms = {joint: Polynomial([0.0, slope * c]) for joint, c in coefficients[1].items()}
            else:
                second_terms = {joint: polynomial(Polynomial([offset, c])) for joint, c in coefficients[1].items()}
            for joint, term in second_terms.items():
                terms[joint] = terms.get(joint, Polynomial([0.0])) - term
        else:
            self.model.warn(
                f"equality {label!r} is a nonlinear polynomial of a tendon with several joints, which is not "
                "supported; it is ignored"
            )
            return
        self._add_constraint(terms, label, constant_term)

    def _add_constraint(self, terms: PolynomialTerms, label: str, constant_term: float = 0.0) -> None:
        """Add the joint constraint: sum of the polynomials + constant_term = 0."""
        constant = -constant_term - sum(float(polynomial.coef[0]) for polynomial in terms.values())
        coefficients_by_joint: dict[Any, list[float]] = {}
        for joint, polynomial in terms.items():
            coefficients = [float(c) for c in polynomial.trim().coef[1:]]
            if any(coefficients):
                coefficients_by_joint[self.joints[joint]] = coefficients
        if coefficients_by_joint:
            JointConstraint(coefficients_by_joint, constant=constant, name=unused_name(label, self.constraint_names))

    def _fix_value(self, index: int, value: float, label: str) -> None:
        joint = self.joints[index]
        lower, upper = joint.limits(joint.dof[0])
        if not lower <= value <= upper:
            unit = joint.dof[0].unit
            self.model.warn(
                f"equality {label!r} fixes joint {joint.name!r} at {value:g} {unit}, outside its limits {lower:g} to "
                f"{upper:g} {unit}; the limits are ignored"
            )
        joint.set_limits(value, value)

    def _reference_value(self, joint: int) -> float:
        return float(self.model.mj_model.qpos0[int(self.model.mj_model.jnt_qposadr[joint])])


def fixed_tendon_coefficients(model: MjcfModel, tendon: int) -> Mapping[int, float]:
    """Return the coefficient of each joint in a fixed tendon, by joint index; empty for a spatial tendon.

    The length of a fixed tendon is the sum of coefficient * joint value.
    """
    mj_model = model.mj_model
    first_wrap = int(mj_model.tendon_adr[tendon])
    coefficients: dict[int, float] = {}
    for k in range(first_wrap, first_wrap + int(mj_model.tendon_num[tendon])):
        if int(mj_model.wrap_type[k]) != int(model.mujoco.mjtWrap.mjWRAP_JOINT):
            return {}
        joint = int(mj_model.wrap_objid[k])
        coefficients[joint] = coefficients.get(joint, 0.0) + float(mj_model.wrap_prm[k])
    return coefficients


def _trimmed_polynomial(coefficients: Array) -> Polynomial:
    return Polynomial([float(c) for c in coefficients]).trim()


def read_mjcf(source: str | Path | Source, *, sites: bool = True) -> Mechanism:
    """Read a mechanism from an MJCF model.

    The initial configuration is MuJoCo's, clamped to the limits. If a key frame has a smaller error of closures and
    joint constraints, the key frame with the smallest error is used instead.

    Args:
        source: a path, or the text itself, which begins with `<`.
        sites: whether named sites become links.

    Returns:
        The mechanism. Key frames are its `configurations`. Its `extras` contain "qpos" for `from_qpos` and `to_qpos`:
        the size of MuJoCo's qpos ("size") and the first index of each joint in it ("at"). If there are any, they also
        contain "actuators", the target of each actuator; "driven", the joints that actuators drive directly or through
        a fixed tendon; "tendons", the joint coefficients of the fixed tendons; and "mocap", the mocap bodies.

    Raises:
        MissingExtra: the package `mujoco` is not installed.
        FormatError: the model cannot be read; the message says where and why.

    Example:
        >>> text = '<mujoco><worldbody><body name="a"><joint name="j"/><geom size="1"/></body></worldbody></mujoco>'
        >>> list(mk.formats.read_mjcf(text).joints)
        ['j']
    """
    mjcf_source = source if isinstance(source, Source) else open_source(source)
    model = compile_mjcf(mjcf_source)
    folder = None if mjcf_source.path is None else mjcf_source.path.parent
    tree = _BodyTree(model, GeomReader(model, folder))
    tree.build()
    if sites:
        tree.add_sites()
    EqualityReader(model, tree.links, tree.joints).read()
    _warn_about_ignored_content(model)
    name = model.name or mjcf_source.stem
    mechanism = Mechanism(tree.links[0], name=name, warnings=model.warnings)
    mechanism.extras.update(_read_extras(model))
    for key in range(model.mj_model.nkey):
        label = model.name_of("key", key) or f"key{key}"
        mechanism.configurations[label] = from_qpos(mechanism, model.mj_model.key_qpos[key])
    _set_initial_configuration(mechanism, from_qpos(mechanism, model.mj_model.qpos0))
    return mechanism


def _set_initial_configuration(mechanism: Mechanism, initial_q: Array) -> None:
    """Set MuJoCo's initial configuration, or the key frame with the smallest error if that is smaller."""

    def closure_error(q: Array) -> float:
        mechanism.set_q(q)
        gaps = [closure.gap() for closure in mechanism.closures.values()]
        errors = [abs(constraint.error()) for constraint in mechanism.joint_constraints.values()]
        return round(max([0.0, *errors, *(max(gap.distance, gap.angle) for gap in gaps)]), 6)

    mechanism.set_q(min([initial_q, *mechanism.configurations.values()], key=closure_error))


class _BodyTree:
    """Builds the tree of links (listed by body index) and joints (listed by joint index)."""

    def __init__(self, model: MjcfModel, geom_reader: GeomReader) -> None:
        self.model, self.geom_reader = model, geom_reader
        self.links: list[Link] = []
        self.joints: list[Joint] = []
        self.link_names = set(model.body_names)

    def build(self) -> None:
        mj_model = self.model.mj_model
        for body, name in enumerate(self.model.body_names):
            link = self._read_link(body, name)
            if body:
                joint_indices = range(
                    int(mj_model.body_jntadr[body]), int(mj_model.body_jntadr[body]) + int(mj_model.body_jntnum[body])
                )
                self._attach(link, body, list(joint_indices))
            self.links.append(link)
        self.geom_reader.report()

    def add_sites(self) -> None:
        mj_model = self.model.mj_model
        for site in range(mj_model.nsite):
            name = self.model.name_of("site", site)
            if name:
                if name in self.link_names:
                    name = f"{name}_site"
                link = Link(unused_name(name, self.link_names))
                self._attach_rigidly(
                    link, self.links[int(mj_model.site_bodyid[site])], self.model.pose_of("site", site)
                )

    def _read_link(self, body: int, name: str) -> Link:
        visuals, collisions = self.geom_reader.read_shapes(body)
        return Link(name, visuals=visuals, collisions=collisions, inertial=read_body_inertial(self.model, body))

    def _attach(self, link: Link, body: int, joint_indices: list[int]) -> None:
        """Attach a body to its parent: by its joints in series, each at its anchor point, or rigidly if it has none."""
        parent, X_parent_body = (
            self.links[int(self.model.mj_model.body_parentid[body])],
            self.model.pose_of("body", body),
        )
        if not joint_indices:
            self._attach_rigidly(link, parent, X_parent_body)
        for index in joint_indices:
            is_last = index == joint_indices[-1]
            name = f"{link.name}/{self.model.joint_names[index]}"
            child = link if is_last else Link(unused_name(name, self.link_names))
            joint = self._read_joint(index)
            anchor = np.zeros(3)
            if int(self.model.mj_model.jnt_type[index]) != FREE:
                anchor = self.model.mj_model.jnt_pos[index]
                joint.matrix = X_parent_body @ translation(anchor) @ joint.matrix
            child.position = -anchor
            parent.add_child(joint)
            joint.add_child(child)
            self.joints.append(joint)
            parent, X_parent_body = child, np.eye(4)

    def _read_joint(self, index: int) -> Joint:
        """Return a joint; its pose is such that at the reference value the body has the pose in the file."""
        mj_model, joint_type = self.model.mj_model, int(self.model.mj_model.jnt_type[index])
        joint = Joint(self.model.joint_names[index])
        limits = [float(limit) for limit in mj_model.jnt_range[index]] if mj_model.jnt_limited[index] else None
        if joint_type == FREE:
            joint.set_dof(ALL_DOFS)
            return joint
        if joint_type == BALL:
            joint.set_dof(ROTATIONS)
            if limits is not None:
                self._limit_spherical_joint(joint, limits[1])
            return joint
        axis, reference_value = mj_model.jnt_axis[index], float(mj_model.qpos0[int(mj_model.jnt_qposadr[index])])
        if joint_type == SLIDE:
            joint.matrix = translation(-reference_value * axis)
        elif reference_value:
            joint.matrix = make_pose(rotation.exp(-reference_value * axis), np.zeros(3))
        set_axis(joint, axis.copy(), is_prismatic=joint_type == SLIDE)
        if limits is not None:
            joint.set_limits(limits[0], limits[1])
        return joint

    def _limit_spherical_joint(self, joint: Joint, angle: float) -> None:
        """Limit a spherical joint by a cone of `angle` for each axis.

        MuJoCo limits the total angle, which a mechanism cannot express. Cones are the nearest limits; they allow larger
        angles about some axes.
        """
        if not 0.0 < angle < np.pi:
            return
        joint.set_cone(angle, "xyz")
        self.model.warn(
            f"ball joint {joint.name!r} has a limit of {angle:g} rad on its total rotation; the reader limits the "
            "swing of each axis instead, which allows larger rotations about some axes"
        )

    def _attach_rigidly(self, link: Link, parent: Link, X_parent_link: Array) -> None:
        joint = Joint(unused_name(f"{link.name}_fixed", self.model.used_joint_names))
        joint.matrix = X_parent_link
        parent.add_child(joint)
        joint.add_child(link)


def _read_extras(model: MjcfModel) -> dict[str, Any]:
    """Return the `extras` of the mechanism as plain data; see `read_mjcf`."""
    mj_model = model.mj_model
    addresses = {name: int(address) for name, address in zip(model.joint_names, mj_model.jnt_qposadr, strict=True)}
    extras: dict[str, Any] = {"qpos": {"size": int(mj_model.nq), "at": addresses}}
    tendons: dict[int, dict[str, float]] = {}
    for tendon in range(mj_model.ntendon):
        tendons[tendon] = {model.joint_names[joint]: c for joint, c in fixed_tendon_coefficients(model, tendon).items()}
    actuators: dict[str, dict[str, str]] = {}
    driven_joints: dict[str, None] = {}
    for actuator in range(mj_model.nu):
        target_type = model.mujoco.mjtTrn(int(mj_model.actuator_trntype[actuator])).name.removeprefix("mjTRN_").lower()
        target = int(mj_model.actuator_trnid[actuator, 0])
        target_type = (
            "joint" if target_type == "jointinparent" else "site" if target_type == "slidercrank" else target_type
        )
        names = {"joint": model.joint_names, "body": model.body_names}.get(target_type)
        label = names[target] if names is not None else model.name_of(target_type, target)
        actuators[model.name_of("actuator", actuator) or f"actuator{actuator}"] = {target_type: label}
        if target_type == "joint":
            driven_joints[label] = None
        elif target_type == "tendon":
            driven_joints |= dict.fromkeys(tendons[target])
    fixed_tendons = {
        model.name_of("tendon", tendon) or f"tendon{tendon}": joints for tendon, joints in tendons.items() if joints
    }
    mocap_bodies = [name for body, name in enumerate(model.body_names) if int(mj_model.body_mocapid[body]) >= 0]
    categories = {
        "actuators": actuators,
        "driven": list(driven_joints),
        "tendons": fixed_tendons,
        "mocap": mocap_bodies,
    }
    return extras | {category: content for category, content in categories.items() if content}


def _warn_about_ignored_content(model: MjcfModel) -> None:
    mj_model = model.mj_model
    spatial_tendons = [
        model.name_of("tendon", tendon) or f"tendon{tendon}"
        for tendon in range(mj_model.ntendon)
        if not fixed_tendon_coefficients(model, tendon)
    ]
    if spatial_tendons:
        model.warn(f"spatial tendons are ignored: {list_names(spatial_tendons)}")
    if mj_model.nflex or mj_model.nskin:
        model.warn("flexible bodies and skins are ignored")
