"""BVH: what a reader works out from the text is where the links are."""

from __future__ import annotations

import numpy as np
import pytest
from recorded_motions import NAMES, recorded

import mechanik as mk
from mechanik.motion.record import Motion, to_bvh
from mechanik.motion.record.animation_export import bone_names


def axis_turn(axis: str, degrees: float) -> np.ndarray:
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    i = "XYZ".index(axis)
    X = np.eye(4)
    j, k = (i + 1) % 3, (i + 2) % 3
    X[j, j], X[j, k], X[k, j], X[k, k] = c, -s, s, c
    return X


def read(text: str, adds: bool) -> tuple[dict[str, np.ndarray], float]:
    """A reader of BVH, as plain as its description: world poses (N, 4, 4) by name, and the frame time.

    Args:
        adds: whether shifts are added to the offset, or take its place; readers differ.
    """
    words = text.split()
    at = words.index("MOTION")
    bones: list[tuple[str, int, np.ndarray, list[str]]] = []
    open_bones: list[int] = []
    k = 1
    while k < at:
        word = words[k]
        if word in ("ROOT", "JOINT"):
            bones.append((words[k + 1], open_bones[-1] if open_bones else -1, np.zeros(3), []))
            open_bones.append(len(bones) - 1)
            k += 3
        elif word == "End":
            open_bones.append(-1)
            k += 3
        elif word == "OFFSET":
            if open_bones[-1] >= 0:
                bones[open_bones[-1]][2][:] = [float(one) for one in words[k + 1 : k + 4]]
            k += 4
        elif word == "CHANNELS":
            count = int(words[k + 1])
            bones[open_bones[-1]][3].extend(words[k + 2 : k + 2 + count])
            k += 2 + count
        else:
            assert word == "}"
            open_bones.pop()
            k += 1
    assert not open_bones
    assert words[at + 1] == "Frames:"
    frames = int(words[at + 2])
    assert words[at + 3 : at + 5] == ["Frame", "Time:"]
    step = float(words[at + 5])
    numbers = np.array([float(one) for one in words[at + 6 :]]).reshape(frames, -1)
    assert numbers.shape[1] == sum(len(bone[3]) for bone in bones)
    found = {bone[0]: np.empty((frames, 4, 4)) for bone in bones}
    for f, row in enumerate(numbers):
        rest = iter(row)
        for name, parent, offset, channels in bones:
            X, shift, shifts = np.eye(4), np.zeros(3), False
            for channel in channels:
                value = next(rest)
                if channel.endswith("position"):
                    shift["XYZ".index(channel[0])] = value
                    shifts = True
                else:
                    X = X @ axis_turn(channel[0], value)
            X[:3, 3] = offset + shift if adds or not shifts else shift
            found[name][f] = X if parent < 0 else found[bones[parent][0]][f] @ X
    return found, step


@pytest.mark.parametrize("adds", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_forward_kinematics_of_the_text_is_that_of_the_mechanism(name: str, adds: bool):
    motion = recorded(name)
    found, step = read(to_bvh(motion).decode(), adds)
    assert step == pytest.approx(0.1)
    poses = motion.poses()
    for k, link in enumerate(motion.mechanism.links):
        assert np.abs(found[link] - poses[:, k]).max() < 1e-6


def test_a_link_that_only_turns_has_an_offset_and_three_channels():
    text = to_bvh(recorded("panda")).decode()
    assert text.count("CHANNELS 6") == 3  # the root and two fingers that slide
    assert text.count("CHANNELS 3") == len(mk.gallery.make("panda").links) - 3


def test_frames_are_evenly_spaced_whatever_was_recorded():
    motion = recorded("panda", is_even=False)
    found, step = read(to_bvh(motion).decode(), True)
    assert step == pytest.approx(motion.duration / (len(motion.times) - 1))
    poses = motion.resample_evenly().poses()
    for k, link in enumerate(motion.mechanism.links):
        assert np.abs(found[link] - poses[:, k]).max() < 1e-6


def test_angles_do_not_jump_from_frame_to_frame():
    arm = mk.gallery.make("planar_2r")
    turn = np.linspace(0.0, 4 * np.pi, 80)
    text = to_bvh(Motion(arm, np.arange(80.0), np.stack([turn, 0 * turn], axis=1))).decode()
    rows = np.array([line.split() for line in text.splitlines()[-80:]], dtype=float)
    assert np.abs(np.diff(rows, axis=0)).max() < 10.0


def test_an_arm_deeper_than_pythons_stack_is_written():
    b = mk.Builder("long")
    for k in range(1010):
        b.revolute(f"j{k}", f"l{k}", f"l{k + 1}", at=(0.01, 0, 0))
    arm = b.build()
    text = to_bvh(Motion(arm, [0.0], np.zeros((1, arm.nq)))).decode()
    assert text.count("{") == text.count("}") == 1012


def test_names_hold_no_blank_and_stand_once():
    assert bone_names(["a b", "a_b", "{", "}", "ä-1.x"]) == ["a_b", "a_b_", "_", "__", "ä-1.x"]
