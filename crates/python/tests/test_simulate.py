"""Schedules in virtual time, and their traces."""

import contextlib
import json
import os
from pathlib import Path

import pytest

import warmset as ws

TWO = [ws.Task("2ms", "5ms", name="a"), ws.Task("3ms", "10ms", name="b")]
#: Too much for one processor.
MUCH = [ws.Task("3ms", "5ms", name="a"), ws.Task("5ms", "10ms", name="b")]


def test_the_document_is_that_of_the_command_line(binary, root):
    file = root / "examples/control.toml"
    for words, options, remark in [
        ("-m 2 --policy p-edf --for 100ms", {"m": 2, "policy": "p-edf", "horizon": "100ms"}, None),
        ("--platform xeon-l7455 --profile xeon-l7455 --policy c-edf:l2 --seed 3 --execution 0.5..1 "
         "--releases sporadic:0.5 --for 1s",
         {"platform": "xeon-l7455", "profile": "xeon-l7455", "policy": "c-edf:l2", "seed": 3,
          "execution": "0.5..1", "releases": "sporadic:0.5", "horizon": "1s"},
         "the profile of `xeon-l7455` has no overhead of these kinds under c-edf"),
    ]:
        printed = binary("simulate", file, *words.split(), "--format", "json", status=(0, 1))
        with pytest.warns(ws.Remark, match=remark) if remark else contextlib.nullcontext():
            run = ws.simulate(file, **options)
        assert run.to_dict() == json.loads(printed)


def test_jobs_are_columns():
    run = ws.simulate(TWO, m=1)
    assert (run.jobs, run.misses, run.missed, run.ended_by) == (3, 0, False, "horizon")
    jobs = run.responses
    assert jobs["task"] == ["a", "b", "a"]
    assert jobs["job"] == [1, 1, 2]
    assert jobs["response_ns"] == [2_000_000, 5_000_000, 2_000_000]
    assert jobs["lost_tick_ns"] == [0, 0, 0]
    assert jobs.types["release_ns"] == "Int64"


def test_a_miss_is_told():
    run = ws.simulate(MUCH, m=1, brute_force=True)
    assert run.missed and run.ended_by == "miss"
    assert run.first_miss["task"] in ("a", "b")
    assert run.misses == sum(t["misses"] for t in run.tasks)


def test_events_are_columns():
    trace = ws.simulate(TWO, m=1).trace
    events = trace.events()
    assert events["event"][0] == "release" and events["event"][-1] == "end"
    kinds = events["event"]
    assert kinds.count("release") == 3 and kinds.count("completion") == 3
    assert events["time_ns"] == sorted(events["time_ns"])
    window = trace.events("4ms", "6ms")
    assert set(window["time_ns"]) == {5_000_000}
    assert window.columns == events.columns


def test_a_trace_is_kept_as_long_as_its_answer(tmp_path):
    run = ws.simulate(TWO, m=1)
    path = run.trace.path
    assert path.exists()
    del run
    assert not path.exists()

    kept = tmp_path / "schedule.wtrace"
    run = ws.simulate(TWO, m=1, trace=kept)
    assert run.trace.path == kept
    del run
    assert ws.read_trace(kept).tasks == ws.TaskSet(TWO)
    assert os.listdir(tmp_path) == ["schedule.wtrace"]

    run = ws.simulate(TWO, m=1, record=False)
    assert run.jobs == 3
    with pytest.raises(ws.Error, match="the simulation was not recorded"):
        run.trace


def test_a_trace_is_checked_added_up_and_drawn(binary, tmp_path):
    path = tmp_path / "schedule.wtrace"
    run = ws.simulate(TWO, m=1, trace=path)
    trace = ws.read_trace(path)
    assert trace.check() and trace.check().violations == 0
    assert repr(trace.check()) == "<RuleCheck: clean>"
    assert repr(trace) == "<Trace schedule.wtrace: simulated, g-edf>"
    printed = json.loads(binary("trace", "stats", path, "--format", "json"))
    assert trace.stats().to_dict() == printed
    assert trace.stats().jobs == run.jobs
    svg = tmp_path / "schedule.svg"
    binary("trace", "export", path, "--to", "svg", "-o", svg)
    assert trace.svg() == svg.read_text()
    assert "<svg" in trace._repr_html_() and "<svg" in run._repr_html_()
    assert "3 jobs, 0 misses" in repr(run) and "<table>" in run._repr_html_()
    assert trace.svg("1ms", "4ms", rows="tasks", width=500) != trace.svg()


def test_a_broken_trace_is_found(tmp_path):
    path = tmp_path / "schedule.wtrace"
    # A schedule by fixed priorities that says of itself that it is g-edf.
    rate = ws.policy(name="rate", like="g-edf")(lambda job: job.period_ns)
    # It is one where the shorter period always has the nearer deadline.
    right = [ws.Task("1ms", "4ms", name="a"), ws.Task("4ms", "8ms", "40ms", name="b")]
    ws.simulate(right, policy=rate, m=1, trace=path)
    assert ws.read_trace(path).check()
    # Nearer deadlines have longer periods: earliest deadline first would run b first.
    wrong = [ws.Task("2ms", "10ms", name="a"), ws.Task("2ms", "20ms", "5ms", name="b")]
    ws.simulate(wrong, policy=rate, m=1, trace=path)
    checked = ws.read_trace(path).check()
    assert not checked and checked.violations > 0
    assert checked.first[0]["rule"] == "priority"
    assert "violations" in repr(checked)
    # Of equal deadlines that of the earlier release comes first: at 20 ms b goes on, and not a.
    tied = [ws.Task("2ms", "4ms", name="a"), ws.Task("4ms", "7ms", "10ms", name="b")]
    ws.simulate(tied, policy=rate, m=1, trace=path, horizon="28ms")
    checked = ws.read_trace(path).check()
    assert [v["time_ns"] for v in checked.first] == [20_000_000] and checked.violations == 1


def test_what_is_not_simulated_is_a_warning():
    tasks = [ws.Task("1ms", "5ms", blocking="1ms")]
    with pytest.warns(ws.Remark, match="blocking is not simulated") as told:
        ws.simulate(tasks, m=1)
    assert Path(told[0].filename) == Path(__file__)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"policy": "g-edff"}, "did you mean"),
        ({"policy": "g-edf,p-edf"}, "several policies"),
        ({"policy": "p-edf", "m": 1}, "the task set: .*fits on no processor"),
        ({"releases": "seldom"}, "seldom"),
        ({"execution": "fast"}, "fast"),
        ({"jitter": "much"}, "unknown kind of jitter"),
        ({"horizon": 1.0}, "horizon: 1.0 is a float"),
        ({"trace": "/none/such/trace"}, "trace: there is no directory `/none/such`; make it first"),
    ],
)
def test_wrong_options_are_errors(options, sentence):
    with pytest.raises(ws.Error, match=sentence):
        ws.simulate(MUCH, **({"m": 2} | options))


def test_no_trace_and_wrong_windows_are_errors(tmp_path):
    with pytest.raises(ws.Error, match="check the path"):
        ws.read_trace(tmp_path / "none")
    (tmp_path / "text").write_text("no trace\n" * 1000)
    with pytest.raises(ws.Error, match="text"):
        ws.read_trace(tmp_path / "text")
    trace = ws.simulate(TWO, m=1).trace
    with pytest.raises(ws.Error, match="is empty"):
        trace.svg("5ms", "4ms")
    with pytest.raises(ws.Error, match="no rows of a picture"):
        trace.svg(rows="cores")
