"""One server and one browser for all tests of a worker. Tests of a file share a page, each with a fresh Panda on it;
those that need a page, and so a session, of their own open one."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from find_browser import ADVICE, find_browser


@pytest.fixture(scope="session")
def studio_link() -> Iterator[str]:
    """The link of a studio that runs in a process of its own."""
    if find_browser() is None:
        pytest.skip(ADVICE)
    from studio_driving import studio_process

    with studio_process() as server:
        yield server.link


@pytest.fixture(scope="session")
def browser() -> Iterator[object]:
    if find_browser() is None:
        pytest.skip(ADVICE)
    from studio_driving import chromium

    with chromium() as browser:
        yield browser


@pytest.fixture
def open_studio(studio_link, browser) -> Iterator[Callable[..., object]]:
    """Opens pages; when the test ends, none of them may have complained or asked for anything off the machine."""
    from browser_checks import check_quiet
    from studio_driving import Studio

    pages: list[Studio] = []

    def open_one(kind: str = "", name: str = "", **options) -> Studio:
        studio = Studio.open(browser, studio_link, **options)
        pages.append(studio)
        if name:
            studio.show(kind, name)
        return studio

    yield open_one
    try:
        for studio in pages:
            check_quiet(studio)
    finally:
        for studio in pages:
            studio.close()


@pytest.fixture(scope="module")
def shared_page(studio_link, browser) -> Iterator[object]:
    from studio_driving import Studio

    studio = Studio.open(browser, studio_link)
    yield studio
    studio.close()


@pytest.fixture
def studio(shared_page) -> Iterator[object]:
    """The page of the file, with a fresh Panda on it, its first goal selected, and the handle for moving."""
    from browser_checks import check_quiet

    shared_page.page.mouse.move(2, 300)  # on nothing that would light up
    shared_page.eval(
        "(m.panels.closeAll(), m.panels.sidebar.close(), m.controller.setMode('move'), m.controller.setSpace('world'),"
        " m.view.quality.isFixed = false, 1)"
    )
    shared_page.show("gallery", "panda")
    shared_page.at_rest()
    yield shared_page
    check_quiet(shared_page)
