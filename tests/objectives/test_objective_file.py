"""Files of objectives: every kind survives exactly, and wrong files are rejected with their position."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from objective_strategies import OBJECTIVES, objectives

import mechanik as mk
from mechanik.errors import FormatError, ObjectiveError
from mechanik.objectives import load_objectives, save_objectives
from mechanik.objectives.objective_file import CLASSES, _field_by_key, objective_from_dict, objective_to_dict


@pytest.mark.parametrize("kind", OBJECTIVES)
@given(data=st.data())
def test_an_objective_survives_a_round_trip_exactly(kind, data):
    """Only goals of links and on terrains could be saved."""
    objective = data.draw(OBJECTIVES[kind])
    text = json.dumps(objective_to_dict(objective), allow_nan=False)
    result = objective_from_dict(json.loads(text))
    assert type(result) is type(objective)
    assert result == objective
    assert repr(result) == repr(objective)


@pytest.mark.parametrize("kind", OBJECTIVES)
@settings(max_examples=1)
@given(data=st.data())
def test_every_field_of_every_kind_is_saved(kind, data):
    objective = data.draw(OBJECTIVES[kind])
    stored_fields = set(_field_by_key(type(objective)).values()) if kind in CLASSES else set()
    keys = set(objective_to_dict(objective)) | stored_fields
    assert {field.name for field in fields(objective) if not field.name.startswith("_")} <= keys


@settings(max_examples=30)
@given(st.lists(objectives, max_size=6))
def test_a_file_holds_all_objectives_in_order(tmp_path_factory, goals):
    file = tmp_path_factory.mktemp("goals") / "goals.json"
    save_objectives(goals, file)
    assert load_objectives(file) == goals
    assert [path.name for path in file.parent.iterdir()] == ["goals.json"]


def test_the_objectives_of_a_file_give_the_same_solution(tmp_path):
    arm = mk.gallery.panda()
    tip = "panda_hand_tcp"
    goals = [
        mk.PositionGoal(tip, (0.4, 0.2, 0.5)),
        mk.InCone(tip, (0, 0, 1), (0, 0, -1), 0.3),
        mk.InBox("panda_link4", (-np.inf, -np.inf, 0.2), np.full(3, np.inf)),
        mk.Clearance(["self", mk.Obstacle(mk.Sphere(0.1), (0.5, -0.3, 0.3), name="ball")], 0.01),
        mk.RestPose({"panda_joint1": 0.3}, weights={"panda_joint1": 0.5}),
        mk.JointValues({"panda_joint7": 0.5}, level=3, required=False),
    ]
    save_objectives(goals, tmp_path / "goals.json")
    expected = mk.Solver(arm, goals).solve(q0=arm.q)
    solution = mk.Solver(arm, load_objectives(tmp_path / "goals.json")).solve(q0=arm.q)
    np.testing.assert_array_equal(solution.q, expected.q)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.floats(-9, 9) | st.integers(-2, 9) | st.text(max_size=3),
    lambda items: st.lists(items, max_size=4) | st.dictionaries(st.text(max_size=3), items, max_size=2),
    max_leaves=5,
)


@settings(max_examples=300)
@given(objective=objectives, change=st.data(), value=JSON_VALUES)
def test_wrong_values_are_format_errors_that_name_the_objective(objective, change, value):
    table = json.loads(json.dumps(objective_to_dict(objective)))
    table[change.draw(st.sampled_from(sorted(table)))] = value
    message = "goals.json: objectives[3]"
    try:
        result = objective_from_dict(table, "goals.json: objectives[3]")
        assert objective_from_dict(json.loads(json.dumps(objective_to_dict(result)))) == result
    except FormatError as error:
        message = str(error)
    assert message.startswith("goals.json: objectives[3]")


@pytest.mark.parametrize("kind", OBJECTIVES)
@settings(max_examples=10)
@given(data=st.data())
def test_a_missing_or_unknown_key_is_named(kind, data):
    table = objective_to_dict(data.draw(OBJECTIVES[kind]))
    with pytest.raises(FormatError, match=r"no key is called 'weihgt'\. Did you mean 'weight'"):
        objective_from_dict({**table, "weihgt": 1.0})
    if "link" in table:
        del table["link"]
        with pytest.raises(FormatError, match="the key 'link' is missing"):
            objective_from_dict(table)


def test_objectives_that_cannot_be_saved_say_why(tmp_path):
    arm, file = mk.gallery.panda(), tmp_path / "goals.json"

    class Special(mk.PositionGoal):
        pass

    for objective, reason in (
        (mk.Custom(lambda mechanism, q: q[0], name="mean"), "Custom 'mean'.* it has Python functions"),
        (mk.Clearance(mk.Collider(arm)), "its Collider belongs to a mechanism; give it 'self' and obstacles instead"),
        (Special("tool", (0, 0, 0)), "Special.* cannot be saved; only LinkGoal, PositionGoal"),
    ):
        with pytest.raises(ObjectiveError, match=reason):
            save_objectives([mk.PositionGoal("tool", (0, 0, 0)), objective], file)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"format": "mechanik objectives", "version": 9, "objectives": []}', "version is 9; .* update Mechanik"),
        ('{"format": "mechanik objectives", "version": "x", "objectives": []}', "version is 'x'; this Mechanik reads"),
        ('{"format": "mechanik objectives", "version": 1, "objectives": [{"kind": "InBoks"}]}', "Did you mean 'InBox'"),
        ('{"format": "mechanik objectives", "version": 1, "objectives": [], "units": 1}', "no key is called 'units'"),
        ('{"format": "motion"}', "format is 'motion', not 'mechanik objectives'"),
    ],
)
def test_unknown_and_newer_files_are_rejected_with_a_reason(tmp_path: Path, text, message):
    (tmp_path / "goals.json").write_text(text)
    with pytest.raises(FormatError, match=f"^goals.json.*{message}"):
        load_objectives(tmp_path / "goals.json")
