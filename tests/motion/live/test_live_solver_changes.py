"""Settings, goals and the mechanism change while a live solver runs."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

import mechanik as mk
from mechanik.errors import LimitsError, MechanikError, UnknownName
from mechanik.motion.live import LiveSolver, LiveState

TIMEOUT = 120.0
"""s: longest wait of a test; only the first, which compiles, takes nearly as long."""


def chain(count: int = 4) -> mk.Mechanism:
    """Links of 0.3 m on revolute joints about y; z is up."""
    b = mk.Builder("chain")
    for k in range(count):
        above = f"link{k}" if k else "base"
        b.revolute(f"hinge{k}", above, f"link{k + 1}", at=(0, 0, 0.3 if k else 0.0), axis=(0, 1, 0), value=0.3)
    return b.build()


def position_goal(position=(0.5, 0.0, 0.6), link: str = "link4") -> mk.PositionGoal:
    return mk.PositionGoal(link, position, name="tip")


def test_lock_applies_from_the_next_state_and_can_be_removed():
    arm = chain()
    with LiveSolver(arm, position_goal()) as live:
        held = live.solve().result(TIMEOUT).q[1]
        live.set(lock="hinge1")
        seen: list[LiveState] = []
        live.subscribe(seen.append)
        live.solve((0.6, 0.0, 0.4)).result(TIMEOUT)
        live.stop()  # callbacks are called after futures are resolved
        assert seen
        assert all(state.q[1] == held for state in seen)
        live.set(lock=())
        live.start()
        assert live.solve((0.2, 0.0, 0.5)).result(TIMEOUT).q[1] != held


def test_limits_apply_from_the_next_state():
    arm = chain()
    with LiveSolver(arm, position_goal()) as live:
        live.solve().result(TIMEOUT)
        live.set(limits={"hinge2": (-0.1, 0.1)})
        assert abs(live.solve((0.2, 0.0, 0.5)).result(TIMEOUT).q[2]) <= 0.1 + 1e-12


@pytest.mark.parametrize("method", ["dls", "ccd", "lbfgsb", "jacobian_transpose"])
def test_new_method_continues_with_the_same_targets(method: str):
    arm = chain()
    with LiveSolver(arm, position_goal(), perturbation=0.0, smallest_gradient=1e-9) as live:
        live.solve((0.4, 0.0, 0.5)).result(TIMEOUT)
        live.set(solver=method)  # options of the old method are dropped, common options stay
        q = live.solve().result(TIMEOUT).q
        assert arm.pose("link4", q)[:3, 3] == pytest.approx((0.4, 0.0, 0.5), abs=1e-5)


@pytest.mark.parametrize(
    "invalid",
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
def test_invalid_setting_raises_and_all_settings_stay(invalid):
    arm = chain()
    with LiveSolver(arm, position_goal()) as live:
        live.solve().result(TIMEOUT)
        with pytest.raises(MechanikError):
            live.set(**invalid)
        state = live.solve((0.4, 0.0, 0.5)).result(TIMEOUT)
        assert state.status is mk.Status.CONVERGED
        assert live.budget == 0.012


def test_new_goals_start_with_their_own_targets_and_cancel_futures():
    arm = chain()
    live = LiveSolver(arm, position_goal())
    before = live.solve((0.4, 0.0, 0.5))
    live.set(goals=[position_goal((0.6, 0.0, 0.5)), mk.PositionGoal("link2", (0.3, 0.0, 0.4), level=2, name="elbow")])
    assert before.cancelled()
    with live:
        state = live.solve().result(TIMEOUT)
        assert arm.pose("link4", state.q)[:3, 3] == pytest.approx((0.6, 0.0, 0.5), abs=1e-6)


def test_rest_pose_can_be_set_and_removed():
    arm = chain()
    with LiveSolver(arm, position_goal()) as live:
        live.set_targets((0.5, 0.0, 0.7))
        live.set(rest={"hinge0": -0.5})
        state = live.solve().result(TIMEOUT)
        assert arm.pose("link4", state.q)[:3, 3] == pytest.approx((0.5, 0.0, 0.7), abs=1e-6)
        assert state.solution is not None
        assert state.solution.objectives[-1].name == "rest"
        live.set(rest=False)
        after = live.solve().result(TIMEOUT).solution
        assert after is not None
        assert len(after.objectives) == 1


def test_partial_motion_to_a_rest_pose_in_each_tick_converges():
    arm = chain()
    seen: list[LiveState] = []
    with LiveSolver(arm, mk.RestPose({"hinge0": 1.0}), rest_factor=0.2, on_state=seen.append) as live:
        # the remaining distance is within the tolerance
        assert live.solve().result(TIMEOUT).q[0] == pytest.approx(1.0, abs=1e-6 / 0.2)
    assert len(seen) > 10
    assert np.diff([state.q[0] for state in seen]).min() > -1e-12


def test_joint_added_while_running_is_solved_and_others_retain_their_values():
    arm = chain()
    with LiveSolver(arm, position_goal()) as live:
        before = live.solve().result(TIMEOUT).q
        with live.edit() as same:
            assert same is arm
            more = mk.Joint("hinge4", dof="EY", position=(0, 0, 0.3))
            arm.link("link4").add_child(more)
            more.add_child(mk.Link("link5"))
        state = live.solve().result(TIMEOUT)
        assert state.q.shape == (5,)
        assert state.q[:4] == pytest.approx(before, abs=1e-9)
        live.set(goals=position_goal((0.9, 0.0, 0.7), link="link5"))
        q = live.solve().result(TIMEOUT).q
        assert arm.pose("link5", q)[:3, 3] == pytest.approx((0.9, 0.0, 0.7), abs=1e-6)


def test_link_removed_while_running_removes_its_dof():
    arm = chain()
    with LiveSolver(arm, position_goal()) as live:
        before = live.solve().result(TIMEOUT).q
        with live.edit():
            live.set(goals=position_goal((0.3, 0.0, 0.4), link="link3"))  # takes effect at the end of the edit
            hinge = arm.joint("hinge3")
            arm.link("link3").remove_child(hinge)
        state = live.solve().result(TIMEOUT)
        assert state.q.shape == (3,)
        assert arm.pose("link3", state.q)[:3, 3] == pytest.approx((0.3, 0.0, 0.4), abs=1e-6)
        assert before.shape == (4,)


def test_edit_that_removes_the_goal_link_raises_until_new_goals_are_set():
    arm = chain()
    with LiveSolver(arm, position_goal()) as live:
        live.solve().result(TIMEOUT)
        with pytest.raises(UnknownName, match="link4"), live.edit():
            arm.link("link3").remove_child(arm.joint("hinge3"))
        with pytest.raises(UnknownName, match="link4"):
            live.solve().result(TIMEOUT)
        assert "link4" in live.error_message
        live.set(goals=position_goal((0.3, 0.0, 0.4), link="link3"))
        assert live.solve().result(TIMEOUT).status is mk.Status.CONVERGED


def test_exception_inside_an_edit_propagates_and_the_thread_continues():
    arm = chain()
    with LiveSolver(arm, position_goal()) as live:
        with pytest.raises(ZeroDivisionError), live.edit():
            raise ZeroDivisionError
        assert live.solve((0.4, 0.0, 0.5)).result(TIMEOUT).status is mk.Status.CONVERGED


def test_no_state_is_published_during_an_edit():
    arm = chain()
    with LiveSolver(arm, position_goal()) as live:
        live.solve().result(TIMEOUT)
        with live.edit(), live.edit():
            standing = live.state
            live.set_targets((0.4, 0.0, 0.5))
            time.sleep(0.02)
            assert live.state is standing
        assert live.solve().result(TIMEOUT) is not standing


def test_solver_can_be_stopped_inside_an_edit():
    live = LiveSolver(chain(), position_goal())
    live.start()
    with live.edit():
        live.set_targets((0.4, 0.0, 0.5))
        live.stop()
        assert not live.running
    live.dispose()


def test_joint_limits_edited_while_running_apply():
    arm = chain()
    with LiveSolver(arm, position_goal()) as live:
        live.solve().result(TIMEOUT)
        with live.edit():
            arm.joint("hinge1").set_limits(-0.2, 0.2)
        assert abs(live.solve((0.2, 0.0, 0.5)).result(TIMEOUT).q[1]) <= 0.2 + 1e-12


def test_edit_from_another_thread_waits_for_callbacks():
    arm, order = chain(), list[str]()
    inside = threading.Event()

    def callback(state: LiveState) -> None:
        inside.set()
        time.sleep(0.02)
        arm.poses(state.q)
        order.append("looked")

    with LiveSolver(arm, position_goal(), on_state=callback) as live:
        assert inside.wait(TIMEOUT)
        with live.edit():
            order.append("edited")
    assert order[0] == "looked"


def test_invalid_budget_raises():
    with pytest.raises(LimitsError, match="budget"):
        LiveSolver(chain(), position_goal()).set(budget=0.0)


def test_new_goals_are_followed_also_after_two_rejected_settings():
    """Once the second rejected setting made the solver keep the targets of the goals that had been replaced."""
    arm = mk.arm_2d([0.5, 0.4])
    live = LiveSolver(arm, mk.PositionGoal("tool", (0.6, 0.2, 0), name="reach"), q0=[0.1, 1.0])
    live.set_targets((0.6, -0.3, 0))
    with pytest.raises(UnknownName), live.edit():
        live.set(goals=mk.PositionGoal("tool", (0.5, 0.4, 0), name="reach"), lock=["no joint"])
    with pytest.raises(UnknownName):
        live.set(lock=["no joint either"])
    live.set(lock=[])
    with live:
        solution = live.solve().result()
    np.testing.assert_allclose(arm.pose("tool", solution.q)[:3, 3], (0.5, 0.4, 0), atol=1e-5)


# ---- edits outside `edit` ---------------------------------------------------------------------------


def test_a_joint_added_outside_of_an_edit_moves_from_the_next_tick():
    """The tick failed, because q had the old shape, and so did all later ticks."""
    arm = chain()
    with LiveSolver(arm, position_goal()) as live:
        live.solve().result(TIMEOUT)
        joint, link = mk.Joint("wrist", dof="EY"), mk.Link("hand")
        joint.add_child(link)
        arm.link("link4").add_child(joint)
        state = live.solve((0.3, 0.0, 0.4)).result(TIMEOUT)
        assert state.status is mk.Status.CONVERGED
        assert state.q.shape == (5,)
        assert arm.pose("link4", state.q)[:3, 3] == pytest.approx((0.3, 0.0, 0.4), abs=1e-6)


def test_a_live_solver_at_rest_solves_again_after_an_edit_outside_of_an_edit():
    """It returned the state of the mechanism before the edit."""
    arm = chain()
    with LiveSolver(arm, position_goal((0.2, 0.0, 0.6))) as live:
        live.solve().result(TIMEOUT)
        arm.joint("hinge2").position = (0.0, 0.0, 0.4)
        state = live.solve().result(TIMEOUT)
        assert arm.pose("link4", state.q)[:3, 3] == pytest.approx((0.2, 0.0, 0.6), abs=1e-6)


def test_loops_stay_closed_if_their_mechanism_is_edited_outside_of_an_edit():
    """A live solver once reported success with a loop 2.2 m open."""
    linkage = mk.gallery.five_bar()
    goal = mk.PositionGoal(list(linkage.links)[-1], (0.0, 0.0, 0.0))
    with LiveSolver(linkage, goal) as live:
        for k in range(12):
            crank = linkage.joint("left_crank_joint")
            crank.position = crank.position + np.array([0.001 * (-1) ** k, 0.0, 0.0])
            solution = live.solve(linkage.pose(goal.link)[:3, 3] + (0.01 * k, 0.0, 0.0)).result(TIMEOUT).solution
            assert solution is not None
            errors = [max(error.position, error.rotation) for error in solution.closure_errors.values()]
            assert max(errors) < 1e-9 or not solution.success
            assert solution.mechanism.revision == linkage.revision
