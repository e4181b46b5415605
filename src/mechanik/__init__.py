"""Mechanik: inverse kinematics for any mechanism, closed loops above all.

    import mechanik as mk
    arm = mk.gallery.panda()
    arm.pose("panda_link8", arm.neutral())
"""

from mechanik import errors, gallery, spatial
from mechanik.errors import MechanikError, UnknownName
from mechanik.mechanism import *  # noqa: F403
from mechanik.version import __version__
