"""The report: one HTML file with everything inside, so that it opens without a network."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from mechanik.comparison.curves import plots
from mechanik.comparison.page_style import SCRIPT, STYLE
from mechanik.comparison.results import Comparison
from mechanik.comparison.summary import Row
from mechanik.comparison.svg import key
from mechanik.comparison.table import COLUMNS, blocks, cells, overview, percent

ALL = "all tasks"
HEAT_NOTE = (
    "<p>Percent of targets with a verified answer. What a solver refuses counts as a miss in the mean over all tasks; "
    "a hatched field is refused altogether. Point at a field for its confidence interval.</p>"
)
PLOT_NOTE = (
    "<p>Errors are the least so far in one attempt, weighted as solvers see them: the median over attempts that "
    "succeed, or over all where none does. Time is that of an idle call and of as many iterations, unwatched.</p>"
)


def page(comparison: Comparison) -> str:
    """The whole document."""
    rows = comparison.rows
    solvers = list(dict.fromkeys(row.solver for row in rows))
    numbers = {solver: k for k, solver in enumerate(solvers)}
    title = "Mechanik: solvers compared"
    return "\n".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{title}</title><style>{STYLE}</style></head><body><main>",
            f"<h1>{title}</h1>",
            _about(comparison),
            "<h2>Success in the time budget</h2>",
            HEAT_NOTE,
            _heat_maps(comparison),
            "<h2>Convergence, and success against time</h2>",
            _plots(comparison, numbers),
            "<h2>The table</h2>",
            _meanings(),
            _table(comparison),
            f"</main><script>{SCRIPT}</script></body></html>",
        ]
    )


def _about(comparison: Comparison) -> str:
    about, settings, machine = (comparison.about, *(comparison.about.get(k, {}) for k in ("settings", "machine")))

    def number(name: str) -> str:
        return f"{settings.get(name, math.nan):g}"

    slow = f"a solver that needs more than {number('patience')} s for a task gets fewer, and the column n says how many"
    facts = [
        ("machine", f"{machine.get('processor', '?')}, {machine.get('cores', '?')} cores, {machine.get('system', '')}"),
        ("versions", ", ".join(f"{k} {machine.get(k, '?')}" for k in ("mechanik", "python", "numpy", "numba"))),
        ("date", machine.get("date", "?")),
        ("seed", number("seed")),
        ("success means", f"{number('tolerance')} m and {number('angle_tolerance')} rad, limits kept, loops shut"),
        ("time budget", f"{number('budget')} s a target, with restarts"),
        ("targets", f"up to {number('targets')} of each task; {slow}"),
    ]
    if about.get("command"):
        facts.append(("command", about["command"]))
    if not comparison.is_complete:
        facts.append(("interrupted", "this is what was done by then"))
    lines = "".join(f"<dt>{escape(name)}</dt><dd>{escape(str(value))}</dd>" for name, value in facts)
    return f'<dl class="about">{lines}</dl>'


def _heat_maps(comparison: Comparison) -> str:
    tasks = list(dict.fromkeys(row.task for row in comparison.rows))
    parts = [_choice("heat", [ALL, *tasks])]
    for k, task in enumerate([ALL, *tasks]):
        some = [row for row in comparison.rows if task in (ALL, row.task)]
        hidden = " hidden" if k else ""
        parts.append(f'<div class="scroll" data-heat="{escape(task)}"{hidden}>{_heat_map(comparison, some)}</div>')
    return "".join(parts)


def _heat_map(comparison: Comparison, rows: Sequence[Row]) -> str:
    solvers, robots, means = overview(rows, comparison.titles)
    head = "".join(f"<th>{escape(comparison.titles.get(robot, robot))}</th>" for robot in robots)
    lines: list[str] = []
    for solver in solvers:
        fields: list[str] = []
        for robot in robots:
            mean = means[solver, robot]
            tip = "; ".join(_tip(row) for row in rows if (row.solver, row.robot) == (solver, robot))
            if mean is None:
                fields.append(f'<td class="none" title="{escape(tip)}"></td>')
            else:
                fields.append(f'<td style="--p:{mean:.3f}" title="{escape(tip)}">{percent(mean)}</td>')
        lines.append(f"<tr><th>{escape(solver)}</th>{''.join(fields)}</tr>")
    return f'<table class="heat"><thead><tr><th></th>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table>'


def _tip(row: Row) -> str:
    if row.refused:
        return f"{_words(row.task)}: {row.refused}"
    low, high = row.budget_interval
    return f"{_words(row.task)}: {row.budget} of {row.trials} ({100 * low:.0f}-{100 * high:.0f} %)"


def _plots(comparison: Comparison, numbers: dict[str, int]) -> str:
    legend = "".join(
        f'<button type="button" data-key="{number}" aria-pressed="true">{key(number)}{escape(solver)}</button>'
        for solver, number in numbers.items()
    )
    robots = list(dict.fromkeys(row.robot for row in comparison.rows))
    tasks = list(dict.fromkeys(row.task for row in comparison.rows))
    titles = [comparison.titles.get(robot, robot) for robot in robots]
    first = (robots[0], "pose" if "pose" in tasks else tasks[0]) if robots else None
    parts = [
        '<div class="controls">',
        _choice("robot", robots, titles),
        _choice("task", tasks, chosen=first[1] if first else None),
        f'</div><div class="legend" title="click to hide or show">{legend}</div>',
    ]
    for robot, task in blocks(comparison.rows):
        hidden = "" if (robot, task) == first else " hidden"
        figures = "".join(
            f"<figure><figcaption>{escape(heading)}</figcaption>{svg}</figure>"
            for heading, svg in plots(comparison, robot, task, numbers)
        )
        parts.append(
            f'<div class="plots" data-robot="{escape(robot)}" data-task="{escape(task)}"{hidden}>{figures}</div>'
        )
    parts.append(PLOT_NOTE)
    return "".join(parts)


def _meanings() -> str:
    lines = "".join(f"<dt>{escape(name)}</dt><dd>{escape(what)}</dd>" for name, what in COLUMNS.items() if what)
    return f"<details><summary>What the columns mean</summary><dl>{lines}</dl></details>"


def _table(comparison: Comparison) -> str:
    names = ["robot", "task", *COLUMNS]
    head = "".join(
        f'<th><button type="button" data-column="{k}">{escape(n)}</button></th>' for k, n in enumerate(names)
    )
    lines: list[str] = []
    for row in comparison.rows:
        title = comparison.titles.get(row.robot, row.robot)
        where = f"<td>{escape(title)}</td><td>{escape(_words(row.task))}</td>"
        if row.refused:
            rest = (
                f'<td>{escape(row.solver)}</td><td colspan="{len(COLUMNS) - 1}" class="why">{escape(row.refused)}</td>'
            )
        else:
            rest = "".join(
                f"<td>{escape(text)}</td>" if number is None else f'<td data-v="{number:.6g}">{escape(text)}</td>'
                for text, number in zip(cells(row), _numbers(row), strict=True)
            )
        lines.append(f"<tr>{where}{rest}</tr>")
    return (
        '<label class="filter">filter <input type="search" id="filter" placeholder="panda pose lm"></label>'
        ' <span id="count"></span>'
        f'<div class="scroll tall"><table class="rows" id="rows"><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def _numbers(row: Row) -> list[float | None]:
    """What columns are sorted by; None: by their text."""
    found = None if not row.branches_known else (row.branches or 0) / row.branches_known
    jumps = None if row.jumps is None else float(row.jumps)
    return [
        None, row.trials, row.one_share, row.budget_share, row.iterations, row.iteration_seconds, row.call_seconds,
        row.median_seconds, row.p99_seconds, row.position, row.rotation, row.violations, row.false_claims, jumps,
        row.optimality, found,
    ]  # fmt: skip


def _choice(name: str, values: Sequence[str], texts: Sequence[str] | None = None, chosen: str | None = None) -> str:
    options = "".join(
        f'<option value="{escape(value)}"{" selected" if value == chosen else ""}>{escape(_words(text))}</option>'
        for value, text in zip(values, texts or values, strict=True)
    )
    return f'<label>{"task" if name == "heat" else name} <select id="{name}">{options}</select></label> '


def _words(name: str) -> str:
    return name.replace("_", " ")
