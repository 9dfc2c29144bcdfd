"""Studies."""

import os

import pytest

import warmset as ws


@pytest.fixture(scope="module")
def fig5():
    return ws.Study("ospert10-fig5", sets=2).run()


def test_results_are_those_of_the_command_line(binary, tmp_path, fig5):
    binary("study", "run", "ospert10-fig5", "--sets", "2", "-o", tmp_path / "fig5")
    for name, text in [("results.json", fig5.to_json()), ("results.csv", fig5.to_csv())]:
        assert (tmp_path / "fig5" / name).read_text() == text


def test_results_are_columns_and_charts(fig5):
    weighted = fig5.weighted
    assert weighted.columns == ["policy", "delay_ns", "weighted", "low", "high"]
    assert list(dict.fromkeys(weighted["policy"])) == fig5.policies
    for low, value, high in zip(weighted["low"], weighted["weighted"], weighted["high"]):
        assert 0 <= low <= value <= high <= 1
    shares = fig5.schedulability
    assert len(shares) == len(weighted) * len(fig5.to_dict()["caps"])
    assert all(0 <= a <= s for a, s in zip(shares["accepted"], shares["sets"]))
    assert "<svg" in fig5._repr_html_() and "<svg" in fig5.svg(0)
    assert fig5.svg(0) != fig5.svg()
    assert fig5.title in repr(fig5) and "P-EDF" in repr(fig5)
    with pytest.raises(ws.Error, match="the axis has no point 100000"):
        fig5.svg(100_000)


def test_shares_make_the_whole(tmp_path, fig5):
    study = ws.Study("ospert10-fig5", sets=2)
    dirs = [tmp_path / str(n) for n in (1, 2, 3)]
    for n, dir in enumerate(dirs, 1):
        assert study.run_share(f"{n}/3", dir, threads=n) is None
    assert ws.Study.merge(dirs[:2], tmp_path / "some") is None
    whole = ws.Study.merge(dirs, tmp_path / "all")
    assert whole.to_json() == fig5.to_json()


def test_a_study_that_is_stopped_goes_on(tmp_path):
    # Long enough that it is not over before it is first asked about.
    study = ws.Study("ospert10-fig5", sets=400)

    def stop(what, done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        study.run(tmp_path / "dir", progress=stop)
    kept = os.listdir(tmp_path / "dir")
    assert kept and "results.json" not in kept
    seen = []
    with pytest.warns(ws.Remark, match="parts are there already"):
        again = study.run(tmp_path / "dir", progress=lambda *said: seen.append(said))
    assert seen[-1][1] == seen[-1][2]
    assert again.to_json() == study.run(threads=1).to_json()


def test_studies_are_listed_and_unknown_ones_refused():
    assert "ospert10-fig5" in [s["name"] for s in ws.Study.list()]
    with pytest.raises(ws.Error, match="did you mean|ospert10"):
        ws.Study("ospert10-fig55").run()
    with pytest.raises(ws.Error, match="no share of a study"):
        ws.Study("ospert10-fig5").run_share("4/3", "nowhere")
    assert repr(ws.Study("x", sets=3)) == "<Study x: sets=3>"
