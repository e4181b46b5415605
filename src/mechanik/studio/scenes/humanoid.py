"""A person whose feet stand, whose hands are dragged, whose eyes follow, and who does not fall over."""

from __future__ import annotations

import math

import numpy as np

from mechanik import gallery
from mechanik.gallery.humanoid import ANKLE, HEEL, TOES
from mechanik.mechanism import Mechanism
from mechanik.objectives import CentreOfMass
from mechanik.spatial import apply, make, translation
from mechanik.spatial.array import Array
from mechanik.studio.messages.events import ControlInfo
from mechanik.studio.messages.requests import GoalKind
from mechanik.studio.scenes.controls import choice, slider, switch
from mechanik.studio.scenes.moving import Moving

HEIGHT = 1.7
SOLE = np.array([(x * HEIGHT, y * 0.0275 * HEIGHT, -ANKLE * HEIGHT) for x in (HEEL, TOES) for y in (-1, 1)])
"""(4, 3), m: corners of a sole, seen from its ankle."""
GAZE = (2.0, 0.4, 1.5)
DEEPEST, BACK = 0.3, 0.5
"""How far the pelvis goes down in a squat, m, and how far back for each metre: straight down the ankles stop it at half
of that."""
SIDES = ("left", "right")


def centre_of_mass(mechanism: Mechanism, q: Array) -> Array:
    """(3,), m, of all links that have a mass."""
    total, moment = 0.0, np.zeros(3)
    for X, link in zip(mechanism.poses(q), mechanism.links.values(), strict=True):
        if link.inertial is not None:
            total += link.inertial.mass
            moment += link.inertial.mass * apply(X, link.inertial.pose.position)
    return moment / total


class Humanoid(Moving):
    name = "humanoid"
    title = "Humanoid"
    about = (
        "Drag a hand, and the whole body reaches along while the feet stay where they are. While balance is on, it "
        "never leans so far that it would fall. Let it wave, reach around or squat; the eyes look where the gaze goal "
        "is."
    )

    def make_controls(self) -> list[ControlInfo]:
        return [
            choice("motion", "Motion", ("drag", "wave", "reach", "squat"), "Motion", "Who moves the goals."),
            slider("speed", "Speed, rounds/s", 0.4, 0.0, 2.0, 0.05, "Motion"),
            switch("turned", "Hands keep their turn", False, "Goals", "Else they turn as it comes, and reach farther."),
            switch("balance", "Balance", True, "Goals", "Keep the centre of mass over the feet, whatever is asked."),
            switch("left_foot", "Left foot is held", True, "Goals"),
            switch("right_foot", "Right foot is held", True, "Goals"),
            switch("gaze", "Look at the gaze goal", True, "Goals"),
        ]

    def build(self) -> None:
        person = gallery.humanoid(HEIGHT)
        self.homes = {link: person.pose(link) for link in person.links}
        self.table(person)
        self.feet = {side: self._hold(side) for side in SIDES}
        self.hands = {
            side: self.want(self._kind(), f"{side}_hand", self.homes[f"{side}_hand"], name=f"{side} hand")
            for side in SIDES
        }
        self.look = self._gaze()
        self.pelvis = 0
        self._balance()

    def changed(self, name: str) -> None:
        if name == "balance":
            self._balance()
        elif name == "turned":
            turns = {number: self.pose(f"{side}_hand")[:3, :3] for side, number in self.hands.items()}
            self.move({number: make(R, self.pose_of(number)[:3, 3]) for number, R in turns.items()})
            for number in turns:
                self.alter(number, kind=self._kind())
        elif name == "gaze":
            self.drop(self.look)
            self.look = self._gaze() if self.is_on("gaze") else 0
        elif name.endswith("foot"):
            side = name.removesuffix("_foot")
            if side in self.feet:
                self.drop(self.feet.pop(side))
            if self.is_on(name):
                self.feet[side] = self._hold(side)
            self._balance()
        elif name == "motion":
            self.phase = 0.0
            self.drop(self.pelvis)
            self.pelvis = 0
            if self.word("motion") == "squat":
                self.pelvis = self.want("pose", "pelvis", self.homes["pelvis"], name="pelvis")
            self.move({self.hands[side]: self.homes[f"{side}_hand"] for side in SIDES})

    def go(self) -> None:
        c, s = math.cos(self.phase), math.sin(self.phase)
        left, right = (self.homes[f"{side}_hand"] for side in SIDES)
        match self.word("motion"):
            case "wave":
                up = (0.25, -0.15 + 0.15 * s, 0.75)
                self.move({self.hands["right"]: translation(up) @ right})
            case "reach":
                ahead = np.array([0.25, 0.0, 0.25])
                circle = np.array([0.1 * c, 0.15 * s, 0.2 * s])
                self.move({
                    self.hands["left"]: translation(ahead + circle) @ left,
                    self.hands["right"]: translation(ahead - circle) @ right,
                })  # fmt: skip
            case _:
                deep = DEEPEST * (1 - c) / 2
                down = translation((0.0, 0.0, -deep))
                self.move({
                    self.pelvis: translation((-BACK * deep, 0.0, 0.0)) @ down @ self.homes["pelvis"],
                    self.hands["left"]: down @ left,
                    self.hands["right"]: down @ right,
                })  # fmt: skip

    def lines(self) -> list[str]:
        self.session.mechanism.link("pelvis")  # another mechanism may have no mass
        x, y, z = centre_of_mass(self.session.mechanism, self.q)
        return [f"centre of mass: {x:+.3f} {y:+.3f} {z:+.3f} m"]

    def _kind(self) -> GoalKind:
        """Of the goals of the hands."""
        return "pose" if self.is_on("turned") else "point"

    def _hold(self, side: str) -> int:
        return self.want("pose", f"{side}_foot", self.homes[f"{side}_foot"], name=f"{side} foot", pinned=True)

    def _gaze(self) -> int:
        return self.want("look_at", "eyes", translation(GAZE), name="gaze")

    def _balance(self) -> None:
        """Over the soles of the feet that are held."""
        self.forget("stay in balance")
        if self.is_on("balance") and self.feet:
            corners = [apply(self.homes[f"{side}_foot"], corner)[:2] for side in self.feet for corner in SOLE]
            self.demand(CentreOfMass(over=corners, margin=0.01, level=0, name="stay in balance"))
