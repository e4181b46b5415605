"""The examples in docstrings run and print what they say."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import numpy as np
import pytest

import mechanik as mk

NAMES = sorted(
    module.name
    for module in pkgutil.walk_packages(mk.__path__, "mechanik.")
    if not module.name.startswith(("mechanik.kernels", "mechanik.studio.web", "mechanik.__main__"))
)


@pytest.mark.parametrize("name", NAMES)
def test_examples_in_docstrings_print_what_they_say(name: str, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(name)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    report: list[str] = []
    for example in doctest.DocTestFinder().find(module, name, module, extraglobs={"mk": mk, "np": np}):
        runner.run(example, out=report.append)
    assert not runner.failures, "".join(report)
