"""Objectives are values: equal if all their fields are, also after copies and pickling."""

from __future__ import annotations

import copy
import inspect
import pickle
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from objective_strategies import OBJECTIVES, custom_objectives, objectives, terrains

import mechanik as mk
from mechanik.value_object import ValueObject

KINDS = {**OBJECTIVES, "Custom": custom_objectives}


def arrays_in(value):
    if isinstance(value, np.ndarray):
        return [value]
    if isinstance(value, dict):
        return [array for item in value.values() for array in arrays_in(item)]
    if isinstance(value, ValueObject):
        return [array for field in fields(value) for array in arrays_in(getattr(value, field.name))]
    return []


def test_the_strategies_have_every_public_kind_of_objective():
    classes = {name for name in mk.objectives.__all__ if inspect.isclass(getattr(mk.objectives, name))}
    kinds = {name for name in classes if issubclass(getattr(mk.objectives, name), mk.objectives.Objective)}
    assert kinds - {"Objective"} == set(KINDS)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o))])
@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_copies_of_an_objective_are_equal_to_it(kind, duplicate, data):
    """No objective was equal to another, and arrays of copies could be written to."""
    objective = data.draw(KINDS[kind])
    result = duplicate(objective)
    assert type(result) is type(objective)
    assert result == objective
    assert hash(result) == hash(objective)
    assert repr(result) == repr(objective)
    assert [array.flags.writeable for array in arrays_in(result)] == [False] * len(arrays_in(objective))


@given(objective=objectives | custom_objectives, second=objectives | custom_objectives, change=st.data())
def test_objectives_with_another_field_differ(objective, second, change):
    if type(objective) is not type(second):
        assert objective != second
    name, value = change.draw(
        st.sampled_from(
            [
                ("weight", 7e4),
                ("level", 999),
                ("tolerance", 7e4),
                ("required", not objective.required),
                ("name", "-" * 9),
            ]
        )
    )
    changed = copy.copy(objective)
    object.__setattr__(changed, name, value)
    assert changed != objective
    assert objective == copy.copy(objective)  # the copy has changed, the original has not


@pytest.mark.parametrize(
    ("make", "target"),
    [
        (lambda t: mk.PositionGoal("tool", t), (0.1, 0.2, 0.3)),
        (lambda t: mk.AxisGoal("tool", t), (0.0, 1.0, 0.0)),
        (lambda t: mk.InCone("tool", (1, 0, 0), t, 0.3), (0.0, 1.0, 0.0)),
        (lambda t: mk.LookAt("tool", t), (0.1, 0.2, 0.3)),
        (lambda t: mk.CentreOfMass(t), (0.1, 0.2, 0.3)),
        (lambda t: mk.JointValues({"a": t}), 0.3),
        (lambda t: mk.RestPose(t), [0.1, 0.2]),
        (lambda t: mk.Distance("tool", equal=t), 0.3),
    ],
)
def test_an_objective_with_a_new_target_is_the_objective_made_with_it(make, target):
    first = np.add(target, 1.0) if np.ndim(target) else target + 1.0
    assert make(first).with_target(target) == make(target)
    assert make(first) != make(target)


def test_objectives_can_be_members_of_sets_and_keys():
    goals = {mk.PositionGoal("tool", (0.0, 0.0, -0.0)), mk.PositionGoal("tool", (0.0, 0.0, 0.0))}
    assert len(goals) == 1  # 0 equals -0
    assert {mk.OrientationGoal("tool", np.eye(3)): 1}[mk.OrientationGoal("tool", (1, 0, 0, 0))] == 1


@given(terrains)
def test_terrains_are_values(terrain):
    result = pickle.loads(pickle.dumps(terrain))
    assert result == terrain
    assert hash(result) == hash(terrain)
    assert not result.heights.flags.writeable
    assert mk.Terrain(terrain.heights + 1.0, terrain.cell, terrain.origin) != terrain


def test_clearances_with_equal_colliders_are_equal():
    arm = mk.gallery.panda()
    shelf = mk.Obstacle(mk.Box((0.3, 0.3, 0.1)), (0.5, 0.0, 0.3), name="shelf")
    clearance = mk.Clearance(mk.Collider(arm, ["self", shelf]), 0.01)
    assert clearance == mk.Clearance(mk.Collider(arm, ["self", shelf]), 0.01)
    assert clearance != mk.Clearance(mk.Collider(arm, ["self"]), 0.01)
    result = pickle.loads(pickle.dumps(clearance))
    assert result == clearance
    assert hash(result) == hash(clearance)
    assert result.error(result.avoid.mechanism, arm.q) == clearance.error(arm, arm.q)


def test_a_clearance_that_has_been_used_is_equal_to_a_new_one():
    arm = mk.gallery.panda()
    used = mk.Clearance("self", 0.05)
    expected = used.error(arm, arm.q)
    assert used == mk.Clearance("self", 0.05) == copy.deepcopy(used)
    assert copy.deepcopy(used).error(arm, arm.q) == expected


@dataclass(frozen=True, eq=False)
class WithoutSlots(mk.Objective):
    """A subclass of a user, with a field, and an attribute that is no field."""

    size: int = 1

    def relations(self, mechanism):
        return ()


def test_an_objective_of_a_user_is_a_value_with_all_its_attributes():
    objective = WithoutSlots(size=3)
    data = np.arange(4.0)
    object.__setattr__(objective, "data", data)
    for result in (copy.copy(objective), copy.deepcopy(objective), pickle.loads(pickle.dumps(objective))):
        assert result == objective
        assert hash(result) == hash(objective)
        assert result.data.flags.writeable  # as the original
    assert objective != WithoutSlots(size=3)
    assert WithoutSlots(size=3) == WithoutSlots(size=3) != WithoutSlots(size=4)


def with_heavier_weight(objective):
    result = copy.copy(objective)
    object.__setattr__(result, "weight", 2.0 * objective.weight)
    return result


def test_a_process_pool_returns_objectives():
    goals = [
        mk.PoseGoal("tool", np.eye(4), dof=("X", "Y", "EZ")),
        mk.JointValues({"a": 1.0, "b.X": 2.0}),
        mk.OnTerrain("tool", mk.Terrain(np.zeros((2, 2)), 1.0)),
        mk.Clearance("self", 0.1),
    ]
    with ProcessPoolExecutor(1) as pool:
        assert list(pool.map(with_heavier_weight, goals)) == [with_heavier_weight(goal) for goal in goals]
