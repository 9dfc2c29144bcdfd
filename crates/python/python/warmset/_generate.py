"""Random task sets."""

from __future__ import annotations

from . import _native
from ._platform import AnyPlatform, native_platform
from ._progress import Progress, reporter
from ._table import Table
from ._tasks import Task, TaskSet
from ._values import Ratio, count, optional_count, ratio_text


def generate(
    sets: int = 1,
    *,
    utilization: str | None = None,
    periods: str | None = None,
    deadlines: str | None = None,
    cap: Ratio | None = None,
    fill: str | None = None,
    tasks: int | None = None,
    total: Ratio | None = None,
    method: str | None = None,
    range: str | None = None,
    until: str | None = None,
    m: int | None = None,
    platform: AnyPlatform | None = None,
    seed: int = 1,
    first: int = 0,
    progress: Progress | None = None,
) -> Table:
    """Draws random task sets from the field's distributions.

    The same seed gives the same sets on any machine, and set number k of a seed is the same however
    many are drawn. One of `cap`, `tasks` and `until` has to be given.

    Args:
        sets: How many.
        utilization: Distribution of each task's utilization, such as ``"uniform-medium"`` (default),
            ``"bimodal-heavy"``, ``"exponential:0.25"``, ``"uniform:0.1-0.7"``.
        periods: Distribution of periods, such as ``"moderate"`` (default), ``"log-uniform:1ms-1s"``.
        deadlines: ``"implicit"`` (default), ``"constrained"`` or ``"arbitrary"``.
        cap: Add tasks until the total utilization would exceed this.
        fill: The task that would exceed the cap is dropped (``"drop"``, default) or scaled down
            (``"scale"``).
        tasks: So many tasks in each set.
        total: With `tasks`: split this total utilization among them.
        method: With `total`: ``"randfixedsum"`` (default) or ``"uunifast-discard"``.
        range: With `total`: the range of each utilization, such as ``"0.1-0.9"``.
        until: Add tasks until this test refuses the set, and drop the last one.
        m: The number of processors of each set. Default: as many as cap, total or the set need.
        platform: The platform whose number of processors it is.
        seed: Seed of all random choices.
        first: The number of the first set.
        progress: Called with what is done; ``True``: a bar.

    Returns:
        A row a set: ``id`` (its number), ``m``, and lists of nanoseconds, one entry a task:
        ``wcet_ns``, ``period_ns``, ``deadline_ns``. This is what :func:`check_batch` takes.

    Raises:
        Error: A distribution is none, or does not fit.
        KeyboardInterrupt: Ctrl-C.
    """
    return Table(_native.generate(
        count(sets, "sets"),
        utilization,
        periods,
        deadlines,
        ratio_text(cap),
        fill,
        optional_count(tasks, "tasks"),
        ratio_text(total),
        method,
        range,
        until,
        native_platform(platform, m),
        count(seed, "seed"),
        count(first, "first"),
        reporter(progress),
    ))


def task_sets(sets: object, *, m: int | None = None) -> list[TaskSet]:
    """The rows of sets as columns as :class:`TaskSet` objects: to simulate some of them.

    Args:
        sets: As :func:`check_batch` takes them.
        m: Not needed for this; where the sets have no column ``m``, any number.

    Raises:
        Error: A row is no task set, or cannot be run: a WCET is above its deadline.
    """
    rows = Table(_native.set_rows(sets, m)).to_rows()
    return [
        TaskSet(map(Task, row["wcet_ns"], row["period_ns"], row["deadline_ns"])) for row in rows
    ]
