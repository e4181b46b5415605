"""Models with the features of well-known robots, read from MJCF; MuJoCo itself says where everything is.

Each has loops or couplings. Our closures and joint constraints must be MuJoCo's equalities, neither more nor less.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mechanik as mk
from mechanik.formats import describe, from_qpos, load, read_json, to_qpos, write_json

mujoco = pytest.importorskip("mujoco")
pytestmark = pytest.mark.mujoco

FOLDER = Path(__file__).parent.parent / "data" / "mjcf"

DRIVES = {
    "biped_leg": {
        "hip_roll": (-0.2, 0.3),
        "hip_yaw": (-0.3, 0.3),
        "hip_pitch": (-1.0, 0.6),
        "knee": (0.1, 0.4),  # at -0.08 the achilles rod is in line with the tarsus
        "foot_crank": (-0.6, 0.6),
        "shin_spring": (-0.1, 0.1),
        "heel_spring": (-0.1, 0.1),
    },
    "gripper": {
        "left_driver": (0.3, 0.6),
        "left_spring": (0.15, 0.38),
        "right_spring": (0.15, 0.38),
    },
    "tendon_hand": {"middle": (0.0, 1.5), "proximal": (0.0, 1.5), "thumb_turn": (-0.3, 0.5), "thumb_middle": (0, 1)},
    "weld_four_bar": {"crank": (-3.0, 3.0)},
    "cam": {"shaft": (-1.0, 2.0)},
    "hexapod": {f"length{k}": (-0.02, 0.03) for k in range(6)},
}
"""Inputs and their ranges."""
MODELS = [*DRIVES, "zoo"]


def both(name: str):
    path = FOLDER / f"{name}.xml"
    return load(path), mujoco.MjModel.from_xml_path(str(path))


def mujoco_at(raw, qpos):
    data = mujoco.MjData(raw)
    data.qpos[:] = qpos
    mujoco.mj_kinematics(raw, data)
    mujoco.mj_comPos(raw, data)
    mujoco.mj_tendon(raw, data)
    mujoco.mj_makeConstraint(raw, data)
    return data


def equality_error(raw, qpos) -> float:
    """The largest residual of MuJoCo's equality constraints, m or rad."""
    data = mujoco_at(raw, qpos)
    rows = data.efc_pos[: data.nefc][data.efc_type[: data.nefc] == int(mujoco.mjtConstraint.mjCNSTR_EQUALITY)]
    assert len(rows)
    return float(np.abs(rows).max())


def worst_gap(mechanism) -> float:
    gaps = [closure.gap() for closure in mechanism.closures.values()]
    violations = [abs(constraint.error()) for constraint in mechanism.joint_constraints.values()]
    return max([max(gap.distance, gap.angle) for gap in gaps] + violations, default=0.0)


def frames_of(raw, data, mechanism):
    """Our link and MuJoCo's pose of all bodies and sites that have a name."""
    for kind, count, p, R in (
        (mujoco.mjtObj.mjOBJ_BODY, raw.nbody, data.xpos, data.xmat),
        (mujoco.mjtObj.mjOBJ_SITE, raw.nsite, data.site_xpos, data.site_xmat),
    ):
        for number in range(count):
            name = mujoco.mj_id2name(raw, kind, number)
            if name and kind == mujoco.mjtObj.mjOBJ_SITE and f"{name}_site" in mechanism.links:
                name += "_site"
            if name:
                yield name, p[number], R[number].reshape(3, 3)


@pytest.mark.parametrize("name", MODELS)
def test_bodies_and_sites_have_the_poses_of_mujoco(name):
    mechanism, raw = both(name)
    compared = 0
    for q in mechanism.random(np.random.default_rng(1), 30):
        data = mujoco_at(raw, to_qpos(mechanism, q))
        for link, p, R in frames_of(raw, data, mechanism):
            X = mechanism.pose(link, q)
            np.testing.assert_allclose(X[:3, 3], p, atol=1e-12)
            np.testing.assert_allclose(X[:3, :3], R, atol=1e-12)
            compared += 1
    assert compared >= 30 * raw.nbody - 60  # two bodies in the zoo have no name, or stand


@pytest.mark.parametrize("name", MODELS)
def test_q_is_qpos_without_mimic_joints(name):
    mechanism, raw = both(name)
    assert [j for j in mechanism.values() if j in mechanism.extras["qpos"]["at"]] == list(mechanism.values())
    addresses = [mechanism.extras["qpos"]["at"][joint] for joint in mechanism.values()]
    assert addresses == raw.jnt_qposadr.tolist()
    q = mechanism.random(np.random.default_rng(2), (3, 4))
    np.testing.assert_allclose(from_qpos(mechanism, to_qpos(mechanism, q)), q, atol=1e-15)
    assert to_qpos(mechanism, q).shape == (3, 4, raw.nq)


@pytest.mark.parametrize("name", DRIVES)
def test_loops_are_closed_at_every_key_frame(name):
    mechanism, raw = both(name)
    assert len(mechanism.configurations) == raw.nkey >= 2
    for number, (key, q) in enumerate(mechanism.configurations.items()):
        assert mujoco.mj_id2name(raw, mujoco.mjtObj.mjOBJ_KEY, number) == key
        np.testing.assert_allclose(to_qpos(mechanism, q), raw.key_qpos[number], atol=1e-12)
        assert mechanism.space.within_limits(q, 1e-12)
        mechanism.set_q(q)
        assert worst_gap(mechanism) < 1e-11
        assert equality_error(raw, raw.key_qpos[number]) < 1e-11


@pytest.mark.parametrize("name", DRIVES)
def test_constraint_violations_equal_those_of_mujoco(name):
    """At violated configurations, the largest constraint residual is that of MuJoCo."""
    mechanism, raw = both(name)
    for q in mechanism.random(np.random.default_rng(3), 10):
        mechanism.set_q(q)
        data = mujoco_at(raw, to_qpos(mechanism))
        rows = data.efc_pos[: data.nefc][data.efc_type[: data.nefc] == int(mujoco.mjtConstraint.mjCNSTR_EQUALITY)]
        ids = data.efc_id[: data.nefc][data.efc_type[: data.nefc] == int(mujoco.mjtConstraint.mjCNSTR_EQUALITY)]
        ours = [closure.gap().distance for closure in mechanism.closures.values()]
        ours += [abs(constraint.error()) for constraint in mechanism.joint_constraints.values()]
        theirs = []
        for equality in range(raw.neq):
            kind = int(raw.eq_type[equality])
            if raw.eq_active0[equality] and kind <= 1:
                theirs.append(float(np.linalg.norm(rows[ids == equality][:3])))
        for equality in range(raw.neq):
            held = float(np.abs(rows[ids == equality]).max()) if raw.eq_active0[equality] else 0.0
            if raw.eq_active0[equality] and int(raw.eq_type[equality]) >= 2:
                if _is_coupling(raw, equality):
                    assert held < 1e-12  # it cannot be broken
                else:
                    theirs.append(held)
        np.testing.assert_allclose(ours, theirs, atol=1e-12)


def _is_coupling(raw, equality) -> bool:
    return int(raw.eq_type[equality]) == 2 and not raw.eq_data[equality, 2:5].any()


@pytest.mark.parametrize("name", DRIVES)
def test_assembled_configurations_satisfy_the_equalities_of_mujoco(name):
    mechanism, raw = both(name)
    rng = np.random.default_rng(4)
    start = list(mechanism.configurations.values())[-1]
    for _ in range(12):
        wanted = {joint: float(rng.uniform(*reach)) for joint, reach in DRIVES[name].items()}
        solution = mk.Solver(mechanism, mk.JointValues(wanted, angle_mode="exact")).solve(q0=start)
        assert solution.success, (wanted, solution.message)
        mechanism.apply(solution)
        for joint, value in wanted.items():
            assert mechanism.joint(joint).values[0] == pytest.approx(value, abs=1e-6)
        assert worst_gap(mechanism) < 1e-9
        assert equality_error(raw, to_qpos(mechanism)) < 1e-8


@pytest.mark.parametrize("name", MODELS)
def test_json_round_trip_keeps_what_was_read(name):
    mechanism, _ = both(name)
    again = read_json(write_json(mechanism))
    assert describe(again) == describe(mechanism)
    q = mechanism.random(np.random.default_rng(5))
    np.testing.assert_array_equal(again.poses(q), mechanism.poses(q))
    np.testing.assert_array_equal(to_qpos(again, q), to_qpos(mechanism, q))


@pytest.mark.parametrize("name", ["tendon_hand", "cam"])
def test_json_round_trip_keeps_joint_constraints(name):
    mechanism, _ = both(name)
    assert list(read_json(write_json(mechanism)).joint_constraints) == list(mechanism.joint_constraints)


def test_each_robot_has_its_known_loops_and_couplings():
    leg, gripper, hand, cam = (both(name)[0] for name in ("biped_leg", "gripper", "tendon_hand", "cam"))
    assert {name: len(closure.free_dof) for name, closure in leg.closures.items()} == {"plantar": 3, "achilles_heel": 3}
    assert len(gripper.closures) == 2
    (coupling,) = gripper.joint("right_driver").couplings
    assert (coupling.leader.name, coupling.ratio, coupling.offset) == ("left_driver", 1.0, 0.0)
    assert list(hand.joint_constraints) == ["couple", "across"]
    assert list(cam.joint_constraints) == ["cam"]
    assert both("weld_four_bar")[0].closures["shut"].free_dof == ()
    assert mk.mobility(both("hexapod")[0]).dof == 6


def test_random_trees_have_the_poses_of_mujoco():
    rng = np.random.default_rng(6)
    for _ in range(25):
        text = random_model(rng)
        mechanism, raw = load(text), mujoco.MjModel.from_xml_string(text)
        for q in mechanism.random(rng, 3):
            data = mujoco_at(raw, to_qpos(mechanism, q))
            for link, p, R in frames_of(raw, data, mechanism):
                X = mechanism.pose(link, q)
                np.testing.assert_allclose(X[:3, 3], p, atol=1e-11)
                np.testing.assert_allclose(X[:3, :3], R, atol=1e-11)


def random_model(rng) -> str:
    """Bodies with up to four joints each, about points of their own, from reference values."""

    def numbers(count: int, reach: float = 1.0) -> str:
        return " ".join(f"{value:.5f}" for value in rng.uniform(-reach, reach, count))

    def body(depth: int, label: str) -> str:
        joints = [
            f'<joint type="{rng.choice(["hinge", "slide"])}" pos="{numbers(3)}" axis="{numbers(3)}" '
            f'ref="{rng.uniform(-1, 1):.3f}"/>'
            for _ in range(rng.integers(0, 4))
        ]
        if rng.random() < 0.3:
            joints.append(f'<joint type="ball" pos="{numbers(3)}"/>')
        if depth == 0 and rng.random() < 0.3:
            joints = ["<freejoint/>"]
        inner = [body(depth + 1, f"{label}{k}") for k in range(rng.integers(0, 3) if depth < 3 else 0)]
        place = f'pos="{numbers(3)}" {rng.choice(["quat", "axisangle"])}="{numbers(4)}"'
        site = f'<site name="s{label}" pos="{numbers(3)}" euler="{numbers(3, 3.0)}"/>'
        return f'<body name="b{label}" {place}>{"".join(joints)}<geom size="0.1"/>{site}{"".join(inner)}</body>'

    bodies = "".join(body(0, f"_{k}") for k in range(2))
    unit = rng.choice(["degree", "radian"])
    return f'<mujoco><compiler angle="{unit}"/><worldbody>{bodies}</worldbody></mujoco>'
