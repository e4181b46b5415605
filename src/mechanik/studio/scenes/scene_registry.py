"""Registry of all scenes, and the entries of the start page: scenes, then mechanisms of the gallery."""

from __future__ import annotations

from mechanik import gallery
from mechanik.studio.messages.events import StartPageEntry
from mechanik.studio.scenes.arm_scenes import CcdArmScene, DhArmScene, ListArmScene, PlanarArmScene
from mechanik.studio.scenes.collision_scenes import BoxArmScene, TableScene
from mechanik.studio.scenes.goal_scenes import LookAtScene, PartialGoalScene
from mechanik.studio.scenes.legged_scenes import HumanoidScene, JansenScene, WalkerScene
from mechanik.studio.scenes.linkage_scenes import CrankScene, FourBarScene
from mechanik.studio.scenes.machine_scenes import ExcavatorScene, GripperScene, RoverScene, ScissorLiftScene
from mechanik.studio.scenes.parallel_scenes import DeltaScene, HexapodScene, TwoArmScene
from mechanik.studio.scenes.scene_base import StudioScene

SCENES: dict[str, type[StudioScene]] = {
    scene.name: scene
    for scene in (
        HexapodScene,
        HumanoidScene,
        WalkerScene,
        RoverScene,
        FourBarScene,
        JansenScene,
        DeltaScene,
        TwoArmScene,
        ExcavatorScene,
        TableScene,
        PartialGoalScene,
        CcdArmScene,
        DhArmScene,
        ListArmScene,
        BoxArmScene,
        PlanarArmScene,
        LookAtScene,
        CrankScene,
        GripperScene,
        ScissorLiftScene,
    )
}
"""Scene classes by name, in the order of the start page."""


GALLERY_CAPTIONS = {
    "panda": ("Franka Panda", "Seven joints and a gripper with two fingers."),
    "ur5": ("Universal Robots UR5", "Six joints; the three wrist axes do not meet in one point."),
    "ur10": ("Universal Robots UR10", "Six joints, longer than the UR5."),
    "iiwa14": ("KUKA iiwa 14", "Seven joints: one redundant degree of freedom moves the elbow."),
    "puma560": ("Puma 560", "The six-joint arm of many textbooks."),
    "scara": ("SCARA", "Three revolute joints and one prismatic joint; the tool points down."),
    "rail_arm": ("Arm on a rail", "Six revolute joints on a rail of two metres."),
    "snake": ("Snake", "Thirty joints in one metre."),
    "dh6": ("DH arm", "Six joints from a modified DH table."),
    "grippy10": ("Ten-joint arm", "Made from a list of lengths and axes, with a box for each link."),
    "zalo5": ("Five-joint arm", "Revolute joints with limits."),
    "planar_2r": ("Two links in the plane", "Two solutions for each point."),
    "planar_3r": ("Three links in the plane", "A point goal leaves one degree of freedom."),
    "humanoid": ("Humanoid", "A human figure with 37 degrees of freedom."),
    "biped": ("Biped", "Two legs with rods that drive the ankles: closed loops in each leg."),
    "walker": ("Six-legged walker", "36 joints; each foot has six degrees of freedom."),
    "rover": ("Rover", "Rockers, bogies and a differential bar."),
    "two_arms": ("Two arms, one box", "Both arms and the box form one loop."),
    "hexapod": ("Hexapod", "Six struts with universal joints."),
    "stewart_platform": ("Stewart platform", "A platform on six legs of variable length."),
    "delta_robot": ("Delta robot", "A platform that translates and does not rotate."),
    "planar_3rrr": ("Planar 3-RRR", "Three arms move and rotate a platform in the plane."),
    "excavator": ("Excavator", "Three cylinders, a swing, and a four-bar at the bucket."),
    "gripper": ("Gripper", "Two fingers, one motor, two springs."),
    "scissor_lift": ("Scissor lift", "Crossed bars, four loops, one degree of freedom."),
    "four_bar": ("Four-bar", "A rotating crank and a swinging rocker."),
    "slider_crank": ("Slider-crank", "The mechanism of a piston engine."),
    "five_bar": ("Five-bar", "Two cranks move one point in the plane."),
    "pantograph": ("Pantograph", "Draws an enlarged copy of a curve."),
    "peaucellier": ("Peaucellier's linkage", "Converts a circle into an exact straight line."),
    "jansen_leg": ("Jansen's leg", "The leg of the Strandbeest: eight bars, one crank."),
    "klann_leg": ("Klann's leg", "Six bars with a high step."),
    "watt_six_bar": ("Watt's six-bar", "Two four-bars in a row."),
    "stephenson_six_bar": ("Stephenson's six-bar", "A coupler that drives a lever through a rod."),
    "bennett": ("Bennett's linkage", "Four skew revolute joints with one degree of freedom."),
    "sarrus": ("Sarrus' linkage", "A straight line from revolute joints only."),
}
"""Title and description of gallery mechanisms, in the order of the start page."""
GROUP_TITLES = {
    "panda": "Arms",
    "humanoid": "Legs and wheels",
    "two_arms": "Parallel machines",
    "excavator": "Machines with loops",
    "four_bar": "Linkages",
}
"""Heading of each gallery group on the start page, by the name of the first mechanism in the group."""


def start_page_entries() -> list[StartPageEntry]:
    """Return the entries of the start page, scenes before gallery mechanisms.

    Returns:
        The entries; `picture` is a URL path on the server.

    Example:
        >>> from mechanik.studio.scenes import start_page_entries
        >>> [entry.name for entry in start_page_entries()][:2]
        ['hexapod', 'humanoid']
    """
    scenes = [
        StartPageEntry("scene", name, scene.title, first_sentence(scene.about), f"/pictures/scene-{name}.png")
        for name, scene in SCENES.items()
    ]
    gallery_names = gallery.names()
    ordered_names = [name for name in GALLERY_CAPTIONS if name in gallery_names] + [
        name for name in gallery_names if name not in GALLERY_CAPTIONS
    ]
    mechanisms: list[StartPageEntry] = []
    group = ""
    for name in ordered_names:
        title, about = GALLERY_CAPTIONS.get(name, (name.replace("_", " "), ""))
        group = GROUP_TITLES.get(name, group)
        mechanisms.append(StartPageEntry("gallery", name, title, about, f"/pictures/{name}.png", group))
    return scenes + mechanisms


def first_sentence(text: str) -> str:
    """Return the first sentence of a text."""
    sentence, separator, _ = text.partition(". ")
    return sentence + "." if separator else text
