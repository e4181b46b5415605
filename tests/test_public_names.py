"""The public names, each once. A change here is a change for users: name it in the CHANGELOG."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from enum import Enum
from functools import cached_property
from types import ModuleType

import pytest

import mechanik as mk

NAMES = [
    "METHODS",
    "Arc",
    "Assembly",
    "AssemblyModes",
    "AssemblyPath",
    "AxisGoal",
    "BatchResult",
    "Box",
    "Builder",
    "Capsule",
    "CartesianPath",
    "CentreOfMass",
    "Clearance",
    "ClosedJacobian",
    "Closure",
    "ClosureGap",
    "Collider",
    "Contact",
    "ConvexMesh",
    "Coupling",
    "Custom",
    "Cylinder",
    "Distance",
    "DoF",
    "FollowResult",
    "Frame",
    "Goal",
    "HalfSpace",
    "HeightField",
    "HingeGoal",
    "InBand",
    "InBox",
    "InCone",
    "IndependentChain",
    "Inertial",
    "Interrupted",
    "Iterate",
    "Joint",
    "JointConstraint",
    "JointValues",
    "Line",
    "Link",
    "LinkGoal",
    "LiveSolver",
    "LiveState",
    "LookAt",
    "Manipulability",
    "Material",
    "MechanikError",
    "Mechanism",
    "Mesh",
    "Method",
    "Mobility",
    "Objective",
    "Obstacle",
    "OnLine",
    "OnPlane",
    "OnTerrain",
    "Options",
    "OrientationGoal",
    "Path",
    "PlannedPath",
    "Pose",
    "PoseGoal",
    "PositionGoal",
    "ReachMap",
    "RestPose",
    "ShapeInstance",
    "Solution",
    "SolutionSet",
    "Solver",
    "Sphere",
    "Spline",
    "Status",
    "Structure",
    "Studio",
    "SurfaceGoal",
    "Task",
    "Terrain",
    "Tracker",
    "TrackerState",
    "TrackerStatus",
    "Trajectory",
    "UnknownName",
    "__version__",
    "arm_2d",
    "arm_3d",
    "check",
    "closed_form",
    "compare",
    "comparison",
    "errors",
    "find_allowed_collisions",
    "find_roots",
    "fit_shapes",
    "follow",
    "formats",
    "from_dh",
    "from_points",
    "gallery",
    "independent_chains",
    "load",
    "mobility",
    "objectives",
    "plan",
    "reachability",
    "retime",
    "save",
    "save_rest_pose",
    "solve",
    "spatial",
    "structure",
    "trim",
    "use_kernels",
    "warm_up",
]


def test_the_public_names_are_these():
    assert sorted(mk.__all__) == sorted(NAMES)
    for name in NAMES:
        assert getattr(mk, name) is not None


def test_nothing_else_leaks_into_the_namespace():
    code = "import mechanik as mk; print(*[n for n in dir(mk) if not n.startswith('_')])"
    seen = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert set(seen) == {name for name in NAMES if not name.startswith("_")}


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'laod'"):
        mk.laod  # noqa: B018


def test_every_public_name_says_what_it_is():
    silent = [name for name in NAMES if not name.startswith("_") and not (getattr(mk, name).__doc__ or "").strip()]
    assert silent == []


def public_callables(label: str, member: object) -> Iterator[tuple[str, Callable[..., object]]]:
    """Public functions and classes, those of public modules, and the methods and properties that classes define."""
    if isinstance(member, ModuleType):
        for name in getattr(member, "__all__", ()):
            yield from public_callables(f"{label}.{name}", getattr(member, name))
    elif callable(member):
        yield label, member
    if isinstance(member, type):
        for name, attribute in vars(member).items():
            if isinstance(attribute, property):
                function = attribute.fget
            elif isinstance(attribute, cached_property):
                function = attribute.func
            else:
                function = getattr(attribute, "__func__", attribute)
            if not name.startswith("_") and inspect.isfunction(function):
                yield f"{label}.{name}", function


PUBLIC_CALLABLES = {label: member for name in NAMES for label, member in public_callables(name, getattr(mk, name))}


def unnamed_parameters(member: Callable[..., object]) -> list[str]:
    """Parameters that the docstring does not name; enums, and exceptions without `__init__`, have those of Python."""
    if isinstance(member, type) and issubclass(member, Enum | BaseException) and "__init__" not in vars(member):
        return []
    text = inspect.getdoc(member) or ""
    names = [name for name in inspect.signature(member).parameters if name not in ("self", "cls") and name[0] != "_"]
    return [name for name in names if not re.search(rf"\b{name}\b", text)]


def test_every_public_function_class_method_and_property_has_a_docstring():
    assert len(PUBLIC_CALLABLES) > 500
    assert [label for label, member in PUBLIC_CALLABLES.items() if not inspect.getdoc(member)] == []


def test_every_docstring_names_all_parameters():
    unnamed = {label: unnamed_parameters(member) for label, member in PUBLIC_CALLABLES.items()}
    assert {label: names for label, names in unnamed.items() if names} == {}


def test_every_exception_is_ours_and_says_what_it_is():
    members = vars(mk.errors).values()
    exceptions = [member for member in members if isinstance(member, type) and issubclass(member, Exception)]
    assert len(exceptions) > 15
    for exception in exceptions:
        assert issubclass(exception, mk.MechanikError)
        assert exception.__doc__
