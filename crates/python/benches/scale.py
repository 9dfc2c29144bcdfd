"""What a cluster is worth for studies: what a part costs, what a shard costs besides its parts, how
well one, two and four workers are used here; and from these figures how well many would be.

    python scale.py [--family NAME] [--every N] [--shards N] [--sets N] [--model N,N,...]

Costs are times of processors, which other programs on the machine change less than times of a clock.
What workers here make of it is told in times of a clock: on a busy machine that says little.
"""

import argparse
import contextlib
import heapq
import json
import os
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
MOST_SHARDS = 300_000


class Captured(Exception):
    """A study was captured instead of run."""


def captured(name, sets):
    """A study as it is sent, and its parts in the order in which they are."""
    kept = []

    def capture(study, parts):
        kept.append((study, parts.take(len(parts))))
        raise Captured

    with contextlib.suppress(Captured):
        _native.study_run(name, sets=sets, dispatch=capture)
    return kept[0]


def names_of(family):
    families = json.loads(_native.study_list())["families"]
    return next((f["studies"] for f in families if f["name"] == family), [family])


def judging_s(study, parts):
    """Processor time that judging a part takes."""
    begun = time.process_time()
    _native.study_judge(study, parts)
    return (time.process_time() - begun) / len(parts)


def part_costs(name, every):
    """What a part costs by its cap, from the highest on: of every so-manieth cap one part."""
    study, parts = captured(name, 10)
    judging_s(study, parts[-1:])
    known = {part[0]: judging_s(study, [part]) for part in parts[::every]}
    nearest = [min(known, key=lambda cap: abs(cap - part[0])) for part in parts]
    return [known[cap] for cap in nearest]


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
    """A scheduler and workers of one thread, each a process; yields the client and the processes."""
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
    """What a shard of one part costs besides its judging: processor time in the scheduler, in the one
    who asks, and in the worker. And how much memory the scheduler has, before and after."""
    study, parts = captured("ospert10-fig5", 10 * (shards // 93 + 1))
    parts = parts[:shards]
    some = parts[:: max(1, len(parts) // 200)]
    part_s = judging_s(study, some)
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
        "worker_s": max(sum(used[1:]) / n - part_s, 0.0),
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


def modelled(by_cap, sets, cores, shard_s, worker_s):
    """Seconds from the first shard to the last, for a study on so many cores. A scheduler that takes
    `shard_s` for each shard, and has one at a time in hand, gives each worker a shard to judge and one
    that waits; how large they are the package decides."""
    caps, round_s = len(by_cap), sum(by_cap)
    upto = [0.0]
    for cost in by_cap:
        upto.append(upto[-1] + cost)

    def cost_upto(part):
        return part // caps * round_s + upto[part % caps]

    total = caps * -(-sets // 10)
    pace, sent, scheduler = _dask.Pace(None), 0, 0.0
    ends, last = [], [0.0] * cores

    def send(now, worker):
        nonlocal sent, scheduler
        if sent == total:
            return
        parts = pace.parts(total - sent, cores)
        scheduler = max(scheduler, now) + shard_s
        cost = cost_upto(sent + parts) - cost_upto(sent)
        sent += parts
        last[worker] = max(scheduler, last[worker]) + worker_s + cost
        heapq.heappush(ends, (last[worker], worker, parts, cost))

    for worker in range(min(cores, _dask.FIRST)):
        send(0.0, worker)
    now = 0.0
    while ends:
        now, worker, parts, cost = heapq.heappop(ends)
        is_first = not pace.is_known
        pace.add(parts, cost)
        if is_first:
            for _ in range(_dask.AHEAD):
                for other in range(cores):
                    send(now, other)
        else:
            send(now, worker)
    return now + shard_s


def cores_table(costs, sizes, shard_s, worker_s):
    """Efficiency of all studies of a family one after another, by cores and sets of a cap."""
    print(f"\nmodelled: {len(costs)} studies one after another, {shard_s * 1e3:.2f} ms of the "
          f"scheduler and of the one who asks for each shard, {worker_s * 1e3:.2f} ms of the worker")
    print("efficiency (seconds of a shard):")
    print("sets of a cap  core hours  " + "  ".join(f"{n:>14,} cores" for n in CORES))
    for sets in sizes:
        work = sum(sum(by_cap) for by_cap in costs) * -(-sets // 10)
        cells = []
        for cores in CORES:
            wanted = max(_dask.SHARD_S, 2 * _dask.DISPATCH_S * cores)
            if work / wanted > MOST_SHARDS:
                cells.append("not modelled")
                continue
            takes = sum(modelled(by_cap, sets, cores, shard_s, worker_s) for by_cap in costs)
            cells.append(f"{work / (cores * takes):.3f} ({wanted:.0f} s)")
        print(f"{sets:>13,}  {work / 3600:>10,.2f}  " + "  ".join(f"{c:>20}" for c in cells))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--family", default="bastoni11-6.3")
    parser.add_argument("--every", type=int, default=6, help="of so many caps one is measured")
    parser.add_argument("--shards", type=int, default=2_000)
    parser.add_argument("--sets", type=int, default=200, help="for the workers here")
    parser.add_argument("--model", default="1000,10000,100000,1000000")
    args = parser.parse_args()
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}, warmset {ws.__version__}")

    costs = [part_costs(name, args.every) for name in names_of(args.family)]
    means = sorted(sum(by_cap) / len(by_cap) for by_cap in costs)
    print(f"a part of {args.family}: {means[0] * 1e3:.2f} to {means[-1] * 1e3:.2f} ms by study, "
          f"the longest {max(map(max, costs)) * 1e3:.1f} ms")

    shard = shard_costs(args.shards)
    print("a shard besides its parts, of {shards} of one part: {scheduler_s:.4f} s in the scheduler, "
          "{asking_s:.4f} s in the one who asks, {worker_s:.4f} s in the worker; by the clock "
          "{clock_s:.4f} s in all".format(**shard))
    print("memory of the scheduler meanwhile: "
          + " ".join(f"{rss / 2**20:.0f}" for rss in shard["memory"]) + " MiB")

    alone, rows = efficiency(args.sets)
    print(f"ospert10-fig5 with {args.sets} sets of a cap: {alone:.1f} s by one thread")
    for workers, took in rows:
        usable = min(workers, os.cpu_count() or 1)
        print(f"  {workers} workers: {took:.1f} s, efficiency {alone / (usable * took):.2f} on "
              f"{usable} processors")

    # Both work at the same time, each on a processor of its own: the slower one is waited for.
    slower = max(shard["scheduler_s"], shard["asking_s"])
    cores_table(costs, [int(n) for n in args.model.split(",")], slower, shard["worker_s"])


if __name__ == "__main__":
    main()
