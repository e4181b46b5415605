"""What stands on the table: a mechanism with its files, its title and the text that it came from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from mechanik.mechanism import Mechanism
from mechanik.studio.session.anatomy import Anatomy
from mechanik.studio.session.shapes import Meshes

SourceKind = Literal["", "dh", "arm_2d", "arm_3d", "json", "urdf"]
Source = tuple[SourceKind, str]
"""How `EditModel` would be asked to make it: a kind and a text, or two empty texts."""


class Table:
    """A mechanism that a session has to itself. Its structure never changes: an edit puts up another table.

    Args:
        files, may_read: see `Meshes`.
        address: under which the server finds its meshes, with the number behind.
    Attributes:
        bumps: whether any link has a shape that could bump into something.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        title: str = "",
        files: Mapping[str, bytes] | None = None,
        source: Source = ("", ""),
        may_read: bool = False,
        address: str = "/mesh//",
    ) -> None:
        self.mechanism, self.title, self.source = mechanism, title, source
        self.files: Mapping[str, bytes] = {} if files is None else files
        self.may_read, self.address = may_read, address
        self.meshes = Meshes(mechanism, self.files, may_read, address)
        self.anatomy = Anatomy(mechanism)
        self.bumps = any(link.collisions for link in mechanism.links.values())

    @property
    def file_bytes(self) -> int:
        """Of all files that came along."""
        return sum(map(len, self.files.values()))

    def refresh(self) -> None:
        """Limits have changed, which closures are read by."""
        self.anatomy = Anatomy(self.mechanism)
