"""The status bar says while kernels are being compiled, and how to have them compiled where they are not."""

from __future__ import annotations

import pytest
from browser_checks import check_quiet, named
from kernel_doubles import replace_states

from mechanik.studio.server import session_pool as kernel_watch
from mechanik.studio.server.server import serve

BAR = named("kernels")
SAYS = "document.querySelector(a[0]).innerText === a[1]"


@pytest.fixture
def double(monkeypatch):
    monkeypatch.setattr(kernel_watch, "POLL_SECONDS", 0.05)
    return replace_states(monkeypatch)


def says(studio, text: str) -> None:
    studio.wait(SAYS, [BAR, text])


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_is_there_while_kernels_are_compiled_and_goes_when_they_are_ready(double, browser, theme):
    from studio_driving import Studio

    double.compiling(ready=3)
    server = serve(("scene", "hexapod"), port=0)
    try:
        studio = Studio.open(browser, server.link, theme=theme)
        says(studio, "compiling kernels, 3 of 4 ready: solving is slower")
        box, bar = (studio.page.locator(selector).bounding_box() for selector in (BAR, "footer.status"))
        assert box["x"] >= bar["x"]
        assert box["x"] + box["width"] <= bar["x"] + bar["width"]
        assert studio.eval("((e) => e.scrollWidth <= e.clientWidth)(document.querySelector(a))", BAR), "all can be read"
        double.compiling(ready=4)
        says(studio, "")
        assert not studio.page.is_visible(BAR)
        check_quiet(studio)
        studio.close()
    finally:
        server.close()


def test_remedy_stands_in_the_title_where_nothing_is_compiled(double, browser):
    from studio_driving import Studio

    double.without_numba("compiling kernels needs Numba: pip install 'mechanik[jit]'")
    server = serve(("scene", "hexapod"), port=0)
    try:
        studio = Studio.open(browser, server.link)
        says(studio, "kernels are not compiled: solving is slower")
        assert "pip install 'mechanik[jit]'" in studio.page.get_attribute(BAR, "title")
        check_quiet(studio)
        studio.close()
    finally:
        server.close()
