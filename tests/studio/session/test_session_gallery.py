"""Every mechanism of the gallery: it opens, is told and shown as it is, follows a drag with its loops shut, and undo
brings it back to the bit."""

from __future__ import annotations

import numpy as np
import pytest
from session_harness import SessionHarness

import mechanik as mk
from mechanik.spatial import from_position_wxyz
from mechanik.studio.messages.events import History
from mechanik.studio.messages.message_codec import read_state
from mechanik.studio.messages.requests import Redo, Undo

FAR = 0.005


@pytest.mark.parametrize("name", mk.gallery.names())
def test_model_is_sent_correctly_and_follows_a_drag_and_undo_restores_it(name: str) -> None:
    with SessionHarness(name) as harness:
        check_model(harness)
        check_frame(harness)
        session = harness.session
        q, goals = session.q.copy(), session.goals
        assert goals, "there is something to drag"
        frame = harness.drag(goals[0].number, (FAR, FAR, FAR))
        after = session.q.copy()
        assert np.abs(after - q).max() > 1e-4, "it follows"
        assert frame.closures.max(initial=0.0) < 1e-8, "its loops stay shut"
        pinned = [row for row, goal in zip(frame.goals, goals, strict=True) if goal.pinned]
        assert max((row[7:].max() for row in pinned), default=0.0) < 1e-5, "what is pinned stays"
        moved = session.goals
        assert np.allclose(np.subtract(moved[0].pose, goals[0].pose)[:3], FAR, atol=1e-12)
        check_frame(harness)

        assert harness.last(History).undo
        harness.ask(Undo())
        assert np.array_equal(session.q, q)
        assert [goal.pose for goal in session.goals] == [goal.pose for goal in goals]
        check_frame(harness)
        harness.ask(Redo())
        assert np.array_equal(session.q, after)
        assert [goal.pose for goal in session.goals] == [goal.pose for goal in moved]


def check_model(harness: SessionHarness) -> None:
    """Numbers name what there is, in the order of the mechanism."""
    model, mechanism = harness.model, harness.session.mechanism
    assert [link.name for link in model.links] == list(mechanism.links)
    assert [joint.name for joint in model.joints] == list(mechanism.joints)
    assert [closure.name for closure in model.closures] == list(mechanism.closures)
    for k, link in enumerate(model.links):
        assert link.parent == -1 or model.joints[link.parent].child == k
    for k, joint in enumerate(model.joints):
        assert -1 <= joint.parent < len(model.links)
        assert -1 <= joint.child < len(model.links)
        assert all(model.dofs[number].joint == k for number in joint.dofs)
    width = 0
    for number, info in enumerate(model.dofs):
        assert number in model.joints[info.joint].dofs
        assert info.value == width
        width += 3 if info.kind == "spherical" else 1
        assert -1 <= info.mimics < len(model.dofs)
        assert np.isclose(np.linalg.norm(info.axis), 1.0)
    assert len(harness.frame.values) == width
    assert model.radius > 0.0
    assert np.isclose(np.linalg.norm(model.view_from), 1.0, atol=1e-2)
    assert model.about[0]


def check_frame(harness: SessionHarness) -> None:
    """The newest frame shows the mechanism as it stands, in the order of the last `Model` and `Goals`."""
    frame, model, session = read_state(harness.frames[-1]), harness.model, harness.session
    mechanism, q = session.mechanism, session.q
    assert frame.header.revision == model.revision
    assert frame.header.order == harness.goals.order
    assert len(frame.goals) == len(harness.goals.goals)
    X = np.array([from_position_wxyz(row[:3], row[3:]) for row in frame.links])
    assert np.abs(X - mechanism.poses(q)).max() < 1e-12
    for info in model.dofs:
        joint = mechanism.joints[model.joints[info.joint].name]
        if info.kind == "spherical" or joint.is_closure:
            continue
        held = np.atleast_1d(mechanism.values(q)[model.joints[info.joint].name])
        names = [dof.name for dof in joint.dof]
        k = 0 if len(names) == 1 else names.index(info.name.rpartition(".")[2])
        assert np.isclose(frame.values[info.value], held[k], atol=1e-12)
    standing = mechanism.copy()
    standing.q = q
    for row, closure in zip(frame.closures, standing.closures.values(), strict=True):
        assert np.allclose(row, [closure.gap().distance, closure.gap().angle], atol=1e-9)
