"""Valid and rejected values of controls."""

import math

import pytest

from mechanik.errors import MechanikError, UnknownName
from mechanik.studio.scenes import SCENES
from mechanik.studio.scenes.scene_base import StudioScene
from mechanik.studio.scenes.scene_controls import button, check_control_value, choice, slider, switch

SPEED = slider("speed", "Speed", 0.5, 0.0, 2.0, 0.1)
COUNT = slider("count", "Count", 3, 1, 9, 1)
ON = switch("on", "On", True)
KIND = choice("kind", "Kind", ("a", "b"))


@pytest.mark.parametrize(
    ("control", "value"),
    [
        (SPEED, -0.1), (SPEED, 2.1), (SPEED, math.nan), (SPEED, math.inf), (SPEED, "fast"), (SPEED, True),
        (ON, 1.0), (ON, "true"), (KIND, "c"), (KIND, 0.0), (KIND, True),
    ],
)  # fmt: skip
def test_what_a_control_cannot_be_is_refused_in_words(control, value):
    with pytest.raises(MechanikError, match=control.title):
        check_control_value(control, value)


def test_whole_sliders_round_and_buttons_keep_nothing():
    assert check_control_value(COUNT, 4.4) == 4.0
    assert check_control_value(SPEED, 0.123) == 0.123
    assert check_control_value(button("go", "Go"), True) is False


class Refusing(StudioScene):
    name, title, about = "refusing", "Refusing", ""

    def make_controls(self):
        return [SPEED, ON]

    def on_control_changed(self, name):
        self.set_value("on", False)
        raise MechanikError("no")


def test_a_control_that_cannot_be_followed_stays_as_it_was_with_all_that_it_took_along():
    scene = Refusing()
    with pytest.raises(MechanikError):
        scene.set("speed", 1.0)
    assert scene.controls() == [SPEED, ON]


def test_an_unknown_control_is_named():
    with pytest.raises(UnknownName, match="sped"):
        Refusing().set("sped", 1.0)


@pytest.mark.parametrize("scene", SCENES.values(), ids=SCENES)
def test_every_control_starts_at_a_value_that_it_takes_and_has_its_own_name(scene):
    controls = scene().controls()
    assert len({control.name for control in controls}) == len(controls)
    for control in controls:
        assert check_control_value(control, control.value) == control.value
        assert control.title
