"""When the server ends, the page says so and what to do; what was in the hand is let go."""

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
            assert studio.eval("m.hands.isDragging")
            server.process.kill()
            studio.page.wait_for_selector(named("banner"))
            assert "start the studio again" in studio.page.inner_text(named("banner"))
            assert not studio.eval("m.hands.isDragging")
            studio.page.mouse.up()
            studio.page.keyboard.press("Delete")  # nobody hears it, and it says so
            # what was asked for just before the end may be complained of as well
            studio.page.wait_for_selector(f"{named('toast-error')}:has-text('not connected')")
            assert [line for line in studio.complaints if "page error" in line] == []
        finally:
            studio.close()


def test_a_page_whose_connection_was_cut_goes_on_where_it_was(open_studio):
    studio = open_studio("gallery", "panda")
    studio.ask({"do": "SetFreedom", "freedom": 0, "value": 0.3})
    session = studio.eval("m.store.welcome.session")
    studio.at_rest()
    studio.eval("(window.heard = [], m.store.on('connected', (is) => window.heard.push(is)), 1)")
    studio.eval("(window.last = m.store.frame, m.store.wire.socket.close(4000), true)")  # no farewell
    studio.wait("window.heard.includes(true) && m.store.frame && m.store.frame !== window.last")
    assert studio.eval("window.heard") == [False, True]
    assert studio.eval("m.store.welcome.session") == session
    assert abs(studio.at_rest()["values"][0] - 0.3) < 1e-9
    assert not studio.page.is_visible(named("banner"))
    assert not studio.page.is_visible(named("start"))
