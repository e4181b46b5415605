"""What browser tests look at and where they take hold: pixels, goals, links, the camera."""

from __future__ import annotations

import io

import numpy as np
import pytest

Image = pytest.importorskip("PIL.Image", reason="pictures are compared with Pillow")
BAND = 0.002, 0.5
"""Share of the view that a drag of some centimetres changes, at least and at most."""
CLOSURE_TOLERANCE = 1e-8
"""m and rad; loops are hard, whatever the goals ask for."""


def check_quiet(studio) -> None:
    """The page has not complained since the last time, and has asked for nothing off the machine."""
    complaints, studio.complaints = studio.complaints, []
    assert complaints == []
    assert studio.off_machine() == []


def pixels(picture: bytes) -> np.ndarray:
    """(height, width, 3), 0 to 255."""
    return np.asarray(Image.open(io.BytesIO(picture)).convert("RGB"), int)


def changed_share(before: bytes, after: bytes) -> float:
    """Which share of the pixels is another."""
    return float((np.abs(pixels(before) - pixels(after)).max(axis=2) > 12).mean())


def is_blank(picture: bytes) -> bool:
    """Whether there is hardly anything to see: one colour, give or take a grid."""
    colours, counts = np.unique(pixels(picture) // 16 @ (256, 16, 1), return_counts=True)
    return len(colours) < 8 or counts.max() > 0.995 * counts.sum()


# ---- goals ------------------------------------------------------------------------------------


def choose_goal(studio, number: int | None = None) -> int:
    """The first goal that is not pinned, selected, with its handle drawn; of what was opened last, once it has come."""
    studio.wait("m.store.frame?.order === m.store.order")
    if number is None:
        number = studio.eval("m.store.goals.find((goal) => !goal.pinned).number")
    studio.eval("(m.store.select({ kind: 'goal', goal: a }), true)", number)
    studio.drawn()
    return number


def goal_row(studio, number: int, frame=None) -> np.ndarray:
    """x y z qw qx qy qz, distance (m) and angle (rad) from it, as the last frame has them."""
    frame = studio.frame() if frame is None else frame
    place = studio.eval("m.store.goals.findIndex((goal) => goal.number === a)", number)
    return np.array(frame["goals"][9 * place : 9 * place + 9])


def move_goal(studio, number: int, pose) -> dict:
    """Put a goal elsewhere without a hand; the frame once everything has come to rest there."""
    pose = [float(number) for number in pose]
    studio.ask({"do": "MoveGoal", "goal": number, "pose": pose})
    studio.wait(
        "m.store.frame?.isAtRest && m.store.goals.some((g, k) => g.number === a[0]"
        " && a[1].slice(0, 3).every((x, n) => Math.abs(m.store.frame.goals[9 * k + n] - x) < 1e-9))",
        [number, pose],
    )
    return studio.at_rest()


def check_loops_closed(frame) -> None:
    assert max(frame["closures"], default=0.0) < CLOSURE_TOLERANCE, "the loops are closed"


def check_drag(studio, by=(40, -25)) -> None:
    """Drag a goal; then joints have moved, the tool is on its goal, loops are shut, pixels have changed."""
    number = choose_goal(studio)
    before, frame = studio.still(), studio.at_rest()
    was = goal_row(studio, number, frame)
    x, y = studio.goal_on_screen(number)
    studio.drag((x, y), (x + by[0], y + by[1]))
    after = studio.at_rest()
    goal = goal_row(studio, number, after)
    assert np.linalg.norm(goal[:3] - was[:3]) > 1e-3, "the goal has moved"
    assert np.abs(np.subtract(after["values"], frame["values"])).max() > 1e-4, "joints have moved"
    assert after["status"] in ("CONVERGED", "CLOSEST")
    if after["status"] == "CONVERGED":
        assert goal[7] < 1e-5, "the tool is on its goal"
    check_loops_closed(after)
    low, high = BAND
    assert low < changed_share(before, studio.still()) < high, "pixels have changed"


# ---- the camera -------------------------------------------------------------------------------


def camera(studio) -> tuple[np.ndarray, np.ndarray]:
    """Where the camera is, and what it looks at; (3,) each, m."""
    position, target = studio.eval("[m.view.camera.position.toArray(), m.view.target.toArray()]")
    return np.array(position), np.array(target)


def metres_per_pixel(studio, place: np.ndarray) -> float:
    """At that place, in a view with perspective."""
    angle, height = studio.eval("[m.view.camera.fov, m.view.canvas.clientHeight]")
    depth = np.linalg.norm(place - camera(studio)[0])
    return 2 * depth * np.tan(np.radians(angle) / 2) / height


# ---- where to take hold -----------------------------------------------------------------------

GRID = 10
"""px between the places that are tried."""
PLACES = """(([link, step]) => {
  const box = m.view.canvas.getBoundingClientRect();
  const found = [];
  for (let y = box.top + 40; y < box.bottom - 40; y += step)
    for (let x = box.left + 20; x < box.right - 20; x += step) {
      if (document.elementFromPoint(x, y) !== m.view.canvas) continue;
      const hit = m.view.pick(x, y);
      const name = hit?.kind === 'link' ? m.store.model.links[hit.link].name : hit && '';
      if (name === link) found.push([x, y]);
    }
  return found; })(a)"""


def pixel_of(studio, link: str | None, away: float = 60.0) -> tuple[float, float]:
    """A pixel in the midst of a link (None: of nothing) where a hand takes that and nothing else.

    Args:
        away: pixels to keep from the selected goal's handle, which would be taken first.
    """
    studio.drawn()  # the camera looks from where it was last drawn
    pixels = {(x, y) for x, y in studio.eval(PLACES, [link, GRID])}
    assert pixels, f"nothing of {link} is seen"
    chosen = studio.eval("m.store.selection.kind === 'goal' ? m.store.selection.goal : 0")
    if chosen:
        gx, gy = studio.goal_on_screen(chosen)
        pixels = {(x, y) for x, y in pixels if np.hypot(x - gx, y - gy) > away}
        assert pixels, f"{link} is seen only beside the handle"
    reach = [GRID * k for k in (-2, -1, 0, 1, 2)]
    return max(sorted(pixels), key=lambda at: sum((at[0] + dx, at[1] + dy) in pixels for dx in reach for dy in reach))


def named(name: str) -> str:
    """A selector of what carries this name for tests."""
    return f"[data-test='{name}']"


def check_number(studio, field: str, number: float, within: float) -> None:
    """What a field shows, as soon as it does: panels are painted at a rate that eyes can read."""
    studio.wait("Math.abs(Number(document.querySelector(a[0]).value) - a[1]) <= a[2]", [field, number, within])


def check_words(studio, place: str, words: str) -> None:
    """That the page says them there, as soon as it does."""
    studio.wait("document.querySelector(a[0]).innerText.includes(a[1])", [place, words])


def open_tab(studio, name: str) -> None:
    if studio.eval("m.panels.sidebar.current") != name:
        studio.page.click(named(f"tab-{name}"))
        studio.wait("m.panels.sidebar.current === a", name)
        studio.drawn()  # the view has another width now


def value_of(studio, dof: str, frame=None) -> float:
    """m or rad, as the last frame has it."""
    frame = studio.frame() if frame is None else frame
    return frame["values"][studio.eval("m.store.model.dofs.find((f) => f.name === a).value", dof)]
