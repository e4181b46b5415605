"""A page that is loaded again, or come back to, goes on where it was; a copied tab has a session of its own."""

from browser_checks import named

KEY = "m.store.welcome.session"


def changed(studio) -> str:
    """Panda with a joint moved and a goal more; the key of its session."""
    studio.show("gallery", "panda")
    studio.ask({"do": "SetDofValue", "dof": 0, "value": 0.3})
    link = studio.eval("m.store.model.links[5].name")
    studio.ask({"do": "AddGoal", "kind": "point", "link": link, "at": [0, 0, 0], "pinned": True})
    return studio.eval(KEY)


def check_goes_on(studio, before: dict, goals: list, key: str) -> None:
    assert studio.eval(KEY) == key
    studio.wait("m.store.model && m.store.frame && m.store.goals.length")
    assert not studio.page.is_visible(named("start"))
    assert studio.at_rest()["values"] == before["values"]
    assert studio.eval("m.store.goals") == goals
    assert studio.eval("m.store.history.undo"), "and what was done can be undone"


def test_a_page_that_is_loaded_again_goes_on_where_it_was(open_studio):
    studio = open_studio()
    key = changed(studio)
    before, goals = studio.at_rest(), studio.eval("m.store.goals")
    for _ in range(2):
        studio.reload()
        check_goes_on(studio, before, goals, key)


def test_a_page_that_was_left_is_found_again_by_going_back(open_studio):
    studio = open_studio()
    key = changed(studio)
    before, goals = studio.at_rest(), studio.eval("m.store.goals")
    studio.page.goto("about:blank")
    studio.page.go_back()
    studio.wait("window.mechanik?.store.welcome && m.store.isConnected")
    check_goes_on(studio, before, goals, key)


def test_a_copied_tab_has_a_session_of_its_own(open_studio):
    studio = open_studio()
    key = changed(studio)
    with studio.page.expect_popup() as opened:
        studio.eval("(window.open('about:blank'), 1)")  # what a tab keeps is copied into those that it opens
    copy = type(studio)(opened.value, studio.host)
    assert copy.eval("sessionStorage.getItem('mechanik.session')") == key
    copy.page.goto(studio.page.url)
    copy.wait("window.mechanik?.store.welcome")
    other_key = copy.eval(KEY)
    assert other_key != key
    assert studio.eval("m.store.isConnected")
    copy.show("gallery", "ur5")
    copy.reload()
    copy.wait("m.store.model?.links.some((link) => link.name === 'forearm_link')")
    assert copy.eval(KEY) == other_key, "and it is found again too"
    studio.reload()
    assert studio.eval(KEY) == key
