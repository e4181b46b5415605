"""The solvers and their options, for the page; read from their sources, since loading one may compile its kernels."""

from __future__ import annotations

import ast
import math
import threading
from dataclasses import fields
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from mechanik.solvers import METHODS
from mechanik.solvers.options import Options
from mechanik.studio.messages.checks import Value
from mechanik.studio.messages.events import MethodInfo, OptionInfo

COMMON = ("tolerance", "angle_tolerance", "max_iterations", "restarts", "position_weight", "rotation_weight")
"""Options that every method has and that mean something while it is watched."""
Kind = Literal["number", "whole", "switch", "choice", "text"]


_READING = threading.Lock()


def methods() -> tuple[MethodInfo, ...]:
    """Every method by its name, its own options first. Read once, also where many pages come at once and ask."""
    with _READING:
        return _methods()


@cache
def _methods() -> tuple[MethodInfo, ...]:
    about = _attributes(Options.__doc__ or "")
    hints = {field.name: str(field.type) for field in fields(Options)}
    common = [
        _option(name, ast.parse(hints[name], mode="eval").body, getattr(Options(), name), about.get(name, ""))
        for name in COMMON
    ]
    return tuple(_method(name, place, common) for name, place in METHODS.items())


def _method(name: str, place: str, common: list[OptionInfo]) -> MethodInfo:
    module, kind = place.split(":")
    found = find_spec(module)
    assert found is not None
    assert found.origin is not None
    tree = ast.parse(Path(found.origin).read_text(encoding="utf-8"))
    body = next(part for part in tree.body if isinstance(part, ast.ClassDef) and part.name == kind)
    about = _attributes(ast.get_docstring(body) or "")
    title = name
    options: list[OptionInfo] = []
    for line in body.body:
        if not isinstance(line, ast.AnnAssign) or not isinstance(line.target, ast.Name) or line.value is None:
            continue
        if "ClassVar" not in ast.unparse(line.annotation):
            option = line.target.id
            options.append(_option(option, line.annotation, _number(line.value), about.get(option, "")))
        elif line.target.id == "title":
            title = str(ast.literal_eval(line.value))
    own = {option.name for option in options}
    return MethodInfo(name, title, [*options, *(option for option in common if option.name not in own)])


def _option(name: str, annotation: ast.expr, default: Any, about: str) -> OptionInfo:
    words = ast.unparse(annotation)
    choices: list[str] = []
    kind: Kind = "text"
    if words.startswith("Literal["):
        kind = "choice"
        choices = [
            node.value for node in ast.walk(annotation) if isinstance(node, ast.Constant) and type(node.value) is str
        ]
    elif words.startswith("bool"):
        kind = "switch"
    elif words.startswith("int"):
        kind = "whole"
    elif words.startswith("float"):
        kind = "number"
    return OptionInfo(name, kind, _usual(default, kind), choices, about)


def _usual(default: Any, kind: Kind) -> Value | None:
    """A default that fits the kind; None, what is usual, for infinities and for words that stand for a number."""
    fits = {"number": float | int, "whole": int, "switch": bool, "choice": str, "text": str}[kind]
    return default if isinstance(default, fits) and (isinstance(default, str) or math.isfinite(default)) else None


def _number(value: ast.expr) -> Any:
    """A default as it stands in the source; None for what is more than a literal."""
    try:
        return ast.literal_eval(value)
    except ValueError:
        return None


def _attributes(docstring: str) -> dict[str, str]:
    """What the section `Attributes:` says about each name."""
    told: dict[str, str] = {}
    names: list[str] = []
    lines = docstring.partition("Attributes:")[2].splitlines()
    indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    for line in lines:
        text = line.strip()
        if text and len(line) - len(line.lstrip()) == indent and ":" in text:
            head, _, text = text.partition(":")
            names = [name.strip() for name in head.split(",")]
        for name in names:
            told[name] = f"{told.get(name, '')} {text.strip()}".strip()
    return told
