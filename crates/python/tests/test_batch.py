"""Many task sets: columns in, columns out."""

import json
from fractions import Fraction

import pandas
import polars
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

import warmset as ws

time = st.integers(1, 10**6)
task = st.tuples(time, time).map(sorted)
sets = st.lists(st.tuples(st.integers(1, 8), st.lists(task, min_size=1, max_size=6)), min_size=1)


def gfb(tasks, m):
    """Goossens, Funk, Baruah: U ≤ m − (m − 1) u_max, exactly."""
    us = [Fraction(wcet, period) for wcet, period in tasks]
    return sum(us) <= m - (m - 1) * max(us)


@given(sets)
def test_gfb_is_the_inequality_of_its_paper(drawn):
    table = pyarrow.table({
        "m": [m for m, _ in drawn],
        "wcet_ns": [[t[0] for t in tasks] for _, tasks in drawn],
        "period_ns": [[t[1] for t in tasks] for _, tasks in drawn],
    })
    answers = ws.check_batch(table, tests="GFB")
    assert answers.columns == ["GFB"]
    assert answers["GFB"] == [gfb(tasks, m) for m, tasks in drawn]


def test_answers_are_those_of_the_command_line(binary, tmp_path):
    file = tmp_path / "sets.jsonl"
    binary("generate", "--cap", "3.2", "-m", "4", "--sets", "500", "--seed", "7",
           "--deadlines", "constrained", "-o", file)
    drawn = ws.generate(500, cap=3.2, m=4, seed=7, deadlines="constrained")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert drawn["id"] == [line["id"] for line in lines]
    for key in ("wcet", "period", "deadline"):
        assert drawn[f"{key}_ns"] == [[1000 * t[key] for t in line["tasks"]] for line in lines]
    for options in ([], ["--grid", "1us"]):
        printed = binary("check", "--batch", file, *options)
        answers = ws.check_batch(drawn, grid="1us" if options else None).to_rows()
        for line, answer in zip(map(json.loads, printed.splitlines()), answers, strict=True):
            assert answer.pop("id") == line["id"]
            assert answer == line["verdicts"]
            assert None in answer.values() or True in answer.values() or False in answer.values()


def forms(table):
    arrow = table.to_arrow()
    yield "pyarrow", arrow
    yield "chunks", pyarrow.concat_tables([arrow.slice(0, 7), arrow.slice(7)])
    yield "polars", polars.DataFrame(arrow)
    yield "pandas", arrow.to_pandas()
    yield "batch", arrow.combine_chunks().to_batches()[0]
    yield "sliced", pyarrow.concat_tables([arrow, arrow]).slice(len(arrow))
    reader = pyarrow.RecordBatchReader.from_batches(arrow.schema, arrow.to_batches())
    yield "reader", reader
    wide = pyarrow.large_list(pyarrow.uint64())
    schema = pyarrow.schema([("id", pyarrow.int64()), ("m", pyarrow.uint32())]
                            + [(f"{k}_ns", wide) for k in ("wcet", "period", "deadline")])
    yield "unsigned", arrow.cast(schema)
    span = pyarrow.list_(pyarrow.duration("ns"))
    schema = pyarrow.schema([("id", pyarrow.int64()), ("m", pyarrow.int32())]
                            + [(f"{k}_ns", span) for k in ("wcet", "period", "deadline")])
    yield "durations", arrow.cast(schema)
    fixed = pyarrow.list_(pyarrow.int64(), 5)
    yield "fixed", pyarrow.table({
        name: arrow[name] if name in ("id", "m") else pyarrow.array(arrow[name].to_pylist(), fixed)
        for name in arrow.column_names
    })


def test_sets_come_from_any_package_in_any_kind_of_list():
    drawn = ws.generate(40, tasks=5, total=2, m=3, deadlines="constrained")
    expected = ws.check_batch(drawn).to_dict()
    for name, form in forms(drawn):
        assert ws.check_batch(form).to_dict() == expected, name


def test_other_packages_take_answers():
    answers = ws.check_batch(ws.generate(100, cap=2, m=2), tests=["GFB", "BCL"])
    assert pyarrow.table(answers).column_names == ["id", "GFB", "BCL"]
    assert polars.DataFrame(answers).height == 100
    frame = pandas.DataFrame.from_arrow(answers)
    assert frame["GFB"].sum() == answers["GFB"].count(True)
    assert answers.to_pandas().shape == answers.to_polars().shape == (100, 3)


def test_numbers_are_handed_over_without_a_copy():
    drawn = ws.generate(100, cap=2, m=2)
    first, second = pyarrow.table(drawn), pyarrow.table(drawn)
    addresses = [
        [b.address for b in t["m"].chunks[0].buffers() if b is not None] for t in (first, second)
    ]
    assert addresses[0] == addresses[1]


def test_a_table_is_a_table():
    drawn = ws.generate(30, tasks=4)
    assert len(drawn) == 30
    assert list(drawn) == drawn.columns == ["id", "m", "wcet_ns", "period_ns", "deadline_ns"]
    assert drawn.head(3, first=2)["id"] == [2, 3, 4]
    assert drawn.select("m", "id").columns == ["m", "id"]
    assert drawn.to_rows()[7]["id"] == 7
    assert "… and 20 more rows" in repr(drawn)
    assert "… 4]" in repr(drawn) and "<table>" in drawn._repr_html_()
    with pytest.raises(KeyError, match="there is no column `wcet`: the columns are id, m"):
        drawn["wcet"]


@pytest.mark.parametrize(
    ("columns", "options", "sentence"),
    [
        ({"wcet_ns": [[1]], "period_ns": [[2]]}, {}, "m: nothing says how many processors"),
        ({"wcet_ns": [[1]]}, {"m": 1}, "no column `period_ns` among wcet_ns"),
        ({"wcet_ns": [[1]], "period_ns": [[2]]}, {"m": 0}, "row 0: m: 0 processors"),
        ({"wcet_ns": [[1], [1, 1]], "period_ns": [[2], [2]]}, {"m": 1}, "row 1: .*different lengths"),
        ({"wcet_ns": [[1], [-1]], "period_ns": [[2], [2]]}, {"m": 1}, "row 1: task 1: -1 is negative"),
        ({"wcet_ns": [[1], [0]], "period_ns": [[2], [2]]}, {"m": 1}, "row 1: task 1: .*wcet is zero"),
        ({"wcet_ns": [[1], []], "period_ns": [[2], []]}, {"m": 1}, "row 1: there are no tasks"),
        ({"wcet_ns": [[1.5]], "period_ns": [[2.0]]}, {"m": 1}, "a float has no unit"),
        ({"wcet_ns": [1], "period_ns": [2]}, {"m": 1}, "is no list"),
        ({"wcet_ns": [None, [1]], "period_ns": [[2], [2]]}, {"m": 1}, "row 0: a value is missing"),
        ({"wcet_ns": pyarrow.array([[1], [None]], pyarrow.list_(pyarrow.int64())),
          "period_ns": [[2], [2]]}, {"m": 1, "tests": "GFB"}, "row 1: .*a value is missing"),
        # Nothing but missing values: a column of no type.
        ({"wcet_ns": [[None]], "period_ns": [[2]]}, {"m": 1}, "`wcet_ns`: Null are no integers"),
        ({"wcet_ns": [[1]], "period_ns": [[2]]}, {"m": 1, "tests": "GFBB"}, "GFB"),
        ({"wcet_ns": [[3]], "period_ns": [[4]]}, {"m": 1, "grid": 2}, "no multiple of the grid"),
    ],
)
def test_what_cannot_be_judged_names_the_row(columns, options, sentence):
    with pytest.raises(ws.Error, match=sentence):
        ws.check_batch(pyarrow.table(columns), **options)


def test_no_sets_and_no_columns_are_errors():
    with pytest.raises(ws.Error, match="there are no task sets"):
        ws.check_batch(ws.generate(3, tasks=2).head(0))
    with pytest.raises(ws.Error, match="a `list` hands out no columns"):
        ws.check_batch([1, 2, 3])


def test_sets_of_a_seed_are_the_same_however_they_are_drawn():
    whole = ws.generate(20_000, cap=2, seed=3)
    part = ws.generate(10, cap=2, seed=3, first=15_000)
    assert part.to_rows() == whole.head(10, first=15_000).to_rows()
    assert ws.generate(3, cap=2, seed=4).to_rows() != whole.head(3).to_rows()
    for options, sentence in [({}, "nothing says how many tasks"), ({"cap": 2, "sets": 0}, "no sets"),
                              ({"cap": 2, "periods": "mild"}, "mild"), ({"cap": -1.0}, "not a ratio")]:
        with pytest.raises(ws.Error, match=sentence):
            ws.generate(**options)


def test_rows_become_task_sets():
    drawn = ws.generate(3, tasks=4, total=1.5)
    sets = ws.task_sets(drawn)
    assert [len(s) for s in sets] == [4, 4, 4]
    assert [t["wcet_ns"] for t in sets[2]] == drawn["wcet_ns"][2]


def test_the_catalogs():
    assert {"GFB", "BCL", "RTA"} <= set(ws.tests()["test"])
    assert "g-edf" in ws.policies()["policy"]
