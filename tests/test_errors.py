"""The exceptions of Mechanik."""

from __future__ import annotations

import inspect
import pickle

import pytest

from mechanik import errors

EXAMPLES = {
    errors.UnknownName: errors.UnknownName("link", "hnad", ["hand", "foot"]),
    errors.MissingExtra: errors.MissingExtra("reading meshes", "meshes"),
}
CLASSES = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.MechanikError)]


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_an_error_of_another_process_arrives_as_it_was(kind):
    """Once MissingExtra could not be unpickled."""
    error = EXAMPLES.get(kind) or kind("the message")
    restored_error = pickle.loads(pickle.dumps(error))
    assert type(restored_error) is kind
    assert str(restored_error) == str(error)
    assert vars(restored_error) == vars(error)
