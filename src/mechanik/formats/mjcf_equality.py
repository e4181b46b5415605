"""The <equality> of an MJCF model: between bodies it closes loops, between joints and tendons it couples values.

connect: a ball. weld: a weld, or a ball if its torquescale is 0. With a mocap body, which people drag: a goal.
joint: a coupling if it is linear, a law if not, fixed limits if it has no second joint.
tendon: a law of the joints in the tendons.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.polynomial import Polynomial

from mechanik.errors import CouplingError
from mechanik.formats.mjcf_model import Model, fresh
from mechanik.formats.urdf_mimic import contradicts
from mechanik.mechanism.dof import ALL, ROTATIONS, TRANSLATIONS
from mechanik.mechanism.goal import Goal
from mechanik.mechanism.joint import Joint
from mechanik.mechanism.law import Law
from mechanik.mechanism.link import Link
from mechanik.spatial import from_position_wxyz, make, translation
from mechanik.spatial.array import Array

Terms = dict[int, Polynomial]
"""Joint number to the polynomial of its value, in a sum that shall be zero."""


class EqualityReader:
    """Makes what the equalities of one model mean.

    Args:
        links: by number of the body.
        joints: by number.
    """

    def __init__(self, model: Model, links: Sequence[Link], joints: Sequence[Joint]) -> None:
        self.model, self.links, self.joints = model, links, joints
        self.laws: set[str] = set()
        self.start: Any = model.mujoco.MjData(model.raw)
        """Where MuJoCo starts."""
        model.mujoco.mj_kinematics(model.raw, self.start)

    def read(self) -> None:
        raw, kinds = self.model.raw, self.model.mujoco.mjtEq
        for number in range(raw.neq):
            kind = int(raw.eq_type[number])
            word = kinds(kind).name.removeprefix("mjEQ_").lower()
            label = self.model.name_of("equality", number) or f"{word} {number}"
            if not raw.eq_active0[number]:
                self.model.warn(f"equality {label!r} is not active, so it is left out")
            elif kind in (kinds.mjEQ_CONNECT, kinds.mjEQ_WELD):
                self._join(number, label, word)
            elif kind == kinds.mjEQ_JOINT:
                self._joint(number, label)
            elif kind == kinds.mjEQ_TENDON:
                self._tendon(number, label)
            else:
                self.model.warn(f"equality {label!r} is of the kind {word}, which is not read; it is left out")

    # ---- bodies -----------------------------------------------------------------------------

    def _join(self, number: int, label: str, word: str) -> None:
        raw = self.model.raw
        b1, b2, X_1, X_2 = self._ends(number, word)
        mocap_1, mocap_2 = (self._moves_with_mocap(b) for b in (b1, b2))
        stand = [0 if is_mocap else int(raw.body_weldid[b]) for b, is_mocap in ((b1, mocap_1), (b2, mocap_2))]
        if stand[0] == stand[1]:
            self.model.warn(
                f"equality {label!r} joins {self.model.bodies[b1]!r} and {self.model.bodies[b2]!r}, "
                "which no joint moves against each other; it is left out"
            )
            return
        name = self.model.name_of("equality", number) or f"{word}_{self.model.bodies[b1]}_{self.model.bodies[b2]}"
        name = fresh(name, self.model.joint_names)
        is_ball = word == "connect" or raw.eq_data[number, 10] == 0.0
        if mocap_1 or mocap_2:
            if mocap_2:
                b1, b2, X_1, X_2 = b2, b1, X_2, X_1
            goal = Goal(name, dof=TRANSLATIONS if is_ball else ALL)
            goal.matrix = X_1
            self.links[b1].add_child(goal)
            goal.make_closure(self.links[b2], X_2)
            return
        if is_ball:  # unturned as the file has it
            R_1, R_2 = (self.start.xmat[b].reshape(3, 3) @ X[:3, :3] for b, X in ((b1, X_1), (b2, X_2)))
            X_2 = X_2 @ make(R_2.T @ R_1, np.zeros(3))
        joint = Joint(name, dof=ROTATIONS if is_ball else ())
        joint.matrix = X_1
        self.links[b1].add_child(joint)
        joint.make_closure(self.links[b2], X_2)

    def _moves_with_mocap(self, body: int) -> bool:
        """Whether a body is moved from outside, by itself or fixed to one that is."""
        raw = self.model.raw
        while body and raw.body_mocapid[body] < 0 and not raw.body_jntnum[body]:
            body = int(raw.body_parentid[body])
        return bool(raw.body_mocapid[body] >= 0)

    def _ends(self, number: int, word: str) -> tuple[int, int, Array, Array]:
        """The two bodies, and the poses on them that shall come together (for connect, the points)."""
        raw = self.model.raw
        one, two = int(raw.eq_obj1id[number]), int(raw.eq_obj2id[number])
        if int(raw.eq_objtype[number]) == int(self.model.mujoco.mjtObj.mjOBJ_SITE):
            X_1, X_2 = self.model.place("site", one), self.model.place("site", two)
            return int(raw.site_bodyid[one]), int(raw.site_bodyid[two]), X_1, X_2
        data = raw.eq_data[number]
        if word == "connect":
            return one, two, translation(data[:3]), translation(data[3:6])
        return one, two, from_position_wxyz(data[3:6], data[6:10]), translation(data[:3])

    # ---- joints and tendons -----------------------------------------------------------------

    def _joint(self, number: int, label: str) -> None:
        """value - ref = polynomial of the other joint's value - ref."""
        raw = self.model.raw
        one, two = int(raw.eq_obj1id[number]), int(raw.eq_obj2id[number])
        law = _trimmed(raw.eq_data[number, :5])
        start = self._ref(one)
        if two < 0 or law.degree() == 0:
            self._hold(one, start + float(law.coef[0]), label)
            return
        led = start + law(Polynomial([-self._ref(two), 1.0]))
        if led.degree() == 1:
            try:
                coupling = self.joints[one].follow(self.joints[two], float(led.coef[1]), float(led.coef[0]))
            except CouplingError:  # it follows another joint already, or they would go in a circle
                pass
            else:
                if contradicts(coupling):
                    self.model.warn(
                        f"equality {label!r}: joint {self.joints[one].name!r} follows {self.joints[two].name!r}, "
                        "and their limits contradict each other; those of the follower are not looked at"
                    )
                return
        self._law({one: Polynomial([0.0, 1.0]), two: -led}, label)

    def _tendon(self, number: int, label: str) -> None:
        """length - length0 = polynomial of the other tendon's length - length0, of fixed tendons."""
        raw = self.model.raw
        one, two = int(raw.eq_obj1id[number]), int(raw.eq_obj2id[number])
        law = _trimmed(raw.eq_data[number, :5])
        coefficients = [fixed_tendon(self.model, tendon) for tendon in (one, two) if tendon >= 0]
        if any(not found for found in coefficients):
            self.model.warn(f"equality {label!r} is about a spatial tendon, which is not read; it is left out")
            return
        terms: Terms = {joint: Polynomial([0.0, c]) for joint, c in coefficients[0].items()}
        rest = -float(raw.tendon_length0[one])
        if two < 0 or law.degree() == 0:
            rest -= float(law.coef[0])
        elif law.degree() == 1 or len(coefficients[1]) == 1:
            second, start = coefficients[1], -float(raw.tendon_length0[two])
            if law.degree() == 1:
                rest -= float(law(start))
                led: Terms = {joint: Polynomial([0.0, float(law.coef[1]) * c]) for joint, c in second.items()}
            else:
                led = {joint: law(Polynomial([start, c])) for joint, c in second.items()}
            for joint, polynomial in led.items():
                terms[joint] = terms.get(joint, Polynomial([0.0])) - polynomial
        else:
            self.model.warn(
                f"equality {label!r} is a polynomial of a tendon over several joints, which mixes their "
                "values; only a linear one is read, so it is left out"
            )
            return
        self._law(terms, label, rest)

    def _law(self, terms: Terms, label: str, rest: float = 0.0) -> None:
        """Sum of the polynomials + rest = 0."""
        constant = -rest - sum(float(polynomial.coef[0]) for polynomial in terms.values())
        said: dict[Any, list[float]] = {}
        for joint, polynomial in terms.items():
            coefficients = [float(c) for c in polynomial.trim().coef[1:]]
            if any(coefficients):
                said[self.joints[joint]] = coefficients
        if said:
            Law(said, constant=constant, name=fresh(label, self.laws))

    def _hold(self, number: int, value: float, label: str) -> None:
        joint = self.joints[number]
        lower, upper = joint.limits(joint.dof[0])
        if not lower <= value <= upper:
            self.model.warn(
                f"equality {label!r} holds joint {joint.name!r} at {value:g}, "
                f"outside its range from {lower:g} to {upper:g}; it is held there all the same"
            )
        joint.set_limits(value, value)

    def _ref(self, joint: int) -> float:
        return float(self.model.raw.qpos0[int(self.model.raw.jnt_qposadr[joint])])


def fixed_tendon(model: Model, tendon: int) -> Mapping[int, float]:
    """Joint number to coefficient: the tendon's length is the sum of coefficient * value; nothing if it is spatial."""
    raw = model.raw
    start = int(raw.tendon_adr[tendon])
    found: dict[int, float] = {}
    for k in range(start, start + int(raw.tendon_num[tendon])):
        if int(raw.wrap_type[k]) != int(model.mujoco.mjtWrap.mjWRAP_JOINT):
            return {}
        joint = int(raw.wrap_objid[k])
        found[joint] = found.get(joint, 0.0) + float(raw.wrap_prm[k])
    return found


def _trimmed(coefficients: Array) -> Polynomial:
    return Polynomial([float(c) for c in coefficients]).trim()
