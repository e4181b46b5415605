"""The folder in which an unfinished batch waits beside its result, so that it can go on where it stopped."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mechanik.cli.output import aside
from mechanik.cli.usage import UsageError
from mechanik.errors import CannotSave, MechanikError

ASKED, RESULT, TARGETS, STARTS = "asked.json", "result", "targets.numbers", "starts.numbers"
Asked = Mapping[str, Any]
"""What the batch is, by the words that people know for it, as plain JSON."""


class WorkFolder:
    """`R.npz.part` beside R.npz: what was asked, numbers read from text, and the rows that are done."""

    def __init__(self, target: Path) -> None:
        self.path = target.with_name(f"{target.name}.part")
        self.targets, self.starts = self.path / TARGETS, self.path / STARTS
        self.result = self.path / RESULT

    def __str__(self) -> str:
        return self.path.name

    @property
    def holds_rows(self) -> bool:
        """Whether anything in it would be a pity to lose."""
        from mechanik.batch import BatchResult

        if not self.result.exists():
            return False
        try:
            return BatchResult.open(self.result).done > 0
        except MechanikError:  # let people look for themselves
            return True

    def open(self, asked: Asked, resume: bool) -> None:
        """Make it, or find it as the same batch left it; what belongs to anything else is refused, and stays."""
        try:
            before = self._before() if self.path.exists() else None
            if before is not None and self.holds_rows:
                self._check(before, asked, resume)
                return
            if resume:
                aside("note: there is nothing to go on with, so this begins anew")
            if before is not None:
                self.remove()
            self.path.mkdir(exist_ok=True)
            (self.path / ASKED).write_text(json.dumps(asked, indent=2) + "\n", encoding="utf-8")
        except OSError as error:
            raise CannotSave(f"{self.path} cannot be written: {error.strerror or error}") from None

    def remove(self) -> None:
        """Take away what is ours in it, and the folder if nothing else is left."""
        shutil.rmtree(self.result, ignore_errors=True)
        with contextlib.suppress(OSError):
            for name in (TARGETS, STARTS, ASKED):
                (self.path / name).unlink(missing_ok=True)
            self.path.rmdir()

    def _check(self, before: Asked, asked: Asked, resume: bool) -> None:
        if not resume:
            raise UsageError(f"{self} holds an unfinished batch: --resume goes on with it; delete it to begin anew")
        other = [name for name in {**before, **asked} if before.get(name) != asked.get(name)]
        if other:
            raise UsageError(
                f"{self} holds an unfinished batch with other {', '.join(other)}; "
                "ask for the same again to go on with it, or delete it to begin anew"
            )

    def _before(self) -> Asked:
        try:
            return json.loads((self.path / ASKED).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            text = f"{self.path} is in the way: it is no unfinished batch; move it, or choose another --out"
            raise UsageError(text) from None


def digest_of_file(path: Path | None) -> str | None:
    """By which a file is known again, wherever it is and whatever it is called."""
    if path is None:
        return None
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
