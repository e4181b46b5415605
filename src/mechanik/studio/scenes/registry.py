"""All scenes by name, in the order of the start page."""

from __future__ import annotations

from mechanik.studio.scenes.arm_2d import PlanarArms
from mechanik.studio.scenes.boxes import Boxes
from mechanik.studio.scenes.ccd_arm import CcdArm
from mechanik.studio.scenes.cranks import Cranks
from mechanik.studio.scenes.delta import Delta
from mechanik.studio.scenes.dh_arm import DhArm
from mechanik.studio.scenes.excavator import Excavator
from mechanik.studio.scenes.four_bar import FourBar
from mechanik.studio.scenes.gripper import Gripper
from mechanik.studio.scenes.hexapod import Hexapod
from mechanik.studio.scenes.humanoid import Humanoid
from mechanik.studio.scenes.jansen import Jansen
from mechanik.studio.scenes.list_arm import ListArm
from mechanik.studio.scenes.look_at import LookingHead
from mechanik.studio.scenes.partial_goals import PartialGoals
from mechanik.studio.scenes.rover import Rover
from mechanik.studio.scenes.scene import Scene
from mechanik.studio.scenes.scissor_lift import ScissorLift
from mechanik.studio.scenes.table import AroundATable
from mechanik.studio.scenes.two_arms import TwoArms
from mechanik.studio.scenes.walker import Walker

SCENES: dict[str, type[Scene]] = {
    scene.name: scene
    for scene in (
        Hexapod,
        Humanoid,
        Walker,
        Rover,
        FourBar,
        Jansen,
        Delta,
        TwoArms,
        Excavator,
        AroundATable,
        PartialGoals,
        CcdArm,
        DhArm,
        ListArm,
        Boxes,
        PlanarArms,
        LookingHead,
        Cranks,
        Gripper,
        ScissorLift,
    )
}
