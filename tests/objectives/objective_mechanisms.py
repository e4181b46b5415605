"""Small mechanisms for the tests of objectives."""

from __future__ import annotations

from mechanik import Builder, Inertial, Pose


def arm(**options):
    """Return a planar arm of two links of 1 m, each with 1 kg in its middle."""
    builder = Builder("arm")
    builder.revolute("shoulder", "base", "upper", **options)
    builder.revolute("elbow", "upper", "fore", at=(1, 0, 0))
    builder.fixed("wrist", "fore", "hand", at=(1, 0, 0))
    for link in ("upper", "fore"):
        builder.link(link, inertial=Inertial(1.0, Pose((0.5, 0, 0))))
    return builder.build()


def mixed_mechanism():
    """Return a mechanism with prismatic, revolute, mimic, free, spherical and fixed joints."""
    builder = Builder("mixed")
    builder.prismatic("slide", "base", "cart", limits=(-1, 1))
    builder.revolute("turn", "cart", "disc", limits=(-10, 10))
    builder.revolute("gear", "disc", "wheel", at=(1, 0, 0))
    builder.couple("gear", "turn", ratio=-2.0, offset=0.3)
    builder.free("float", "base", "body")
    builder.spherical("hip", "body", "leg")
    builder.fixed("weld", "leg", "foot")
    return builder.build()
