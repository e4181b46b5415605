"""The exceptions that Mechanik raises: what is wrong, where, and what to do.

All derive from `MechanikError`; each also derives from the built-in exception that a
caller would expect (`ValueError`, `KeyError`, ...), so either may be caught.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class MechanikError(Exception):
    """Something that Mechanik was given cannot be what was meant."""


class UnknownName(MechanikError, KeyError):
    """A name that nothing in the mechanism carries."""

    def __init__(self, kind: str, name: object, known: Iterable[str]) -> None:
        names = [str(one) for one in known]
        self.kind, self.name, self.known = kind, name, names
        text = f"no {kind} is called {name!r} among {len(names)}."
        near = difflib.get_close_matches(str(name), names, n=1, cutoff=0.5)
        if near:
            text += f" Did you mean {near[0]!r}?"
        elif names:
            text += f" There are: {', '.join(names[:8])}{', ...' if len(names) > 8 else ''}."
        super().__init__(text)

    def __reduce__(self) -> tuple[type[UnknownName], tuple[str, object, list[str]]]:
        return UnknownName, (self.kind, self.name, self.known)  # so that it survives the way from another process

    def __str__(self) -> str:  # KeyError would print the repr
        return str(self.args[0])


class DuplicateName(MechanikError, ValueError):
    """Two things of one kind carry the same name."""


class StructureError(MechanikError, ValueError):
    """The graph of links and joints cannot be put together that way."""


class SecondParent(StructureError):
    """A frame that has a parent was given another one."""


class NotAChild(StructureError):
    """A frame was asked to let go of one that it does not hold."""


class WrongKind(StructureError, TypeError):
    """Links hold joints and a joint holds one link; nothing else fits."""


class CyclicStructure(StructureError):
    """A frame would become its own ancestor."""


class DoFError(MechanikError, ValueError):
    """Degrees of freedom out of order, doubled, unknown, or not free."""


class LimitsError(MechanikError, ValueError):
    """Limits of which the lower lies above the upper."""


class ShapeError(MechanikError, ValueError):
    """An array of the wrong shape or length."""


class NotFinite(MechanikError, ValueError):
    """A NaN or an infinity where a number is needed."""


class NotARotation(MechanikError, ValueError):
    """A matrix or quaternion that does not describe a rotation."""


class CouplingError(MechanikError, ValueError):
    """A coupling that follows itself, or a freedom that cannot be coupled."""


class FormatError(MechanikError, ValueError):
    """A file or text that cannot be read as a mechanism."""


class UnknownFormat(FormatError):
    """Content that none of the readers recognises."""


class XmlError(FormatError):
    """Not well-formed XML, or XML that tries to do more than describe a robot."""


class UrdfError(FormatError):
    """Well-formed XML that is not a sound URDF."""


class MjcfError(FormatError):
    """An MJCF model that MuJoCo, which reads it, refuses."""


class SdfError(FormatError):
    """Well-formed XML that is not a sound SDF, or one that says more than is read here."""


class XacroError(FormatError):
    """A xacro file, which has to be expanded first."""


class DHError(FormatError):
    """A Denavit-Hartenberg table that cannot be read."""


class ArmError(FormatError):
    """A list of lengths and axes that does not describe an arm."""


class MeshError(FormatError):
    """The mesh of a link that is not there, cannot be read, or holds no volume."""


class SrdfError(FormatError):
    """Well-formed XML that is not a sound SRDF, or does not fit the mechanism."""


class JsonError(FormatError):
    """A JSON mechanism that does not fit the schema."""


class MissingExtra(MechanikError, ImportError):
    """An optional dependency that is not installed."""

    def __init__(self, need: str, extra: str) -> None:
        super().__init__(f"{need} needs an optional part of Mechanik: pip install 'mechanik[{extra}]'")


class FileMissing(FormatError, FileNotFoundError):
    """A file that is not there."""


class UnknownOption(MechanikError, TypeError):
    """An option that the reader of this kind of file does not take."""


class CannotSave(MechanikError, OSError):
    """A file that could not be written; what stood there before still does."""


class CannotServe(MechanikError, OSError):
    """An address or port on which the studio cannot be reached."""


class StudioClosed(MechanikError, RuntimeError):
    """A studio that was closed was asked for something."""


class ClosureError(FormatError):
    """Closures beside a model that do not fit it, or do not say what they should."""


class ObjectiveError(MechanikError, ValueError):
    """An objective that contradicts itself, or is asked for what it does not have."""


class NoClosedForm(MechanikError, ValueError):
    """A chain whose geometry has no closed form among those known here; the general solver takes any."""


class NotSolved(MechanikError, RuntimeError):
    """A solution was required, and there is none; the best that was found is in `solution`."""

    def __init__(self, message: str, solution: object = None) -> None:
        super().__init__(message)
        self.solution = solution

    def __reduce__(self) -> tuple[type[NotSolved], tuple[str]]:
        return NotSolved, (str(self),)


class NotFollowed(NotSolved):
    """A path was required, and it breaks; `solution` holds the report, with the part before the break."""

    def __reduce__(self) -> tuple[type[NotFollowed], tuple[str]]:
        return NotFollowed, (str(self),)


class Refused(MechanikError, ValueError):
    """A method was asked for what it cannot do; the message names one that can."""


class OtherBatch(MechanikError, ValueError):
    """A batch was to go on with the result of another one; that result stays as it is."""


class PlanningError(MechanikError, RuntimeError):
    """No path, or no way to time one: from a start or to a goal that cannot be, or not found in the time there was."""


class KernelsUnavailable(MechanikError, RuntimeError):
    """The tier of kernels that was chosen cannot be had here."""
