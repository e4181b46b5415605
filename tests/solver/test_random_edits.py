"""A thousand edits of mechanisms with loops; each solve equals that of a newly built mechanism."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from graph_arms import hang
from random_edits import KINDS, RandomEdits

import mechanik as mk
from mechanik.formats.json import read_json, write_json

EDITS = 200
"""Of each of the five mechanisms."""
SAME = 1e-9


def five_bar_on_an_arm() -> mk.Mechanism:
    """A linkage on an arm, so that there are joints above both ends of a loop."""
    mechanism = mk.gallery.five_bar()
    ground = mechanism.link("ground")
    world = mk.Link("world")
    _, shoulder = hang(world, "shoulder", dof="EZ", at=(0, 0, 0.1), values=0.2)
    _, upper = hang(shoulder, "upper", dof="EY", at=(0, 0, 0.3), values=0.4)
    carrier = mk.Joint("carrier", dof=(), position=(0.4, 0, 0))
    upper.add_child(carrier)
    carrier.add_child(ground)
    return mk.Mechanism(world)


def two_linkages() -> mk.Mechanism:
    """Loops that share nothing, on one ground."""
    four_bar, slider_crank = mk.gallery.four_bar(), mk.gallery.slider_crank()
    for kind in (slider_crank.joints, slider_crank.links):
        for name, frame in kind.items():
            frame.name = f"engine_{name}"
    stand = mk.Joint("stand", dof=(), position=(0, 0, 1))
    four_bar.link("ground").add_child(stand)
    stand.add_child(slider_crank.link("engine_ground"))
    return mk.Mechanism(four_bar.link("ground"))


@pytest.mark.parametrize(
    "make",
    [mk.gallery.four_bar, five_bar_on_an_arm, mk.gallery.stewart_platform, mk.gallery.delta_robot, two_linkages],
)
def test_after_each_edit_a_solve_equals_that_of_a_newly_built_mechanism(make):
    met = edit_and_compare(make(), seed=1, edits=EDITS)
    assert met > EDITS // 3  # else it would be a test of failures


def edit_and_compare(mechanism: mk.Mechanism, seed: int, edits: int) -> int:
    """The number of solves that succeed."""
    solver = mk.Solver(mechanism.roots, max_iterations=60)
    editor = RandomEdits(solver.mechanism, seed)
    met, fails = 0, False
    for number in range(edits):
        kind = "undo_last" if fails and editor.rng.random() < 0.7 else editor.pick(KINDS)
        getattr(editor, kind)()
        edited, label = editor.mechanism, f"edit {number}: {kind}"
        q0 = edited.q
        fresh = pickle.loads(pickle.dumps(edited)) if number % 2 else read_json(write_json(edited))
        assert fresh.space.q_names == edited.space.q_names, label
        np.testing.assert_allclose(fresh.q, q0, atol=1e-14, err_msg=label)
        theirs = mk.Solver(fresh, max_iterations=60).solve(q0=q0)
        ours = solver.solve()
        assert (ours.status, ours.success) == (theirs.status, theirs.success), label
        assert [*ours.errors] == [*theirs.errors], label
        np.testing.assert_allclose(ours.q, theirs.q, atol=SAME, rtol=0, err_msg=label)
        fails = not ours.success
        met += ours.success
    return met
