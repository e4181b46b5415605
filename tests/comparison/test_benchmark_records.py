"""Records on disk: reading returns what was written, also after an interrupted run."""

from __future__ import annotations

import csv
import math
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mechanik as mk
from mechanik.comparison import Comparison
from mechanik.comparison.benchmark_records import (
    BenchmarkRecord,
    RecordWriter,
    partial_path,
    read_records,
    write_records,
)
from mechanik.errors import CannotSave, FileMissing, FormatError

ABOUT = {"settings": {"seed": 3}, "titles": {"7r": "7R"}}
number = st.one_of(st.floats(0, 1e6).map(lambda x: float(f"{x:.4g}")), st.just(math.inf), st.just(math.nan))
BY_TYPE = {
    "str": st.text("ab,;\"'\n é<", max_size=9),
    "int": st.integers(-1, 999),
    "bool": st.booleans(),
    "float": number,
    "tuple[float, ...]": st.lists(st.floats(0, 100).map(lambda x: float(f"{x:.3g}")), max_size=4).map(tuple),
}
record_strategy = st.builds(BenchmarkRecord, **{field.name: BY_TYPE[field.type] for field in fields(BenchmarkRecord)})


def same(a, b):
    return repr(a) == repr(b)  # nan equals nan here


@given(st.lists(record_strategy, max_size=4), st.sampled_from(["records.csv", "records.csv.gz"]))
def test_records_are_read_back_unchanged(tmp_path_factory, written, name):
    path = tmp_path_factory.mktemp("records") / name
    write_records(path, written, ABOUT)
    records, about = read_records(path)
    assert about == ABOUT
    assert same(records, written)
    assert not partial_path(path).exists()


def attempt(k):
    return BenchmarkRecord(kind="attempt", robot="7r", task="pose", solver="lm", target=k, seconds=0.5)


def test_records_are_written_to_a_partial_file_until_finished(tmp_path):
    path = tmp_path / "records.csv"
    path.write_text("previous content")
    recorder = RecordWriter(path, ABOUT)
    recorder.write([attempt(0)])
    assert path.read_text() == "previous content"
    assert same(read_records(partial_path(path), is_partial=True)[0], [attempt(0)])
    recorder.write([attempt(1)])
    recorder.finish()
    assert same(read_records(path)[0], [attempt(0), attempt(1)])


@pytest.mark.parametrize("name", ["records.csv", "records.csv.gz"])
@pytest.mark.parametrize("cut", [5, 30, 60])
def test_truncated_line_is_skipped_in_a_partial_file_and_an_error_in_a_finished_one(tmp_path, name, cut):
    path = tmp_path / name
    write_records(path, [attempt(k) for k in range(50)], ABOUT)
    data = path.read_bytes()
    path.write_bytes(data[:-cut])
    records, _ = read_records(path, is_partial=True)
    assert same(records, [attempt(k) for k in range(len(records))])
    assert len(records) < 50 or cut < 8  # the last bytes of a gzip file are a checksum, not data
    with pytest.raises(FormatError):
        read_records(path)


def test_file_is_plain_csv_with_column_names(tmp_path):
    write_records(tmp_path / "records.csv", [attempt(0)], ABOUT)
    with (tmp_path / "records.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["kind"] for row in rows] == ["about", "attempt"]
    assert float(rows[1]["seconds"]) == 0.5


def test_files_that_cannot_be_read_or_written_raise(tmp_path):
    with pytest.raises(FileMissing, match=r"nothing\.csv"):
        read_records(tmp_path / "nothing.csv")
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(FormatError, match="no records of a comparison"):
        read_records(tmp_path / "other.csv")
    (tmp_path / "other.csv.gz").write_text("a,b\n1,2\n")
    with pytest.raises(FormatError, match="gzip"):
        read_records(tmp_path / "other.csv.gz")
    with pytest.raises(CannotSave, match=r"records\.csv"):
        write_records(tmp_path / "no folder" / "records.csv", [], ABOUT)


def test_comparison_is_equal_after_saving_and_loading(tmp_path):
    before = Comparison([attempt(0), attempt(1)], ABOUT)
    before.to_csv(tmp_path / "records.csv")
    after = Comparison.from_csv(tmp_path / "records.csv")
    assert same(after.rows, before.rows)
    assert after.titles == {"7r": "7R"}
    with pytest.raises(mk.UnknownName, match="lm/7r/pose"):
        after.row("lm", "7r", "posse")
