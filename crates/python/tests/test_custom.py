"""Tests and policies written in Python, held against the built-in ones."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warmset as ws


@ws.test
def gfb(tasks, m):
    us = [t.utilization for t in tasks]
    return sum(us) <= m - (m - 1) * max(us)


@ws.test(name="all-fits")
def everything(tasks, m):
    """Wrong: utilization alone shows nothing of global EDF."""
    return sum(t.utilization for t in tasks) <= m


def drawn(sets=300, **more):
    return ws.generate(sets, **({"cap": 3, "m": 3, "utilization": "uniform-heavy"} | more))


def test_a_test_in_python_is_a_column():
    # With a cap of 3, GFB accepts none of so heavy tasks.
    sets = drawn(cap=2)
    answers = ws.check_batch(sets, tests=["GFB", gfb, "BCL"])
    assert answers.columns == ["id", "GFB", "BCL", "gfb"]
    assert answers["gfb"] == answers["GFB"]
    assert True in answers["gfb"] and False in answers["gfb"]
    alone = ws.check_batch(sets, tests=gfb)
    assert alone.to_dict() == answers.select("id", "gfb").to_dict()
    assert gfb([ws.Timing(1, 2, 2)], 1) is True
    assert repr(gfb) == "<Test gfb for g-edf>" and everything.__doc__.startswith("Wrong")


def test_a_correct_test_is_not_disproved():
    compared = gfb.compare(drawn(cap=2), ["GFB", "BCL"], simulate=50)
    assert compared.disproved == [] and compared.simulated == min(50, compared.accepted)
    row = compared.table[0]
    assert (row["test"], row["only_this"], row["only_other"]) == ("GFB", 0, 0)
    assert row["both"] == compared.accepted > 0
    assert "proves nothing" in repr(compared) and "<table>" in compared._repr_html_()


def test_a_wrong_test_is_disproved_by_a_schedule():
    compared = everything.compare(drawn())
    assert compared.disproved
    assert {"GFB", "BCL"} <= {row["test"] for row in compared.table}
    bad = compared.set(compared.disproved[0])
    assert ws.simulate(bad, policy="g-edf", m=3).missed
    assert "the test is wrong" in repr(compared)


def test_a_test_need_not_apply():
    odd = ws.test(name="odd")(lambda tasks, m: True if len(tasks) % 2 else None)
    answers = ws.check_batch(drawn(50), tests=[odd])
    assert set(answers["odd"]) == {True, None}


def test_what_a_test_does_wrong_is_raised():
    @ws.test
    def raises(tasks, m):
        raise LookupError("mine")

    @ws.test
    def number(tasks, m):
        return Fraction(1)

    with pytest.raises(LookupError, match="mine"):
        ws.check_batch(drawn(3), tests=raises)
    with pytest.raises(ws.Error, match="row 0: the test `number` answered Fraction"):
        ws.check_batch(drawn(3), tests=number)
    with pytest.raises(ws.Error, match="two columns would have the name `GFB`"):
        ws.check_batch(drawn(3), tests=["GFB", ws.test(name="GFB")(gfb.decide)])


@ws.policy(like="g-edf:ties=index")
def edf(job):
    return job.deadline_ns


task = st.tuples(st.integers(1, 4), st.sampled_from([4, 5, 8, 10])).map(
    lambda t: ws.Task(f"{t[0]}ms", f"{t[1]}ms")
)


@settings(max_examples=25)
@given(st.lists(task, min_size=1, max_size=5), st.integers(1, 3))
def test_the_checker_holds_edf_in_python_against_the_rules_of_g_edf(tasks, m):
    run = ws.simulate(tasks, policy=edf, m=m)
    checked = run.trace.check()
    assert checked, checked.first
    # Ties are broken alike where all deadlines are periods and differ only by release.
    again = ws.simulate(tasks, policy="g-edf:ties=index", m=m)
    assert run.responses.to_dict() == again.responses.to_dict()


def test_first_come_first_served_is_that_of_the_catalog():
    fifo = ws.policy(name="by-release", like="g-fifo")(lambda job: job.release_ns)
    tasks = [ws.Task("3ms", "8ms"), ws.Task("1ms", "4ms"), ws.Task("5ms", "20ms")]
    run = ws.simulate(tasks, policy=fifo, m=1)
    assert run.trace.check()
    built_in = ws.simulate(tasks, policy="g-fifo", m=1)
    assert run.responses["response_ns"] == built_in.responses["response_ns"]
    assert run.policy == "by-release"


def test_a_policy_may_be_partitioned_and_of_its_own():
    @ws.policy(partitioned=True)
    def rate_monotonic(job):
        return job.period_ns

    tasks = [ws.Task("4ms", "10ms"), ws.Task("3ms", "5ms"), ws.Task("4ms", "20ms")]
    run = ws.simulate(tasks, policy=rate_monotonic, m=2)
    assert run.migrations == 0 and run.trace.check()
    assert run.to_dict()["policy"] == rate_monotonic.name == "rate-monotonic"
    built_in = ws.simulate(tasks, policy="p-rm", m=2)
    assert run.responses.to_dict() == built_in.responses.to_dict()


def test_equal_ranks_go_by_the_place_in_the_set():
    same = ws.policy(name="same")(lambda job: 7)
    tasks = [
        ws.Task("2ms", "10ms", phase="1ms"), ws.Task("4ms", "10ms"), ws.Task("4ms", "10ms"),
    ]
    run = ws.simulate(tasks, policy=same, m=2, horizon="10ms")
    # The first task comes at 1 ms and takes the processor of the third, which waits for it.
    jobs = {job["task"]: job for job in run.responses.to_rows()}
    assert [jobs[t]["completion_ns"] // 10**6 for t in ("T1", "T2", "T3")] == [3, 4, 6]
    assert [jobs[t]["preemptions"] for t in ("T1", "T2", "T3")] == [0, 0, 1]
    assert run.trace.check()


def test_each_job_is_ranked_once():
    asked = []
    counting = ws.policy(name="counting")(lambda job: asked.append(job) or job.deadline_ns)
    tasks = [ws.Task("2ms", "5ms"), ws.Task("3ms", "10ms"), ws.Task("9ms", "30ms")]
    run = ws.simulate(tasks, policy=counting, m=1, horizon="60ms")
    assert len({(j.task, j.number) for j in asked}) == len(asked) >= run.jobs
    assert asked[0] == ws.Job(0, 0, 0, 5_000_000, 2_000_000, 5_000_000)


def test_what_a_policy_does_wrong_is_raised():
    tasks = [ws.Task("2ms", "5ms"), ws.Task("3ms", "10ms")]
    for rank, error, sentence in [
        (lambda job: 1 // 0, ZeroDivisionError, "division"),
        (lambda job: -1, ws.Error, "ranked a job -1"),
        (lambda job: 0.5, ws.Error, "ranked a job 0.5"),
        (lambda job: 2**64, ws.Error, "integer from 0"),
    ]:
        with pytest.raises(error, match=sentence):
            ws.simulate(tasks, policy=ws.policy(name="wrong")(rank), m=1, horizon="10s")
    for name, sentence in [("g-edf", "built-in policy"), ("Not this", "cannot name a policy")]:
        with pytest.raises(ws.Error, match=sentence):
            ws.simulate(tasks, policy=ws.policy(name=name)(lambda job: 1), m=1)
    with pytest.raises(ws.Error, match="like"):
        ws.simulate(tasks, policy=ws.policy(name="mine", like="nobody")(lambda job: 1), m=1)
    with pytest.raises(ws.Error, match="without costs"):
        ws.simulate(tasks, policy=edf, m=1, profile="xeon-l7455")
