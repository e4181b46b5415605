"""Scenes with legs: a six-legged walker, a humanoid that keeps its balance, and a walker with Jansen legs."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from mechanik import gallery
from mechanik.gallery.construction import DARK, GREY, add_shapes, block, capsule
from mechanik.gallery.mobile_robots import ANKLE, HEEL, TOES
from mechanik.model import Joint, Link, Mechanism
from mechanik.objectives import CentreOfMass, JointValues
from mechanik.spatial import apply, make_pose, rotation, translation
from mechanik.spatial.array import Array
from mechanik.studio.messages.events import ControlInfo, CurveInfo
from mechanik.studio.messages.requests import GoalKind
from mechanik.studio.scenes.scene_base import AnimatedScene
from mechanik.studio.scenes.scene_controls import FAINT_COLOUR, choice, make_curve, slider, switch
from mechanik.validation import read_only

NO_GOAL = -1
"""Goal number that no goal has."""
FEET = tuple(f"foot{k}" for k in range(1, 7))
SWING_PHASE_SHARE = 0.5
"""Share of a stride in which a foot swings; with 0.5, at least three feet are always on the ground (tripod gait)."""


class WalkerScene(AnimatedScene):
    """Six-legged walker with pinned feet and a body goal."""

    name = "walker"
    title = "Six-legged walker"
    about = (
        "The feet are pinned. Drag the body: it follows as far as the feet allow. Switch a foot off to release it, or "
        "right-click any link to add a goal. Let it walk on the spot, and drag the body at the same time."
    )
    stopped_value = "stand"

    def make_controls(self) -> list[ControlInfo]:
        foot_switches = [switch(foot, f"Foot {foot[-1]} is pinned", True, "Feet") for foot in FEET]
        return [
            choice("motion", "Motion", ("stand", "walk", "sway"), "Motion", "It walks on the spot, as on a treadmill."),
            slider("speed", "Speed, strides/s", 0.5, 0.0, 2.0, 0.05, "Motion"),
            slider(
                "stride", "Step length, m", 0.4, 0.0, 0.8, 0.02, "Motion", "Distance that a foot moves on the ground."
            ),
            slider("lift", "Lift, m", 0.25, 0.0, 0.6, 0.02, "Motion", "Height of the feet in a step."),
            *foot_switches,
        ]

    def build(self) -> None:
        walker = gallery.walker()
        self.foot_homes = {foot: walker.pose(foot) for foot in FEET}
        self.body_home = walker.pose("body")
        self.load_mechanism(walker)
        self.foot_goals = {foot: self._pin_foot(foot) for foot in FEET}
        self.body_goal = self.add_goal("pose", "body", self.body_home, name="body")

    def on_control_changed(self, name: str) -> None:
        if name in FEET:
            if name in self.foot_goals:
                self.remove_goal(self.foot_goals.pop(name))
            if self.is_on(name):
                self.foot_goals[name] = self._pin_foot(name)
        elif name == "motion":
            self.phase = 0.0
            self.move_goals({number: self.foot_homes[foot] for foot, number in self.foot_goals.items()})
            self.move_goals({self.body_goal: self.body_home})

    def apply_phase(self) -> None:
        if self.text("motion") == "walk":
            self.move_goals({number: self._foot_pose(foot) for foot, number in self.foot_goals.items()})
        else:
            sway_offset = (0.2 * math.cos(self.phase), 0.2 * math.sin(self.phase), 0.1 * math.sin(2 * self.phase))
            self.move_goals({self.body_goal: translation(sway_offset) @ self.body_home})

    def make_readouts(self) -> list[str]:
        feet_on_ground = [foot[-1] for foot in FEET if self.link_pose(foot)[2, 3] < 1e-3]
        return [f"feet on the ground: {' '.join(feet_on_ground) or 'none'}"]

    def _pin_foot(self, foot: str) -> int:
        return self.add_goal("pose", foot, self.foot_homes[foot], name=foot, pinned=True)

    def _foot_pose(self, foot: str) -> Array:
        """Return the pose of a foot in the world, (4, 4): forward in the air, then back on the ground."""
        stride_share = (self.phase / (2 * math.pi) + 0.5 * (FEET.index(foot) % 2)) % 1.0
        stride, lift = self.number("stride"), self.number("lift")
        if stride_share < SWING_PHASE_SHARE:
            swing_share = stride_share / SWING_PHASE_SHARE
            forward_ratio, height_ratio = (
                -0.5 + swing_share - math.sin(2 * math.pi * swing_share) / (2 * math.pi),
                math.sin(math.pi * swing_share) ** 2,
            )
        else:
            forward_ratio, height_ratio = 0.5 - (stride_share - SWING_PHASE_SHARE) / (1 - SWING_PHASE_SHARE), 0.0
        return translation(np.array([stride * forward_ratio, 0.0, lift * height_ratio])) @ self.foot_homes[foot]


HEIGHT = 1.7
"""Height of the humanoid, m."""
SOLE_CORNERS = np.array([(x * HEIGHT, y * 0.0275 * HEIGHT, -ANKLE * HEIGHT) for x in (HEEL, TOES) for y in (-1, 1)])
"""Corners of a sole in the frame of the foot, whose origin is the ankle, (4, 3), m."""
GAZE_TARGET = (2.0, 0.4, 1.5)
"""Initial position of the gaze goal, m."""
SQUAT_DEPTH, SQUAT_SETBACK = 0.3, 0.5
"""Depth of a squat, m, and backward motion of the pelvis per metre of depth.

Without the backward motion, the limits of the ankles would stop the squat at half the depth.
"""
SIDES = ("left", "right")
"""Sides of the humanoid, as in the names of its links."""


def centre_of_mass(mechanism: Mechanism, q: Array) -> Array:
    """Return the centre of mass of a mechanism at q (nq,) in the world, (3,), m."""
    total_mass, weighted_position = 0.0, np.zeros(3)
    for X, link in zip(mechanism.poses(q), mechanism.links.values(), strict=True):
        if link.inertial is not None:
            total_mass += link.inertial.mass
            weighted_position += link.inertial.mass * apply(X, link.inertial.pose.position)
    return weighted_position / total_mass


class HumanoidScene(AnimatedScene):
    """Humanoid with pinned feet, hand goals, gaze and balance."""

    name = "humanoid"
    title = "Humanoid"
    about = (
        "Drag a hand: the whole body follows, and the feet stay in place. With balance on, the centre of mass stays "
        "above the feet. Let it wave, reach or squat; the eyes look at the gaze goal."
    )

    def make_controls(self) -> list[ControlInfo]:
        return [
            choice("motion", "Motion", ("drag", "wave", "reach", "squat"), "Motion", "What moves the goals."),
            slider("speed", "Speed, cycles/s", 0.4, 0.0, 2.0, 0.05, "Motion"),
            switch(
                "keep_orientation",
                "Keep the orientation of the hands",
                False,
                "Goals",
                "Off: the orientation of the hands is free, and they reach farther.",
            ),
            switch(
                "balance",
                "Balance",
                True,
                "Goals",
                "Keep the centre of mass above the feet, with priority over other goals.",
            ),
            switch("left_foot", "Left foot is pinned", True, "Goals"),
            switch("right_foot", "Right foot is pinned", True, "Goals"),
            switch("gaze", "Look at the gaze goal", True, "Goals"),
        ]

    def build(self) -> None:
        person = gallery.humanoid(HEIGHT)
        self.home_poses = {link: person.pose(link) for link in person.links}
        self.load_mechanism(person)
        self.foot_goals = {side: self._pin_foot(side) for side in SIDES}
        self.hand_goals = {
            side: self.add_goal(
                self._hand_goal_kind(), f"{side}_hand", self.home_poses[f"{side}_hand"], name=f"{side} hand"
            )
            for side in SIDES
        }
        self.gaze_goal = self._add_gaze_goal()
        self.pelvis_goal = NO_GOAL
        self._update_balance()

    def on_control_changed(self, name: str) -> None:
        if name == "balance":
            self._update_balance()
        elif name == "keep_orientation":
            rotations = {number: self.link_pose(f"{side}_hand")[:3, :3] for side, number in self.hand_goals.items()}
            self.move_goals({number: make_pose(R, self.goal_pose(number)[:3, 3]) for number, R in rotations.items()})
            for number in rotations:
                self.change_goal(number, kind=self._hand_goal_kind())
        elif name == "gaze":
            self.remove_goal(self.gaze_goal)
            self.gaze_goal = self._add_gaze_goal() if self.is_on("gaze") else NO_GOAL
        elif name.endswith("foot"):
            side = name.removesuffix("_foot")
            if side in self.foot_goals:
                self.remove_goal(self.foot_goals.pop(side))
            if self.is_on(name):
                self.foot_goals[side] = self._pin_foot(side)
            self._update_balance()
        elif name == "motion":
            self.phase = 0.0
            self.remove_goal(self.pelvis_goal)
            self.pelvis_goal = NO_GOAL
            if self.text("motion") == "squat":
                self.pelvis_goal = self.add_goal("pose", "pelvis", self.home_poses["pelvis"], name="pelvis")
            self.move_goals({self.hand_goals[side]: self.home_poses[f"{side}_hand"] for side in SIDES})

    def apply_phase(self) -> None:
        c, s = math.cos(self.phase), math.sin(self.phase)
        left_home, right_home = (self.home_poses[f"{side}_hand"] for side in SIDES)
        match self.text("motion"):
            case "wave":
                offset = (0.25, -0.15 + 0.15 * s, 0.75)
                self.move_goals({self.hand_goals["right"]: translation(offset) @ right_home})
            case "reach":
                mean_offset = np.array([0.25, 0.0, 0.25])
                circle_offset = np.array([0.1 * c, 0.15 * s, 0.2 * s])
                self.move_goals({
                    self.hand_goals["left"]: translation(mean_offset + circle_offset) @ left_home,
                    self.hand_goals["right"]: translation(mean_offset - circle_offset) @ right_home,
                })  # fmt: skip
            case _:
                depth = SQUAT_DEPTH * (1 - c) / 2
                X_down = translation((0.0, 0.0, -depth))
                self.move_goals({
                    self.pelvis_goal: translation((-SQUAT_SETBACK * depth, 0.0, 0.0))
                    @ X_down
                    @ self.home_poses["pelvis"],
                    self.hand_goals["left"]: X_down @ left_home,
                    self.hand_goals["right"]: X_down @ right_home,
                })  # fmt: skip

    def make_readouts(self) -> list[str]:
        # raises a KeyError, as `readouts` expects, if the user has opened another mechanism, which may have no mass
        self.session.mechanism.link("pelvis")
        x, y, z = centre_of_mass(self.session.mechanism, self.q)
        return [f"centre of mass: {x:+.3f} {y:+.3f} {z:+.3f} m"]

    def _hand_goal_kind(self) -> GoalKind:
        """Return the kind of the hand goals."""
        return "pose" if self.is_on("keep_orientation") else "point"

    def _pin_foot(self, side: str) -> int:
        return self.add_goal("pose", f"{side}_foot", self.home_poses[f"{side}_foot"], name=f"{side} foot", pinned=True)

    def _add_gaze_goal(self) -> int:
        return self.add_goal("look_at", "eyes", translation(GAZE_TARGET), name="gaze")

    def _update_balance(self) -> None:
        """Add or remove the objective that keeps the centre of mass above the soles of the pinned feet."""
        self.remove_objective("balance")
        if self.is_on("balance") and self.foot_goals:
            corners = [
                apply(self.home_poses[f"{side}_foot"], corner)[:2]
                for side in self.foot_goals
                for corner in SOLE_CORNERS
            ]
            self.add_objective(CentreOfMass(support=corners, margin=0.01, level=0, name="balance"))


FOOT_PATH_SAMPLES = 180
"""Number of samples of the foot path over a full rotation of the crank."""
MAX_TRAVEL = 0.8
"""Distance from the start at which the walker reverses its direction, m."""
HANGING_HEIGHT = 1.1
"""Height of the crankshaft while the walker hangs in the air, m."""
LEG_SPACING = 0.18
"""Distance between neighbouring pairs of legs, m."""
LEG_COUNTS = {"one": 1, "a pair": 2, "three pairs": 6}
"""Number of legs, by the choices of the control "legs"."""


def leg_mounts(leg_count: int) -> list[tuple[bool, float, float]]:
    """Return for each leg whether it is mirrored, the phase lead of its crank (rad), and its y (m).

    A mirrored leg is rotated by pi about z, so it faces backwards.
    """
    pair_count = max(1, leg_count // 2)
    mounts: list[tuple[bool, float, float]] = []
    for k in range(pair_count):
        crank_lead, y = 2 * math.pi * k / 3, LEG_SPACING * (k - (pair_count - 1) / 2)
        mounts.append((False, crank_lead, y))
        if leg_count > 1:
            mounts.append((True, crank_lead, y))
    return mounts


def leg_crank_angle(is_mirrored: bool, crank_lead: float, angle: float) -> float:
    """Return the crank angle of a leg in its own frame for a shaft at `angle`, rad.

    In the frame of a mirrored leg (see `leg_mounts`), the shaft rotates in the opposite direction.
    """
    return math.pi - angle - crank_lead if is_mirrored else angle + crank_lead


def jansen_walker(leg_count: int) -> Mechanism:
    """Return Jansen legs on a chassis that moves along x and z; all other cranks mimic `crank_joint1`."""
    ground, chassis, chassis_joint = Link("ground"), Link("chassis"), Joint("ride", dof=("X", "Z"))
    mounts = leg_mounts(leg_count)
    leader: Joint | None = None
    for k, (is_mirrored, crank_lead, y) in enumerate(mounts, start=1):
        leg = gallery.jansen_leg(angle=leg_crank_angle(is_mirrored, crank_lead, 0.0))
        crank = leg.joint("crank_joint")
        (frame,) = leg.roots
        for part in (*leg.links.values(), *leg.joints.values()):
            part.name = f"{part.name}{k}"
        mount = Joint(f"mount{k}")
        mount.matrix = make_pose(rotation.about_z(math.pi if is_mirrored else 0.0), (0.0, y, 0.0))
        mount.add_child(frame)
        chassis.add_child(mount)
        if leader is None:
            leader = crank
        else:
            # an offset from the present values, since they may differ from `leg_crank_angle` by full rotations
            ratio = -1.0 if is_mirrored else 1.0
            crank.mimic(leader, ratio=ratio, offset=float(crank.values[0]) - ratio * float(leader.values[0]))
    half_width = LEG_SPACING * max(1, leg_count // 2) / 2
    add_shapes(chassis, capsule((0.0, -half_width, 0.0), (0.0, half_width, 0.0), 0.02, DARK))
    add_shapes(chassis, capsule((-0.38, 0.0, -0.078), (0.38 if leg_count > 1 else 0.0, 0.0, -0.078), 0.015, GREY))
    add_shapes(ground, block((0.0, 0.0, -0.02), (2 * MAX_TRAVEL + 1.8, 2 * half_width + 0.3, 0.04), GREY))
    chassis_joint.add_child(chassis)
    ground.add_child(chassis_joint)
    return Mechanism(ground, name="jansen_walker")


@cache
def foot_path() -> Array:
    """Return x and z of a foot in the frame of its leg, (FOOT_PATH_SAMPLES + 1, 2), m, at crank angles 0 to 2 pi."""
    leg = gallery.jansen_leg()
    angles = np.linspace(0.0, 2 * math.pi, FOOT_PATH_SAMPLES + 1)
    path = leg.assembly_path({"crank_joint": angles})
    return read_only(np.array([leg.pose("foot", q)[[0, 2], 3] for q in path.q]))


class JansenScene(AnimatedScene):
    """Walker with Jansen legs on one crankshaft."""

    name = "jansen"
    title = "Jansen walker"
    about = (
        "One crank drives all legs, and the path of each foot is flat where it touches the ground. With three pairs, "
        "some feet are always on the ground, and the mechanism walks. Drag the crank, or let it rotate."
    )
    motion_control, stopped_value = "turns", False

    def make_controls(self) -> list[ControlInfo]:
        return [
            choice("legs", "Legs", ("three pairs", "a pair", "one"), "Walker"),
            switch("walks", "Walk", True, "Walker", "Off: the body is fixed, and only the legs move."),
            switch("turns", "Rotate the crank", True, "Drive"),
            slider(
                "speed", "Speed, revolutions/s", 0.25, -1.0, 1.0, 0.05, "Drive", "Negative: the walker moves backwards."
            ),
        ]

    def build(self) -> None:
        self.foot_path = foot_path()
        self.x, self.direction = 0.0, 1.0
        self._load_walker()

    def on_control_changed(self, name: str) -> None:
        if name == "legs":
            self.x = 0.0
            self._load_walker()
        elif name == "walks":
            self.x = 0.0
            self._draw_foot_paths()
            self.set_targets({"position of the chassis": {"ride": self._chassis_position()}})
        elif name == "turns":
            if self.is_moving:
                self.angle = self.phase = self.joint_value("crank_joint1")
                self.add_objective(*self._drive_objectives())
            else:
                self.remove_objective("crank drive")

    @property
    def phase_rate(self) -> float:
        # the walker moves along +x if the crank rotates from z to x, which is the negative direction of its angle
        return -self.direction * super().phase_rate

    def apply_phase(self) -> None:
        if self.is_on("walks"):
            x_before, _ = self._foot_positions(self.angle)
            x_after, heights = self._foot_positions(self.phase)
            lowest_foot = int(np.argmin(heights))
            self.x -= float(x_after[lowest_foot] - x_before[lowest_foot])
            if abs(self.x) > MAX_TRAVEL and self.x * self.direction * self.number("speed") > 0:
                self.direction = -self.direction
        self.angle = self.phase
        self.set_targets(
            {"crank drive": {"crank_joint1": self.angle}, "position of the chassis": {"ride": self._chassis_position()}}
        )

    def make_readouts(self) -> list[str]:
        _, heights = self._foot_positions(self.angle)
        standing_count = int((heights < heights.min() + 0.02).sum())
        if len(heights) == 1:
            return ["1 leg, on the ground" if self.is_on("walks") else "1 leg, in the air"]
        return [f"{len(heights)} legs, feet within 20 mm of the lowest foot: {standing_count}"]

    # ---- internals --------------------------------------------------------------------------

    def _load_walker(self) -> None:
        leg_count = LEG_COUNTS[self.text("legs")]
        self.leg_mounts = leg_mounts(leg_count)
        mechanism = jansen_walker(leg_count)
        self.angle = self.phase = 0.0
        mechanism.q = mechanism.configuration({"ride": self._chassis_position()})
        mechanism.configurations["home"] = mechanism.q
        self.load_mechanism(mechanism)
        self.add_objective(*self._drive_objectives())
        self._draw_foot_paths()

    def _drive_objectives(self) -> list[JointValues]:
        chassis = JointValues({"ride": self._chassis_position()}, level=0, name="position of the chassis")
        crank = JointValues({"crank_joint1": self.angle}, angle_mode="exact", name="crank drive")
        return [chassis, crank] if self.is_moving else [chassis]

    def _chassis_position(self) -> tuple[float, float]:
        """Return x and z of the chassis, m; if the walker walks, its lowest foot is on the ground."""
        if not self.is_on("walks"):
            return 0.0, HANGING_HEIGHT
        return self.x, -float(self._foot_positions(self.angle)[1].min())

    def _foot_positions(self, angle: float) -> tuple[Array, Array]:
        """Return x and z of all feet in the frame of the chassis at a shaft angle (rad), (n,) each, m."""
        crank_angles = np.array(
            [leg_crank_angle(is_mirrored, crank_lead, angle) for is_mirrored, crank_lead, _ in self.leg_mounts]
        )
        sample_angles = np.linspace(0.0, 2 * math.pi, FOOT_PATH_SAMPLES + 1)
        x, z = (np.interp(crank_angles % (2 * math.pi), sample_angles, self.foot_path[:, k]) for k in (0, 1))
        return np.where([is_mirrored for is_mirrored, *_ in self.leg_mounts], -x, x), z

    def _draw_foot_paths(self) -> None:
        """Draw the paths of the feet if the chassis is fixed; otherwise remove them."""
        curves: list[CurveInfo] = []
        for k, (is_mirrored, _, y) in enumerate(self.leg_mounts, start=1):
            x = -self.foot_path[:-1, 0] if is_mirrored else self.foot_path[:-1, 0]
            points = np.stack([x, np.full(FOOT_PATH_SAMPLES, y), self.foot_path[:-1, 1] + HANGING_HEIGHT], axis=-1)
            curves.append(make_curve(f"foot {k}", points, closed=True, rgba=FAINT_COLOUR))
        self.session.set_curves([] if self.is_on("walks") else curves)
