"""A goal is dragged with the mouse and the mechanism follows; what the page shows is what the server has."""

import numpy as np
import pytest
from browser_checks import check_drag, check_loops_closed, choose_goal, move_goal

import mechanik as mk


@pytest.mark.parametrize("name", ["panda", "stewart_platform", "humanoid", "delta_robot", "four_bar", "walker"])
def test_a_dragged_goal_is_followed(studio, name):
    studio.show("gallery", name)
    check_drag(studio)


def test_without_its_solver_a_drag_is_followed_by_nothing(studio):
    """A negative control: the check above can fail."""
    studio.ask({"do": "SetRunning", "running": False})
    try:
        with pytest.raises(AssertionError, match="joints have moved"):
            check_drag(studio)
    finally:
        studio.ask({"do": "SetRunning", "running": True})


def test_without_its_connection_a_drag_is_followed_by_nothing(open_studio):
    """Another: what moves on the screen comes from the server, not from the page."""
    studio = open_studio("gallery", "panda")
    choose_goal(studio)
    studio.eval("(m.store.connection.reconnectsLeft = 0, m.store.connection.socket.close(), true)")  # for good
    studio.wait("!m.store.isConnected")
    with pytest.raises(AssertionError, match="the goal has moved"):
        check_drag(studio)


def test_the_page_draws_what_the_server_says(studio):
    """The objects in the view stand where our own forward kinematics puts the links."""
    check_drag(studio)
    arm, frame = mk.gallery.panda(), studio.frame()
    model = studio.eval("m.store.model.dofs.map((f) => [f.name, f.value, f.mimics])")
    q = arm.configuration({name: frame["values"][place] for name, place, leader in model if leader < 0})
    names = studio.eval("m.store.model.links.map((link) => link.name)")
    drawn = studio.eval(
        "m.store.model.links.map((_, k) => (m.view.linkObject(k).updateWorldMatrix(true, false),"
        " m.view.linkObject(k).matrixWorld.elements))"
    )
    for name, elements in zip(names, drawn, strict=True):
        X_world_link = np.reshape(elements, (4, 4)).T  # three keeps columns
        np.testing.assert_allclose(X_world_link, arm.pose(name, q), atol=1e-9)


def test_two_pages_have_sessions_of_their_own(studio, open_studio):
    other_page = open_studio("gallery", "ur5")
    still = other_page.at_rest()["values"]
    check_drag(studio)
    assert other_page.frame()["values"] == still
    assert studio.eval("m.store.model.name") != other_page.eval("m.store.model.name")
    assert studio.eval("m.store.welcome.session") != other_page.eval("m.store.welcome.session")


def test_goal_out_of_reach_leaves_loops_closed_and_the_status_says_so(studio):
    studio.show("gallery", "stewart_platform")
    number = choose_goal(studio)
    pose = studio.eval("m.store.goal(a).pose", number)
    frame = move_goal(studio, number, [pose[0] + 5, *pose[1:]])
    assert frame["status"] == "CLOSEST"
    check_loops_closed(frame)
    studio.wait("m.store.statusText?.text.includes('reach')")
