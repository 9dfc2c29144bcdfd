"""Studies by the workers of a real scheduler of Dask, which are killed, come late, and are gone."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import dask
import pytest
from distributed import Client
from hypothesis import given
from hypothesis import strategies as st

import warmset as ws
from warmset import _dask, _native

# Dask's own warnings are not about this package.
pytestmark = pytest.mark.filterwarnings("default")

SCHEDULER = """
import asyncio, sys
from distributed import Scheduler

async def main():
    async with Scheduler(host="127.0.0.1", port=0, dashboard=False) as scheduler:
        print(scheduler.address, flush=True)
        await scheduler.finished()

asyncio.run(main())
"""

#: A worker that is ready to come, and comes as soon as there is a file.
WORKER = """
import asyncio, os, sys, time
from distributed import Worker
import warmset

address, place = sys.argv[1:]

async def main():
    async with Worker(address, nthreads=1, host="127.0.0.1", local_directory=place, name=place):
        await asyncio.Event().wait()

while not os.path.exists(place + ".come"):
    time.sleep(0.01)
asyncio.run(main())
"""


class Cluster:
    """A scheduler and workers, a process each."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.log = open(directory / "log", "w")
        self.scheduler = self.start(SCHEDULER, stdout=subprocess.PIPE, text=True)
        self.address = self.scheduler.stdout.readline().strip()
        self.workers = []

    def start(self, program, *words, **how):
        process = subprocess.Popen([sys.executable, "-c", program, *words], stderr=self.log, **how)
        return process

    def worker(self):
        place = self.directory / f"worker{len(self.workers)}"
        self.workers.append(self.start(WORKER, self.address, str(place)))
        return place

    @staticmethod
    def come(place):
        Path(f"{place}.come").touch()

    def has(self, count):
        """So many workers are at work, or come now."""
        alive = [at for at, process in enumerate(self.workers) if process.poll() is None]
        for _ in range(count - len(alive)):
            self.come(self.worker())

    def stop(self):
        for process in [*self.workers, self.scheduler]:
            process.kill()
            process.wait()
        self.scheduler.stdout.close()
        self.log.close()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        yield made
    finally:
        made.stop()


def files(directory):
    return {path.name: path.read_bytes() for path in Path(directory).iterdir()}


#: Some seconds of work for four workers.
SETS = 1000
STUDY = ws.Study("ospert10-fig5", sets=SETS)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    directory = tmp_path_factory.mktemp("alone")
    STUDY.run(directory, threads=1)
    return files(directory)


# The other processes do not know this module: a lambda is sent as its code.
#: Tasks that a worker has done.
executed = lambda dask_worker: dask_worker.state.executed_count  # noqa: E731
#: Tasks that the scheduler knows.
tasks = lambda dask_scheduler: len(dask_scheduler.tasks)  # noqa: E731


def test_killed_and_late_workers_change_no_byte(cluster, alone, tmp_path, monkeypatch):
    monkeypatch.setattr(_dask, "SHARD_S", 0.1)
    cluster.has(4)
    late = cluster.worker()
    with Client(cluster.address) as client:
        client.wait_for_workers(4)
        steps, most = ["kill", "come"], [0]

        def progress(what, done, total):
            most[0] = max(most[0], client.run_on_scheduler(tasks))
            if steps == ["kill", "come"] and done > total / 4:
                steps.pop(0)
                for victim in cluster.workers[:2]:
                    os.kill(victim.pid, signal.SIGKILL)
                    assert victim.wait() == -signal.SIGKILL
            if steps == ["come"] and done > total / 2:
                steps.pop(0)
                cluster.come(late)

        STUDY.run(tmp_path / "there", client=client, progress=progress)
        assert not steps
        assert files(tmp_path / "there") == alone
        # The scheduler knows those under way and those that it is about to forget; none in the end.
        assert 0 < most[0] <= 2 * _dask.AHEAD * 4
        assert client.run_on_scheduler(tasks) == 0
        done = client.run(executed)
        assert len(done) == 3 and all(done.values())
        assert str(late) in [w["name"] for w in client.scheduler_info()["workers"].values()]


def test_studies_may_be_run_at_once_by_one_client(cluster, tmp_path):
    cluster.has(2)
    seeds = (1, 2, 3)

    def run(seed, **how):
        study = ws.Study("ospert10-fig5", sets=4, policies="p-edf", seed=seed)
        return study.run(**how).to_json()

    with Client(cluster.address) as client, ThreadPoolExecutor(3) as pool:
        there = list(pool.map(lambda seed: run(seed, client=client), seeds))
    assert there == [run(seed) for seed in seeds]


def test_the_command_asks_dask_too(cluster, alone, tmp_path, binary):
    cluster.has(2)
    words = ["study", "run", "ospert10-fig5", "--sets", str(SETS), "--dask", cluster.address]
    python = {**os.environ, "WARMSET_PYTHON": sys.executable}
    binary(*words, "-o", tmp_path / "there", env=python)
    there = files(tmp_path / "there")
    assert {name: there[name] for name in alone} == alone
    # A family is asked for by one process.
    family = ["study", "run", "bastoni11-6.3-soft-uniform-light", "--sets", "1", "--platform",
              "symmetric:m=4", "--policy", "p-edf,g-edf", "-o"]
    binary(*family, tmp_path / "family", "--dask", cluster.address, env=python)
    binary(*family, tmp_path / "here")
    studies = sorted(path.name for path in (tmp_path / "here").iterdir())
    assert len(studies) == 3
    for study in studies:
        assert files(tmp_path / "family" / study) == files(tmp_path / "here" / study)


def refused(*words, python):
    environment = {**os.environ, "WARMSET_PYTHON": str(python)}
    done = subprocess.run(
        [os.environ["WARMSET"], "study", "run", "ospert10-fig5", "--sets", "1", *words],
        capture_output=True, text=True, check=False, env=environment,
    )
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def test_the_command_says_what_python_lacks(binary):
    # The interpreter that this environment is made of has no packages.
    told = refused("--dask", "tcp://127.0.0.1:1", python=sys._base_executable)
    assert "has no package `warmset`" in told and "pip install" in told
    told = refused("--dask", "tcp://127.0.0.1:1", python="/nowhere/python3")
    assert "cannot start Python" in told and "WARMSET_PYTHON" in told
    told = refused("--dask", "tcp://127.0.0.1:1", "--threads", "2", python=sys.executable)
    assert "--threads" in told


def test_what_a_worker_raises_is_raised_here(cluster, tmp_path):
    class Some(list):
        def take(self, count):
            return [self.pop() for _ in range(min(count, len(self)))]

    cluster.has(1)
    with Client(cluster.address) as client:
        with pytest.raises(ws.Error, match="what came is not a study"):
            list(_dask.dispatcher(client)("{}", Some([(1000, 0, 10)])))
        assert client.run_on_scheduler(tasks) == 0


def test_a_stop_leaves_nothing_on_the_scheduler(cluster, tmp_path):
    def stop(what, done, total):
        if done:
            raise KeyboardInterrupt

    cluster.has(1)
    with Client(cluster.address) as client:
        with pytest.raises(KeyboardInterrupt):
            ws.Study("ospert10-fig5", sets=1000).run(tmp_path, client=client, progress=stop)
        until = time.monotonic() + 60
        while client.run_on_scheduler(tasks):
            assert time.monotonic() < until
            time.sleep(0.05)
        with pytest.raises(ws.Error, match="leave one of them out"):
            STUDY.run(client=client, threads=1)


def test_what_the_guide_shows_is_what_works(cluster, root, tmp_path, binary, monkeypatch):
    page = (root / "docs" / "cluster.md").read_text()
    section = page.split("\n## With Dask\n")[1].split("\n## ")[0]
    less = {"tcp://10.0.0.1:8786": cluster.address, "100_000": "1", "10_000": "10", "10000": "10"}
    for this, that in less.items():
        assert this in section
        section = section.replace(this, that)
    shown = [line[4:] for line in section.splitlines() if line.startswith("    ")]
    commands = [line for line in shown if line.startswith("warmset ")]
    code = [line for line in shown if not line.startswith(("warmset ", "pip ", "dask "))]
    assert len(commands) == 2 and len(code) > 8

    cluster.has(2)
    monkeypatch.chdir(tmp_path)
    names = {}
    exec("\n".join(code), names)
    names["client"].close()
    assert len(names["results"]) == len(list(Path("hard").iterdir())) == 6
    here = files("fig5")
    ws.Study("ospert10-fig5", sets=10).run("alone")
    assert here == files("alone")

    shutil.rmtree("fig5")
    shutil.rmtree("hard")
    python = {**os.environ, "WARMSET_PYTHON": sys.executable}
    for command, more in zip(commands, ([], ["--sets", "1"]), strict=True):
        binary(*shlex.split(command)[1:], *more, env=python)
    there = files("fig5")
    assert {name: there[name] for name in here} == here
    assert len(list(Path("hard").iterdir())) == 18


# The last test: the others need the scheduler.
def test_a_study_goes_on_after_its_scheduler_is_gone(cluster, alone, tmp_path):
    cluster.has(2)

    def kill(what, done, total):
        if done > total / 8:
            cluster.scheduler.kill()

    with dask.config.set({"distributed.comm.timeouts.connect": "1s"}):
        client = Client(cluster.address)
        with pytest.raises(ws.Error, match="the scheduler is gone"):
            STUDY.run(tmp_path, client=client, progress=kill)
        client.close()
    with pytest.warns(ws.Remark, match="parts are there already"):
        STUDY.run(tmp_path)
    assert files(tmp_path) == alone


def test_shards_keep_pace_with_the_workers():
    pace = _dask.Pace(None)
    assert not pace.is_known and pace.parts(10_000, 4) == 1
    pace.add(1, 0.01)
    # A second's worth, and with many threads more: the scheduler has only so much time for each.
    assert pace.parts(1_000_000, 4) == 100
    assert pace.parts(1_000_000_000, 10_000) == 6_000
    # Towards the end each thread gets its share of what is left, but nothing shorter than what it
    # takes to send shards to all of them.
    assert pace.parts(80, 4) == 10
    assert pace.parts(100_000, 10_000) == 3_000
    assert pace.parts(2_000, 10_000) == 2_000
    assert pace.parts(1, 4) == 1
    assert _dask.Pace(0.0).parts(100, 4) == 1


@given(st.integers(1, 5_000), st.integers(1, 64), st.floats(1e-6, 10), st.floats(0, 10))
def test_shards_are_all_parts_and_none_is_empty(parts, threads, part_s, seconds):
    pace, left = _dask.Pace(seconds), parts
    while left:
        size = pace.parts(left, threads)
        assert 1 <= size <= left
        pace.add(size, size * part_s)
        left -= size


@pytest.fixture(scope="module")
def small():
    """A study as text, its parts, and its counts by part."""
    kept = []

    def capture(study, parts):
        kept.append((study, parts.take(len(parts))))
        raise LookupError

    with pytest.raises(LookupError):
        _native.study_run("ospert10-fig5", sets=15, policies="p-edf,g-edf", dispatch=capture)
    study, parts = kept[0]
    # Those of small caps take less time.
    parts = parts[-80::10]
    lines = _native.study_judge(study, parts).splitlines()
    return study, dict(zip(parts, lines, strict=True))


@given(st.data())
def test_counts_do_not_depend_on_how_parts_are_put_into_shards(small, data):
    study, known = small
    parts = data.draw(st.permutations(list(known)))
    packed = zlib.compress(study.encode())
    while parts:
        size = data.draw(st.integers(1, len(parts)))
        shard, parts = parts[:size], parts[size:]
        counts, seconds = _dask.judge_shard(packed, shard)
        assert counts.splitlines() == [known[part] for part in shard]
        assert seconds > 0
