"""The inputs that `structure` names are accepted by `closed_jacobian` and `assemble`."""

from __future__ import annotations

import numpy as np
import pytest

import mechanik as mk


def present(mechanism, name):
    """What a joint or one of its freedoms holds."""
    if name in mechanism.joints:
        return mechanism.values()[name]
    joint, _, dof = name.rpartition(".")
    return mechanism.joint(joint).value(dof)


@pytest.mark.parametrize("name", mk.gallery.names())
def test_the_inputs_of_the_structure_are_accepted_by_assemble_and_closed_jacobian(name):
    # the angles of a floating base were named one by one, and no angle of a ball can be driven alone
    mechanism = mk.gallery.make(name)
    mechanism.apply(mechanism.assemble())
    drives = mk.structure(mechanism).inputs
    assert mechanism.closed_jacobian(list(mechanism.links)[-1], drives).dependent == ()
    assembly = mechanism.assemble({drive: present(mechanism, drive) for drive in drives})
    assert assembly.success
    np.testing.assert_allclose(mechanism.difference(mechanism.q, assembly.q), 0.0, atol=1e-9)
