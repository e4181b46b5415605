"""The part of a builder that binds joint values to each other: couplings, gears, racks and laws."""

from __future__ import annotations

from collections.abc import Mapping

from mechanik.errors import DoFError, DuplicateName, ShapeError, UnknownName
from mechanik.mechanism.by_name import _named as joint_and_freedoms
from mechanik.mechanism.coupling import Coupling
from mechanik.mechanism.dof import DoFLike
from mechanik.mechanism.door import as_number, as_vector
from mechanik.mechanism.goal import Goal
from mechanik.mechanism.joint import Joint
from mechanik.mechanism.law import Factors, Freedom, Law


class Bonds:
    """Joints by name, and what holds their values together."""

    def __init__(self) -> None:
        self._joints: dict[str, Joint | Goal] = {}
        self._laws: dict[str, Law] = {}

    def couple(
        self,
        follower: str,
        leader: str,
        ratio: float = 1.0,
        offset: float = 0.0,
        *,
        dof: DoFLike | None = None,
        leader_dof: DoFLike | None = None,
    ) -> Coupling:
        """Let follower = ratio * leader + offset."""
        return self._moving(follower).follow(self._moving(leader), ratio, offset, dof=dof, leader_dof=leader_dof)

    def gear(
        self, follower: str, leader: str, *, teeth: tuple[float, float], inside: bool = False, offset: float = 0.0
    ) -> Coupling:
        """Let a turn drive another by gears: follower = -teeth[1] / teeth[0] * leader + offset.

        Args:
            teeth: of the follower's wheel and of the leader's, as the names stand.
            inside: whether one wheel runs inside the other, so that both turn the same way.
            offset: rad.
        """
        own, leading = as_vector(teeth, 2, f"teeth of {follower!r} and {leader!r}").tolist()
        if not min(own, leading) > 0.0:
            raise ShapeError(f"teeth of {follower!r} and {leader!r} are two numbers above zero, not {teeth!r}")
        ratio = leading / own if inside else -leading / own
        return self._single(follower, turns=True).follow(self._single(leader, turns=True), ratio, offset)

    def rack(self, rack: str, pinion: str, *, radius: float, offset: float = 0.0) -> Coupling:
        """Let a pinion drive a rack: slide = radius * angle + offset.

        Args:
            radius: of the pinion's pitch circle, m; negative if the rack runs on its other side.
            offset: m.
        """
        if as_number(radius, f"radius of {pinion!r}") == 0.0:
            raise ShapeError(f"radius of {pinion!r} is zero, so {rack!r} would stand still")
        return self._single(rack, turns=False).follow(self._single(pinion, turns=True), radius, offset)

    def law(self, name: str, terms: Mapping[str, Factors], constant: float = 0.0) -> Law:
        """Bind joint values: the terms add up to the constant.

        Args:
            terms: for a joint ("left"), or one of its freedoms ("base.X"), the factor of its value (m or rad); or a
                list, the factors of its value, its square, its third power and so on.
        """
        if name in self._laws:
            raise DuplicateName(f"two laws are called {name!r}; names must be unique")
        if not isinstance(terms, Mapping):
            raise ShapeError(f"terms of law {name!r} are given as in {{'left': 1, 'right': 1}}, not as {terms!r}")
        joints = {joint: found for joint, found in self._joints.items() if isinstance(found, Joint)}
        bound: dict[Freedom, Factors] = {}
        for freedom, factors in terms.items():
            joint, dofs = joint_and_freedoms(freedom, joints)
            bound[joint if freedom in joints else (joint, dofs[0])] = factors
        self._laws[name] = law = Law(bound, constant, name=name)
        return law

    def _single(self, name: str, turns: bool) -> Joint:
        joint = self._moving(name)
        if len(joint.dof) != 1 or joint.dof[0].is_rotation != turns:
            raise DoFError(f"{joint} shall {'turn' if turns else 'slide'} with one freedom; couple() takes any two")
        return joint

    def _moving(self, name: str) -> Joint:
        joint = self._joints.get(name)
        if not isinstance(joint, Joint):
            raise UnknownName("joint", name, [n for n, j in self._joints.items() if isinstance(j, Joint)])
        return joint
