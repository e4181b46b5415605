"""The HTML report: complete, well formed, without external resources."""

from __future__ import annotations

import io
import math
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanik.comparison import Comparison
from mechanik.comparison.benchmark_records import ATTEMPT, CURVE, UNSUPPORTED, BenchmarkRecord
from mechanik.comparison.benchmark_runner import ComparisonProgressBar, format_minutes, make_progress
from mechanik.comparison.comparison_report import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    PlotAxis,
    PlotLine,
    decade_bounds,
    legend_key,
    plot,
    report_html,
)
from mechanik.errors import CannotSave

VOID_ELEMENTS = {"meta", "input", "br", "link", "img"}
SCRIPT_NAME = "<script>alert('&')</script>\""


def make_comparison(name="7r"):
    about = {"robot": name, "task": "pose"}
    records = [
        BenchmarkRecord(
            kind=CURVE, solver="lm", curve_iterations=(1.0, 2.0, 9.0), curve_errors=(1.0, 0.1, 0.0), **about
        ),
        BenchmarkRecord(kind=CURVE, solver="dls", curve_iterations=(1.0,), curve_errors=(math.inf,), **about),
    ]
    for solver, fine in (("lm", True), ("dls", False)):
        facts = {
            "reported_success": fine,
            "verified": fine,
            "in_budget": fine,
            "position_error": 1e-5,
            "limit_violation": 0.0,
            "closure_error": 0.0,
        }
        for k in range(4):
            records.append(
                BenchmarkRecord(kind=ATTEMPT, solver=solver, target=k, seconds=0.001 * (k + 1),
                                budget_seconds=0.001 * (k + 1), iterations=5, **facts, **about)
            )  # fmt: skip
    records.append(
        BenchmarkRecord(kind=UNSUPPORTED, solver="fabrik", note=f"does not support this task: {SCRIPT_NAME}", **about)
    )
    settings = {"budget": 0.02, "seed": 4, "tolerance": 1e-4, "angle_tolerance": 1e-3, "targets": 4, "patience": 1.0}
    machine = {"processor": "Abacus 3000", "cores": "2", "date": "2031-01-02"}
    return Comparison(records, {"settings": settings, "machine": machine, "titles": {name: f"robot {name}"}})


class BalanceChecker(HTMLParser):
    """Parser that checks that every opened element is closed, in order."""

    def __init__(self):
        super().__init__()
        self.open, self.seen = [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID_ELEMENTS:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_startendtag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))


@pytest.mark.parametrize("name", ["7r", SCRIPT_NAME])
def test_report_is_well_formed_with_any_robot_name(name):
    parser = BalanceChecker()
    parser.feed(report_html(make_comparison(name)))
    assert parser.open == []
    assert sum(tag == "script" for tag, _ in parser.seen) == 1  # the script of the report


def test_report_uses_no_external_resources():
    text = report_html(make_comparison())
    assert not re.search(r"https?://|//cdn|@import|url\(", text)
    parser = BalanceChecker()
    parser.feed(text)
    assert not any({"src", "href"} & attributes.keys() for _, attributes in parser.seen)


def test_report_names_machine_seed_and_every_solver():
    text = report_html(make_comparison())
    for word in (
        "Abacus 3000",
        "2031-01-02",
        "robot 7r",
        ">lm<",
        ">dls<",
        ">fabrik<",
        "does not support this task: &lt;script&gt;",
    ):
        assert word in text
    assert re.search(r"<dt>seed</dt><dd>4</dd>", text)


def test_report_has_three_plots_with_a_line_for_each_solver_with_data():
    drawings = re.findall(r"<svg [^>]*class=\"plot\".*?</svg>", report_html(make_comparison()))
    assert len(drawings) == 3
    assert [len(re.findall("<polyline", drawing)) for drawing in drawings] == [2, 2, 2]


def test_report_of_an_empty_comparison_is_well_formed():
    parser = BalanceChecker()
    parser.feed(report_html(Comparison([], {})))
    assert parser.open == []


def test_failed_write_of_the_report_raises_with_the_file_name(tmp_path):
    make_comparison().to_html(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    with pytest.raises(CannotSave, match=r"page\.html"):
        make_comparison().to_html(tmp_path / "no folder" / "page.html")


values = st.floats(1e-8, 1e8)


@given(values, values, values, st.booleans())
def test_plot_axis_is_monotone_from_zero_to_one(a, b, c, is_log):
    low, middle, high = sorted((a, b, c))
    if high < low * 1.001:
        return
    axis = PlotAxis("", low, high, is_log)
    assert axis.fraction(low) == pytest.approx(0, abs=1e-9)
    assert axis.fraction(high) == pytest.approx(1)
    assert 0 <= axis.fraction(middle) <= 1 + 1e-12
    assert axis.fraction(high * 2) == axis.fraction(high)


@given(values, st.floats(1.5, 1e9), st.booleans())
def test_ticks_are_on_the_axis_and_at_most_eight(low, factor, is_log):
    axis = PlotAxis("", low, low * factor, is_log)
    ticks = axis.ticks()
    assert len(ticks) <= 8
    for value, _ in ticks:
        assert low * (1 - 1e-6) <= value <= low * factor * (1 + 1e-6)
    if not is_log:
        assert len(ticks) >= 2


@given(st.lists(st.one_of(st.floats(0, 1e9), st.just(math.inf)), max_size=6))
def test_decade_bounds_contain_the_values_in_range(numbers):
    low, high = decade_bounds(numbers, 1e-6, 1e3)
    assert 1e-6 <= low < high
    for value in numbers:
        if 1e-6 <= value <= 1e3:
            assert low * (1 - 1e-9) <= value <= high * (1 + 1e-9)


def test_plot_lines_stay_inside_the_frame_and_plots_are_xml():
    line = PlotLine("a < b", 12, [(0.1, -5.0), (1.0, 0.5), (1e9, 1e9)])
    text = plot("t & t", [line], PlotAxis("x", 1, 100, is_log=True), PlotAxis("y", 0, 1))
    root = ElementTree.fromstring(text)
    points = root.find("polyline").attrib["points"].split()
    for x, y in (map(float, point.split(",")) for point in points):
        assert LEFT <= x <= WIDTH - RIGHT
        assert TOP <= y <= HEIGHT - BOTTOM
    ElementTree.fromstring(legend_key(12))
    assert "stroke-dasharray" in legend_key(12)
    assert "stroke-dasharray" not in legend_key(2)


def test_progress_bar_fills_up_and_ends_its_line():
    stream = io.StringIO()
    bar = ComparisonProgressBar(stream)
    for done in range(5):
        bar(done, 4, "" if done == 4 else "7R, pose, lm")
    shown = stream.getvalue().split("\r")[1:]
    assert [line.count("#") for line in shown] == [0, 6, 12, 18, 24]
    assert "7R, pose, lm" in shown[1]
    assert shown[-1].endswith("\n")
    assert format_minutes(125.7) == "2:05"


def test_progress_is_printed_only_on_request_or_at_a_terminal(capsys):
    make_progress(False)(1, 2, "x")
    make_progress(None)(1, 2, "x")
    assert capsys.readouterr().err == ""
    make_progress(True)(1, 2, "x")
    assert "1/2" in capsys.readouterr().err
