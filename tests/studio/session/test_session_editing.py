"""The model is edited as text while it is shown."""

from __future__ import annotations

import json

import numpy as np
import pytest
from session_harness import SessionHarness

import mechanik as mk
from mechanik.errors import MechanikError
from mechanik.studio.messages.events import Model
from mechanik.studio.messages.requests import EditKind, EditModel, Redo, SetDofValue, Undo

ROWS = [[0.1, 0.0, 1.5, 0.0], [0.0, 0.4, 0.0, 0.0], [0.0, 0.3, 0.0, 0.0]]


def dh(rows: list[list[float]]) -> str:
    table = {"convention": "classic", "columns": "d a alpha theta", "degrees": False, "rows": rows}
    return json.dumps({"mechanik": 1, "dh": table})


def arm(lengths: list[float]) -> str:
    return mk.formats.write_json(mk.arm_2d(lengths, name="arm"))


def test_edited_dh_rows_change_the_arm_and_values_and_goal_stay() -> None:
    with SessionHarness() as harness:
        text = dh(ROWS)
        harness.session.open(mk.load(text), source=("dh", text))
        harness.rest()
        assert harness.model.source == text
        harness.ask(SetDofValue(1, 0.3))
        goal = harness.session.goals[0]
        revision = harness.model.revision
        longer = dh([*ROWS, [0.0, 0.2, 0.0, 0.1]])
        harness.ask(EditModel("dh", longer))
        assert harness.model.revision == revision + 1
        assert harness.model.source == longer
        assert len(harness.model.dofs) == 4
        assert harness.session.goals[0].link == goal.link == "tool"
        assert harness.session.goals[0].pose == goal.pose, "the goal stays, and the arm comes to it"
        assert harness.rest().goals[0][7] < 1e-5
        harness.ask(Undo())
        assert len(harness.model.dofs) == 3
        assert harness.session.q[1] == pytest.approx(0.3)
        harness.ask(Redo())
        assert len(harness.model.dofs) == 4


def test_values_are_transferred_by_joint_name() -> None:
    with SessionHarness() as harness:
        harness.session.open(mk.arm_2d([0.5, 0.4, 0.3]), goals=())
        harness.session.set_configuration([0.1, 0.2, 0.3])
        harness.ask(EditModel("json", arm([0.5, 0.4, 0.3, 0.2, 0.1])))
        assert np.allclose(harness.session.q[:3], [0.1, 0.2, 0.3])
        harness.ask(EditModel("json", arm([0.5])))
        assert np.allclose(harness.session.q, [0.1])


def test_a_goal_whose_link_is_gone_moves_to_the_new_tip() -> None:
    with SessionHarness("planar_3r") as harness:
        shorter = mk.arm_2d([0.4, 0.3], name="arm")
        shorter.links["tool"].name = "hand"
        harness.ask(EditModel("json", mk.formats.write_json(shorter)))
        assert [goal.link for goal in harness.session.goals] == ["hand"]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("json", "{"),
        ("json", "[1, 2]"),
        ("json", "{}"),
        ("dh", '{"rows": "many"}'),
        ("arm_3d", ""),
        ("arm_2d", "/etc/passwd"),
        ("urdf", "<robot"),
        ("urdf", "<robot name='x'><link name='a'/><link name='a'/></robot>"),
        ("urdf", "/etc/hostname"),
        ("json", "NaN"),
    ],
)
def test_a_text_that_cannot_be_read_changes_nothing(kind: str, text: str) -> None:
    with SessionHarness("planar_3r") as harness:
        solver_session, model_count = harness.session.state.solver_session, len(harness.all(Model))
        with pytest.raises(MechanikError):
            harness.ask(EditModel(kind, text))  # type: ignore[arg-type]
        assert harness.session.state.solver_session is solver_session
        assert len(harness.all(Model)) == model_count


def test_no_file_of_this_machine_is_read_for_a_text(tmp_path: object) -> None:
    secret = f"{tmp_path}/secret.stl"
    with open(secret, "w") as file:
        file.write("solid secret")
    robot = (
        f"<robot name='r'><link name='a'><visual><geometry><mesh filename='file://{secret}'/></geometry></visual>"
        f"<visual><geometry><mesh filename='{secret}'/></geometry></visual></link></robot>"
    )
    with SessionHarness("planar_3r") as harness:
        harness.ask(EditModel("urdf", robot))
        shapes = [shape for link in harness.model.links for shape in link.visuals]
        assert len(shapes) == 2
        assert all(shape.mesh is None for shape in shapes)
        with pytest.raises(MechanikError):
            harness.session.read_mesh(0)


def test_an_arm_that_is_edited_has_bodies_and_colliders() -> None:
    with SessionHarness("grippy10") as harness:
        harness.ask(EditModel("arm_3d", '{"mechanik": 1, "arm": {"lengths": [0.3, 0.4, 0.2], "axes": "zyy"}}'))
        moved = [link for link in harness.model.links if link.name.startswith("link")]
        assert all(link.visuals and link.collisions for link in moved)


def test_text_of_another_kind_replaces_title_and_goals() -> None:
    """A table that was begun on a Panda was still called panda, and its goal was left in the air."""
    with SessionHarness("panda") as harness:
        harness.ask(EditModel("arm_2d", '{"mechanik": 1, "arm": {"lengths": [0.3, 0.4]}}'))
        assert "panda" not in harness.model.title
        assert harness.model.resets_view
        assert harness.rest().header.goal_error < 1e-9


@pytest.mark.parametrize(("kind", "text"), [
    ("dh", dh(ROWS)),
    ("arm_2d", '{"mechanik": 1, "arm": {"lengths": [0.3, 0.4]}}'),
    ("arm_3d", '{"mechanik": 1, "arm": {"lengths": [0.3, 0.4], "axes": "zy"}}'),
])  # fmt: skip
def test_titles_begin_with_a_capital(kind: EditKind, text: str) -> None:
    with SessionHarness("panda") as harness:
        harness.ask(EditModel(kind, text))
        assert harness.model.title.startswith("Arm ")


@pytest.mark.parametrize("name", ["panda", "humanoid", "four_bar"])
def test_model_event_says_whether_any_link_has_mass(name: str) -> None:
    links = mk.gallery.make(name).links.values()
    with SessionHarness(name) as harness:
        assert harness.model.has_mass == any(link.inertial is not None and link.inertial.mass > 0 for link in links)
