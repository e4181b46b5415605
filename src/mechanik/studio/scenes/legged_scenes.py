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
from mechanik.studio.scenes.scene_controls import FAINT_COLOR, choice, make_curve, slider, switch
from mechanik.validation import read_only

FEET = tuple(f"foot{k}" for k in range(1, 7))
SWING_PHASE_SHARE = 0.5
"""Share of a stride in which a foot swings; 0.5 is a tripod gait."""


class WalkerScene(AnimatedScene):
    """Six-legged walker with pinned feet and a body goal."""

    name = "walker"
    title = "Six-legged walker"
    about = (
        "The feet are pinned, and the body follows the drag as far as they allow. Switch a foot off to release it, or "
        "right-click any link to add a goal. Let it walk on the spot, and drag the body meanwhile."
    )
    stopped_value = "stand"

    def make_controls(self) -> list[ControlInfo]:
        feet = [switch(foot, f"Foot {foot[-1]} is pinned", True, "Feet") for foot in FEET]
        return [
            choice("motion", "Motion", ("stand", "walk", "sway"), "Motion", "It walks on the spot, as on a treadmill."),
            slider("speed", "Speed, strides/s", 0.5, 0.0, 2.0, 0.05, "Motion"),
            slider("stride", "Stride, m", 0.4, 0.0, 0.8, 0.02, "Motion", "Length of one step."),
            slider("lift", "Lift, m", 0.25, 0.0, 0.6, 0.02, "Motion", "Height of the feet in a step."),
            *feet,
        ]

    def build(self) -> None:
        walker = gallery.walker()
        self.foot_homes = {foot: walker.pose(foot) for foot in FEET}
        self.body_home = walker.pose("body")
        self.load_mechanism(walker)
        self.feet = {foot: self._hold(foot) for foot in FEET}
        self.body = self.add_goal("pose", "body", self.body_home, name="body")

    def on_control_changed(self, name: str) -> None:
        if name in FEET:
            if name in self.feet:
                self.remove_goal(self.feet.pop(name))
            if self.is_on(name):
                self.feet[name] = self._hold(name)
        elif name == "motion":
            self.phase = 0.0
            self.move_goals({number: self.foot_homes[foot] for foot, number in self.feet.items()})
            self.move_goals({self.body: self.body_home})

    def apply_phase(self) -> None:
        if self.text("motion") == "walk":
            self.move_goals({number: self._step(foot) for foot, number in self.feet.items()})
        else:
            sway = (0.2 * math.cos(self.phase), 0.2 * math.sin(self.phase), 0.1 * math.sin(2 * self.phase))
            self.move_goals({self.body: translation(sway) @ self.body_home})

    def make_readouts(self) -> list[str]:
        on_ground = [foot[-1] for foot in FEET if self.link_pose(foot)[2, 3] < 1e-3]
        return [f"feet on the ground: {' '.join(on_ground) or 'none'}"]

    def _hold(self, foot: str) -> int:
        return self.add_goal("pose", foot, self.foot_homes[foot], name=foot, pinned=True)

    def _step(self, foot: str) -> Array:
        """Return the pose of a foot: back with the treadmill during stance, ahead through the air during swing."""
        t = (self.phase / (2 * math.pi) + 0.5 * (FEET.index(foot) % 2)) % 1.0
        stride, lift = self.number("stride"), self.number("lift")
        if t < SWING_PHASE_SHARE:
            u = t / SWING_PHASE_SHARE
            ahead, up = -0.5 + u - math.sin(2 * math.pi * u) / (2 * math.pi), math.sin(math.pi * u) ** 2
        else:
            ahead, up = 0.5 - (t - SWING_PHASE_SHARE) / (1 - SWING_PHASE_SHARE), 0.0
        return translation(np.array([stride * ahead, 0.0, lift * up])) @ self.foot_homes[foot]


HEIGHT = 1.7
SOLE_CORNERS = np.array([(x * HEIGHT, y * 0.0275 * HEIGHT, -ANKLE * HEIGHT) for x in (HEEL, TOES) for y in (-1, 1)])
"""Corners of a sole in the frame of its ankle, (4, 3), m."""
GAZE_TARGET = (2.0, 0.4, 1.5)
SQUAT_DEPTH, SQUAT_SETBACK = 0.3, 0.5
"""Depth of a squat, m, and its backward motion per metre.

Straight down, the ankle limits would stop it at half the depth.
"""
SIDES = ("left", "right")


def centre_of_mass(mechanism: Mechanism, q: Array) -> Array:
    """Return the centre of mass of a mechanism in the world, (3,), m."""
    total, moment = 0.0, np.zeros(3)
    for X, link in zip(mechanism.poses(q), mechanism.links.values(), strict=True):
        if link.inertial is not None:
            total += link.inertial.mass
            moment += link.inertial.mass * apply(X, link.inertial.pose.position)
    return moment / total


class HumanoidScene(AnimatedScene):
    """Humanoid with pinned feet, hand goals, gaze and balance."""

    name = "humanoid"
    title = "Humanoid"
    about = (
        "Drag a hand: the whole body follows, and the feet stay in place. With balance on, the centre of mass stays "
        "above the feet. Let it wave, reach around or squat; the eyes look at the gaze goal."
    )

    def make_controls(self) -> list[ControlInfo]:
        return [
            choice("motion", "Motion", ("drag", "wave", "reach", "squat"), "Motion", "What moves the goals."),
            slider("speed", "Speed, rounds/s", 0.4, 0.0, 2.0, 0.05, "Motion"),
            switch(
                "turned",
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
        self.homes = {link: person.pose(link) for link in person.links}
        self.load_mechanism(person)
        self.feet = {side: self._hold(side) for side in SIDES}
        self.hands = {
            side: self.add_goal(self._kind(), f"{side}_hand", self.homes[f"{side}_hand"], name=f"{side} hand")
            for side in SIDES
        }
        self.gaze_goal = self._gaze()
        self.pelvis = 0
        self._balance()

    def on_control_changed(self, name: str) -> None:
        if name == "balance":
            self._balance()
        elif name == "turned":
            turns = {number: self.link_pose(f"{side}_hand")[:3, :3] for side, number in self.hands.items()}
            self.move_goals({number: make_pose(R, self.goal_pose(number)[:3, 3]) for number, R in turns.items()})
            for number in turns:
                self.change_goal(number, kind=self._kind())
        elif name == "gaze":
            self.remove_goal(self.gaze_goal)
            self.gaze_goal = self._gaze() if self.is_on("gaze") else 0
        elif name.endswith("foot"):
            side = name.removesuffix("_foot")
            if side in self.feet:
                self.remove_goal(self.feet.pop(side))
            if self.is_on(name):
                self.feet[side] = self._hold(side)
            self._balance()
        elif name == "motion":
            self.phase = 0.0
            self.remove_goal(self.pelvis)
            self.pelvis = 0
            if self.text("motion") == "squat":
                self.pelvis = self.add_goal("pose", "pelvis", self.homes["pelvis"], name="pelvis")
            self.move_goals({self.hands[side]: self.homes[f"{side}_hand"] for side in SIDES})

    def apply_phase(self) -> None:
        c, s = math.cos(self.phase), math.sin(self.phase)
        left, right = (self.homes[f"{side}_hand"] for side in SIDES)
        match self.text("motion"):
            case "wave":
                up = (0.25, -0.15 + 0.15 * s, 0.75)
                self.move_goals({self.hands["right"]: translation(up) @ right})
            case "reach":
                ahead = np.array([0.25, 0.0, 0.25])
                circle = np.array([0.1 * c, 0.15 * s, 0.2 * s])
                self.move_goals({
                    self.hands["left"]: translation(ahead + circle) @ left,
                    self.hands["right"]: translation(ahead - circle) @ right,
                })  # fmt: skip
            case _:
                deep = SQUAT_DEPTH * (1 - c) / 2
                down = translation((0.0, 0.0, -deep))
                self.move_goals({
                    self.pelvis: translation((-SQUAT_SETBACK * deep, 0.0, 0.0)) @ down @ self.homes["pelvis"],
                    self.hands["left"]: down @ left,
                    self.hands["right"]: down @ right,
                })  # fmt: skip

    def make_readouts(self) -> list[str]:
        self.session.mechanism.link("pelvis")  # raises KeyError for another mechanism, which may have no mass
        x, y, z = centre_of_mass(self.session.mechanism, self.q)
        return [f"centre of mass: {x:+.3f} {y:+.3f} {z:+.3f} m"]

    def _kind(self) -> GoalKind:
        """Return the kind of the hand goals."""
        return "pose" if self.is_on("turned") else "point"

    def _hold(self, side: str) -> int:
        return self.add_goal("pose", f"{side}_foot", self.homes[f"{side}_foot"], name=f"{side} foot", pinned=True)

    def _gaze(self) -> int:
        return self.add_goal("look_at", "eyes", translation(GAZE_TARGET), name="gaze")

    def _balance(self) -> None:
        """Keep the centre of mass over the soles of the pinned feet."""
        self.remove_objective("balance")
        if self.is_on("balance") and self.feet:
            corners = [apply(self.homes[f"{side}_foot"], corner)[:2] for side in self.feet for corner in SOLE_CORNERS]
            self.add_objective(CentreOfMass(support=corners, margin=0.01, level=0, name="balance"))


FOOT_PATH_SAMPLES = 180
"""Number of samples of the foot path over a full rotation of the crank."""
MAX_TRAVEL = 0.8
"""Distance from the start at which the walker reverses, m."""
HANGING_HEIGHT = 1.1
"""Height of the crankshaft while the walker hangs in the air, m."""
LEG_SPACING = 0.18
"""Distance of neighbouring pairs of legs, m."""
LEG_COUNTS = {"one": 1, "a pair": 2, "three pairs": 6}


def leg_mounts(count: int) -> list[tuple[bool, float, float]]:
    """Return for each leg whether it is rotated by pi about z, the lead of its crank (rad), and its y position (m)."""
    pairs = max(1, count // 2)
    places: list[tuple[bool, float, float]] = []
    for k in range(pairs):
        ahead, y = 2 * math.pi * k / 3, LEG_SPACING * (k - (pairs - 1) / 2)
        places.append((False, ahead, y))
        if count > 1:
            places.append((True, ahead, y))
    return places


def leg_crank_angle(is_mirrored: bool, ahead: float, angle: float) -> float:
    """Return the crank angle of a leg in its own frame for a shaft at `angle`, rad.

    A leg that is rotated by pi about z sees the angle mirrored.
    """
    return math.pi - angle - ahead if is_mirrored else angle + ahead


def jansen_walker(count: int) -> Mechanism:
    """Return Jansen legs on a chassis that moves along x and z; all cranks are mimic joints of `crank_joint1`."""
    ground, chassis, ride = Link("ground"), Link("chassis"), Joint("ride", dof=("X", "Z"))
    places = leg_mounts(count)
    lead: Joint | None = None
    for k, (turned, ahead, y) in enumerate(places, start=1):
        leg = gallery.jansen_leg(angle=leg_crank_angle(turned, ahead, 0.0))
        crank = leg.joint("crank_joint")
        (frame,) = leg.roots
        for part in (*leg.links.values(), *leg.joints.values()):
            part.name = f"{part.name}{k}"
        mount = Joint(f"mount{k}")
        mount.matrix = make_pose(rotation.about_z(math.pi if turned else 0.0), (0.0, y, 0.0))
        mount.add_child(frame)
        chassis.add_child(mount)
        if lead is None:
            lead = crank
        else:
            # computed from present values, which may differ by full rotations
            ratio = -1.0 if turned else 1.0
            crank.mimic(lead, ratio=ratio, offset=float(crank.values[0]) - ratio * float(lead.values[0]))
    wide = LEG_SPACING * max(1, count // 2) / 2
    add_shapes(chassis, capsule((0.0, -wide, 0.0), (0.0, wide, 0.0), 0.02, DARK))
    add_shapes(chassis, capsule((-0.38, 0.0, -0.078), (0.38 if count > 1 else 0.0, 0.0, -0.078), 0.015, GREY))
    add_shapes(ground, block((0.0, 0.0, -0.02), (2 * MAX_TRAVEL + 1.8, 2 * wide + 0.3, 0.04), GREY))
    ride.add_child(chassis)
    ground.add_child(ride)
    return Mechanism(ground, name="jansen_walker")


@cache
def foot_path() -> Array:
    """Return x and z of the foot over a full rotation of the crank from 0, (FOOT_PATH_SAMPLES + 1, 2), m."""
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
            slider("speed", "Speed, rounds/s", 0.25, -1.0, 1.0, 0.05, "Drive", "Negative: it walks backwards."),
        ]

    def build(self) -> None:
        self.foot_path = foot_path()
        self.x, self.direction = 0.0, 1.0
        self._put()

    def on_control_changed(self, name: str) -> None:
        if name == "legs":
            self.x = 0.0
            self._put()
        elif name == "walks":
            self.x = 0.0
            self._show_foot_paths()
            self.set_targets({"position of the chassis": {"ride": self._ride()}})
        elif name == "turns":
            if self.is_moving:
                self.angle = self.phase = self.joint_value("crank_joint1")
                self.add_objective(*self._drives())
            else:
                self.remove_objective("crank drive")

    @property
    def phase_rate(self) -> float:
        # a crank that rotates from z to x walks along x, but its angle grows from x to z
        return -self.direction * super().phase_rate

    def apply_phase(self) -> None:
        if self.is_on("walks"):
            before, _ = self._feet(self.angle)
            after, heights = self._feet(self.phase)
            on_ground = int(np.argmin(heights))
            self.x -= float(after[on_ground] - before[on_ground])
            if abs(self.x) > MAX_TRAVEL and self.x * self.direction * self.number("speed") > 0:
                self.direction = -self.direction
        self.angle = self.phase
        self.set_targets(
            {"crank drive": {"crank_joint1": self.angle}, "position of the chassis": {"ride": self._ride()}}
        )

    def make_readouts(self) -> list[str]:
        _, heights = self._feet(self.angle)
        standing = int((heights < heights.min() + 0.02).sum())
        if len(heights) == 1:
            return ["1 leg, on the ground" if self.is_on("walks") else "1 leg, in the air"]
        return [f"{len(heights)} legs, feet within 20 mm of the lowest foot: {standing}"]

    # ---- internals --------------------------------------------------------------------------

    def _put(self) -> None:
        count = LEG_COUNTS[self.text("legs")]
        self.leg_mounts = leg_mounts(count)
        mechanism = jansen_walker(count)
        self.angle = self.phase = 0.0
        mechanism.q = mechanism.configuration({"ride": self._ride()})
        mechanism.configurations["home"] = mechanism.q
        self.load_mechanism(mechanism)
        self.add_objective(*self._drives())
        self._show_foot_paths()

    def _drives(self) -> list[JointValues]:
        ride = JointValues({"ride": self._ride()}, level=0, name="position of the chassis")
        crank = JointValues({"crank_joint1": self.angle}, angle_mode="exact", name="crank drive")
        return [ride, crank] if self.is_moving else [ride]

    def _ride(self) -> tuple[float, float]:
        """Return x and z of the chassis, m, with the lowest foot on the ground."""
        if not self.is_on("walks"):
            return 0.0, HANGING_HEIGHT
        return self.x, -float(self._feet(self.angle)[1].min())

    def _feet(self, angle: float) -> tuple[Array, Array]:
        """Return x and z of all feet in the frame of the chassis, (n,) each, m."""
        own = np.array([leg_crank_angle(turned, ahead, angle) for turned, ahead, _ in self.leg_mounts])
        turns = np.linspace(0.0, 2 * math.pi, FOOT_PATH_SAMPLES + 1)
        x, z = (np.interp(own % (2 * math.pi), turns, self.foot_path[:, k]) for k in (0, 1))
        return np.where([turned for turned, *_ in self.leg_mounts], -x, x), z

    def _show_foot_paths(self) -> None:
        """Draw the foot curves while the chassis hangs still."""
        curves: list[CurveInfo] = []
        for k, (turned, _, y) in enumerate(self.leg_mounts, start=1):
            x = -self.foot_path[:-1, 0] if turned else self.foot_path[:-1, 0]
            points = np.stack([x, np.full(FOOT_PATH_SAMPLES, y), self.foot_path[:-1, 1] + HANGING_HEIGHT], axis=-1)
            curves.append(make_curve(f"foot {k}", points, closed=True, rgba=FAINT_COLOR))
        self.session.set_curves([] if self.is_on("walks") else curves)
