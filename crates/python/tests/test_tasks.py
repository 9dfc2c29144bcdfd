"""Tasks and task sets."""

import pickle
import re
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

import warmset as ws


def test_a_task_holds_nanoseconds_and_reads_well():
    task = ws.Task("4ms", timedelta(milliseconds=33), name="camera", wss="256KiB")
    assert (task.wcet, task.period, task.deadline) == (4_000_000, 33_000_000, None)
    assert repr(task) == "Task('4ms', '33ms', name='camera', wss='256KiB')"
    assert eval(repr(task), {"Task": ws.Task}) == task


def test_objects_dictionaries_and_files_make_the_same_set(tmp_path, root):
    objects = ws.TaskSet([
        ws.Task("4ms", "33ms", name="camera", wss="256KiB", cpus="0-1"),
        ws.Task("1ms", "5ms", "4ms", priority=3, soft=True, more={"workload": {"kind": "walk"}}),
    ])
    dictionaries = ws.TaskSet([
        {"name": "camera", "wcet": 4_000_000, "period": "33ms", "wss": "256KiB", "cpus": "0-1"},
        {"wcet": "1ms", "period": "5ms", "deadline": "4ms", "priority": 3, "soft": True,
         "workload": {"kind": "walk"}},
    ])
    assert objects == dictionaries
    objects.write(tmp_path / "set.toml")
    assert ws.TaskSet.read(tmp_path / "set.toml") == objects
    assert objects.names == ["camera", "T2"]
    assert len(ws.TaskSet.read(root / "examples/control.toml")) == 6


times = st.integers(1, 10**12)


@given(st.lists(
    st.tuples(times, times, st.one_of(st.none(), st.integers(0, 2**40)), st.text(min_size=1)),
    min_size=1, max_size=8, unique_by=lambda t: t[3],
))
def test_a_set_reads_back_from_its_text_and_from_a_pickle(tasks):
    made = [
        ws.Task(min(a, b), max(a, b), name=name, wss=None if wss is None else f"{wss}B")
        for a, b, wss, name in tasks
    ]
    try:
        set = ws.TaskSet(made)
    except ws.Error:
        # Some names are none: the tool says so.
        assert any(not name.isprintable() or not name.strip() for *_, name in tasks)
        return
    assert ws.TaskSet.from_toml(set.to_toml()) == set
    assert pickle.loads(pickle.dumps(set)) == set
    rows = set.table.to_rows()
    assert [r["wcet_ns"] for r in rows] == [min(a, b) for a, b, *_ in tasks]
    assert [r["deadline_ns"] for r in rows] == [max(a, b) for a, b, *_ in tasks]
    assert [r["wss_bytes"] for r in rows] == [t[2] for t in tasks]
    assert [r["task"] for r in rows] == [t[3] for t in tasks]


@pytest.mark.parametrize(
    ("tasks", "place", "cause", "remedy"),
    [
        ([], "", "there are no tasks", "add a `[[task]]` table"),
        ([{"wcet": "4ms"}], "task 1", "`period`", ""),
        ([{"wcet": "1ms", "period": "5ms"}, {"wcett": "4ms", "wcet": "1ms", "period": "9ms"}],
         "task 2", "unknown key `wcett`", "did you mean `wcet`?"),
        ([{"wcet": 4.0, "period": "33ms"}], "task 1, `wcet`", "a float", "nanoseconds"),
        ([{"wcet": "9ms", "period": "5ms"}], "task 1", "above the deadline", "shorten"),
        ([{"wcet": "1ms", "period": "5ms", "name": n} for n in "aa"],
         "task 2, `name`", "is taken by the task of task 1", "own name"),
        ([{"wcet": "1ms", "period": "5ms", "wss": "many"}], "task 1, `wss`", "many", ""),
        ([{"wcet": "1ms", "period": "5ms", "wss": object()}], "task 1, `wss`", "`object`", "text"),
        (["camera"], "task 1", "`str` is not a task", "Task("),
    ],
)
def test_what_is_no_set_names_the_task_and_the_key(tasks, place, cause, remedy):
    with pytest.raises(ws.Error) as e:
        ws.TaskSet(tasks)
    assert cause in e.value.cause
    assert e.value.place.startswith(place)
    assert remedy in e.value.remedy
    assert not re.search(r"\blines?\b", str(e.value))


def test_an_error_of_a_file_names_its_line(tmp_path):
    file = tmp_path / "set.toml"
    file.write_text('[[task]]\nwcet = "4ms"\nperiodd = "33ms"\n')
    with pytest.raises(ws.Error, match=r"set.toml: line 3.*unknown key `periodd`.*did you mean"):
        ws.TaskSet.read(file)
    with pytest.raises(ws.Error, match="check the path"):
        ws.check(tmp_path / "none.toml", m=1)


def test_errors_can_be_pickled():
    with pytest.raises(ws.Error) as e:
        ws.Platform("xeno")
    again = pickle.loads(pickle.dumps(e.value))
    assert (str(again), again.remedy) == (str(e.value), e.value.remedy)


def test_a_notebook_shows_a_table_and_no_markup_of_names():
    html = ws.TaskSet([ws.Task("4ms", "33ms", name="<b>x</b>", wss="256KiB")])._repr_html_()
    assert "256 KiB" in html and "4ms" in html
    assert "&lt;b&gt;x" in html and "<b>" not in html
