"""An arm that is a table of Denavit and Hartenberg, with its rows on the screen."""

from __future__ import annotations

import json
import math

import numpy as np

from mechanik.formats import read_json
from mechanik.gallery.bones import BLUE, DARK, dress
from mechanik.spatial import make, rotation, translation
from mechanik.studio.messages.events import ControlInfo
from mechanik.studio.scenes.controls import choice, slider, switch
from mechanik.studio.scenes.moving import Moving
from mechanik.studio.scenes.texts import tidy

QUARTER = math.sqrt(0.5)
TABLE = {
    "convention": "modified",
    "columns": "d a alpha theta",
    "degrees": True,
    "theta": "start",
    "rows": [
        [0.5, 0.0, -90, 0],
        [0.0, 0.2, 90, 125],
        [0.0, 1.5, 0, -35],
        [1.5, 0.2, 90, 0],
        [0.0, 0.0, -90, 90],
        [0.2, 0.0, -90, 0],
    ],
    "joints": [f"j{i}" for i in range(6)],
    "limits": [[-360, 360]] * 6,
    "base": {"position": [0, 0, 0], "wxyz": [QUARTER, QUARTER, 0, 0]},
}
"""Of the gallery's `dh6`, which was drawn with y up; here it stands."""
METHODS = {"damped least squares": "lm", "Jacobian transpose": "jacobian_transpose"}
FIXED = 0.05
"""The step with which the Jacobian transpose was shown first."""


def table_text() -> str:
    """The table as JSON, a row a line."""
    return tidy({"mechanik": 1, "dh": TABLE})


def row_lines(text: str, values: list[float]) -> list[str]:
    """Rows as the table has them, with the present value in the place of the number that moves; none if unreadable.

    Args:
        values: of the joints, rad and m.
    """
    try:
        table = json.loads(text)["dh"]
        columns = table.get("columns", "d a alpha theta").split()
        degrees, starts = table.get("degrees", True), table.get("theta") == "start"
        lines: list[str] = []
        for k, (row, value) in enumerate(zip(table["rows"], values, strict=False)):
            cells = dict(zip(columns, (float(cell) for cell in row), strict=True))
            shown = math.degrees(value) if degrees else value
            cells["theta"] = shown if starts else cells["theta"] + shown
            numbers = "  ".join(f"{name} {cells[name]:8.3f}" for name in ("d", "a", "alpha", "theta"))
            lines.append(f"{k + 1}  {numbers}")
        return lines
    except (ValueError, KeyError, TypeError, AttributeError):
        return []


class DhArm(Moving):
    name = "dh_arm"
    title = "Arm from a DH table"
    about = (
        "Six rows of d, a, alpha and theta are this arm. Drag the goal and watch the thetas; change a row in the "
        "Model panel, and the arm changes under your hands. Compare the Jacobian transpose, which creeps, with damped "
        "least squares."
    )

    def make_controls(self) -> list[ControlInfo]:
        return [
            choice("method", "Method", tuple(METHODS), "Method"),
            switch("fixed_step", "Fixed step", False, "Method", "Of the Jacobian transpose: 0.05 instead of the best."),
            choice("motion", "Motion", ("drag", "circle", "turn"), "Goal", "Who moves the goal."),
            slider("speed", "Speed, rounds/s", 0.2, 0.0, 2.0, 0.05, "Goal"),
        ]

    def build(self) -> None:
        text = table_text()
        arm = dress(read_json(text), 0.12, 0.06, BLUE, DARK)
        arm.configurations["home"] = arm.q
        self.home = arm.pose("tool")
        self.table(arm, source=("dh", text))
        self.goal = self.want("pose", "tool", self.home, name="tool")
        self._solve()

    def changed(self, name: str) -> None:
        if name in ("method", "fixed_step"):
            self._solve()
        elif name == "motion":
            self.move({self.goal: self.home})

    def go(self) -> None:
        c, s = math.cos(self.phase), math.sin(self.phase)
        if self.word("motion") == "circle":
            self.move({self.goal: translation((0.3 * s, 0.3 * (c - 1), 0.4 * s)) @ self.home})
        else:
            turn = rotation.exp(np.array([0.5 * s, 0.0, 0.5 * (1 - c)]))
            self.move({self.goal: self.home @ make(turn, np.zeros(3))})

    def lines(self) -> list[str]:
        values = [float(value) for value in np.concatenate([
            np.atleast_1d(value) for value in self.session.mechanism.values(self.q).values()
        ])]  # fmt: skip
        kind, text = self.session.on_stage.table.source
        return row_lines(text, values) if kind == "dh" else []

    def _solve(self) -> None:
        method = METHODS[self.word("method")]
        if method == "jacobian_transpose" and self.is_on("fixed_step"):
            self.session.set_solver(method, step=FIXED)
        else:
            self.session.set_solver(method)
