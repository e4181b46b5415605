"""HTML report of a comparison: heat maps, SVG plots and a table in a single file that needs no network.

The plots show the error against iterations and against time, and the share of solved targets against time. Style and
script of the page are constants of this module.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby

from mechanik.comparison.benchmark_records import ATTEMPT, CURVE, TRACK, BenchmarkRecord
from mechanik.comparison.comparison_result import (
    OUT_OF_REACH,
    TABLE_COLUMNS,
    Comparison,
    ComparisonRow,
    format_percent,
    row_cells,
    rows_by_task,
    success_matrix,
)

WIDTH, HEIGHT = 440, 300
"""Size of a plot in SVG units."""
LEFT, RIGHT, TOP, BOTTOM = 58, 12, 12, 42
"""Margins of a plot in SVG units."""
PALETTE = ("#3b82f6", "#f07a13", "#22a35a", "#e5484d", "#8b5cf6", "#b07d10", "#e0489b", "#0f9bab", "#86a113", "#7b8794")
"""Line colours that are distinguishable on white and on black."""
DASHES = ("", "6 3", "2 3")
"""Dash patterns; after each run through the colours, the next pattern is used with the same colours."""


@dataclass(frozen=True, slots=True)
class PlotLine:
    """A line of a plot.

    Attributes:
        name: name in the tooltip.
        solver_index: index of the solver, which selects colour and dash pattern; the same in every plot.
        points: pairs (x, y), in the units of the axes.
    """

    name: str
    solver_index: int
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class PlotAxis:
    """An axis of a plot.

    Attributes:
        label: label with unit.
        low, high: bounds, which must be positive if the axis is logarithmic.
        is_log: whether the axis is logarithmic.
    """

    label: str
    low: float
    high: float
    is_log: bool = False

    def fraction(self, value: float) -> float:
        """Return the position of a value along the axis, 0 to 1; values outside are clamped."""
        value = min(max(value, self.low), self.high)
        if self.is_log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def ticks(self) -> list[tuple[float, str]]:
        """Return tick values with their labels: powers of ten if `is_log` is set, else about five round numbers."""
        if self.is_log:
            first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
            stride = max(1, math.ceil((last - first) / 6))
            return [(10.0**k, _format_power(k)) for k in range(first, last + 1, stride)]
        min_step = (self.high - self.low) / 5
        decade = 10.0 ** math.floor(math.log10(min_step))
        step = next(decade * k for k in (1, 2, 5, 10) if decade * k >= min_step * 0.999)
        first = math.ceil(self.low / step - 1e-9)
        return [(k * step, f"{k * step:g}") for k in range(first, math.floor(self.high / step + 1e-9) + 1)]


def plot(title: str, lines: Sequence[PlotLine], x: PlotAxis, y: PlotAxis) -> str:
    """Return a plot as an `svg` element; the script finds the lines of a solver by their `data-s`, the solver index."""
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}" class="plot">',
        *_axes(x, y),
    ]
    for line in lines:
        coordinates = (
            f"{_svg_x(x.fraction(point_x)):.1f},{_svg_y(y.fraction(point_y)):.1f}" for point_x, point_y in line.points
        )
        text = " ".join(coordinate for coordinate, _ in groupby(coordinates))
        dash = DASHES[(line.solver_index // len(PALETTE)) % len(DASHES)]
        parts.append(
            f'<polyline data-s="{line.solver_index}" points="{text}" stroke="{colour(line.solver_index)}"'
            + (f' stroke-dasharray="{dash}"' if dash else "")
            + f"><title>{escape(line.name)}</title></polyline>"
        )
    return "".join([*parts, "</svg>"])


def legend_key(solver_index: int) -> str:
    """Return the legend symbol of a line as an `svg` element."""
    dash = DASHES[(solver_index // len(PALETTE)) % len(DASHES)]
    style = f' stroke-dasharray="{dash}"' if dash else ""
    return (
        f'<svg viewBox="0 0 26 8" class="key"><line x1="1" y1="4" x2="25" y2="4" stroke="{colour(solver_index)}"'
        f'{style}/></svg>'
    )  # fmt: skip


def colour(solver_index: int) -> str:
    """Return the colour of a line."""
    return PALETTE[solver_index % len(PALETTE)]


def decade_bounds(values: Sequence[float], lowest: float, highest: float) -> tuple[float, float]:
    """Return the nearest powers of ten that enclose the positive finite values, clamped to `lowest` and `highest`.

    Without such values the bounds are `lowest` and `highest`. If the bounds are not in order, the upper bound is 10
    times the lower bound.
    """
    finite_values = [value for value in values if 0 < value < math.inf]
    if not finite_values:
        return lowest, highest
    low = max(lowest, 10.0 ** math.floor(math.log10(min(finite_values)) + 1e-9))
    high = min(highest, 10.0 ** math.ceil(math.log10(max(finite_values)) - 1e-9))
    return (low, high) if high > low else (low, 10 * low)


def _axes(x: PlotAxis, y: PlotAxis) -> list[str]:
    """Return the frame, grid lines, tick labels and axis labels of a plot as SVG elements."""
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    parts: list[str] = []
    for value, text in x.ticks():
        position = _svg_x(x.fraction(value))
        parts.append(f'<line class="grid" x1="{position:.1f}" y1="{TOP}" x2="{position:.1f}" y2="{bottom}"/>')
        parts.append(f'<text x="{position:.1f}" y="{bottom + 15}" text-anchor="middle">{text}</text>')
    for value, text in y.ticks():
        position = _svg_y(y.fraction(value))
        parts.append(f'<line class="grid" x1="{LEFT}" y1="{position:.1f}" x2="{right}" y2="{position:.1f}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{position + 3.5:.1f}" text-anchor="end">{text}</text>')
    centre_y, centre_x = (TOP + bottom) / 2, (LEFT + right) / 2
    parts.append(f'<rect class="frame" x="{LEFT}" y="{TOP}" width="{right - LEFT}" height="{bottom - TOP}"/>')
    parts.append(
        f'<text class="name" x="{centre_x:.0f}" y="{HEIGHT - 8}" text-anchor="middle">{escape(x.label)}</text>'
    )
    parts.append(
        f'<text class="name" x="14" y="{centre_y:.0f}" text-anchor="middle" '
        f'transform="rotate(-90 14 {centre_y:.0f})">{escape(y.label)}</text>'
    )
    return parts


def _format_power(exponent: int) -> str:
    """Format a power of ten as SVG text."""
    if -3 < exponent < 4:
        return f"{10.0**exponent:g}"
    return f'10<tspan dy="-4" font-size="8">{exponent}</tspan>'


def _svg_x(fraction: float) -> float:
    """Return the horizontal SVG coordinate of a fraction (0 to 1) of the plot width."""
    return LEFT + fraction * (WIDTH - RIGHT - LEFT)


def _svg_y(fraction: float) -> float:
    """Return the vertical SVG coordinate of a fraction (0 to 1) of the plot height, from the bottom."""
    return HEIGHT - BOTTOM - fraction * (HEIGHT - BOTTOM - TOP)


SMALLEST_ERROR, LARGEST_ERROR = 1e-9, 1e3
"""Limits of the error axis, in the units of `Solution.history`."""
SHORTEST_SECONDS, LONGEST_SECONDS = 1e-6, 1e2
"""Limits of the time axis, s."""


def case_plots(comparison: Comparison, robot: str, task: str, solver_indices: dict[str, int]) -> list[tuple[str, str]]:
    """Return headings and SVG plots of a task of a robot.

    Args:
        solver_indices: index of each solver by name; it selects colour and dash pattern.
    """
    case_records = [record for record in comparison.records if (record.robot, record.task) == (robot, task)]
    plots = _convergence_plots(comparison, case_records, solver_indices)
    if task != OUT_OF_REACH:
        plots.append(("success against time", _success_plot(comparison, case_records, solver_indices)))
    return plots


def _convergence_plots(
    comparison: Comparison, records: Sequence[BenchmarkRecord], solver_indices: dict[str, int]
) -> list[tuple[str, str]]:
    """Return headings and plots of the error against iterations and against time."""
    lines_by_iteration: list[PlotLine] = []
    lines_by_time: list[PlotLine] = []
    for record in records:
        if record.kind != CURVE:
            continue
        points = list(
            zip(record.curve_iterations, [max(error, SMALLEST_ERROR) for error in record.curve_errors], strict=True)
        )
        lines_by_iteration.append(PlotLine(record.solver, solver_indices[record.solver], points))
        row = comparison.row(*(record.solver, record.robot, record.task))
        if row.iteration_seconds is not None:
            call_seconds, iteration_seconds = row.call_seconds or 0.0, row.iteration_seconds
            lines_by_time.append(
                PlotLine(
                    record.solver,
                    solver_indices[record.solver],
                    [(call_seconds + iteration * iteration_seconds, error) for iteration, error in points],
                )
            )
    errors = [y for line in lines_by_iteration for _, y in line.points]
    y = PlotAxis("median error (weighted)", *decade_bounds(errors, SMALLEST_ERROR, LARGEST_ERROR), is_log=True)
    max_iteration = max((point_x for line in lines_by_iteration for point_x, _ in line.points), default=10.0)
    times = [point_x for line in lines_by_time for point_x, _ in line.points]
    return [
        (
            "error against iterations",
            plot("convergence", lines_by_iteration, PlotAxis("iteration", 1, max(max_iteration, 2), True), y),
        ),
        (
            "error against time",
            plot(
                "convergence",
                lines_by_time,
                PlotAxis("seconds", *decade_bounds(times, SHORTEST_SECONDS, LONGEST_SECONDS), is_log=True),
                y,
            ),
        ),
    ]


def _success_plot(comparison: Comparison, records: Sequence[BenchmarkRecord], solver_indices: dict[str, int]) -> str:
    """Return a plot of the share of targets that are solved against time, up to the time budget."""
    budget = float(comparison.about.get("settings", {}).get("budget", math.nan))
    lines: list[PlotLine] = []
    times: list[float] = []
    for solver in dict.fromkeys(record.solver for record in records):
        attempts = [record for record in records if record.solver == solver and record.kind in (ATTEMPT, TRACK)]
        if not attempts:
            continue
        success_times = sorted(record.budget_seconds for record in attempts if record.in_budget)
        points: list[tuple[float, float]] = []
        for k, seconds in enumerate(success_times):  # two points per step of the staircase
            points += [(seconds, 100 * k / len(attempts)), (seconds, 100 * (k + 1) / len(attempts))]
        points.append((budget, 100 * len(success_times) / len(attempts)))
        lines.append(
            PlotLine(
                solver, solver_indices[solver], points if success_times else [(SHORTEST_SECONDS, 0.0), (budget, 0.0)]
            )
        )
        times += success_times
    low, high = decade_bounds([*times, budget], SHORTEST_SECONDS, LONGEST_SECONDS)
    return plot("success against time", lines, PlotAxis("seconds", low, max(budget, low * 10) if times else high, True),
                PlotAxis("targets reached (%)", 0.0, 100.0))  # fmt: skip


STYLE = """
:root{color-scheme:light dark;--ink:#1c2430;--soft:#5b6675;--line:#d9dee5;--back:#fff;--panel:#f6f8fa;--good:15,140,120}
@media(prefers-color-scheme:dark){:root{--ink:#e4e9ef;--soft:#9aa6b4;--line:#333c47;--back:#12161b;--panel:#1a2027;
--good:32,160,140}}
*{box-sizing:border-box}
body{margin:0;background:var(--back);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}
main{max-width:1480px;margin:0 auto;padding:28px 24px 80px}
h1{font-size:26px;margin:0 0 14px}h2{font-size:19px;margin:40px 0 8px}
p{max-width:80ch;color:var(--soft);margin:6px 0 12px}
dl{display:grid;grid-template-columns:max-content 1fr;gap:2px 16px;margin:8px 0}
dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}
.about{background:var(--panel);border:1px solid var(--line);border-radius:8px;padding:12px 16px}
.scroll{overflow:auto;border:1px solid var(--line);border-radius:8px}.tall{max-height:75vh}
table{border-collapse:separate;border-spacing:0;font-size:13px;font-variant-numeric:tabular-nums}
.heat{width:100%;table-layout:fixed}.heat tr>:first-child{width:150px}
.heat th,.heat td{padding:5px 9px;text-align:center;border-bottom:1px solid var(--line)}
.heat thead th{font-weight:500;vertical-align:bottom;color:var(--soft)}
.heat tbody th{text-align:left;font-weight:500;white-space:nowrap;position:sticky;left:0;background:var(--back)}
.heat td{background:rgba(var(--good),calc(var(--p)*.75))}
.none{background:repeating-linear-gradient(45deg,transparent 0 5px,var(--line) 5px 6px)!important}
select,input,button{font:inherit;color:inherit;background:var(--panel);border:1px solid var(--line);border-radius:6px;
padding:3px 8px}
label{color:var(--soft);display:inline-block;margin:4px 12px 8px 0}
.legend{display:flex;flex-wrap:wrap;gap:6px;margin:4px 0 10px}
.legend button{display:inline-flex;align-items:center;gap:6px;font-size:13px;cursor:pointer}
.legend button[aria-pressed=false]{opacity:.35}
.key{width:26px;height:8px}.key line{stroke-width:3}
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(380px,1fr));gap:14px}
.plots[hidden],.scroll[hidden]{display:none}
figure{margin:0;background:var(--panel);border:1px solid var(--line);border-radius:8px;padding:8px}
figcaption{font-size:13px;color:var(--soft);text-align:center}
.plot{width:100%;height:auto;display:block}
.plot text{font-size:10.5px;fill:var(--soft)}.plot .name{font-size:11.5px;fill:var(--ink)}
.plot .grid{stroke:var(--line);stroke-width:.7}.plot .frame{fill:none;stroke:var(--soft);stroke-width:.8}
.plot polyline{fill:none;stroke-width:1.8;stroke-linejoin:round;vector-effect:non-scaling-stroke}
.plot polyline:hover{stroke-width:4}.plot .off{display:none}
.rows th{position:sticky;top:0;background:var(--panel);border-bottom:1px solid var(--line);padding:2px;z-index:1}
.rows th button{border:0;padding:2px 4px;font-size:12.5px;background:none;cursor:pointer;font-weight:600;
white-space:nowrap}
.rows td{padding:3px 7px;border-bottom:1px solid var(--line);text-align:right;white-space:nowrap}
.rows td:nth-child(-n+3){text-align:left}.rows .why{text-align:left;color:var(--soft);white-space:normal;min-width:40ch}
.rows tr:hover td{background:var(--panel)}
details{margin:4px 0 12px}summary{cursor:pointer;color:var(--soft)}
#count{color:var(--soft);font-size:13px}
@media print{.tall{max-height:none}.controls,.filter{display:none}}
"""

SCRIPT = """
const $$=(s)=>[...document.querySelectorAll(s)],$=(s)=>document.querySelector(s);
const heat=$('#heat');heat&&(heat.onchange=()=>$$('[data-heat]').forEach(d=>d.hidden=d.dataset.heat!==heat.value));
const robot=$('#robot'),task=$('#task');
const showPlots=()=>$$('.plots').forEach(d=>d.hidden=d.dataset.robot!==robot.value||d.dataset.task!==task.value);
robot&&(robot.onchange=task.onchange=showPlots);
$$('[data-key]').forEach(b=>b.onclick=()=>{const on=b.getAttribute('aria-pressed')!=='true';
b.setAttribute('aria-pressed',on);$$('polyline[data-s="'+b.dataset.key+'"]').forEach(p=>p.classList.toggle('off',!on))});
const body=$('#rows tbody'),rows=[...body.rows],filter=$('#filter');
const applyFilter=()=>{const w=filter.value.toLowerCase().split(/\\s+/).filter(Boolean);let n=0;
rows.forEach(r=>{const t=[0,1,2].map(k=>r.cells[k].textContent).join(' ').toLowerCase();
r.hidden=!w.every(x=>[...t.matchAll(/[a-z0-9]+/g)].some(m=>t.startsWith(x,m.index)));n+=!r.hidden});
$('#count').textContent=n+' of '+rows.length+' rows'};
filter.oninput=applyFilter;applyFilter();
let sorted=-1,up=1;
$$('[data-column]').forEach(b=>b.onclick=()=>{const k=+b.dataset.column;up=k===sorted?-up:1;sorted=k;
const v=r=>{const c=r.cells[k];if(!c||c.colSpan>1)return null;const x=c.dataset.v;
return x===undefined?(c.textContent||null):x==='inf'?Infinity:+x};
rows.map(r=>[v(r),r]).sort(([a],[b])=>a===null?1:b===null?-1:(a<b?-up:a>b?up:0)).forEach(([,r])=>body.append(r))});
"""


ALL_TASKS = "all tasks"
HEAT_NOTE = (
    "<p>Percent of targets with a verified solution; for targets out of reach, with a solution as close as the closest "
    "known solution. In the mean over all tasks, an unsupported task counts as 0. A hatched cell means that the "
    "solver supports none of the selected tasks. Move the pointer over a cell to see the confidence intervals.</p>"
)
PLOT_NOTE = (
    "<p>The error is the smallest weighted error so far in one attempt; lengths are relative to the size of the "
    "mechanism. The plots of the error show the median over successful attempts, or over all attempts if none "
    "succeeds. Their time is the time of an idle call plus the number of iterations times the median time of an "
    "iteration; it does not include the recording of errors.</p>"
)


def report_html(comparison: Comparison) -> str:
    """Return the report of a comparison as an HTML document."""
    rows = comparison.rows
    solvers = list(dict.fromkeys(row.solver for row in rows))
    solver_indices = {solver: k for k, solver in enumerate(solvers)}
    title = "Mechanik: solvers compared"
    return "\n".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{title}</title><style>{STYLE}</style></head><body><main>",
            f"<h1>{title}</h1>",
            _about_section(comparison),
            "<h2>Success within the time budget</h2>",
            HEAT_NOTE,
            _heat_maps(comparison),
            "<h2>Convergence, and success against time</h2>",
            _plot_section(comparison, solver_indices),
            "<h2>Table</h2>",
            _column_meanings(),
            _row_table(comparison),
            f"</main><script>{SCRIPT}</script></body></html>",
        ]
    )


def _about_section(comparison: Comparison) -> str:
    """Return a list of the machine and the settings as HTML."""
    about, settings, machine = (comparison.about, *(comparison.about.get(k, {}) for k in ("settings", "machine")))

    def format_setting(name: str) -> str:
        return f"{settings.get(name, math.nan):g}"

    patience_note = (
        f"a solver that needs more than {format_setting('patience')} s for a task solves fewer targets; column n shows "
        "how many"
    )
    entries = [
        ("machine", f"{machine.get('processor', '?')}, {machine.get('cores', '?')} cores, {machine.get('system', '')}"),
        ("versions", ", ".join(f"{k} {machine.get(k, '?')}" for k in ("mechanik", "python", "numpy", "numba"))),
        ("date", machine.get("date", "?")),
        ("seed", format_setting("seed")),
        (
            "success means",
            f"{format_setting('tolerance')} m and {format_setting('angle_tolerance')} rad, within limits, loops closed",
        ),
        ("time budget", f"{format_setting('budget')} s per target, with restarts"),
        ("targets", f"up to {format_setting('targets')} of each task; {patience_note}"),
    ]
    if about.get("command"):
        entries.append(("command", about["command"]))
    if not comparison.is_complete:
        entries.append(("interrupted", "the results are incomplete"))
    lines = "".join(f"<dt>{escape(name)}</dt><dd>{escape(str(value))}</dd>" for name, value in entries)
    return f'<dl class="about">{lines}</dl>'


def _heat_maps(comparison: Comparison) -> str:
    """Return heat maps of the success rates as HTML, for all tasks and for each task, with a menu to select one."""
    tasks = list(dict.fromkeys(row.task for row in comparison.rows))
    parts = [_select_element("heat", [ALL_TASKS, *tasks])]
    for k, task in enumerate([ALL_TASKS, *tasks]):
        task_rows = [row for row in comparison.rows if task in (ALL_TASKS, row.task)]
        hidden_attribute = " hidden" if k else ""
        parts.append(
            f'<div class="scroll" data-heat="{escape(task)}"{hidden_attribute}>{_heat_map(comparison, task_rows)}</div>'
        )
    return "".join(parts)


def _heat_map(comparison: Comparison, rows: Sequence[ComparisonRow]) -> str:
    """Return a heat map of the success rates within the budget, by solver and robot, as an HTML table."""
    solvers, robots, means = success_matrix(rows)
    header_cells = "".join(f"<th>{escape(comparison.titles.get(robot, robot))}</th>" for robot in robots)
    lines: list[str] = []
    for solver in solvers:
        cells: list[str] = []
        for robot in robots:
            mean = means[solver, robot]
            tooltip = "; ".join(_tooltip(row) for row in rows if (row.solver, row.robot) == (solver, robot))
            if mean is None:
                cells.append(f'<td class="none" title="{escape(tooltip)}"></td>')
            else:
                cells.append(f'<td style="--p:{mean:.3f}" title="{escape(tooltip)}">{format_percent(mean)}</td>')
        lines.append(f"<tr><th>{escape(solver)}</th>{''.join(cells)}</tr>")
    return f'<table class="heat"><thead><tr><th></th>{header_cells}</tr></thead><tbody>{"".join(lines)}</tbody></table>'


def _tooltip(row: ComparisonRow) -> str:
    """Return the tooltip of a cell: counts and confidence interval, or why the solver does not support the task."""
    if row.unsupported_reason:
        return f"{_with_spaces(row.task)}: {row.unsupported_reason}"
    low, high = row.within_budget_interval
    return f"{_with_spaces(row.task)}: {row.within_budget} of {row.trials} ({100 * low:.0f}-{100 * high:.0f} %)"


def _plot_section(comparison: Comparison, solver_indices: dict[str, int]) -> str:
    """Return all plots as HTML, with a legend and menus to select robot and task."""
    legend = "".join(
        f'<button type="button" data-key="{solver_index}" aria-pressed="true">'
        f"{legend_key(solver_index)}{escape(solver)}</button>"
        for solver, solver_index in solver_indices.items()
    )
    robots = list(dict.fromkeys(row.robot for row in comparison.rows))
    tasks = list(dict.fromkeys(row.task for row in comparison.rows))
    titles = [comparison.titles.get(robot, robot) for robot in robots]
    shown_case = (robots[0], "pose" if "pose" in tasks else tasks[0]) if robots else None
    parts = [
        '<div class="controls">',
        _select_element("robot", robots, titles),
        _select_element("task", tasks, selected=shown_case[1] if shown_case else None),
        f'</div><div class="legend" title="click to hide or show">{legend}</div>',
    ]
    for robot, task in rows_by_task(comparison.rows):
        hidden_attribute = "" if (robot, task) == shown_case else " hidden"
        figures = "".join(
            f"<figure><figcaption>{escape(heading)}</figcaption>{svg}</figure>"
            for heading, svg in case_plots(comparison, robot, task, solver_indices)
        )
        parts.append(
            f'<div class="plots" data-robot="{escape(robot)}" data-task="{escape(task)}"{hidden_attribute}>'
            f"{figures}</div>"
        )
    parts.append(PLOT_NOTE)
    return "".join(parts)


def _column_meanings() -> str:
    """Return the explanations of the columns as HTML."""
    lines = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(meaning)}</dd>" for name, meaning in TABLE_COLUMNS.items() if meaning
    )
    return f"<details><summary>What the columns mean</summary><dl>{lines}</dl></details>"


def _row_table(comparison: Comparison) -> str:
    """Return the table of all rows as HTML, with a filter and columns that can be sorted."""
    names = ["robot", "task", *TABLE_COLUMNS]
    header_cells = "".join(
        f'<th><button type="button" data-column="{k}">{escape(name)}</button></th>' for k, name in enumerate(names)
    )
    lines: list[str] = []
    for row in comparison.rows:
        title = comparison.titles.get(row.robot, row.robot)
        case_cells = f"<td>{escape(title)}</td><td>{escape(_with_spaces(row.task))}</td>"
        if row.unsupported_reason:
            column_count = len(TABLE_COLUMNS) - 1
            reason = escape(row.unsupported_reason)
            row_html = f'<td>{escape(row.solver)}</td><td colspan="{column_count}" class="why">{reason}</td>'
        else:
            row_html = "".join(
                f"<td>{escape(text)}</td>" if sort_key is None else f'<td data-v="{sort_key:.6g}">{escape(text)}</td>'
                for text, sort_key in zip(row_cells(row), _sort_keys(row), strict=True)
            )
        lines.append(f"<tr>{case_cells}{row_html}</tr>")
    return (
        '<label class="filter">filter <input type="search" id="filter" placeholder="panda pose lm"></label>'
        ' <span id="count"></span>'
        f'<div class="scroll tall"><table class="rows" id="rows"><thead><tr>{header_cells}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def _sort_keys(row: ComparisonRow) -> list[float | None]:
    """Return the sort keys of the columns of a row; None: sort by text."""
    branch_share = None if not row.branches_known else (row.branches or 0) / row.branches_known
    jumps = None if row.jumps is None else float(row.jumps)
    return [
        None, row.trials, row.first_attempt_share, row.within_budget_share, row.iterations, row.iteration_seconds,
        row.call_seconds,
        row.median_seconds, row.p99_seconds, row.position_error, row.rotation_error, row.violations, row.false_claims,
        jumps, row.optimality, branch_share,
    ]  # fmt: skip


def _select_element(
    name: str, values: Sequence[str], texts: Sequence[str] | None = None, selected: str | None = None
) -> str:
    """Return a `select` element with a label as HTML.

    Args:
        name: id of the element.
        values, texts: values and texts of the options; None: the values are the texts.
        selected: the selected value; None: the first.
    """
    options = "".join(
        f'<option value="{escape(option)}"{" selected" if option == selected else ""}>'
        f"{escape(_with_spaces(text))}</option>"
        for option, text in zip(values, texts or values, strict=True)
    )
    return f'<label>{"task" if name == "heat" else name} <select id="{name}">{options}</select></label> '


def _with_spaces(name: str) -> str:
    """Replace underscores by spaces."""
    return name.replace("_", " ")
