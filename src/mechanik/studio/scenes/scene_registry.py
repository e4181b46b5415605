"""Table of all scenes, and the entries of the start page: scenes first, then the gallery."""

from __future__ import annotations

from mechanik import gallery
from mechanik.studio.messages.events import GalleryEntry
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
    "panda": ("Franka Panda", "Seven joints and a hand with two fingers."),
    "ur5": ("Universal Robots UR5", "Six joints, a wrist whose axes do not meet."),
    "ur10": ("Universal Robots UR10", "The larger one of the family."),
    "iiwa14": ("KUKA iiwa 14", "Seven joints: one to spare for the elbow."),
    "puma560": ("Puma 560", "The arm of the textbooks."),
    "scara": ("SCARA", "Turn, turn, slide, turn: tool down, and fast."),
    "rail_arm": ("Arm on a rail", "Six turning joints on two metres of rail."),
    "snake": ("Snake", "Thirty joints in one metre."),
    "dh6": ("DH arm", "Six joints, written as a modified DH table."),
    "grippy10": ("Ten-joint arm", "A list of lengths and axes, with a box on each link."),
    "zalo5": ("Five-joint arm", "Hinges and limits, as for cyclic coordinate descent."),
    "planar_2r": ("Two links in the plane", "Two ways to reach each point."),
    "planar_3r": ("Three links in the plane", "A point leaves one freedom over."),
    "humanoid": ("Humanoid", "A person of 37 freedoms."),
    "biped": ("Biped", "Two legs whose ankles are driven by rods: closed loops in each."),
    "walker": ("Six-legged walker", "36 joints, feet that place themselves fully."),
    "rover": ("Rover", "Rockers, bogies, and the bar between them."),
    "two_arms": ("Two arms, one box", "One loop through both arms and what they hold."),
    "hexapod": ("Hexapod", "Six struts with cardan joints, of the size of a hand."),
    "stewart_platform": ("Stewart platform", "A platform on six legs that change their length."),
    "delta_robot": ("Delta robot", "A platform that moves and never turns."),
    "planar_3rrr": ("Planar 3-RRR", "Three arms move and turn a platform in the plane."),
    "excavator": ("Excavator", "Three cylinders, a swing, and a four-bar at the bucket."),
    "gripper": ("Gripper", "Two fingers, one motor, two springs."),
    "scissor_lift": ("Scissor lift", "Crossed bars, four loops, one freedom."),
    "four_bar": ("Four-bar", "A crank that turns and a rocker that swings."),
    "slider_crank": ("Slider-crank", "As in an engine."),
    "five_bar": ("Five-bar", "Two cranks move one point in the plane."),
    "pantograph": ("Pantograph", "Draws larger what is traced."),
    "peaucellier": ("Peaucellier's linkage", "A circle made into an exact straight line."),
    "jansen_leg": ("Jansen's leg", "The leg of the beach animals: eight bars, one crank."),
    "klann_leg": ("Klann's leg", "Six bars that lift the foot high."),
    "watt_six_bar": ("Watt's six-bar", "Two four-bars in a row."),
    "stephenson_six_bar": ("Stephenson's six-bar", "A coupler that drives a lever through a rod."),
    "bennett": ("Bennett's linkage", "Four hinges askew, and yet one freedom."),
    "sarrus": ("Sarrus' linkage", "Straight up and down on hinges alone."),
}
"""Title and description of gallery mechanisms, in the order of the start page."""
GROUP_TITLES = {
    "panda": "Arms",
    "humanoid": "Legs and wheels",
    "two_arms": "Parallel machines",
    "excavator": "Machines with loops",
    "four_bar": "Linkages",
}
"""Heading of each group of the start page, by its first mechanism."""


def start_page_entries() -> list[GalleryEntry]:
    """Return the entries of the start page, scenes before gallery mechanisms.

    Returns:
        The entries; pictures are addresses on the server.

    Example:
        >>> from mechanik.studio.scenes import start_page_entries
        >>> [entry.name for entry in start_page_entries()][:2]
        ['hexapod', 'humanoid']
    """
    scenes = [
        GalleryEntry("scene", name, scene.title, first_sentence(scene.about), f"/pictures/scene-{name}.png")
        for name, scene in SCENES.items()
    ]
    known = gallery.names()
    order = [name for name in GALLERY_CAPTIONS if name in known] + [
        name for name in known if name not in GALLERY_CAPTIONS
    ]
    mechanisms: list[GalleryEntry] = []
    headline = ""
    for name in order:
        title, about = GALLERY_CAPTIONS.get(name, (name.replace("_", " "), ""))
        headline = GROUP_TITLES.get(name, headline)
        mechanisms.append(GalleryEntry("gallery", name, title, about, f"/pictures/{name}.png", headline))
    return scenes + mechanisms


def first_sentence(text: str) -> str:
    """Return the text up to the first full stop; a caption has one sentence."""
    head, stop, _ = text.partition(". ")
    return head + "." if stop else text
