"""Demonstrations, each one click away: a mechanism with goals, things to set, and a motion of its own.

One file a scene. They stand on sessions and know nothing of the web.
"""

from mechanik.studio.scenes.entries import entries
from mechanik.studio.scenes.registry import SCENES
from mechanik.studio.scenes.scene import Scene

__all__ = ["SCENES", "Scene", "entries"]
