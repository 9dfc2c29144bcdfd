"""Times as people and programs write them."""

from datetime import timedelta

import numpy
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

import warmset as ws

UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9}


@given(st.integers(0, 10**6), st.sampled_from(sorted(UNITS)))
def test_text_is_read_exactly(number, unit):
    assert ws.nanoseconds(f"{number}{unit}") == number * UNITS[unit]


@given(st.integers(0, 2**64 - 1))
def test_integers_are_nanoseconds(ns):
    assert ws.nanoseconds(ns) == ns


@given(st.timedeltas(timedelta(0), timedelta(days=1000)))
def test_timedeltas_are_exact(delta):
    assert timedelta(microseconds=ws.nanoseconds(delta) // 1000) == delta


def test_other_integers_and_a_timedelta_of_pandas():
    assert ws.nanoseconds(numpy.int64(5)) == 5
    assert ws.nanoseconds(pandas.Timedelta(1_234_567, unit="ns")) == 1_234_567


@pytest.mark.parametrize(
    ("value", "cause"),
    [
        (4.0, "a float, whose unit nobody knows"),
        (numpy.float64(4), "a float, whose unit nobody knows"),
        (True, "is not a time"),
        (None, "`NoneType` is not a time"),
        ("4", "has no unit"),
        ("4 parsecs", "is not a time"),
        ("0.1ns", "finer than a nanosecond"),
        (-1, "out of range"),
        (2**64, "out of range"),
        (timedelta(-1), "out of range"),
    ],
)
def test_what_is_no_time_is_refused_with_cause_and_remedy(value, cause):
    with pytest.raises(ws.Error) as e:
        ws.nanoseconds(value, "period")
    assert cause in e.value.cause
    assert e.value.place == "period"
    assert e.value.remedy
    assert str(e.value).startswith(f"period: {e.value.cause}; ")


@pytest.mark.parametrize(
    ("call", "place"),
    [
        (lambda: ws.generate(-1, cap=1), "sets"),
        (lambda: ws.generate(10, tasks=-3), "tasks"),
        (lambda: ws.generate(10, cap=1, seed=1 << 64), "seed"),
        (lambda: ws.generate(10, cap=1, first=0.5), "first"),
        (lambda: ws.Platform(m=-1), "m"),
        (lambda: ws.Study("ospert10-fig5", sets="many"), "sets"),
        (lambda: ws.Study("ospert10-fig5").run(threads=True), "threads"),
        (lambda: ws.check_batch(ws.generate(1, cap=1), m=1 << 32), "m"),
    ],
)
def test_what_is_no_count_is_refused_by_the_name_of_the_argument(call, place):
    with pytest.raises(ws.Error) as e:
        call()
    assert e.value.place == place
    assert "is not a whole number from 0 to" in e.value.cause and e.value.remedy


def test_a_place_is_an_argument_of_python():
    with pytest.raises(ws.Error) as e:
        ws.generate(1 << 63, cap=1, first=1 << 63)
    assert e.value.place in ("sets", "first")
    assert "--" not in e.value.place
