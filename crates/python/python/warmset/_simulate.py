"""Schedules in virtual time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from . import _native
from ._custom import Job, Policy
from ._error import Error
from ._platform import AnyPlatform, AnyProfile, native_platform, native_profile
from ._progress import Progress, reporter
from ._table import Table
from ._tasks import AnyTasks, native_tasks
from ._trace import Directory, Statistics, Trace
from ._values import Ratio, Time, count, optional_nanoseconds, ratio_text


class Simulation(Statistics):
    """What came of a simulated schedule: its sums, and its trace.

    Attributes:
        missed: A deadline was missed that counts: of a task that is not soft, under brute force of
            any task.
    """

    __slots__ = ("_trace", "missed")

    def __init__(self, document: dict[str, Any], missed: bool, trace: Trace | None) -> None:
        super().__init__(document)
        self.missed: bool = missed
        self._trace = trace

    @property
    def policy(self) -> str:
        """The policy."""
        return self._document["policy"]

    @property
    def ended_by(self) -> str:
        """``"horizon"``, or under brute force ``"miss"``."""
        return self._document["ended_by"]

    @property
    def first_miss(self) -> dict[str, Any] | None:
        """The miss that became known first: ``task``, ``job``, ``deadline_ns``."""
        return self._document.get("first_miss")

    @property
    def trace(self) -> Trace:
        """Every event.

        Raises:
            Error: It was not recorded.
        """
        if self._trace is None:
            raise Error("the simulation was not recorded", "record", "leave out `record=False`")
        return self._trace

    @property
    def responses(self) -> Table:
        """The finished jobs, a row each, as :meth:`Trace.jobs` has them.

        Raises:
            Error: It was not recorded.
        """
        return self.trace.jobs()

    def svg(self, start: Time = 0, end: Time | None = None, **how: Any) -> str:
        """A window of the schedule as a picture, as :meth:`Trace.svg` draws it.

        Raises:
            Error: It was not recorded.
        """
        return self.trace.svg(start, end, **how)

    def _repr_html_(self) -> str:
        table = super()._repr_html_()
        return table if self._trace is None else self._trace._repr_html_() + table


def simulate(
    tasks: AnyTasks,
    *,
    policy: str | Policy = "g-edf",
    m: int | None = None,
    platform: AnyPlatform | None = None,
    horizon: Time | None = None,
    releases: str | None = None,
    execution: Ratio | None = None,
    jitter: str = "random",
    seed: int = 1,
    brute_force: bool = False,
    profile: AnyProfile | None = None,
    load: str | None = None,
    statistic: str | None = None,
    fit: str | None = None,
    enforcement: str | None = None,
    quantum: Time | None = None,
    assignment: str | Path | None = None,
    trace: str | Path | None = None,
    record: bool = True,
    progress: Progress | None = None,
) -> Simulation:
    """Runs a task set in virtual time.

    Args:
        tasks: A task set, a task file, or tasks.
        policy: A name such as ``"c-edf:l3"``, or a policy in Python (:func:`policy`).
        m: So many identical processors. Default, with no platform either: this machine.
        platform: A platform, or its name or file.
        horizon: How long. Default: one hyperperiod after the last phase, at most 60 s.
        releases: ``"periodic"`` (default), ``"sporadic"``, ``"sporadic:0.5"``, or a file.
        execution: How long jobs execute, in parts of their WCET: ``1`` (default), ``"0.5..1"``, a
            distribution such as ``"normal:0.7,0.1"``, or a file.
        jitter: Jobs of tasks with jitter are released after a ``"random"`` part of it, the
            ``"first"`` ones after all of it, or at once (``"none"``).
        seed: Seed of all random choices.
        brute_force: Stop at the first miss.
        profile: What preemptions, migrations and the scheduler cost. Default: nothing.
        load: The profile's delays under ``"load"`` (default) or ``"idle"``.
        statistic: ``"maximum"`` (default) or ``"average"`` of them.
        fit: How tasks are partitioned, where the policy needs it: ``"worst"`` (default),
            ``"first"``, ``"best"``, ``"next"``.
        enforcement: ``"off"`` (default), or how overruns are cut.
        quantum: Length of a quantum. Default: 1 ms.
        assignment: A file that says who runs where.
        trace: Keep every event in this file.
        record: Keep every event in a file of its own as long as the answer exists, for
            :attr:`Simulation.trace` and pictures: 32 bytes an event.
        progress: Called with what is done; ``True``: a bar.

    Raises:
        Error: Something is none, or does not fit the set or the platform.
        KeyboardInterrupt: Ctrl-C.
    """
    kept = None
    if trace is None and record:
        kept = Directory()
        trace = kept.path / "schedule.wtrace"
    if trace is not None and not Path(trace).parent.is_dir():
        raise Error(
            f"there is no directory `{Path(trace).parent}`",
            "trace",
            "make it first, or correct the path",
        )
    file = None if trace is None else str(trace)
    native = native_tasks(tasks)
    on = native_platform(platform, m)
    if isinstance(policy, Policy):
        for name, value in [("profile", profile), ("enforcement", enforcement),
                            ("quantum", quantum), ("assignment", assignment)]:
            if value is not None:
                raise Error(
                    "a policy in Python is simulated without costs, budgets and quanta",
                    name,
                    "leave it out",
                )
        document, missed = _native.simulate_ranked(
            native,
            _ranks(policy, native),
            policy.name,
            policy.partitioned,
            policy.like,
            on,
            optional_nanoseconds(horizon, "horizon"),
            releases,
            ratio_text(execution),
            count(seed, "seed"),
            brute_force,
            fit,
            file,
            reporter(progress),
        )
    else:
        document, missed = _native.simulate(
            native,
            policy,
            on,
            optional_nanoseconds(horizon, "horizon"),
            releases,
            ratio_text(execution),
            jitter,
            count(seed, "seed"),
            brute_force,
            native_profile(profile),
            load,
            statistic,
            fit,
            enforcement,
            optional_nanoseconds(quantum, "quantum"),
            None if assignment is None else str(assignment),
            file,
            "warmset.simulate",
            reporter(progress),
        )
    recorded = None if file is None else Trace(file, kept)
    return Simulation(json.loads(document), missed, recorded)


def _ranks(policy: Policy, tasks: _native.Tasks) -> Any:
    """What the native part calls for each job."""
    columns = tasks.columns()
    wcets, periods = columns.entries("wcet_ns"), columns.entries("period_ns")

    def rank(task: int, number: int, release_ns: int, deadline_ns: int) -> int:
        job = Job(task, number, release_ns, deadline_ns, wcets[task], periods[task])
        value = policy.rank(job)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 64:
            raise Error(
                f"the policy `{policy.name}` ranked a job {value!r}",
                repr(job),
                "return an integer from 0 to 2^64 - 1",
            )
        return value

    return rank
