"""Exceptions of Mechanik; each message says what is wrong, where, and what to do.

Each exception is a `MechanikError` and also a matching built-in exception (`ValueError`, `KeyError`, ...), so callers
may catch either.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class MechanikError(Exception):
    """Base class of all exceptions of Mechanik.

    Example:
        >>> try:
        ...     mk.gallery.panda().link("hand")
        ... except mk.MechanikError as error:
        ...     print(type(error).__name__)
        UnknownName
    """


class UnknownName(MechanikError, KeyError):
    """A name that does not exist; the message suggests a similar name or lists some existing names.

    Args:
        kind: kind of the object, such as "link".
        name: the unknown name.
        known: the existing names.

    Attributes:
        kind, name, known: as in Args; `known` is a list.

    Example:
        >>> try:
        ...     mk.gallery.panda().link("hand")
        ... except mk.UnknownName as error:
        ...     print(error.kind, error.name)
        link hand
    """

    def __init__(self, kind: str, name: object, known: Iterable[str]) -> None:
        names = [str(known_name) for known_name in known]
        self.kind, self.name, self.known = kind, name, names
        text = f"no {kind} is called {name!r}."
        matches = difflib.get_close_matches(str(name), names, n=1, cutoff=0.5)
        if matches:
            text += f" Did you mean {matches[0]!r}?"
        elif names:
            text += f" There are: {', '.join(names[:8])}{', ...' if len(names) > 8 else ''}."
        super().__init__(text)

    def __reduce__(self) -> tuple[type[UnknownName], tuple[str, object, list[str]]]:
        return UnknownName, (self.kind, self.name, self.known)  # the default would pass only the message

    def __str__(self) -> str:  # KeyError would return the repr of the message
        return str(self.args[0])


class StructureError(MechanikError, ValueError):
    """The graph of links and joints does not allow the operation, or an argument of a mechanism is invalid.

    Examples are a second parent, a cycle, a name that is in use and a negative length.

    Args:
        args: the message.
        code: code with which `mk.check` reports the error: "duplicate-name", "second-parent", "cycle" or "unreadable".

    Attributes:
        code: as in Args.
    """

    def __init__(self, *args: object, code: str = "unreadable") -> None:
        super().__init__(*args)
        self.code = code


class InvalidArgument(StructureError, TypeError):
    """An argument has the wrong type, such as a joint where a link is required, or cannot be used in this call."""


class DoFError(MechanikError, ValueError):
    """Dofs or axes are invalid, such as unknown or repeated dofs, or do not fit the joint."""


class LimitsError(MechanikError, ValueError):
    """A limit, a count or another number is out of range, such as a lower limit above the upper limit."""


class ShapeError(MechanikError, ValueError):
    """An argument is not numeric, an array has the wrong shape, or a size is negative."""


class NotFinite(MechanikError, ValueError):
    """A number is NaN or infinite."""


class NotARotation(MechanikError, ValueError):
    """A pose, rotation or quaternion is invalid, a direction is zero, or a convention of Euler angles is unknown."""


class CouplingError(MechanikError, ValueError):
    """A coupling or joint constraint is invalid, or does not allow the value given for a mimic joint."""


class FormatError(MechanikError, ValueError):
    """A file or text cannot be read or written; the message names the file and, if known, the position in it.

    Args:
        args: the message.
        code: code with which `mk.check` reports the error: "unknown-format" or "unreadable".

    Attributes:
        code: as in Args.
    """

    def __init__(self, *args: object, code: str = "unreadable") -> None:
        super().__init__(*args)
        self.code = code


class MissingExtra(MechanikError, ImportError):
    """An optional dependency is not installed.

    Args:
        need: the feature that needs the dependency; the subject of the message.
        extra: name of the extra to install.

    Attributes:
        need, extra: as in Args.
    """

    def __init__(self, need: str, extra: str) -> None:
        self.need, self.extra = need, extra
        super().__init__(f"{need} needs an optional part of Mechanik: pip install 'mechanik[{extra}]'")

    def __reduce__(self) -> tuple[type[MissingExtra], tuple[str, str]]:
        return MissingExtra, (self.need, self.extra)  # the default would pass only the message


class FileMissing(FormatError, FileNotFoundError):
    """A file does not exist."""


class CannotSave(MechanikError, OSError):
    """A file or folder cannot be written."""


class StudioError(MechanikError, RuntimeError):
    """The studio cannot use the address or port, or was used after it was closed."""


class ObjectiveError(MechanikError, ValueError):
    """An objective, a task or an option is invalid or contradictory, or lacks the requested property."""


class NoClosedForm(MechanikError, ValueError):
    """No closed form is known for the chain; `mk.solve` also solves such chains, by iteration."""


class NotSolved(MechanikError, RuntimeError):
    """A required solution was not found, or a required path cannot be followed.

    Args:
        message: the message.
        solution: the best result, such as a `Solution`, or a `FollowResult` with the part of the path that can be
            followed.

    Attributes:
        solution: as in Args; None if there is no result, and after unpickling.
    """

    def __init__(self, message: str, solution: object = None) -> None:
        super().__init__(message)
        self.solution = solution

    def __reduce__(self) -> tuple[type[NotSolved], tuple[str]]:
        return NotSolved, (str(self),)


class InvalidOperation(MechanikError, ValueError):
    """The operation is not supported, is not possible in the present state, or exceeds a limit."""


class BatchMismatch(MechanikError, ValueError):
    """A batch cannot continue the stored result of a different batch; that result is unchanged."""


class PlanningError(MechanikError, RuntimeError):
    """No path or no time profile was found, for example for an invalid start or within the time limit."""


class KernelsUnavailable(MechanikError, RuntimeError):
    """The selected kernel tier is unknown or not available, or kernels cannot be compiled on this machine."""
