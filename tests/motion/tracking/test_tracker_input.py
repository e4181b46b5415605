"""Invalid input to a tracker raises clear errors."""

import numpy as np
import pytest

import mechanik as mk
from mechanik.errors import (
    InvalidArgument,
    LimitsError,
    NotFinite,
    ObjectiveError,
    ShapeError,
    StructureError,
    UnknownName,
)
from mechanik.motion.tracking import Task, Tracker

FLANGE = "panda_link8"


@pytest.fixture(name="arm")
def _arm():
    return mk.gallery.panda()


def test_unknown_names_raise_with_a_suggestion(arm):
    with pytest.raises(UnknownName, match="panda_joint1"):
        Tracker(arm, mk.PoseGoal(FLANGE, np.eye(4)), velocity={"panda_jiont1": 1.0})
    with pytest.raises(UnknownName):
        Tracker(arm, mk.PoseGoal("panda_lnk8", np.eye(4)))
    tracker = Tracker(arm, [mk.PoseGoal(FLANGE, np.eye(4), name="hand"), mk.RestPose(level=2, name="rest")])
    with pytest.raises(UnknownName, match="hand"):
        tracker.step({"hnd": np.eye(4)})


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"dt": 0.0}, LimitsError),
        ({"dt": float("nan")}, NotFinite),
        ({"velocity": -1.0}, LimitsError),
        ({"velocity": [1.0, 2.0]}, ShapeError),
        ({"acceleration": 0.0}, LimitsError),
        ({"gain": 0.0}, ObjectiveError),
        ({"damping": -0.1}, ObjectiveError),
        ({"clearance": float("nan")}, NotFinite),
        ({"q0": np.full(8, np.nan)}, NotFinite),
        ({"q0": np.zeros(7)}, ShapeError),
        ({"q0": np.full(8, 5.0)}, LimitsError),
    ],
)
def test_invalid_numbers_raise(arm, options, error):
    with pytest.raises(error):
        Tracker(arm, mk.PoseGoal(FLANGE, np.eye(4)), **options)


def test_invalid_tasks_raise(arm):
    with pytest.raises(ObjectiveError, match="empty"):
        Tracker(arm, [])
    with pytest.raises(InvalidArgument):
        Tracker(arm, "hand")
    with pytest.raises(InvalidArgument):
        Tracker("panda", mk.PoseGoal(FLANGE, np.eye(4)))
    with pytest.raises(InvalidArgument):
        Task(FLANGE)
    with pytest.raises(ObjectiveError, match="1/s"):
        Task(mk.PoseGoal(FLANGE, np.eye(4)), gain=-1.0)


def test_invalid_target_raises_and_the_last_one_stays(arm):
    tracker = Tracker(arm, mk.PoseGoal(FLANGE, arm.pose(FLANGE)), velocity=1.0)
    tracker.step()
    with pytest.raises(NotFinite):
        tracker.step(np.full((4, 4), np.nan))
    with pytest.raises(mk.MechanikError):
        tracker.step(np.zeros((3, 3)))
    assert np.abs(tracker.step().v).max() < 1e-9


@pytest.mark.parametrize("targets", [5.0, np.array(5.0), 7, "hand", {1, 2}, object(), [np.eye(4)], np.eye(4)])
@pytest.mark.parametrize("second", [mk.PositionGoal("panda_link4", (0, 0, 1)), mk.JointValues({"panda_joint1": 0.1})])
def test_targets_that_are_not_one_for_each_task_raise(arm, second, targets):
    """A number ended in an error of Python, as if it were a list."""
    tracker = Tracker(arm, [mk.PoseGoal(FLANGE, arm.pose(FLANGE)), second])
    with pytest.raises(mk.MechanikError):
        tracker.step(targets)
    tracker.step()


def test_start_that_cannot_stop_before_a_limit_raises(arm):
    tracker = Tracker(arm, mk.PoseGoal(FLANGE, arm.pose(FLANGE)), velocity=2.0, acceleration=1.0)
    q, v = np.array(arm.q), np.zeros(8)
    q[0], v[0] = arm.space.upper[0] - 0.1, 1.0
    with pytest.raises(LimitsError, match="to stop"):
        tracker.reset(q, v)
    v[0] = 3.0
    with pytest.raises(LimitsError, match="velocity limit"):
        tracker.reset(q, v)


def test_open_loop_at_the_start_raises():
    robot = mk.gallery.four_bar()
    q = np.array(robot.q)
    q[0] += 0.1
    with pytest.raises(StructureError, match="is not closed"):
        Tracker(robot, mk.PoseGoal(list(robot.links)[-1], np.eye(4)), q0=q)


def test_edited_mechanism_needs_a_new_tracker(arm):
    tracker = Tracker(arm, mk.PoseGoal(FLANGE, arm.pose(FLANGE)))
    arm.joint("panda_joint1").position = (0.0, 0.0, 0.5)
    with pytest.raises(StructureError, match="new tracker"):
        tracker.step()


def test_velocity_limit_of_a_closing_joint_raises():
    robot = mk.gallery.four_bar()
    with pytest.raises(InvalidArgument, match="closes a loop"):
        Tracker(robot, mk.PoseGoal(list(robot.links)[-1], np.eye(4)), velocity={next(iter(robot.closures)): 1.0})
