"""What a comparison came to: rows, and ways to read them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from mechanik.comparison.records import read_records, write_records
from mechanik.comparison.summary import Row, summarise
from mechanik.comparison.table import markdown, markdown_overview, overview_text, text_table
from mechanik.comparison.trial import Trial
from mechanik.errors import CannotSave, UnknownName


class Comparison:
    """
    Attributes:
        trials: everything that was tried, one record each.
        about: settings, machine, command, and the robots' titles.
        is_complete: False if it was interrupted.
    """

    def __init__(self, trials: Sequence[Trial], about: dict[str, Any], is_complete: bool = True) -> None:
        self.trials, self.about, self.is_complete = tuple(trials), about, is_complete

    @classmethod
    def from_csv(cls, path: str | Path) -> Comparison:
        """One that was written by `to_csv`, or by `compare(csv=...)`."""
        return cls(*read_records(path))

    def __repr__(self) -> str:
        def count(what: str) -> str:
            many = len({getattr(row, what) for row in self.rows})
            return f"{many} {what}{'' if many == 1 else 's'}"

        what = f"{count('solver')}, {count('robot')}, {count('task')}; {len(self.trials)} records"
        return f"<comparison of {what}{'' if self.is_complete else '; interrupted'}>"

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """One for each solver on each task of each robot."""
        return summarise(self.trials)

    @property
    def titles(self) -> dict[str, str]:
        """Of the robots, for people, by name."""
        return self.about.get("titles", {})

    def row(self, solver: str, robot: str, task: str) -> Row:
        """The row of a solver on a task of a robot."""
        for row in self.rows:
            if (row.solver, row.robot, row.task) == (solver, robot, task):
                return row
        raise UnknownName("row", f"{solver}/{robot}/{task}", [f"{r.solver}/{r.robot}/{r.task}" for r in self.rows])

    def select(
        self,
        solvers: Iterable[str] | None = None,
        robots: Iterable[str] | None = None,
        tasks: Iterable[str] | None = None,
    ) -> tuple[Row, ...]:
        """The rows of some solvers, robots and tasks; None: all."""
        wanted = [None if some is None else {some} if isinstance(some, str) else set(some)
                  for some in (solvers, robots, tasks)]  # fmt: skip
        return tuple(
            row
            for row in self.rows
            if all(
                some is None or name in some
                for some, name in zip(wanted, (row.solver, row.robot, row.task), strict=True)
            )
        )

    def table(
        self,
        solvers: Iterable[str] | None = None,
        robots: Iterable[str] | None = None,
        tasks: Iterable[str] | None = None,
    ) -> str:
        """The table as text: a block for each task of each robot."""
        return text_table(self.select(solvers, robots, tasks), self.titles)

    def overview(self) -> str:
        """Success in the budget by solver and robot, the mean over the tasks, as text in percent."""
        return overview_text(self.rows, self.titles)

    def markdown(self) -> str:
        """The overview and the whole table in Markdown."""
        return f"{markdown_overview(self.rows, self.titles)}\n{markdown(self.rows, self.titles)}"

    def to_csv(self, path: str | Path) -> None:
        """Every record, one a line; `from_csv` reads them back."""
        write_records(path, self.trials, self.about)

    def to_html(self, path: str | Path) -> None:
        """A report in a single file that needs no network: tables, a heat map, convergence, success against time."""
        from mechanik.comparison.page import page

        target = Path(path)
        beside = target.with_name(f"{target.name}.part")
        try:
            beside.write_text(page(self), encoding="utf-8")
            beside.replace(target)
        except OSError as error:
            raise CannotSave(f"{path} cannot be written: {error.strerror}") from None
