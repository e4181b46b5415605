"""Demonstration scenes of the studio: mechanisms with goals, controls and an optional animation.

The modules `*_scenes` define the scenes, and `scene_registry` lists them with the entries of the start page. Scenes use
the interface of a session and do not depend on the web server.
"""

from mechanik.studio.scenes.scene_base import StudioScene
from mechanik.studio.scenes.scene_registry import SCENES, start_page_entries

__all__ = ["SCENES", "StudioScene", "start_page_entries"]
