"""What is opened is seen whole at once, with the goals and curves that belong to it."""

import pytest

OUTSIDE = """(() => {
  const { camera, target } = m.view, { frame, scene } = m.store, places = [];
  camera.updateMatrixWorld();
  for (let k = 0; k < frame.links.length; k += 7) places.push([...frame.links.slice(k, k + 3)]);
  for (let k = 0; k < frame.goals.length; k += 9) places.push([...frame.goals.slice(k, k + 3)]);
  for (const { points } of scene?.curves ?? [])
    for (let k = 0; k < points.length; k += 3) places.push(points.slice(k, k + 3));
  const seen = places.map((place) => target.clone().set(...place).project(camera));
  return seen.filter((p) => Math.max(Math.abs(p.x), Math.abs(p.y)) > a).map((p) => [p.x, p.y]);
})()"""
EDGE = 0.97
"""Of the half picture: what is nearer to its edge touches it."""


@pytest.mark.parametrize(
    ("kind", "name"),
    [("scene", "rover"), ("scene", "humanoid"), ("scene", "look_at"), ("scene", "ccd_arm"), ("scene", "scissor_lift"),
     ("gallery", "klann_leg")],
)  # fmt: skip
def test_all_that_belongs_to_it_is_in_the_picture(open_studio, kind, name):
    studio = open_studio("gallery", "planar_2r", width=1280, height=800)
    studio.ask({"do": "SetRunning", "running": False})  # or what moves by itself has moved on by the time we look
    studio.show(kind, name)
    studio.drawn()  # a panel that opened beside it has taken its part of the window by now
    assert not studio.eval("m.store.solving.running")
    assert studio.eval(OUTSIDE, EDGE) == []


def test_the_camera_stays_when_a_goal_comes_after_a_hand_has_touched_something(open_studio):
    studio = open_studio()
    studio.show("gallery", "planar_3r")
    studio.page.mouse.click(300, 300)
    before = studio.eval("m.view.camera.position.toArray()")
    link = studio.eval("m.store.model.links.at(-1).name")
    studio.ask({
        "do": "AddGoal", "kind": "point", "link": link, "at": [0, 0, 0], "pose": [1.5, 1.5, 0, 1, 0, 0, 0],
        "pinned": False,
    })  # fmt: skip
    studio.drawn()
    assert studio.eval("m.view.camera.position.toArray()") == before
