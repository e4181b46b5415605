"""An excavator that digs, or whose bucket is dragged."""

from __future__ import annotations

import math

import numpy as np

from mechanik import gallery
from mechanik.objectives import JointValues
from mechanik.spatial import translation
from mechanik.spatial.array import Array
from mechanik.studio.messages.events import ControlInfo
from mechanik.studio.scenes.controls import slider, switch
from mechanik.studio.scenes.curves import as_curve
from mechanik.studio.scenes.moving import Moving


class Excavator(Moving):
    name = "excavator"
    title = "Excavator"
    about = (
        "Drag the teeth of the bucket: three cylinders and the swing of the house find their places. A cylinder at its "
        "end stops hard, and the bucket comes as near as it can. Or let it dig."
    )
    starter, still = "digs", False

    def make_controls(self) -> list[ControlInfo]:
        return [
            switch("digs", "It digs", True, "Work"),
            slider("speed", "Speed, buckets/s", 0.12, 0.0, 0.6, 0.02, "Work"),
            slider("depth", "Depth, m", 1.0, 0.0, 2.5, 0.1, "Work", "Below the ground."),
        ]

    def build(self) -> None:
        machine = gallery.excavator()
        self.curl = float(machine.joint("bucket_joint").values[0])
        self.table(machine)
        self.teeth = self.want("point", "teeth", machine.pose("teeth"), name="teeth")
        self.demand(JointValues({"bucket_joint": self.curl}, level=2, name="bucket curl"))
        self._draw()

    def changed(self, name: str) -> None:
        if name != "speed":
            self._draw()

    def go(self) -> None:
        self.move({self.teeth: translation(self._path(self.phase))})
        self.aim({"bucket curl": {"bucket_joint": self.curl - 0.5 * math.sin(self.phase)}})

    def lines(self) -> list[str]:
        names = ("boom", "stick", "bucket")
        lengths = (self.reading(f"{name}_cylinder_slide") for name in names)
        return ["cylinders, m: " + "  ".join(f"{n} {length:.2f}" for n, length in zip(names, lengths, strict=True))]

    def _draw(self) -> None:
        points = self._path(np.linspace(0.0, 2 * math.pi, 121)[:-1])
        self.session.set_curves([as_curve("dig", points, closed=True)] if self.is_moving else [])

    def _path(self, t: float | Array) -> Array:
        """(..., 3), m: down and in, up, aside to where it is emptied, and back."""
        x = 6.0 + 1.2 * np.cos(t)
        z = 0.8 - (0.8 + self.number("depth")) * np.clip(np.sin(t), 0.0, None) - 0.9 * np.clip(np.sin(t), None, 0.0)
        aside = 0.9 * np.clip(-np.sin(t), 0.0, None)
        return np.stack([x * np.cos(aside), x * np.sin(aside), z], axis=-1)
