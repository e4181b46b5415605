"""BVH export: forward kinematics of the file gives the link poses."""

from __future__ import annotations

import numpy as np
import pytest
from recorded_motions import NAMES, random_motion

import mechanik as mk
from mechanik.motion.record import Motion, to_bvh
from mechanik.motion.record.animation_export import bone_names


def axis_rotation(axis: str, degrees: float) -> np.ndarray:
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    i = "XYZ".index(axis)
    X = np.eye(4)
    j, k = (i + 1) % 3, (i + 2) % 3
    X[j, j], X[j, k], X[k, j], X[k, k] = c, -s, s, c
    return X


def read_bvh(text: str, adds: bool) -> tuple[dict[str, np.ndarray], float]:
    """Read BVH: world poses (N, 4, 4) by name, and the frame time.

    Args:
        adds: whether translations are added to the offset or replace it; programs differ.
    """
    tokens = text.split()
    motion_start = tokens.index("MOTION")
    bones: list[tuple[str, int, np.ndarray, list[str]]] = []
    open_bones: list[int] = []
    k = 1
    while k < motion_start:
        token = tokens[k]
        if token in ("ROOT", "JOINT"):
            bones.append((tokens[k + 1], open_bones[-1] if open_bones else -1, np.zeros(3), []))
            open_bones.append(len(bones) - 1)
            k += 3
        elif token == "End":
            open_bones.append(-1)
            k += 3
        elif token == "OFFSET":
            if open_bones[-1] >= 0:
                bones[open_bones[-1]][2][:] = [float(number) for number in tokens[k + 1 : k + 4]]
            k += 4
        elif token == "CHANNELS":
            count = int(tokens[k + 1])
            bones[open_bones[-1]][3].extend(tokens[k + 2 : k + 2 + count])
            k += 2 + count
        else:
            assert token == "}"
            open_bones.pop()
            k += 1
    assert not open_bones
    assert tokens[motion_start + 1] == "Frames:"
    frames = int(tokens[motion_start + 2])
    assert tokens[motion_start + 3 : motion_start + 5] == ["Frame", "Time:"]
    step = float(tokens[motion_start + 5])
    numbers = np.array([float(number) for number in tokens[motion_start + 6 :]]).reshape(frames, -1)
    assert numbers.shape[1] == sum(len(bone[3]) for bone in bones)
    poses = {bone[0]: np.empty((frames, 4, 4)) for bone in bones}
    for f, row in enumerate(numbers):
        values = iter(row)
        for name, parent, offset, channels in bones:
            X, translation, has_translation = np.eye(4), np.zeros(3), False
            for channel in channels:
                value = next(values)
                if channel.endswith("position"):
                    translation["XYZ".index(channel[0])] = value
                    has_translation = True
                else:
                    X = X @ axis_rotation(channel[0], value)
            X[:3, 3] = offset + translation if adds or not has_translation else translation
            poses[name][f] = X if parent < 0 else poses[bones[parent][0]][f] @ X
    return poses, step


@pytest.mark.parametrize("adds", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_forward_kinematics_of_the_file_is_that_of_the_mechanism(name: str, adds: bool):
    motion = random_motion(name)
    bone_poses, step = read_bvh(to_bvh(motion).decode(), adds)
    assert step == pytest.approx(0.1)
    poses = motion.poses()
    for k, link in enumerate(motion.mechanism.links):
        assert np.abs(bone_poses[link] - poses[:, k]).max() < 1e-6


def test_rotating_link_has_an_offset_and_three_channels():
    text = to_bvh(random_motion("panda")).decode()
    assert text.count("CHANNELS 6") == 3  # the root and two fingers that slide
    assert text.count("CHANNELS 3") == len(mk.gallery.make("panda").links) - 3


def test_frames_are_resampled_evenly():
    motion = random_motion("panda", is_even=False)
    bone_poses, step = read_bvh(to_bvh(motion).decode(), True)
    assert step == pytest.approx(motion.duration / (len(motion.times) - 1))
    poses = motion.resample_evenly().poses()
    for k, link in enumerate(motion.mechanism.links):
        assert np.abs(bone_poses[link] - poses[:, k]).max() < 1e-6


def test_euler_angles_are_continuous_between_frames():
    arm = mk.gallery.make("planar_2r")
    angles = np.linspace(0.0, 4 * np.pi, 80)
    text = to_bvh(Motion(arm, np.arange(80.0), np.stack([angles, 0 * angles], axis=1))).decode()
    rows = np.array([line.split() for line in text.splitlines()[-80:]], dtype=float)
    assert np.abs(np.diff(rows, axis=0)).max() < 10.0


def test_arm_deeper_than_the_recursion_limit_is_written():
    b = mk.Builder("long")
    for k in range(1010):
        b.revolute(f"j{k}", f"l{k}", f"l{k + 1}", at=(0.01, 0, 0))
    arm = b.build()
    text = to_bvh(Motion(arm, [0.0], np.zeros((1, arm.nq)))).decode()
    assert text.count("{") == text.count("}") == 1012


def test_bone_names_are_unique_and_have_no_blanks():
    assert bone_names(["a b", "a_b", "{", "}", "ä-1.x"]) == ["a_b", "a_b_", "_", "__", "ä-1.x"]
