"""Random SDFs against the definition: X_world_child = X_world_parent X_parent_joint motion X_joint_child.

Links are placed in any other link's frame, joints lead in any direction, and some of them close loops.
"""

from __future__ import annotations

import numpy as np
import pytest

from mechanik.formats import load
from mechanik.model import DoF
from mechanik.spatial import euler, inverse, make_pose, quaternion, rotation

KINDS = ("revolute", "continuous", "prismatic", "ball", "universal", "revolute2", "fixed", "screw")
PITCH = 0.3


def random_pose(rng):
    return make_pose(quaternion.to_matrix(rng.standard_normal(4)), rng.uniform(-1, 1, 3))


def pose_text(X, relative_to=""):
    numbers = [*X[:3, 3].tolist(), *euler.euler_from_matrix(X[:3, :3], order="xyz", axes="fixed").tolist()]
    frame = f' relative_to="{relative_to}"' if relative_to else ""
    return f"<pose{frame}>{' '.join(repr(number) for number in numbers)}</pose>"


class RandomModel:
    """`size` links, a tree of joints in random directions over them, and `loops` more joints."""

    def __init__(self, rng, size, loops=0):
        self.poses = [random_pose(rng) for _ in range(size)]
        self.joints = []
        for k in range(1, size):
            ends = (int(rng.integers(k)), k)
            self.add(rng, ends if rng.random() < 0.7 else ends[::-1], str(rng.choice(KINDS)))
        self.tree = len(self.joints)
        for _ in range(loops):
            a, b = rng.choice(size, 2, replace=False)
            self.add(rng, (int(a), int(b)), str(rng.choice(("revolute", "prismatic", "ball", "universal", "fixed"))))

    def add(self, rng, ends, kind):
        axes = quaternion.to_matrix(rng.standard_normal(4))
        if kind == "revolute2":  # not at right angles
            axes[1] += 0.5 * axes[0]
        self.joints.append((f"j{len(self.joints)}", kind, ends, random_pose(rng), axes))

    def text(self, rng):
        parts = []
        for k, X in enumerate(self.poses):
            reference = int(rng.integers(k)) if k else 0
            place = pose_text(inverse(self.poses[reference]) @ X, f"l{reference}") if k else pose_text(X)
            parts.append(f'<link name="l{k}">{place}</link>')
        for name, kind, (parent, child), X_child_joint, axes in self.joints:
            first_axis, second_axis = (" ".join(repr(x) for x in axis.tolist()) for axis in axes[:2])
            parts.append(
                f'<joint name="{name}" type="{kind}">{pose_text(X_child_joint)}<parent>l{parent}</parent>'
                f"<child>l{child}</child><screw_thread_pitch>{PITCH}</screw_thread_pitch>"
                f"<axis><xyz>{first_axis}</xyz></axis><axis2><xyz>{second_axis}</xyz></axis2></joint>"
            )
        return f'<sdf version="1.9"><model name="random">{"".join(parts)}</model></sdf>'

    def motion(self, kind, axes, values):
        first_axis, second_axis = axes[0] / np.linalg.norm(axes[0]), axes[1] / np.linalg.norm(axes[1])
        if kind == "ball":
            return make_pose(rotation.exp(values), np.zeros(3))
        if kind in ("universal", "revolute2"):
            return make_pose(rotation.exp(first_axis * values[0]) @ rotation.exp(second_axis * values[1]), np.zeros(3))
        R = rotation.exp(first_axis * values[0]) if kind in ("revolute", "continuous", "screw") else np.eye(3)
        shift = {"prismatic": values[0], "screw": values[0] * PITCH / (2 * np.pi)}.get(kind, 0.0)
        return make_pose(R, first_axis * shift)

    def forward(self, values):
        """X_world_link of all links, with the first where it was drawn."""
        X = {0: self.poses[0]}
        while len(X) < len(self.poses):
            for name, kind, (parent, child), X_child_joint, axes in self.joints[: self.tree]:
                X_parent_joint = inverse(self.poses[parent]) @ self.poses[child] @ X_child_joint
                step = X_parent_joint @ self.motion(kind, axes, values[name]) @ inverse(X_child_joint)
                if parent in X and child not in X:
                    X[child] = X[parent] @ step
                elif child in X and parent not in X:
                    X[parent] = X[child] @ inverse(step)
        return X


def put(mechanism, model, values):
    """Bring the joints to the values that the definition was given."""
    for name, kind, _, _, _ in model.joints[: model.tree]:
        joint = mechanism.joint(name)
        backwards = joint.parent.name != f"l{model.joints[int(name[1:])][2][0]}"
        if kind == "ball":
            turn = quaternion.exp(values[name])
            joint.rotation_wxyz = quaternion.conjugate(turn) if backwards else turn
        elif kind == "universal":
            first_dof, second_dof = (DoF.EX, DoF.EY) if backwards else (DoF.EY, DoF.EX)
            joint.set_value(first_dof, values[name][0])
            joint.set_value(second_dof, values[name][1])
        elif kind == "revolute2":
            joint.set_values(values[name][0])
            mechanism.joint(f"{name}_axis2").set_values(values[name][1])
        elif kind == "screw":
            joint.set_value(DoF.EZ, values[name][0])
        elif kind != "fixed":
            joint.set_values(values[name][0])


@pytest.mark.parametrize("seed", range(20))
def test_link_poses_match_the_definition_of_sdf(seed):
    rng = np.random.default_rng(seed)
    model = RandomModel(rng, 8)
    mechanism = load(model.text(rng))
    assert not mechanism.closures
    for _ in range(3):
        values = {name: rng.uniform(-2, 2, 3) for name, *_ in model.joints}
        X = model.forward(values)
        if mechanism.roots[0].name != "l0":  # a tree whose first link is the child of another stands on that one
            top = int(mechanism.roots[0].name[1:])
            move = model.poses[top] @ inverse(X[top])
            X = {k: move @ X_link for k, X_link in X.items()}
        put(mechanism, model, values)
        for k, expected in X.items():
            np.testing.assert_allclose(mechanism.pose(f"l{k}"), expected, atol=1e-10)


@pytest.mark.parametrize("seed", range(20))
def test_joints_beyond_a_tree_become_closed_loop_closures(seed):
    rng = np.random.default_rng(100 + seed)
    model = RandomModel(rng, 6, loops=2)
    mechanism = load(model.text(rng))
    assert len(mechanism.closures) == 2
    for k, X in enumerate(model.poses):
        np.testing.assert_allclose(mechanism.pose(f"l{k}"), X, atol=1e-12)
    free_dof_counts = {
        "revolute": 1,
        "continuous": 1,
        "prismatic": 1,
        "ball": 3,
        "universal": 2,
        "fixed": 0,
        "screw": 2,
    }
    for name, closure in mechanism.closures.items():
        gap = closure.gap()
        assert max(gap.distance, gap.angle) < 1e-9
        kind = model.joints[int(name.removesuffix("_axis2")[1:])][1]
        assert len(closure.free_dof) == free_dof_counts.get(kind, 1)
