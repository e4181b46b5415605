"""When the server ends, the page says so and what to do; what was in the hand is let go. A page that has lost its
connection, or its cookie with it, goes on where it was."""

from contextlib import suppress
from pathlib import Path

import pytest
from browser_checks import choose_goal, named
from studio_driving import Studio, studio_process


def test_a_page_whose_server_has_ended_says_so(browser):
    with studio_process("panda") as server:
        studio = Studio.open(browser, server.link)
        try:
            studio.wait("m.store.model && m.store.frame && m.store.goals.length")
            assert not studio.page.is_visible(named("start")), "what the command named is open"
            number = choose_goal(studio)
            x, y = studio.goal_on_screen(number)
            studio.page.mouse.move(x, y)
            studio.page.mouse.down()
            studio.page.mouse.move(x + 20, y)
            assert studio.eval("m.controller.isDragging")
            server.process.kill()
            studio.page.wait_for_selector(named("banner"))
            assert "start the studio again" in studio.page.inner_text(named("banner"))
            assert not studio.eval("m.controller.isDragging")
            studio.page.mouse.up()
            studio.page.keyboard.press("Delete")  # nobody hears it, and it says so
            # what was asked for just before the end may be complained of as well
            studio.page.wait_for_selector(f"{named('toast-error')}:has-text('not connected')")
            assert [line for line in studio.complaints if "page error" in line] == []
        finally:
            studio.close()


def test_a_page_whose_connection_was_cut_goes_on_where_it_was(open_studio):
    studio = open_studio("gallery", "panda")
    studio.ask({"do": "SetDofValue", "dof": 0, "value": 0.3})
    session = studio.eval("m.store.welcome.session")
    studio.at_rest()
    studio.eval("(window.heard = [], m.store.on('connected', (is) => window.heard.push(is)), 1)")
    studio.eval("(window.last = m.store.frame, m.store.connection.socket.close(4000), true)")  # no farewell
    studio.wait("window.heard.includes(true) && m.store.frame && m.store.frame !== window.last")
    assert studio.eval("window.heard") == [False, True]
    assert studio.eval("m.store.welcome.session") == session
    assert abs(studio.at_rest()["values"][0] - 0.3) < 1e-9
    assert not studio.page.is_visible(named("banner"))
    assert not studio.page.is_visible(named("start"))


def lose_cookie_and_connection(studio) -> None:
    """What a browser loses whose network process starts anew."""
    studio.page.context.clear_cookies()
    studio.eval("(m.store.connection.socket.close(4000), true)")  # no farewell


def test_a_page_whose_browser_has_lost_the_cookie_goes_on_where_it_was(open_studio):
    studio = open_studio("gallery", "panda")
    studio.ask({"do": "SetDofValue", "dof": 0, "value": 0.3})
    session = studio.eval("m.store.welcome.session")
    studio.at_rest()
    for _ in range(2):
        studio.eval("(window.heard = [], m.store.on('connected', (is) => window.heard.push(is)), 1)")
        studio.eval("(window.last = m.store.frame, 1)")
        lose_cookie_and_connection(studio)
        studio.wait("window.heard.includes(true) && m.store.frame && m.store.frame !== window.last")
        assert studio.eval("m.store.welcome.session") == session
        assert abs(studio.at_rest()["values"][0] - 0.3) < 1e-9
        assert not studio.page.is_visible(named("banner"))
    studio.ask({"do": "SetDofValue", "dof": 0, "value": -0.2})
    assert abs(studio.at_rest()["values"][0] + 0.2) < 1e-9
    (cookie,) = studio.page.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    studio.reload()  # which needs the cookie
    assert studio.eval("m.store.welcome.session") == session


def test_files_are_sent_and_saved_after_the_cookie_was_lost(open_studio):
    studio = open_studio("gallery", "planar_2r")
    with studio.page.expect_download() as saved:
        studio.page.context.clear_cookies()
        studio.ask({"do": "Export", "kind": "urdf"})
    text = Path(saved.value.path()).read_bytes()
    assert b"<robot" in text
    studio.page.context.clear_cookies()
    studio.page.set_input_files(named("file"), {"name": "mine.urdf", "mimeType": "text/xml", "buffer": text})
    studio.wait("m.store.model.name !== 'planar_2r' || m.store.model.revision > 1")
    refused = [line for line in studio.complaints if "403" in line]
    assert len(refused) == 1  # the file that was sent without the cookie
    studio.complaints = [line for line in studio.complaints if line not in refused]


def test_a_page_survives_a_network_process_that_starts_anew(open_studio):
    """On machines whose clock runs backwards, Chromium's crashes and takes the cookies along."""
    psutil = pytest.importorskip("psutil")
    studio = open_studio("gallery", "panda")
    studio.ask({"do": "SetDofValue", "dof": 0, "value": 0.3})
    session = studio.eval("m.store.welcome.session")
    studio.at_rest()
    network = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):  # it may have ended meanwhile
            if any("network.mojom.NetworkService" in word for word in process.cmdline()):
                network.append(process)
    if not network:
        pytest.skip("this browser has no network process of its own")
    studio.eval("(window.last = m.store.frame, 1)")
    for process in network:
        process.kill()
    studio.wait("m.store.isConnected && m.store.frame && m.store.frame !== window.last")
    assert studio.eval("m.store.welcome.session") == session
    assert abs(studio.at_rest()["values"][0] - 0.3) < 1e-9
    assert not studio.page.is_visible(named("banner"))
    expected = ("net::ERR", "WebSocket connection to")  # of what was open when the process ended
    studio.complaints = [line for line in studio.complaints if not any(word in line for word in expected)]
