"""Verdicts are those of the command line."""

import json
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import warmset as ws


def test_the_document_is_that_of_the_command_line(binary, root):
    file = root / "examples/control.toml"
    for words, options in [
        ("-m 2", {"m": 2}),
        ("--platform xeon-l7455 --profile xeon-l7455 --soft",
         {"platform": "xeon-l7455", "profile": ws.Profile("xeon-l7455"), "guarantee": "soft"}),
        ("-m 2 --cpmd 100us --policy g-edf,p-edf",
         {"m": 2, "cpmd": "100us", "policies": ["g-edf", "p-edf"]}),
    ]:
        printed = binary("check", file, *words.split(), "--format", "json", status=(0, 1))
        verdicts = ws.check(file, **options)
        assert verdicts.to_dict() == json.loads(printed)


def test_verdicts_read_well(root):
    verdicts = ws.check(root / "examples/control.toml", m=2, cpmd="100us")
    assert verdicts
    assert verdicts["p-edf"].schedulable and verdicts["p-edf"].word == "yes"
    assert verdicts["g-edf"].word == "not shown"
    assert verdicts[0].policy == "p-edf"
    assert verdicts.advice in repr(verdicts)
    assert repr(verdicts).splitlines()[0].split() == [
        "policy", "hard", "shown", "by", "largest", "delay", "reason"
    ]
    html = verdicts._repr_html_()
    assert "<table>" in html and "p-edf" in html and "not shown" in html
    with pytest.raises(KeyError, match="`c-edf` was not judged: p-edf, "):
        verdicts["c-edf"]


def test_wrong_options_are_errors(root):
    file = root / "examples/control.toml"
    for options, sentence in [
        ({"m": 0}, "0 processors"),
        ({"m": 2, "platform": "xeon-l7455"}, "both a platform and a number"),
        ({"m": 2, "policies": "g-edff"}, "g-edf"),
        ({"m": 2, "guarantee": "firm"}, "write `hard` or `soft`"),
        ({"m": 2, "profile": "none-such"}, "none-such"),
        ({"m": 2, "cpmd": 1.5}, "cpmd: 1.5 is a float"),
        ({"m": 2, "load": "heavy"}, "unknown load `heavy`"),
    ]:
        with pytest.raises(ws.Error, match=sentence):
            ws.check(file, **options)


def test_a_certificate_is_written(tmp_path, root):
    path = tmp_path / "certificate.json"
    ws.check(root / "examples/control.toml", m=2, policies="p-edf", certificate=path)
    assert json.loads(path.read_text())["claims"]


def test_platforms_and_profiles(tmp_path):
    xeon = ws.Platform("xeon-l7455")
    assert (xeon.name, xeon.processors) == ("xeon-l7455", 24)
    assert repr(xeon) == "<Platform xeon-l7455: 24 processors>"
    assert ws.Platform.from_toml(xeon.to_toml()) == xeon
    assert "<svg" in xeon._repr_html_()
    assert ws.Platform(m=4).processors == 4
    with pytest.raises(ws.Error, match="either a name or a number"):
        ws.Platform()
    assert xeon.to_dict()["platform"]["name"] == "xeon-l7455"

    profile = ws.Profile("xeon-l7455")
    assert "xeon-l7455" in ws.Profile.builtin()
    assert ws.Profile.from_toml(profile.to_toml()) == profile
    delays = profile.cpmd
    assert {"preemption", "L3"} & set(delays["resumption"])
    assert len(delays) > 50 and delays.types["maximum_ns"] == "Int64"
    assert "<svg" in profile._repr_html_()
    (tmp_path / "profile.toml").write_text(profile.to_toml())
    assert ws.Profile(tmp_path / "profile.toml") == profile
    values = profile.values(wss="256KiB")
    assert values and all(set(v) >= {"curve", "statistic", "value_ns"} for v in values)


#: A WCET and a period in nanoseconds.
timing = st.integers(1, 1_000).flatmap(
    lambda period: st.tuples(st.integers(1, period), st.just(period))
)


@given(st.lists(timing, min_size=1, max_size=6))
def test_edf_on_one_processor_is_decided_by_utilization(timings):
    verdict = ws.check([ws.Task(*t) for t in timings], m=1, policies="p-edf")["p-edf"]
    fits = sum(Fraction(*t) for t in timings) <= 1
    assert (verdict.schedulable, verdict.refuted) == (fits, not fits)
