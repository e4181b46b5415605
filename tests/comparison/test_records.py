"""Records on disk: what is read is what was written, also after a sudden end."""

from __future__ import annotations

import csv
import math
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mechanik as mk
from mechanik.comparison import Comparison
from mechanik.comparison.benchmark_records import RecordWriter, Trial, partial_path, read_records, write_records
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
trials = st.builds(Trial, **{field.name: BY_TYPE[field.type] for field in fields(Trial)})


def same(a, b):
    return repr(a) == repr(b)  # nan is like nan


@given(st.lists(trials, max_size=4), st.sampled_from(["records.csv", "records.csv.gz"]))
def test_what_is_read_is_what_was_written(tmp_path_factory, some, name):
    path = tmp_path_factory.mktemp("records") / name
    write_records(path, some, ABOUT)
    found, about = read_records(path)
    assert about == ABOUT
    assert same(found, some)
    assert not partial_path(path).exists()


def one(k):
    return Trial(kind="attempt", robot="7r", task="pose", solver="lm", target=k, seconds=0.5)


def test_records_stand_beside_the_file_until_all_are_there(tmp_path):
    path = tmp_path / "records.csv"
    path.write_text("what was there before")
    recorder = RecordWriter(path, ABOUT)
    recorder.write([one(0)])
    assert path.read_text() == "what was there before"
    assert same(read_records(partial_path(path), is_part=True)[0], [one(0)])
    recorder.write([one(1)])
    recorder.finish()
    assert same(read_records(path)[0], [one(0), one(1)])


@pytest.mark.parametrize("name", ["records.csv", "records.csv.gz"])
@pytest.mark.parametrize("cut", [5, 30, 60])
def test_a_line_that_was_cut_off_is_left_out_of_a_part_and_refused_in_a_whole(tmp_path, name, cut):
    path = tmp_path / name
    write_records(path, [one(k) for k in range(50)], ABOUT)
    data = path.read_bytes()
    path.write_bytes(data[:-cut])
    found, _ = read_records(path, is_part=True)
    assert same(found, [one(k) for k in range(len(found))])
    assert len(found) < 50 or cut < 8  # the last bytes of a packed file are a sum, no data
    with pytest.raises(FormatError):
        read_records(path)


def test_the_file_is_plain_csv_with_a_name_for_each_column(tmp_path):
    write_records(tmp_path / "records.csv", [one(0)], ABOUT)
    with (tmp_path / "records.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["kind"] for row in rows] == ["about", "attempt"]
    assert float(rows[1]["seconds"]) == 0.5


def test_what_cannot_be_read_or_written_is_said(tmp_path):
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


def test_a_comparison_is_the_same_after_a_way_through_a_file(tmp_path):
    before = Comparison([one(0), one(1)], ABOUT)
    before.to_csv(tmp_path / "records.csv")
    after = Comparison.from_csv(tmp_path / "records.csv")
    assert same(after.rows, before.rows)
    assert after.titles == {"7r": "7R"}
    with pytest.raises(mk.UnknownName, match="lm/7r/pose"):
        after.row("lm", "7r", "posse")
