"""Warmset: which scheduler and which cache partition keep the deadlines of real-time tasks.

::

    import warmset as ws

    tasks = ws.TaskSet([ws.Task("4ms", "33ms", wss="256KiB"), ws.Task("1ms", "5ms")])
    ws.check(tasks, m=2)
    ws.simulate(tasks, policy="p-edf", m=2)

Times are text with a unit, ``datetime.timedelta``, or integers of nanoseconds, never floats. Results
are columns of Arrow (:class:`Table`); errors are :class:`Error`, with cause, place and remedy. Long
work leaves the interpreter's lock to others, and Ctrl-C ends it.
"""

from __future__ import annotations

from pathlib import Path as _Path

from . import _native
from ._check import Verdict, Verdicts, check, check_batch
from ._custom import Comparison, Job, Policy, Test, Timing, policy, test
from ._error import Error, Remark
from ._generate import generate, task_sets
from ._platform import Platform, Profile
from ._simulate import Simulation, simulate
from ._study import Study, StudyResults
from ._table import Table
from ._tasks import Task, TaskSet
from ._trace import RuleCheck, Statistics, Trace, read_trace
from ._values import nanoseconds

__version__: str = _native.version()

__all__ = [
    "Comparison",
    "Error",
    "Job",
    "Platform",
    "Policy",
    "Profile",
    "Remark",
    "RuleCheck",
    "Simulation",
    "Statistics",
    "Study",
    "StudyResults",
    "Table",
    "Task",
    "TaskSet",
    "Test",
    "Timing",
    "Trace",
    "Verdict",
    "Verdicts",
    "check",
    "check_batch",
    "generate",
    "nanoseconds",
    "policies",
    "policy",
    "read_samples",
    "read_trace",
    "simulate",
    "task_sets",
    "test",
    "tests",
]


def read_samples(path: str | _Path) -> Table:
    """Reads the raw samples that ``warmset measure cpmd`` kept, a row each: ``block``, ``load``,
    ``wss_bytes``, ``write_ratio``, ``from_cpu``, ``to_cpu``, ``resumption``, ``asked_ns``,
    ``preempted_ns``, ``cold_ns``, ``warm_ns``, ``post_ns``, ``delay_ns``, ``discarded`` (missing: it
    counts), ``line_before_ns``, ``line_after_ns``.

    Args:
        path: The file ``samples.parquet``, or its directory.

    Raises:
        Error: The file holds no such samples.
    """
    return Table(_native.read_samples(str(path)))


def tests() -> Table:
    """The built-in schedulability tests, a row each."""
    return Table(_native.tests())


def policies() -> Table:
    """The built-in scheduling policies, a row each."""
    return Table(_native.policies())
