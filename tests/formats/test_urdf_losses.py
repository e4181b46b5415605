"""`save` reports exactly the content that a URDF does not hold."""

from __future__ import annotations

import numpy as np
import pytest

from mechanik import gallery
from mechanik.formats.urdf.reader import read_urdf
from mechanik.formats.urdf.writer import urdf_losses, write_urdf
from mechanik.model import Builder, Mechanism


def rich() -> Mechanism:
    builder = Builder("rich")
    shoulder = builder.revolute("shoulder", "base", "upper", value=0.5)
    elbow = builder.revolute("elbow", "upper", "fore")
    builder.spherical("wrist", "fore", "hand")
    builder.close("loop", "base", "hand", "ball")
    builder.goal("there", "hand")
    shoulder.set_targets(0.1)
    elbow.save_rest_pose()
    elbow.track_turns = True
    mechanism = builder.build()
    mechanism.configurations["home"] = mechanism.q
    mechanism.extras["dynamics"] = {"shoulder": {"damping": 1.0}, "wrist": {"damping": 1.0}, "elbow": {"note": "?"}}
    mechanism.extras["colour"] = "red"
    return mechanism


def test_each_kind_of_loss_is_one_message() -> None:
    assert urdf_losses(rich()) == [
        "a URDF cannot contain goals: there",
        "a URDF cannot contain named configurations: home",
        "a URDF cannot contain joint targets: shoulder",
        "a URDF cannot contain rest poses: elbow",
        "a URDF cannot contain revolution counting of joints (track_turns): elbow",
        "a URDF cannot contain extras: dynamics of wrist, dynamics of elbow, colour",
        "joints with several dofs become several joints: wrist (wrist.EX, wrist.EY, wrist.EZ)",
    ]


def test_urdf_round_trip_reports_no_losses() -> None:
    again = read_urdf(write_urdf(rich()))
    assert urdf_losses(again) == []
    assert again.extras == {"dynamics": {"shoulder": {"damping": 1.0}}}


def test_extras_of_a_fixed_joint_are_written() -> None:
    builder = Builder()
    builder.fixed("j", "a", "b")
    mechanism = builder.build()
    mechanism.extras["dynamics"] = {"j": {"damping": 0.5}}
    assert urdf_losses(mechanism) == []
    assert read_urdf(write_urdf(mechanism)).extras == mechanism.extras


@pytest.mark.parametrize("extras", [{"limits": 3}, {"limits": {"j": None}}, {"limits": {"j": {"effort": True}}}])
def test_extras_without_urdf_form_are_reported_as_lost(extras: dict[str, object]) -> None:
    builder = Builder()
    builder.revolute("j", "a", "b", limits=(-1, 1))
    mechanism = builder.build()
    mechanism.extras.update(extras)
    assert read_urdf(write_urdf(mechanism)).extras["limits"] == {"j": {"effort": 0.0, "velocity": 0.0}}
    assert len(urdf_losses(mechanism)) == 1


def test_long_lists_of_names_are_abbreviated_with_their_count() -> None:
    builder = Builder()
    builder.revolute("j", "a", "b")
    mechanism = builder.build()
    for k in range(5):
        mechanism.configurations[f"key{k}"] = np.zeros(1)
    assert urdf_losses(mechanism) == ["a URDF cannot contain named configurations: key0, key1, key2 and 2 more"]


@pytest.mark.parametrize("name", gallery.names())
def test_gallery_loses_only_configurations_allowed_collisions_and_split_joints(name: str) -> None:
    mechanism = gallery.make(name)
    mechanism.configurations.clear()
    mechanism.allowed_collisions = None
    split = [
        joint_name for joint_name, joint in mechanism.joints.items() if 1 < len(joint.dof) < 6 and not joint.is_closure
    ]
    assert len(urdf_losses(mechanism)) == (1 if split else 0)
