"""Status and message of an assembly: success where all inputs are met, and otherwise the right reason."""

from __future__ import annotations

import math

import numpy as np
import pytest
from driven_linkages import four_bar, rocker_angle_of

import mechanik as mk
from mechanik.closure.continuation import MAX_STEPS
from mechanik.errors import NotFinite, ObjectiveError, ShapeError, StructureError

LENGTHS = 2.0, 0.5, 1.8, 1.2
FOUR_BAR = four_bar(*LENGTHS, 0.6)

# ---- dead points --------------------------------------------------------------------------------


@pytest.mark.parametrize("idle", [0, 1, 3])
def test_slider_leaves_its_dead_point_with_any_idle_joints(idle: int) -> None:
    """A single idle joint was enough to report that the branch was lost."""
    b = mk.Builder("engine")
    b.revolute("crank", "ground", "crank_link")
    b.revolute("rod", "crank_link", "rod_link", at=(0.3, 0, 0))
    b.prismatic("slide", "ground", "piston", axis="x", value=1.3)
    for k in range(idle):
        b.revolute(f"idle{k}", "ground", f"wheel{k}", at=(0, 5, k))
    b.close("pin", "rod_link", "piston", "pin", at=(1, 0, 0), onto=(0, 0, 0))
    there = b.build().assemble({"slide": 1.2})
    assert there.success
    inner = math.acos((0.3**2 + 1.2**2 - 1.0) / (2 * 0.3 * 1.2))
    assert abs(there.q[0]) == pytest.approx(inner, abs=1e-9)
    assert np.abs(there.q[3:]).max(initial=0.0) < 1e-12


@pytest.mark.parametrize("idle", [0, 1, 2])
def test_quadratic_constraint_leaves_zero_with_any_idle_joints(idle: int) -> None:
    b = mk.Builder("square")
    b.revolute("angle", "ground", "arm")
    b.prismatic("slide", "ground", "piston")
    for k in range(idle):
        b.revolute(f"idle{k}", "ground", f"wheel{k}", at=(0, 5, k))
    b.joint_constraint("square", {"angle": [0.0, 1.0], "slide": -1.0})
    robot = b.build()
    there = robot.assemble({"slide": 0.25})
    assert there.success
    assert abs(there.q[0]) == pytest.approx(0.5, abs=1e-9)
    assert "dead point" in robot.assemble({"slide": -0.25}).message


def test_singularity_and_message_name_both_dead_point_and_change_point() -> None:
    """The message of a folded Peaucellier linkage named a dead point, and `singular` only a change point."""
    linkage = mk.gallery.peaucellier()
    there = linkage.assemble({"crank_joint": float(linkage.values()["crank_joint"]) + 4.0})
    assert not there.success
    assert [singularity.kind for singularity in there.singularities] == ["dead point"]
    assert "dead point, where loops lose rank too" in there.message
    assert there.singular.kinds == ("change point", "dead point")
    moves = there.singular.direction("dead point").motion  # type: ignore[union-attr]
    assert abs(moves["crank_joint"]) < 1e-3 * max(map(abs, moves.values()))


# ---- loops that cannot be closed ------------------------------------------------------------------


def test_violated_loop_is_named_with_its_smallest_gap() -> None:
    """Arms of 1 m on pivots 5 m apart come within 3 m; the start was reported instead."""
    b = mk.Builder("too short")
    b.revolute("a", "ground", "one", value=1.0)
    b.revolute("b", "ground", "two", at=(5.0, 0, 0), value=1.0)
    b.close("pin", "one", "two", "pin", at=(1.0, 0, 0), onto=(1.0, 0, 0))
    there = b.build().assemble()
    assert there.status is mk.Status.NOT_CLOSED
    assert there.closure_errors["pin"].position == pytest.approx(3.0, abs=1e-6)
    assert "loop pin (gap 3 m)" in there.message
    assert there.singular.unknown
    assert repr(there.singular).startswith("<not analysed")


def test_contradicting_joint_constraints_are_named() -> None:
    b = mk.Builder("two joint constraints")
    b.revolute("a", "ground", "one")
    b.revolute("b", "ground", "two")
    b.joint_constraint("half", {"a": 1.0, "b": 1.0}, constant=0.5)
    b.joint_constraint("whole", {"a": 1.0, "b": 1.0}, constant=1.0)
    there = b.build().assemble({"a": 0.3})
    assert there.status is mk.Status.NOT_CLOSED
    for name in ("half", "whole"):
        assert f"joint constraint {name} (error {abs(there.joint_constraint_errors[name]):.4g})" in there.message


# ---- long paths --------------------------------------------------------------------------


def test_a_hundred_turns_are_followed() -> None:
    """After 425 rad the rest was reported as out of reach."""
    there = FOUR_BAR.assemble({"crank": 0.6 + 200 * math.pi})
    assert there.success
    assert np.abs(there.q - FOUR_BAR.q - [200 * math.pi, -200 * math.pi, 0.0]).max() < 1e-8


def test_assembly_beyond_the_step_limit_continues_from_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mechanik.closure.assemble_loops.MAX_STEPS", 50)
    goal = 0.6 + 8 * math.pi
    there = FOUR_BAR.assemble({"crank": goal})
    assert there.status is mk.Status.TIMEOUT
    assert "after 50 steps" in there.message
    for _ in range(10):
        before, there = there, FOUR_BAR.assemble({"crank": goal}, there)
        assert there.input_errors["crank"] < before.input_errors["crank"]
        if there.success:
            break
    assert there.success
    assert rocker_angle_of(*LENGTHS, 0.6) == pytest.approx(there.q[2], abs=1e-9)


def test_requested_steps_can_exceed_the_step_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mechanik.closure.assemble_loops.MAX_STEPS", 50)
    assert MAX_STEPS > 50
    assert FOUR_BAR.assemble({"crank": 0.8}, steps=120).success


@pytest.mark.parametrize("idle", [0, 1])
@pytest.mark.parametrize("drive", [{"a": 0.3}, {"a": -0.3}, {"b": 0.3}])
def test_linkage_with_infinitesimal_mobility_does_not_move(drive: dict[str, float], idle: int) -> None:
    """Bars of 0.5 and 1.5 stretched over 2: a small step across them is possible to first order only."""
    b = mk.Builder("stretched")
    b.revolute("a", "ground", "short")
    b.revolute("b", "short", "long", at=(0.5, 0, 0))
    for k in range(idle):
        b.revolute(f"idle{k}", "ground", f"wheel{k}", at=(0, 5, k))
    b.close("pin", "ground", "long", "pin", at=(2, 0, 0), onto=(1.5, 0, 0))
    robot = b.build()
    inputs = drive if not idle else {**drive, "idle0": 0.2}
    there = robot.assemble(inputs)
    assert there.status is mk.Status.CLOSEST
    assert f"{next(iter(drive))} cannot move (error 0.3)" in there.message
    assert "idle0" not in there.message
    assert np.array_equal(there.q, robot.q)
    if idle:
        assert robot.assemble({"idle0": 0.2}).success


# ---- names and arguments --------------------------------------------------------------------------------------


@pytest.mark.parametrize("off", [0.0, 6.5e-9])
def test_all_given_inputs_are_counted(off: float) -> None:
    there = FOUR_BAR.assemble({"crank": 1.0, "rocker": rocker_angle_of(*LENGTHS, 1.0) + off})
    assert there.success
    assert there.message == "2 of 2 inputs reached, 1 loop closed"
    assert there.input_errors["rocker"] == pytest.approx(off, abs=1e-12)


@pytest.mark.parametrize("order", [1, -1])
def test_mimic_joint_that_contradicts_its_leader_is_named(order: int) -> None:
    fingers = {"panda_finger_joint1": 0.01, "panda_finger_joint2": 0.02}
    with pytest.raises(ObjectiveError, match=r"contradict each other: .* \('panda_finger_joint2' mimics it\)"):
        mk.gallery.panda().assemble(dict(list(fingers.items())[::order]))


def test_joint_object_can_replace_its_name() -> None:
    crank = FOUR_BAR.joint("crank")
    assert np.array_equal(FOUR_BAR.assemble({crank: 1.0}).q, FOUR_BAR.assemble({"crank": 1.0}).q)
    assert FOUR_BAR.assembly_path({crank: [1.0, 1.2]}).success.all()
    assert len(FOUR_BAR.assembly_modes({crank: 1.0})) == 2
    with pytest.raises(ShapeError, match="given twice"):
        FOUR_BAR.assemble({crank: 1.0, "crank": 1.0})
    with pytest.raises(StructureError):
        FOUR_BAR.assemble({mk.gallery.four_bar().joint("crank_joint"): 1.0})


def test_missing_value_raises_an_error() -> None:
    for ask in (FOUR_BAR.assemble, FOUR_BAR.assembly_path, FOUR_BAR.assembly_modes):
        with pytest.raises(ShapeError, match="input 'crank' is None"):
            ask({"crank": None})  # type: ignore[dict-item]
    with pytest.raises(NotFinite):
        FOUR_BAR.assemble({"crank": math.nan})
