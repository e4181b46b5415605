"""Properties that all objectives share: pickling, copies with another target, immutability, options."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from objective_mechanisms import arm

from mechanik.errors import (
    MechanikError,
    ObjectiveError,
    UnknownName,
)
from mechanik.objectives.centre_of_mass import CentreOfMass
from mechanik.objectives.function_objectives import Custom, Manipulability
from mechanik.objectives.joint_goals import JointValues, RestPose
from mechanik.objectives.region_goals import Distance, InBand, InBox, InCone, LookAt, OnTerrain
from mechanik.objectives.relation import RelationKind
from mechanik.objectives.terrain import Terrain

SQUARE = [(0, 0), (1, 0), (1, 1), (0, 1)]


def height(mechanism, q):
    return mechanism.pose("hand", q)[1, 3]


def position(mechanism, q):
    return mechanism.pose("hand", q)[:3, 3]


OBJECTIVES = [
    (JointValues({"elbow": 0.3}), 0.5),
    (RestPose([0.1, 0.2]), [0.3, 0.4]),
    (CentreOfMass((0.1, 0.2, 0.3)), (0, 0, 0)),
    (CentreOfMass(support=SQUARE, margin=0.1), [(0, 0), (3, 0), (0, 3)]),
    (LookAt("hand", (3, 2, 1), (1, 0, 0)), (0, 0, 0)),
    (Distance("hand", equal=1.0), 0.7),
    (InBox("hand", (0, 0, 0), (1, 1, 1)), (1, 1, 1)),
    (InCone("hand", (1, 0, 0), (0, 1, 0), 0.3), (1, 0, 0)),
    (InBand("hand", "y", 0.2), (0, 1, 0)),
    (Manipulability("hand", ("X", "Y")), None),
    (OnTerrain("hand", Terrain([[0.0, 1.0], [2.0, 3.0]], 0.5), (0.1, 0, 0), radius=0.2), None),
    (Custom(position), None),
]


@pytest.mark.parametrize(("objective", "target"), OBJECTIVES, ids=lambda value: type(value).__name__)
def test_objectives_survive_pickling(objective, target):
    restored = pickle.loads(pickle.dumps(objective))
    q = [0.3, 0.4]
    np.testing.assert_array_equal(restored.residual(arm(), q), objective.residual(arm(), q))
    assert (restored.level, restored.weight, repr(restored)) == (objective.level, objective.weight, repr(objective))


@pytest.mark.parametrize(("objective", "target"), OBJECTIVES, ids=lambda value: type(value).__name__)
def test_with_target_returns_a_changed_copy_with_the_same_options(objective, target):
    if target is None:
        with pytest.raises(ObjectiveError, match="no target"):
            objective.with_target((0, 0, 0))
        return
    before = objective.residual(arm(), [0.3, 0.4])
    changed = type(objective).with_target(objective, target)
    assert type(changed) is type(objective)
    assert (changed.level, changed.weight, changed.tolerance) == (
        objective.level,
        objective.weight,
        objective.tolerance,
    )
    assert not np.array_equal(changed.residual(arm(), [0.3, 0.4]), before)
    np.testing.assert_array_equal(objective.residual(arm(), [0.3, 0.4]), before)


@pytest.mark.parametrize(("objective", "target"), OBJECTIVES, ids=lambda value: type(value).__name__)
def test_objectives_are_immutable(objective, target):
    with pytest.raises(FrozenInstanceError):
        objective.weight = 2.0
    for field in objective.__dataclass_fields__:
        value = getattr(objective, field)
        if isinstance(value, np.ndarray):
            assert not value.flags.writeable
    for relation in objective.relations(arm()):
        arrays = [relation.lower, relation.upper]
        match relation.kind:
            case RelationKind.JOINT_VALUE | RelationKind.SPHERICAL_JOINT:
                arrays.append(relation.target)
            case RelationKind.CENTRE_OF_MASS:
                arrays.append(relation.X_a)
            case RelationKind.FUNCTION:
                pass
            case _:
                arrays += [relation.X_a, relation.X_b]
        assert all(array is None or not array.flags.writeable for array in arrays)


@pytest.mark.parametrize(
    "make",
    [
        lambda **objective: JointValues({"elbow": 0.3}, **objective),
        lambda **objective: CentreOfMass((0, 0, 0), **objective),
        lambda **objective: LookAt("hand", (0, 0, 0), **objective),
        lambda **objective: Distance("hand", equal=1, **objective),
        lambda **objective: InBox("hand", (0, 0, 0), (1, 1, 1), **objective),
        lambda **objective: InCone("hand", (1, 0, 0), (1, 0, 0), 1, **objective),
        lambda **objective: InBand("hand", "x", 0, **objective),
        lambda **objective: Manipulability("hand", "X", **objective),
        lambda **objective: OnTerrain("hand", Terrain(np.zeros((2, 2)), 1.0), **objective),
        lambda **objective: Custom(height, **objective),
        lambda **objective: RestPose({"elbow": 0.3}, **objective),
    ],
)
def test_every_objective_takes_weight_level_and_tolerances(make):
    objective = make(weight=2.5, level=4, tolerance=1e-3, angle_tolerance=1e-2, required=False, name="mine")
    assert (objective.weight, objective.level, objective.tolerance, objective.angle_tolerance) == (2.5, 4, 1e-3, 1e-2)
    assert (objective.required, objective.name) == (False, "mine")
    assert {relation.weight for relation in objective.relations(arm())} == {2.5}
    assert "mine" in repr(objective)
    with pytest.raises(MechanikError):
        make(weight=-1)
    with pytest.raises(TypeError):
        make(wieght=1)


@pytest.mark.parametrize(
    "objective",
    [
        LookAt("hnd", (0, 0, 0)),
        Distance("hnd", equal=1),
        InBox("hnd", (0, 0, 0), (1, 1, 1)),
        InCone("hnd", (1, 0, 0), (1, 0, 0), 1),
        InBand("hnd", "x", 0),
        Manipulability("hnd", "X"),
        OnTerrain("hnd", Terrain(np.zeros((2, 2)), 1.0)),
        CentreOfMass((0, 0, 0), relative_to="hnd"),
    ],
    ids=lambda objective: type(objective).__name__,
)
def test_unknown_links_are_refused_with_the_nearest_name(objective):
    with pytest.raises(UnknownName, match="Did you mean 'hand'"):
        objective.relations(arm())
