"""Settings, goals and the graph itself change while a background solver runs."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

import mechanik as mk
from mechanik.errors import LimitsError, MechanikError, UnknownName
from mechanik.motion.live import LiveSolver, LiveState

SOON = 120.0
"""Seconds after which a test gives up waiting; none takes nearly as long, but for the first, which compiles."""


def chain(count: int = 4) -> mk.Mechanism:
    """Links of 0.3 m on hinges about y, z up."""
    b = mk.Builder("chain")
    for k in range(count):
        above = f"link{k}" if k else "base"
        b.revolute(f"hinge{k}", above, f"link{k + 1}", at=(0, 0, 0.3 if k else 0.0), axis=(0, 1, 0), value=0.3)
    return b.build()


def reaching(place=(0.5, 0.0, 0.6), link: str = "link4") -> mk.PositionGoal:
    return mk.PositionGoal(link, place, name="tip")


def test_a_lock_holds_from_the_next_state_on_and_can_be_lifted():
    arm = chain()
    with LiveSolver(arm, reaching()) as live:
        held = live.solve().result(SOON).q[1]
        live.set(lock="hinge1")
        seen: list[LiveState] = []
        live.subscribe(seen.append)
        live.solve((0.6, 0.0, 0.4)).result(SOON)
        live.stop()  # callbacks hear of a state after futures do
        assert seen
        assert all(state.q[1] == held for state in seen)
        live.set(lock=())
        live.start()
        assert live.solve((0.2, 0.0, 0.5)).result(SOON).q[1] != held


def test_limits_hold_from_the_next_state_on():
    arm = chain()
    with LiveSolver(arm, reaching()) as live:
        live.solve().result(SOON)
        live.set(limits={"hinge2": (-0.1, 0.1)})
        assert abs(live.solve((0.2, 0.0, 0.5)).result(SOON).q[2]) <= 0.1 + 1e-12


@pytest.mark.parametrize("method", ["dls", "ccd", "lbfgsb", "jacobian_transpose"])
def test_another_method_goes_on_with_the_same_targets(method: str):
    arm = chain()
    with LiveSolver(arm, reaching(), kick=0.0, smallest_gradient=1e-9) as live:
        live.solve((0.4, 0.0, 0.5)).result(SOON)
        live.set(solver=method)  # options of the method before are dropped, those of all are kept
        q = live.solve().result(SOON).q
        assert arm.pose("link4", q)[:3, 3] == pytest.approx((0.4, 0.0, 0.5), abs=1e-5)


@pytest.mark.parametrize(
    "wrong",
    [
        {"solver": "magic"},
        {"lock": "hinge9"},
        {"limits": {"hinge1": (2, 1)}},
        {"goals": mk.PositionGoal("nowhere", (0, 0, 0))},
        {"colour": "red"},
        {"budget": -1.0},
        {"tolerance": -1.0},
        {"rest": {"hinge9": 0.0}},
    ],
)
def test_a_wrong_setting_is_refused_where_it_is_given_and_all_stay(wrong):
    arm = chain()
    with LiveSolver(arm, reaching()) as live:
        live.solve().result(SOON)
        with pytest.raises(MechanikError):
            live.set(**wrong)
        state = live.solve((0.4, 0.0, 0.5)).result(SOON)
        assert state.status is mk.Status.CONVERGED
        assert live.budget == 0.012


def test_new_goals_are_where_they_were_made_and_cancel_what_was_asked_before():
    arm = chain()
    live = LiveSolver(arm, reaching())
    before = live.solve((0.4, 0.0, 0.5))
    live.set(goals=[reaching((0.6, 0.0, 0.5)), mk.PositionGoal("link2", (0.3, 0.0, 0.4), level=2, name="elbow")])
    assert before.cancelled()
    with live:
        state = live.solve().result(SOON)
        assert arm.pose("link4", state.q)[:3, 3] == pytest.approx((0.6, 0.0, 0.5), abs=1e-6)


def test_a_rest_pose_can_be_set_and_taken_away():
    arm = chain()
    with LiveSolver(arm, reaching()) as live:
        live.set_targets((0.5, 0.0, 0.7))
        live.set(rest={"hinge0": -0.5})
        state = live.solve().result(SOON)
        assert arm.pose("link4", state.q)[:3, 3] == pytest.approx((0.5, 0.0, 0.7), abs=1e-6)
        assert state.solution is not None
        assert state.solution.objectives[-1].name == "rest"
        live.set(rest=False)
        after = live.solve().result(SOON).solution
        assert after is not None
        assert len(after.objectives) == 1


def test_part_of_the_way_to_a_rest_pose_in_each_tick_ends_there():
    arm = chain()
    seen: list[LiveState] = []
    with LiveSolver(arm, mk.RestPose({"hinge0": 1.0}), rest_factor=0.2, on_state=seen.append) as live:
        # the last share that is not gone is one that is within the tolerance
        assert live.solve().result(SOON).q[0] == pytest.approx(1.0, abs=1e-6 / 0.2)
    assert len(seen) > 10
    assert np.diff([state.q[0] for state in seen]).min() > -1e-12


def test_a_joint_added_while_running_moves_along_and_the_others_stay():
    arm = chain()
    with LiveSolver(arm, reaching()) as live:
        before = live.solve().result(SOON).q
        with live.edit() as same:
            assert same is arm
            more = mk.Joint("hinge4", dof="EY", position=(0, 0, 0.3))
            arm.link("link4").add_child(more)
            more.add_child(mk.Link("link5"))
        state = live.solve().result(SOON)
        assert state.q.shape == (5,)
        assert state.q[:4] == pytest.approx(before, abs=1e-9)
        live.set(goals=reaching((0.9, 0.0, 0.7), link="link5"))
        q = live.solve().result(SOON).q
        assert arm.pose("link5", q)[:3, 3] == pytest.approx((0.9, 0.0, 0.7), abs=1e-6)


def test_a_link_removed_while_running_takes_its_number_with_it():
    arm = chain()
    with LiveSolver(arm, reaching()) as live:
        before = live.solve().result(SOON).q
        with live.edit():
            live.set(goals=reaching((0.3, 0.0, 0.4), link="link3"))  # counts from the end of the edit on
            hinge = arm.joint("hinge3")
            arm.link("link3").remove_child(hinge)
        state = live.solve().result(SOON)
        assert state.q.shape == (3,)
        assert arm.pose("link3", state.q)[:3, 3] == pytest.approx((0.3, 0.0, 0.4), abs=1e-6)
        assert before.shape == (4,)


def test_an_edit_that_no_goal_survives_says_so_and_other_goals_help():
    arm = chain()
    with LiveSolver(arm, reaching()) as live:
        live.solve().result(SOON)
        with pytest.raises(UnknownName, match="link4"), live.edit():
            arm.link("link3").remove_child(arm.joint("hinge3"))
        with pytest.raises(UnknownName, match="link4"):
            live.solve().result(SOON)
        assert "link4" in live.problem
        live.set(goals=reaching((0.3, 0.0, 0.4), link="link3"))
        assert live.solve().result(SOON).status is mk.Status.CONVERGED


def test_what_an_edit_raises_comes_out_of_it_and_the_thread_goes_on():
    arm = chain()
    with LiveSolver(arm, reaching()) as live:
        with pytest.raises(ZeroDivisionError), live.edit():
            raise ZeroDivisionError
        assert live.solve((0.4, 0.0, 0.5)).result(SOON).status is mk.Status.CONVERGED


def test_no_state_is_made_during_an_edit():
    arm = chain()
    with LiveSolver(arm, reaching()) as live:
        live.solve().result(SOON)
        with live.edit(), live.edit():
            standing = live.state
            live.set_targets((0.4, 0.0, 0.5))
            time.sleep(0.02)
            assert live.state is standing
        assert live.solve().result(SOON) is not standing


def test_one_may_stop_inside_an_edit():
    live = LiveSolver(chain(), reaching())
    live.start()
    with live.edit():
        live.set_targets((0.4, 0.0, 0.5))
        live.stop()
        assert not live.running
    live.dispose()


def test_limits_of_a_joint_edited_while_running_hold():
    arm = chain()
    with LiveSolver(arm, reaching()) as live:
        live.solve().result(SOON)
        with live.edit():
            arm.joint("hinge1").set_limits(-0.2, 0.2)
        assert abs(live.solve((0.2, 0.0, 0.5)).result(SOON).q[1]) <= 0.2 + 1e-12


def test_an_edit_from_another_thread_waits_for_callbacks():
    arm, order = chain(), list[str]()
    inside = threading.Event()

    def looks(state: LiveState) -> None:
        inside.set()
        time.sleep(0.02)
        arm.poses(state.q)
        order.append("looked")

    with LiveSolver(arm, reaching(), on_state=looks) as live:
        assert inside.wait(SOON)
        with live.edit():
            order.append("edited")
    assert order[0] == "looked"


def test_a_wrong_budget_names_itself():
    with pytest.raises(LimitsError, match="budget"):
        LiveSolver(chain(), reaching()).set(budget=0.0)
