"""A rover that settles on rough ground, and drives over it."""

from __future__ import annotations

import math

import numpy as np

from mechanik import gallery
from mechanik.gallery.rover import WHEELS
from mechanik.mechanism import Mechanism
from mechanik.objectives import JointValues, OnTerrain, Terrain
from mechanik.spatial import make, rotation
from mechanik.spatial.array import Array
from mechanik.studio.messages.events import ControlInfo
from mechanik.studio.scenes.controls import button, choice, slider
from mechanik.studio.scenes.moving import Moving

HALF, CELL = 6.0, 0.25
"""Of the ground: half its side, and the side of a cell; m."""
WHEEL = 0.25
"""Radius, m."""
STANDS, LIFTED = 0.6, 1.2
"""Of the body above the middle of its wheels, on level ground and before it is dropped, m."""
ROUND = 3.2
"""Radius of the circle that it drives, m."""
FEWEST = 3
"""Iterations with which it settles on every ground of the sliders. With fewer the last step may leave the differential
open; such a step is not taken, and it would hang in the air."""
AXLES = tuple(f"{wheel}_axle" for wheel in WHEELS)


def make_ground(height: float, roughness: float, seed: int) -> Terrain:
    """Waves of random directions; the rougher, the more of the short ones.

    Args:
        height: of the highest above the lowest place, m.
        roughness: 0 to 1.
    """
    rng = np.random.default_rng(seed)
    places = np.arange(-HALF, HALF + CELL / 2, CELL)
    x, y = np.meshgrid(places, places)
    field = np.zeros_like(x)
    for waves in (0.5, 0.8, 1.2, 1.8, 2.7):  # rad a metre: from 12 m to 2.3 m long
        share = 1.0 if waves < 1.0 else roughness
        for _ in range(3):
            way, shift = rng.uniform(0.0, 2 * math.pi, 2)
            field += share / waves * np.sin(waves * (x * math.cos(way) + y * math.sin(way)) + shift)
    field -= field.min()
    return Terrain(height * field / field.max(), CELL, (-HALF, -HALF))


class Rover(Moving):
    name = "rover"
    title = "Rover on rough ground"
    about = (
        "Drag the rover over rough ground: all six wheels touch at every place. Place and heading are given; height, "
        "lean, rockers and bogies find themselves. Change the ground under it, drop it from above and watch it "
        "settle, or let it drive around."
    )

    def make_controls(self) -> list[ControlInfo]:
        return [
            choice("motion", "Motion", ("drag", "circle", "eight"), "Drive", "Who moves the rover."),
            slider("speed", "Speed, m/s", 0.8, 0.0, 3.0, 0.05, "Drive"),
            slider(
                "height", "Terrain height, m", 0.6, 0.0, 1.5, 0.05, "Ground", "From the lowest place to the highest."
            ),
            slider("roughness", "Roughness", 0.4, 0.0, 1.0, 0.05, "Ground", "How much there is of short bumps."),
            slider("seed", "Which ground", 1.0, 0.0, 99.0, 1.0, "Ground", "Another number, another ground."),
            slider("iterations", "Settle iterations", 30.0, FEWEST, 100.0, 1.0, "Settle", "Of one solve, at most."),
            button("settle", "Drop it", "Settle", "Lift it up, level, and let it settle."),
        ]

    def build(self) -> None:
        rover = gallery.rover()
        ground = self._make_ground()
        rover.q = self._level(rover, self._place(), above=STANDS)
        self.table(rover)
        self._lay(ground)
        self.body = self.want(
            "pose", "body", self._place(), name="place and heading", free=("Z", "EX", "EY"), pinned=True
        )
        self.demand(JointValues(dict.fromkeys(AXLES, 0.0), turns="exact", level=3, name="wheels roll"))
        self.changed("iterations")

    def changed(self, name: str) -> None:
        match name:
            case "height" | "roughness" | "seed":
                self._lay(self._make_ground())
            case "iterations":
                self.session.set_solver("lm", max_iterations=int(self.number("iterations")))
            case "settle":
                self._lift()
            case "motion" if self.is_moving:
                self._lift()
            case _:
                pass

    @property
    def rate(self) -> float:
        return self.number("speed") / ROUND

    def go(self) -> None:
        self.move({self.body: self._place()})
        self.aim({"wheels roll": dict.fromkeys(AXLES, ROUND * self.phase / WHEEL)})

    def lines(self) -> list[str]:
        q, mechanism = self.q, self.session.mechanism
        centres = mechanism.poses(q, WHEELS)[:, :3, 3]
        off = np.abs(centres[:, 2] - self.rolling.height(centres[:, 0], centres[:, 1]))
        lean = math.degrees(math.acos(min(1.0, float(self.pose("body")[2, 2]))))
        return [f"wheels touch: {int((off < 1e-4).sum())} of 6", f"the body leans by {lean:.1f} degrees"]

    def _make_ground(self) -> Terrain:
        ground = make_ground(self.number("height"), self.number("roughness"), int(self.number("seed")))
        self.rolling = ground.raised_by(WHEEL, finer=2)
        return ground

    def _lay(self, ground: Terrain) -> None:
        self.session.set_terrain(ground)
        self.demand(*(OnTerrain(wheel, self.rolling, name=f"{wheel} on the ground") for wheel in WHEELS))

    def _lift(self) -> None:
        """Above the ground of its place."""
        X = self._place() if self.is_moving else self.pose_of(self.body)
        self.session.place(self._level(self.session.mechanism, X, above=LIFTED))

    def _level(self, rover: Mechanism, X: Array, above: float) -> Array:
        """(nq,): at the place and heading of X (4, 4), level, so far above where the middle of a wheel would be, m."""
        x, y, heading = X[0, 3], X[1, 3], math.atan2(X[1, 0], X[0, 0])
        z = float(self.rolling.height(x, y)) + above
        return rover.configuration({"base": (x, y, z, 0.0, 0.0, heading)}, rover.configurations["home"])

    def _place(self) -> Array:
        """On the circle or the eight, heading along it; height and lean say nothing."""
        t = self.phase
        if self.word("motion") == "eight":
            p = ROUND * np.array([math.sin(t), math.sin(t) * math.cos(t)])
            heading = math.atan2(math.cos(2 * t), math.cos(t))
        else:
            p = ROUND * np.array([math.cos(t), math.sin(t)])
            heading = t + math.pi / 2
        return make(rotation.turn_z(heading), (p[0], p[1], 1.0))
