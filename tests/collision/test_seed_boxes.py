"""The boxes of an arm that was shown in the browser long before this library: what hit what was recorded there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import mechanik as mk
from mechanik.collision import Collider, Obstacle
from mechanik.model.shapes import Box, ShapeInstance
from mechanik.spatial import Pose

CASES = json.loads((Path(__file__).parents[1] / "data/seed_arms/collision_vectors.json").read_text())


def boxed_arm() -> mk.Mechanism:
    """A box 1.2 x 1.2 x length on each link, from its joint on."""
    arm = mk.arm_3d(CASES["lengths"], CASES["axes"])
    for k, length in enumerate(CASES["lengths"]):
        arm.link(f"link{k}").collisions = (ShapeInstance(Box((1.2, 1.2, length)), Pose((0, 0, length / 2))),)
    return arm


def walls() -> list[Obstacle]:
    return [
        Obstacle(Box(tuple(2 * half for half in wall["half"])), wall["center"], name=f"wall{k}")
        for k, wall in enumerate(CASES["obstacles"])
    ]


def hit(collider: Collider, q: list[float]) -> list[bool]:
    bodies = {name for clash in collider.contacts(q) for name in (clash.a, clash.b)}
    return [f"link{k}" in bodies for k in range(len(CASES["lengths"]))]


@pytest.mark.parametrize("case", CASES["self_cases"])
def test_the_arm_hits_itself_where_it_did(case: dict[str, list[float]]) -> None:
    collider = Collider(boxed_arm(), ["self"])
    assert hit(collider, case["q"]) == case["hit"]
    assert collider.is_free(case["q"]) == (not any(case["hit"]))


@pytest.mark.parametrize("case", CASES["world_cases"])
def test_the_arm_hits_the_walls_where_it_did(case: dict[str, list[float]]) -> None:
    collider = Collider(boxed_arm(), walls())
    assert hit(collider, case["q"]) == case["hit"]
    assert collider.is_free(case["q"]) == (not any(case["hit"]))


def test_only_neighbours_are_left_out() -> None:
    left_out = Collider(boxed_arm(), ["self"]).allowed_collisions
    assert left_out == {(f"link{k}", f"link{k + 1}"): "adjacent" for k in range(9)}
