"""Jansen's legs on one crankshaft, which walk."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from mechanik import gallery
from mechanik.gallery.bones import DARK, GREY, block, bone, put_on
from mechanik.mechanism import Joint, Link, Mechanism
from mechanik.mechanism.door import read_only
from mechanik.objectives import JointValues
from mechanik.spatial import make, rotation
from mechanik.spatial.array import Array
from mechanik.studio.messages.events import ControlInfo, CurveInfo
from mechanik.studio.scenes.controls import choice, slider, switch
from mechanik.studio.scenes.curves import FAINT, as_curve
from mechanik.studio.scenes.moving import Moving

SAMPLES = 180
"""Of a turn of the crank, at which the foot's way is known."""
FARTHEST = 0.8
"""m from the start, where it turns back."""
HANGING = 1.1
"""How high the shaft is while it hangs in the air, m."""
APART = 0.18
"""Between legs side by side, m."""
LEGS = {"one": 1, "a pair": 2, "three pairs": 6}


def leg_places(count: int) -> list[tuple[bool, float, float]]:
    """Of each leg: whether it is turned around, how far its crank is ahead of the first (rad), its place along y."""
    pairs = max(1, count // 2)
    places: list[tuple[bool, float, float]] = []
    for k in range(pairs):
        ahead, y = 2 * math.pi * k / 3, APART * (k - (pairs - 1) / 2)
        places.append((False, ahead, y))
        if count > 1:
            places.append((True, ahead, y))
    return places


def own_angle(turned: bool, ahead: float, angle: float) -> float:
    """The crank angle that a leg has on its own when the shaft is at `angle`; a leg turned around sees it mirrored."""
    return math.pi - angle - ahead if turned else angle + ahead


def legs_on_a_shaft(count: int) -> Mechanism:
    """Legs on a chassis that goes along x and z; all cranks follow `crank_joint1`."""
    ground, chassis, ride = Link("ground"), Link("chassis"), Joint("ride", dof=("X", "Z"))
    places = leg_places(count)
    lead: Joint | None = None
    for k, (turned, ahead, y) in enumerate(places, start=1):
        leg = gallery.jansen_leg(angle=own_angle(turned, ahead, 0.0))
        crank = leg.joint("crank_joint")
        (frame,) = leg.roots
        for part in (*leg.links.values(), *leg.joints.values()):
            part.name = f"{part.name}{k}"
        mount = Joint(f"mount{k}")
        mount.matrix = make(rotation.turn_z(math.pi if turned else 0.0), (0.0, y, 0.0))
        mount.add_child(frame)
        chassis.add_child(mount)
        if lead is None:
            lead = crank
        else:
            # the value at which it stands tells how many whole turns lie between the two
            ratio = -1.0 if turned else 1.0
            crank.follow(lead, ratio=ratio, offset=float(crank.values[0]) - ratio * float(lead.values[0]))
    wide = APART * max(1, count // 2) / 2
    put_on(chassis, bone((0.0, -wide, 0.0), (0.0, wide, 0.0), 0.02, DARK))
    put_on(chassis, bone((-0.38, 0.0, -0.078), (0.38 if count > 1 else 0.0, 0.0, -0.078), 0.015, GREY))
    put_on(ground, block((0.0, 0.0, -0.02), (2 * FARTHEST + 1.8, 2 * wide + 0.3, 0.04), GREY))
    ride.add_child(chassis)
    ground.add_child(ride)
    return Mechanism(ground, name="jansen_walker")


@cache
def foot_way() -> Array:
    """(SAMPLES + 1, 2), m: x and z of a leg's foot over one turn of its crank, from 0 on."""
    leg = gallery.jansen_leg()
    angles = np.linspace(0.0, 2 * math.pi, SAMPLES + 1)
    path = leg.assembly_path({"crank_joint": angles})
    return read_only(np.array([leg.pose("foot", q)[[0, 2], 3] for q in path.q]))


class Jansen(Moving):
    name = "jansen"
    title = "Jansen walker"
    about = (
        "One crank drives every leg, and each foot draws a curve that is flat where it stands. With three pairs some "
        "feet are always on the ground, and the whole animal walks. Turn the crank by hand, or let it turn."
    )
    starter, still = "turns", False

    def make_controls(self) -> list[ControlInfo]:
        return [
            choice("legs", "Legs", ("three pairs", "a pair", "one"), "Animal"),
            switch("walks", "It walks", True, "Animal", "Off: it hangs in the air, and only the legs move."),
            switch("turns", "The crank turns", True, "Drive"),
            slider("speed", "Speed, rounds/s", 0.25, -1.0, 1.0, 0.05, "Drive", "Below zero it walks back."),
        ]

    def build(self) -> None:
        self.way = foot_way()
        self.x, self.direction = 0.0, 1.0
        self._put()

    def changed(self, name: str) -> None:
        if name == "legs":
            self.x = 0.0
            self._put()
        elif name == "walks":
            self.x = 0.0
            self._show_way()
            self.aim({"place of the chassis": {"ride": self._ride()}})
        elif name == "turns":
            if self.is_moving:
                self.angle = self.phase = self.reading("crank_joint1")
                self.demand(*self._drives())
            else:
                self.forget("crank drive")

    @property
    def rate(self) -> float:
        # a crank that turns from z to x walks along x; its angle grows from x to z
        return -self.direction * super().rate

    def go(self) -> None:
        if self.is_on("walks"):
            before, _ = self._feet(self.angle)
            after, heights = self._feet(self.phase)
            on_ground = int(np.argmin(heights))
            self.x -= float(after[on_ground] - before[on_ground])
            if abs(self.x) > FARTHEST and self.x * self.direction * self.number("speed") > 0:
                self.direction = -self.direction
        self.angle = self.phase
        self.aim({"crank drive": {"crank_joint1": self.angle}, "place of the chassis": {"ride": self._ride()}})

    def lines(self) -> list[str]:
        _, heights = self._feet(self.angle)
        standing = int((heights < heights.min() + 0.02).sum())
        if len(heights) == 1:
            return ["1 leg, which stands on the ground" if self.is_on("walks") else "1 leg, in the air"]
        return [f"{len(heights)} legs, {standing} of them within 20 mm of the lowest foot"]

    # ---- inside -----------------------------------------------------------------------------

    def _put(self) -> None:
        count = LEGS[self.word("legs")]
        self.places = leg_places(count)
        mechanism = legs_on_a_shaft(count)
        self.angle = self.phase = 0.0
        mechanism.q = mechanism.configuration({"ride": self._ride()})
        mechanism.configurations["home"] = mechanism.q
        self.table(mechanism)
        self.demand(*self._drives())
        self._show_way()

    def _drives(self) -> list[JointValues]:
        ride = JointValues({"ride": self._ride()}, level=0, name="place of the chassis")
        crank = JointValues({"crank_joint1": self.angle}, turns="exact", name="crank drive")
        return [ride, crank] if self.is_moving else [ride]

    def _ride(self) -> tuple[float, float]:
        """x and z of the chassis: the lowest foot is on the ground."""
        if not self.is_on("walks"):
            return 0.0, HANGING
        return self.x, -float(self._feet(self.angle)[1].min())

    def _feet(self, angle: float) -> tuple[Array, Array]:
        """x and z of all feet, seen from the chassis, (n,) each."""
        own = np.array([own_angle(turned, ahead, angle) for turned, ahead, _ in self.places])
        turns = np.linspace(0.0, 2 * math.pi, SAMPLES + 1)
        x, z = (np.interp(own % (2 * math.pi), turns, self.way[:, k]) for k in (0, 1))
        return np.where([turned for turned, *_ in self.places], -x, x), z

    def _show_way(self) -> None:
        """The curves of the feet, while the chassis stands still."""
        curves: list[CurveInfo] = []
        for k, (turned, _, y) in enumerate(self.places, start=1):
            x = -self.way[:-1, 0] if turned else self.way[:-1, 0]
            points = np.stack([x, np.full(SAMPLES, y), self.way[:-1, 1] + HANGING], axis=-1)
            curves.append(as_curve(f"foot {k}", points, closed=True, rgba=FAINT))
        self.session.set_curves([] if self.is_on("walks") else curves)
