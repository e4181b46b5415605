"""Words at the lower edge of the view: what is told is shown; errors stay until somebody has seen them."""

import pytest
from browser_checks import named

LONG = 60_000
"""ms; nothing but an error stays for as long."""


@pytest.fixture
def studio(open_studio):
    """A page whose clock can be put forward."""
    studio = open_studio("gallery", "planar_3r")
    studio.page.clock.install()
    return studio


def shown(studio) -> list[str]:
    """What can be read, the oldest first."""
    return [words for words in studio.page.locator(f"{named('toasts')} p").all_inner_texts() if words]


def tell(studio, kind: str, text: str) -> None:
    """As the session would."""
    studio.eval("(m.store.onEvent({ is: 'Notice', ...a }), 1)", {"kind": kind, "text": text})


@pytest.mark.parametrize("kind", ["info", "warning"])
def test_what_is_no_error_is_shown_and_goes_by_itself(studio, kind):
    tell(studio, kind, "The tool has come home.")
    assert studio.page.is_visible(named(f"toast-{kind}"))
    assert shown(studio) == ["The tool has come home."]
    studio.page.clock.fast_forward(2000)
    assert shown(studio) == ["The tool has come home."], "there is time to read it"
    studio.page.clock.fast_forward(LONG)
    assert shown(studio) == []


def test_an_error_stays_until_it_is_closed_and_no_longer_than_what_it_is_about(studio):
    studio.eval("m.store.request({ do: 'RemoveGoal', goal: 99 })")
    assert studio.page.get_attribute(named("toast-error"), "role") == "alert"
    [words] = shown(studio)
    assert "99" in words
    studio.page.clock.fast_forward(LONG)
    assert shown(studio) == [words]
    studio.page.locator(named("toast-error")).get_by_role("button").click()
    assert shown(studio) == []
    for leave in ("Escape", "OpenGallery"):
        studio.eval("m.store.request({ do: 'RemoveGoal', goal: 99 })")
        assert shown(studio) == [words]
        if leave == "Escape":
            studio.page.keyboard.press("Escape")
        else:
            studio.ask({"do": "OpenGallery", "name": "planar_2r"})
        assert shown(studio) == [], leave


def test_the_same_words_stand_there_once_and_of_many_the_newest(studio):
    for k in range(8):
        tell(studio, "error", "the same")
        tell(studio, "error", f"another, {k}")
    words = shown(studio)
    assert words[-2:] == ["the same", "another, 7"]
    assert words.count("the same") == 1
    assert len(words) < 8, "they do not cover the view"
