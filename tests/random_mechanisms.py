"""Random mechanisms with all kinds of joints, for properties that hold for any mechanism."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from mechanik import Joint, Link, Mechanism
from mechanik.model.dof import ALL_DOFS, ROTATIONS, DoF
from mechanik.spatial import quaternion


def random_mechanism(seed: int, joints: int, *, couplings: bool = True) -> Mechanism:
    """A tree of up to 30 joints: single, several, balls, free bodies, fixed, any axes, some limited, some coupled."""
    rng = np.random.default_rng(seed)
    links = [Link("link0", **random_pose(rng))]
    made: list[Joint] = []
    for i in range(joints):
        joint = random_joint(rng, f"joint{i}")
        link = Link(f"link{i + 1}", **random_pose(rng))
        links[rng.integers(len(links))].add_child(joint)
        joint.add_child(link)
        links.append(link)
        made.append(joint)
    single = [joint for joint in made if len(joint.dof) == 1]
    for follower, leader in zip(single[1::3], single[::3], strict=False):
        if couplings:
            follower.mimic(leader, ratio=rng.uniform(-2, 2), offset=rng.uniform(-0.5, 0.5))
    return Mechanism(links[0], name=f"random{seed}")


def random_joint(rng: np.random.Generator, name: str) -> Joint:
    kind = rng.integers(6)
    if kind == 0:
        dof: tuple[DoF, ...] = ()
    elif kind <= 2:
        dof = (DoF(int(rng.integers(6))),)
    elif kind == 3:
        dof = tuple(d for d in ALL_DOFS if rng.random() < 0.5)
    elif kind == 4:
        dof = ROTATIONS
    else:
        dof = ALL_DOFS
    joint = Joint(name, dof=dof, axes_wxyz=random_turn(rng), **random_pose(rng))
    if rng.random() < 0.4:
        joint.set_limits([-rng.uniform(0, 2) for _ in dof], [rng.uniform(0, 2) for _ in dof])
    return joint


def random_pose(rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {"position": rng.uniform(-1, 1, 3), "wxyz": random_turn(rng)}


def random_turn(rng: np.random.Generator) -> np.ndarray:
    return quaternion.normalize(rng.standard_normal(4))


mechanisms = st.builds(random_mechanism, st.integers(0, 2**32 - 1), st.integers(1, 30))
seeds = st.integers(0, 2**32 - 1)
