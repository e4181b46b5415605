"""Collisions of an arm of boxes, compared with recorded ones of another program."""

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
    """Return an arm with a box of 1.2 x 1.2 x length on each link, starting at its joint."""
    arm = mk.arm_3d(CASES["lengths"], CASES["axes"])
    for k, length in enumerate(CASES["lengths"]):
        arm.link(f"link{k}").collisions = (ShapeInstance(Box((1.2, 1.2, length)), Pose((0, 0, length / 2))),)
    return arm


def walls() -> list[Obstacle]:
    return [
        Obstacle(Box(tuple(2 * half for half in wall["half"])), wall["center"], name=f"wall{k}")
        for k, wall in enumerate(CASES["obstacles"])
    ]


def links_in_collision(collider: Collider, q: list[float]) -> list[bool]:
    bodies = {name for contact in collider.contacts(q) for name in (contact.a, contact.b)}
    return [f"link{k}" in bodies for k in range(len(CASES["lengths"]))]


@pytest.mark.parametrize("case", CASES["self_cases"])
def test_self_collisions_are_the_recorded_ones(case: dict[str, list[float]]) -> None:
    collider = Collider(boxed_arm(), ["self"])
    assert links_in_collision(collider, case["q"]) == case["hit"]
    assert collider.is_free(case["q"]) == (not any(case["hit"]))


@pytest.mark.parametrize("case", CASES["world_cases"])
def test_collisions_with_walls_are_the_recorded_ones(case: dict[str, list[float]]) -> None:
    collider = Collider(boxed_arm(), walls())
    assert links_in_collision(collider, case["q"]) == case["hit"]
    assert collider.is_free(case["q"]) == (not any(case["hit"]))


def test_only_adjacent_links_are_allowed_collisions() -> None:
    allowed_collisions = Collider(boxed_arm(), ["self"]).allowed_collisions
    assert allowed_collisions == {(f"link{k}", f"link{k + 1}"): "adjacent" for k in range(9)}
