"""Demonstration scenes of the studio: a mechanism with goals, controls and an optional animation.

Each module contains the scenes of one family of mechanisms. Scenes use the interface of a session and do not depend on
the web server.
"""

from mechanik.studio.scenes.scene_base import StudioScene
from mechanik.studio.scenes.scene_registry import SCENES, start_page_entries

__all__ = ["SCENES", "StudioScene", "start_page_entries"]
