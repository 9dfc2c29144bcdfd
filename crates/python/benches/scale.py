"""What a cluster is worth for studies: what a part costs, what a shard costs besides its parts, how
well one, two and four workers are used here; and from these figures how well many would be.

    python scale.py [--family NAME] [--shards N] [--sets N] [--model N,N,...]
                    [--stages parts,shards,workers,model] [--keep scale.json]

What a stage measures is kept in the file, for stages of later calls. Costs are times of processors,
which other programs on the machine change less than times of a clock. What workers here make of it
is told in times of a clock: on a busy machine that says little.
"""

import argparse
import contextlib
import heapq
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
from distributed import Client

import warmset as ws
from warmset import _dask, _native

CORES = (10, 100, 1_000, 10_000)
#: The model of more shards than these takes too long.
MOST_SHARDS = 2_000_000


class Captured(Exception):
    """A study was captured instead of run."""


def captured(name, sets, **options):
    """A study as it is sent, and its parts in the order in which they are."""
    kept = []

    def capture(study, parts):
        kept.append((study, parts.take(len(parts))))
        raise Captured

    with contextlib.suppress(Captured):
        _native.study_run(name, sets=sets, dispatch=capture, **options)
    return kept[0]


def names_of(family):
    families = json.loads(_native.study_list())["families"]
    return next((f["studies"] for f in families if f["name"] == family), [family])


def judging_s(study, parts):
    """Processor time that judging a part takes."""
    begun = time.process_time()
    _native.study_judge(study, parts)
    return (time.process_time() - begun) / len(parts)


def part_s(name):
    """Processor time of a part of a study, the mean over all caps: what ten sets more of each cap
    take. What is done once a study is left out by that."""

    def run_s(sets):
        begun = time.process_time()
        results = _native.study_run(name, sets=sets, threads=1)
        caps = len(json.loads(results.json())["caps"])
        return time.process_time() - begun, caps

    (less, caps), (more, _) = run_s(10), run_s(20)
    return (more - less) / caps, caps


class Taken:
    """Parts in a list, as `warmset._native.Parts`."""

    def __init__(self, parts):
        self._left = parts[::-1]

    def __len__(self):
        return len(self._left)

    def take(self, count):
        return [self._left.pop() for _ in range(min(count, len(self._left)))]


@contextlib.contextmanager
def cluster(workers):
    """A scheduler and workers of one thread, each a process: the client and the processes."""
    with tempfile.TemporaryDirectory() as place, contextlib.ExitStack() as started:
        file = Path(place, "scheduler.json")
        log = started.enter_context(open(Path(place, "log"), "w"))

        def start(*words):
            process = subprocess.Popen(
                [sys.executable, "-m", "dask", *words, "--no-dashboard"], stdout=log, stderr=log
            )
            started.callback(process.wait)
            started.callback(process.kill)
            return psutil.Process(process.pid)

        scheduler = start("scheduler", "--host", "127.0.0.1", "--port", "0",
                          "--scheduler-file", str(file))
        while not file.exists():
            time.sleep(0.05)
        there = [start("worker", "--scheduler-file", str(file), "--host", "127.0.0.1",
                       "--nthreads", "1", "--no-nanny", "--memory-limit", "0",
                       "--local-directory", place) for _ in range(workers)]
        with Client(scheduler_file=str(file)) as client:
            client.wait_for_workers(workers)
            yield client, scheduler, there


def used_s(process):
    return sum(process.cpu_times()[:2])


def shard_costs(shards):
    """What a shard of one part costs besides its judging: processor time in the scheduler, in the
    one who asks, and in the worker. And how much memory the scheduler has, before and after."""
    # One policy: what a part takes is left out anyway.
    study, parts = captured("ospert10-fig5", 10 * (shards // 93 + 1), policies="p-edf")
    parts = parts[:shards]
    some = parts[:: max(1, len(parts) // 200)]
    each = judging_s(study, some)
    with cluster(2) as (client, scheduler, workers):
        list(_dask.dispatcher(client, 0.0)(study, Taken(parts[:50])))
        before = [used_s(p) for p in (scheduler, *workers)], time.process_time()
        memory, clock = [scheduler.memory_info().rss], time.monotonic()
        for at, _ in enumerate(_dask.dispatcher(client, 0.0)(study, Taken(parts))):
            if at % 1_000 == 0:
                memory.append(scheduler.memory_info().rss)
        clock, own = time.monotonic() - clock, time.process_time() - before[1]
        used = [used_s(p) - b for p, b in zip((scheduler, *workers), before[0])]
        memory.append(scheduler.memory_info().rss)
    n = len(parts)
    return {
        "shards": n,
        "scheduler_s": used[0] / n,
        "asking_s": own / n,
        "worker_s": max(sum(used[1:]) / n - each, 0.0),
        "clock_s": clock / n,
        "memory": memory,
    }


def efficiency(sets):
    """Times of a clock of Fig. 5 of 000: one thread here, and workers of one thread by Dask."""
    study = ws.Study("ospert10-fig5", sets=sets)
    begun = time.monotonic()
    study.run(threads=1)
    alone = time.monotonic() - begun
    rows = []
    for workers in (1, 2, 4):
        with cluster(workers) as (client, _, _):
            begun = time.monotonic()
            study.run(client=client)
            rows.append((workers, time.monotonic() - begun))
    return alone, rows


def modelled(part_s, parts, cores, shard_s, worker_s):
    """Seconds from the first shard to the last, for a study on so many cores. A scheduler that
    takes `shard_s` for each shard, and has one at a time in hand, gives each worker a shard to judge
    and one that waits; how large they are the package decides."""
    pace, left, scheduler = _dask.Pace(None), parts, 0.0
    ends, last = [], [0.0] * cores

    def send(now, worker):
        nonlocal left, scheduler
        if not left:
            return
        size = pace.parts(left, cores)
        left -= size
        scheduler = max(scheduler, now) + shard_s
        last[worker] = max(scheduler, last[worker]) + worker_s + size * part_s
        heapq.heappush(ends, (last[worker], worker, size))

    for worker in range(min(cores, _dask.FIRST)):
        send(0.0, worker)
    now = 0.0
    while ends:
        now, worker, size = heapq.heappop(ends)
        is_first = not pace.is_known
        pace.add(size, size * part_s)
        if is_first:
            for _ in range(_dask.AHEAD):
                for other in range(cores):
                    send(now, other)
        else:
            send(now, worker)
    return now + shard_s


def model(costs, sizes, shard_s, worker_s):
    """Efficiency of all studies of a family, by cores and sets of a cap: one after another, and as
    if their parts were those of one study, as where several are run at once."""
    print(f"modelled: {len(costs)} studies; a shard takes {shard_s * 1e3:.2f} ms of the scheduler, "
          f"and of the worker {worker_s * 1e3:.2f} ms besides its parts")
    parts = sum(caps for _, caps in costs)
    mean = sum(each * caps for each, caps in costs) / parts
    for way, studies in ("one after another", costs), ("at once", [(mean, parts)]):
        print(f"{way}: efficiency, and how long a shard takes in the middle")
        print(f"{'sets of a cap':>13}  {'core hours':>10}"
              + "".join(f"  {cores:>12,} cores" for cores in CORES))
        for sets in sizes:
            row(studies, sets, shard_s, worker_s)


def row(studies, sets, shard_s, worker_s):
    rounds = -(-sets // 10)
    work = sum(each * caps * rounds for each, caps in studies)
    cells = []
    for cores in CORES:
        wanted = max(_dask.SHARD_S, 2 * _dask.DISPATCH_S * cores)
        if work / wanted > MOST_SHARDS:
            cells.append("not modelled")
            continue
        takes = sum(modelled(each, caps * rounds, cores, shard_s, worker_s)
                    for each, caps in studies)
        cells.append(f"{work / (cores * takes):.3f}, {wanted:.0f} s")
    print(f"{sets:>13,}  {work / 3600:>10,.2f}" + "".join(f"  {cell:>18}" for cell in cells),
          flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--family", default="bastoni11-6.3")
    parser.add_argument("--shards", type=int, default=2_000)
    parser.add_argument("--sets", type=int, default=200, help="for the workers here")
    parser.add_argument("--model", default="1000,10000,100000,1000000")
    parser.add_argument("--stages", default="parts,shards,workers,model")
    parser.add_argument("--keep", type=Path, default=Path("scale.json"))
    args = parser.parse_args()
    stages = args.stages.split(",")
    known = json.loads(args.keep.read_text()) if args.keep.exists() else {}
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}, warmset {ws.__version__}")

    if "parts" in stages:
        known["parts"] = [part_s(name) for name in names_of(args.family)]
        each = sorted(cost for cost, _ in known["parts"])
        print(f"a part of {args.family}: {each[0] * 1e3:.2f} to {each[-1] * 1e3:.2f} ms by study, "
              f"{statistics.median(each) * 1e3:.2f} in the middle")
    if "shards" in stages:
        shard = known["shard"] = shard_costs(args.shards)
        print("a shard of one part takes besides judging: {scheduler_s:.4f} s of the scheduler, "
              "{asking_s:.4f} s of the one who asks, {worker_s:.4f} s of the worker; {shards} of "
              "them took {clock_s:.4f} s each by the clock".format(**shard))
        print("memory of the scheduler meanwhile: "
              + " ".join(f"{rss / 2**20:.0f}" for rss in shard["memory"]) + " MiB")
    if "workers" in stages:
        alone, rows = efficiency(args.sets)
        print(f"ospert10-fig5 with {args.sets} sets of a cap: {alone:.1f} s by one thread")
        for workers, took in rows:
            usable = min(workers, os.cpu_count() or 1)
            print(f"  {workers} workers: {took:.1f} s, efficiency {alone / (usable * took):.2f} on "
                  f"{usable} processors")
    args.keep.write_text(json.dumps(known, indent=1) + "\n")
    if "model" in stages:
        # Both work at the same time, each on a processor of its own: the slower one is waited for.
        slower = max(known["shard"]["scheduler_s"], known["shard"]["asking_s"])
        sizes = [int(sets) for sets in args.model.split(",")]
        model(known["parts"], sizes, slower, known["shard"]["worker_s"])


if __name__ == "__main__":
    main()
