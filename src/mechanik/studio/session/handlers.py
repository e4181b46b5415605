"""Which function carries out which request."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mechanik.errors import Refused
from mechanik.studio.messages import requests
from mechanik.studio.messages.requests import Request
from mechanik.studio.session import on_goals, on_joints, on_model, on_obstacles, on_recorder, on_scene, on_solving

if TYPE_CHECKING:
    from mechanik.studio.session.session import Session

HANDLERS: dict[type[Request], Callable[[Any, Any], None]] = {
    requests.OpenGallery: on_model.open_gallery,
    requests.OpenScene: on_model.open_scene,
    requests.EditModel: on_model.edit_model,
    requests.ShowLinks: on_model.show_links,
    requests.SetControl: on_scene.set_control,
    requests.Undo: on_model.undo,
    requests.Redo: on_model.redo,
    requests.GrabFreedom: on_joints.grab_freedom,
    requests.SetFreedom: on_joints.set_freedom,
    requests.SetTurn: on_joints.set_turn,
    requests.SetLimits: on_joints.set_limits,
    requests.SetLocked: on_joints.set_locked,
    requests.SetRest: on_joints.set_rest,
    requests.GoTo: on_joints.go_to,
    requests.AddGoal: on_goals.add_goal,
    requests.ChangeGoal: on_goals.change_goal,
    requests.MoveGoal: on_goals.move_goal,
    requests.RemoveGoal: on_goals.remove_goal,
    requests.GrabGoal: on_goals.grab_goal,
    requests.PullLink: on_goals.pull_link,
    requests.Release: on_goals.release,
    requests.SetSolver: on_solving.set_solver,
    requests.SetRunning: on_solving.set_running,
    requests.OneStep: on_solving.one_step,
    requests.SetCollisions: on_solving.set_collisions,
    requests.AddObstacle: on_obstacles.add_obstacle,
    requests.MoveObstacle: on_obstacles.move_obstacle,
    requests.ResizeObstacle: on_obstacles.resize_obstacle,
    requests.RemoveObstacle: on_obstacles.remove_obstacle,
    requests.GrabObstacle: on_obstacles.grab_obstacle,
    requests.ShowGhosts: on_solving.show_ghosts,
    requests.Compare: on_solving.compare,
    requests.RecordMotion: on_recorder.record_motion,
    requests.Play: on_recorder.play,
    requests.Seek: on_recorder.seek,
    requests.Export: on_recorder.export,
}
WITH_THE_HAND_FULL = (
    requests.Release, requests.ShowLinks, requests.SetControl, requests.SetRunning, requests.OneStep,
    requests.ShowGhosts, requests.Compare, requests.RecordMotion, requests.Export,
)  # fmt: skip
"""Before all others a hand lets go of what it holds."""
WHILE_IT_PLAYS = (requests.Play, requests.Seek, requests.Export, requests.ShowLinks, requests.ShowGhosts)
"""Before all others what is played is stopped where it is."""


def carry_out(session: Session, request: Request) -> None:
    handler = HANDLERS.get(type(request))
    if handler is None:
        raise Refused(f"a session does not know how to carry out {type(request).__name__}")
    if not isinstance(request, WITH_THE_HAND_FULL):
        session.let_go()
    if session.recorder.is_playing and not isinstance(request, WHILE_IT_PLAYS):
        on_recorder.stop_playing(session)
    handler(session, request)
