"""Studies on a cluster, by Dask: parts go to its workers as plain data, counts come back.

A *shard* is what one task of Dask judges: a study as text, and some of its parts. Which worker gets
it, and what becomes of it when a worker dies, is Dask's part. The counts of a part do not depend on
how parts are put into shards, so that this may follow the pace of the workers.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import time
import zlib
from typing import TYPE_CHECKING, Any, Callable, Iterator, Protocol

from . import _native
from ._error import Error

if TYPE_CHECKING:
    from distributed import Client, Future

#: How long a shard takes, at least about so many seconds: long against what it costs to send it.
SHARD_S = 1.0
#: What the scheduler and this process take for a shard, in seconds (docs/cluster.md).
DISPATCH_S = 0.003
#: How many shards are under way for each thread of a worker: one at work, one that waits there.
AHEAD = 2
#: How many shards of one part each tell at first how long a part takes.
FIRST = 8
#: How often a shard is tried again that raised an error. Dask counts deaths of workers by itself.
RETRIES = 2
#: How often, in seconds, it is asked how many threads there are, and a wish to stop is looked at.
ASK_S, LOOK_S = 1.0, 0.1

#: A part: its cap in thousandths, its first set, how many sets.
Part = tuple[int, int, int]


class Parts(Protocol):
    """Parts that are still to be sent."""

    def __len__(self) -> int: ...

    def take(self, count: int, /) -> list[Part]:
        """The next ones, at most so many."""


#: Lines of counts, and a remark. Either may be empty.
Answer = tuple[str, str]


def judge_shard(study: bytes, parts: list[Part]) -> tuple[str, float]:
    """Judges a shard, in a worker: lines of counts, and the seconds that it took."""
    begun = time.perf_counter()
    counts = _native.study_judge(zlib.decompress(study).decode(), parts)
    return counts, time.perf_counter() - begun


def _task() -> Callable[[bytes, list[Part]], tuple[str, float]]:
    # Dask sends a function within a function as its code: a scheduler needs no package of ours.
    def warmset_shard(study: bytes, parts: list[Part]) -> tuple[str, float]:
        from warmset._dask import judge_shard

        return judge_shard(study, parts)

    return warmset_shard


class Pace:
    """How many parts make a shard, from how long those took that are done."""

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._part_s: float | None = None

    @property
    def is_known(self) -> bool:
        """Is any shard done?"""
        return self._part_s is not None

    def add(self, parts: int, seconds: float) -> None:
        """A shard of so many parts took so long."""
        each = max(seconds / parts, 1e-6)
        self._part_s = each if self._part_s is None else 0.9 * self._part_s + 0.1 * each

    def parts(self, left: int, threads: int) -> int:
        """Parts of the next shard, of those that are left: fewer towards the end, so that no worker
        is left alone with a long one. In the middle the scheduler is busy half of the time at most;
        shards that are shorter than it can send them to all threads would help nobody.
        """
        if self._part_s is None:
            return 1
        sending = DISPATCH_S * threads
        seconds = max(SHARD_S, 2 * sending) if self._seconds is None else self._seconds
        fair = -(-left // (AHEAD * max(threads, 1)))
        least = int(min(sending, seconds) / self._part_s)
        return max(1, min(int(seconds / self._part_s), max(fair, least), left))


def dispatcher(
    client: Client, seconds: float | None = None
) -> Callable[[str, Parts], Iterator[Answer]]:
    """What has the workers of a client judge parts; `seconds`: how long a shard takes about, by
    default what suits the number of threads."""

    def dispatch(study: str, parts: Parts) -> Iterator[Answer]:
        from distributed.client import FutureCancelledError
        from distributed.scheduler import KilledWorker

        where = _address(client)
        try:
            yield from _shards(client, zlib.compress(study.encode()), parts, Pace(seconds))
        except Error:
            raise
        except KilledWorker as e:
            raise Error(
                f"the same shard was at work on several workers that died: {e.task}",
                where,
                "look at what the workers say, such as that they lack memory; run it again: parts"
                " that were kept are not run again",
            ) from e
        except ModuleNotFoundError as e:
            raise Error(
                f"a worker has no package `{e.name}`",
                where,
                "install the same version of Warmset on all workers",
            ) from e
        except (OSError, FutureCancelledError) as e:
            raise Error(
                f"the scheduler is gone: {str(e) or type(e).__name__}",
                where,
                "start it again, then the study: parts that were kept are not run again",
            ) from e

    return dispatch


def _shards(client: Client, study: bytes, parts: Parts, pace: Pace) -> Iterator[Answer]:
    """Sends shards, a bounded number at a time, and gathers their counts."""
    task = _task()
    came: queue.SimpleQueue[Future[Any]] = queue.SimpleQueue()
    #: By their keys: shards that are under way, and how many parts each has.
    under_way: dict[Any, tuple[Future[Any], int]] = {}
    threads, asked, lonely = 0, 0.0, False
    try:
        while len(parts) or under_way:
            if client.status in ("closed", "closing"):
                raise OSError("the client is closed")
            if time.monotonic() - asked >= ASK_S or not threads:
                threads, asked = sum(client.nthreads().values()), time.monotonic()
            if not threads and not lonely:
                yield "", f"{_address(client)} has no worker yet: waiting for one"
            lonely = not threads
            room = AHEAD * threads if pace.is_known else min(FIRST, threads)
            shards: list[list[Part]] = []
            while len(parts) and len(under_way) + len(shards) < max(room, 1):
                shards.append(parts.take(pace.parts(len(parts), threads)))
            if shards:
                sent = client.map(
                    task, [study] * len(shards), shards, pure=False, retries=RETRIES
                )
                while sent:
                    future, shard = sent.pop(), shards.pop()
                    under_way[future.key] = (future, len(shard))
                    future.add_done_callback(came.put)
                del future
            done = _come(came)
            answers = client.gather(done)
            for key, (counts, seconds) in zip([future.key for future in done], answers):
                pace.add(under_way.pop(key)[1], seconds)
                yield counts, ""
            # What nothing refers to any more the scheduler forgets.
            del done, answers
            yield "", ""
    finally:
        client.cancel([future for future, _ in under_way.values()])


def _come(came: queue.SimpleQueue[Future[Any]]) -> list[Future[Any]]:
    """Shards that are done, as soon as one is; none after a moment without one."""
    done: list[Future[Any]] = []
    try:
        done.append(came.get(timeout=LOOK_S))
        while True:
            done.append(came.get_nowait())
    except queue.Empty:
        return done


def _address(client: Client) -> str:
    scheduler = client.scheduler
    return "" if scheduler is None else str(scheduler.address)


class _Read:
    """Parts that come line by line on standard input."""

    def __init__(self, lines: Iterator[str], count: int) -> None:
        self._lines = lines
        self._left = count

    def __len__(self) -> int:
        return self._left

    def take(self, count: int, /) -> list[Part]:
        """The next ones, at most so many."""
        count = min(count, self._left)
        self._left -= count
        return [tuple(json.loads(next(self._lines))) for _ in range(count)]


def main() -> None:
    """What ``warmset study run --dask ADDRESS`` starts, to stand between it and the scheduler.

    A study, then its parts, come a line each on standard input; lines of counts go to standard
    output.
    """
    # What packages print must not get between.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(word: str, text: str) -> None:
        out.write("".join(f"{word} {line}\n" for line in text.splitlines()))
        out.flush()

    try:
        _serve(sys.argv[1], say)
    except ModuleNotFoundError as e:
        say("missing", str(e.name))
    except Error as e:
        told = {"cause": e.cause, "place": e.place, "remedy": e.remedy}
        say("error", json.dumps(told))
    except BrokenPipeError:
        pass
    out.flush()
    # Dask's threads need not say good-bye: the scheduler sees that the connection has ended.
    os._exit(0)


def _serve(address: str, say: Callable[[str, str], None]) -> None:
    lines = _lines()
    dispatch = dispatcher(connected(address))
    say("ready", _native.version())
    for line in lines:
        study, count = json.loads(line)
        for counts, note in dispatch(study, _Read(lines, count)):
            say("counts", counts)
            say("note", note)
        say("done", ".")


def connected(address: str) -> Client:
    """A client of the scheduler at an address, or of that which wrote a file.

    Raises:
        Error: None answers.
    """
    from distributed import Client

    try:
        if os.path.isfile(address):
            return Client(scheduler_file=address)
        return Client(address)
    except (OSError, ValueError) as e:
        raise Error(
            f"no scheduler of Dask answers: {str(e) or type(e).__name__}",
            address,
            "start one with `dask scheduler`, or check the address",
        ) from e


def _lines() -> Iterator[str]:
    """Lines of standard input. Where it ends, the command is gone, and this process with it."""
    lines: queue.Queue[str] = queue.Queue(maxsize=10_000)

    def read() -> None:
        for line in sys.stdin:
            lines.put(line)
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    while True:
        yield lines.get()
