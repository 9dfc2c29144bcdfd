"""Recorded schedules."""

from __future__ import annotations

import json
import shutil
import tempfile
import warnings
import weakref
from pathlib import Path
from typing import Any

from . import _native
from ._error import Remark
from ._progress import Progress, reporter
from ._show import html_table, text_table
from ._table import Table
from ._tasks import TaskSet
from ._values import Time, nanoseconds, optional_nanoseconds, time_text


class RuleCheck:
    """What the checker says of a trace. True where no rule is broken and nothing is missing."""

    __slots__ = ("_document",)

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document

    @property
    def clean(self) -> bool:
        """No rule is broken, and nothing is missing."""
        return self._document["clean"]

    @property
    def violations(self) -> int:
        """How often a rule was broken."""
        return self._document["verdict"]["violations"]

    @property
    def first(self) -> list[dict[str, Any]]:
        """The first violations: ``rule``, ``time_ns``, and what was wrong."""
        return self._document["verdict"]["first"]

    def to_dict(self) -> dict[str, Any]:
        """The document of ``warmset trace check --format json``."""
        return self._document

    def __bool__(self) -> bool:
        return self.clean

    def __repr__(self) -> str:
        if self.clean:
            return "<RuleCheck: clean>"
        return f"<RuleCheck: {self.violations} violations, first {self.first[:1]}>"


class Directory:
    """A directory of its own, removed with all that is in it when the object goes."""

    __slots__ = ("__weakref__", "path")

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="warmset-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


class Trace:
    """What happened, event by event: of a simulation or of a real run."""

    __slots__ = ("_header", "_kept", "path")

    def __init__(self, path: str | Path, _kept: Directory | None = None) -> None:
        #: Its file.
        self.path = Path(path)
        # The directory of a trace that nobody asked to keep: it is there as long as the object.
        self._kept = _kept
        self._header: dict[str, Any] = json.loads(_native.trace_header(str(path)))

    @property
    def header(self) -> dict[str, Any]:
        """What it opens with: where it comes from, tasks, platform, policies."""
        return self._header

    @property
    def tasks(self) -> TaskSet:
        """Its task set."""
        return TaskSet.from_toml(self._header["tasks"])

    def jobs(self, *, progress: Progress | None = None) -> Table:
        """The finished jobs, a row each, in the order of their completions: ``task``, ``job`` (from
        1), ``release_ns``, ``deadline_ns``, ``start_ns``, ``completion_ns``, ``response_ns``,
        ``tardiness_ns``, ``processor``, ``executed_ns``, ``preemptions``, ``migrations``, ``cut``,
        and the time lost to each overhead, ``lost_…_ns``."""
        return Table(_native.trace_jobs(str(self.path), reporter(progress)))

    def events(
        self, start: Time = 0, end: Time | None = None, *, progress: Progress | None = None
    ) -> Table:
        """The events from `start` to `end`, a row each: ``time_ns``, ``processor``, ``event``,
        ``task``, ``job``, ``value`` (of a release or miss the deadline, of a migration the processor
        before, of a completion the time executed, in nanoseconds), ``overhead``, ``note``."""
        return Table(_native.trace_events(
            str(self.path),
            nanoseconds(start, "start"),
            optional_nanoseconds(end, "end"),
            reporter(progress),
        ))

    def check(self, *, tolerance: Time | None = None, progress: Progress | None = None) -> RuleCheck:
        """Decides whether the schedule keeps the rules of every schedule and of its policy.

        Args:
            tolerance: How long a decision may be overdue. Default: not at all in a simulation, 1 ms
                in a real run.
            progress: Called with what is done; ``True``: a bar.
        """
        text = _native.trace_check(
            str(self.path), optional_nanoseconds(tolerance, "tolerance"), reporter(progress)
        )
        return RuleCheck(json.loads(text))

    def stats(self, *, progress: Progress | None = None) -> Statistics:
        """Adds it up: response times, tardiness, misses, preemptions, migrations, task by task."""
        return Statistics(json.loads(_native.trace_stats(str(self.path), reporter(progress))))

    def svg(
        self,
        start: Time = 0,
        end: Time | None = None,
        *,
        rows: str = "processors",
        width: int = 760,
        title: str | None = None,
    ) -> str:
        """A window of the schedule in the notation of the papers.

        Args:
            start: Where it begins.
            end: Where it ends. Default: eight of the longest periods later, or earlier where pieces
                would lie too close to be told apart.
            rows: One row a processor (``"processors"``) or a task (``"tasks"``).
            width: In pixels.
            title: Default: the policy.
        """
        return _native.trace_svg(
            str(self.path),
            nanoseconds(start, "start"),
            optional_nanoseconds(end, "end"),
            rows,
            width,
            title,
        )

    def __repr__(self) -> str:
        policies = ", ".join(s["policy"] for s in self._header["stages"])
        return f"<Trace {self.path.name}: {self._header['origin']}, {policies}>"

    def _repr_html_(self) -> str:
        # Nobody asked for a window: the picture says which one it shows.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Remark)
            return self.svg()


class Statistics:
    """What a schedule adds up to."""

    __slots__ = ("_document",)

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document

    @property
    def jobs(self) -> int:
        """How many jobs were finished."""
        return self._document["jobs"]

    @property
    def misses(self) -> int:
        """How many deadlines were missed."""
        return self._document["misses"]

    @property
    def preemptions(self) -> int:
        """How often a job was taken off its processor unfinished."""
        return self._document["preemptions"]

    @property
    def migrations(self) -> int:
        """How often a job went on on another processor."""
        return self._document["migrations"]

    @property
    def tasks(self) -> list[dict[str, Any]]:
        """Task by task: ``task``, ``jobs``, ``misses``, ``response`` and ``tardiness`` (``mean_ns``,
        ``p50_ns`` to ``p999_ns``, ``max_ns``), ``preemptions``, ``migrations``, ``lost_ns``."""
        return self._document["tasks"]

    def to_dict(self) -> dict[str, Any]:
        """The document of the command line: all times are integers of nanoseconds."""
        return self._document

    def _rows(self) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        head = ("task", "jobs", "misses", "mean response", "max response", "max tardiness",
                "preemptions")
        return head, [
            (
                t["task"],
                t["jobs"],
                t["misses"],
                time_text(t["response"]["mean_ns"]),
                time_text(t["response"]["max_ns"]),
                time_text(t["tardiness"]["max_ns"]),
                t["preemptions"],
            )
            for t in self.tasks
        ]

    def _sum(self) -> str:
        return (f"{self.jobs} jobs, {self.misses} misses, {self.preemptions} preemptions, "
                f"{self.migrations} migrations")

    def __repr__(self) -> str:
        return f"{text_table(*self._rows())}\n{self._sum()}"

    def _repr_html_(self) -> str:
        return html_table(*self._rows(), after=self._sum())


def read_trace(path: str | Path) -> Trace:
    """Opens a trace that ``warmset simulate``, ``warmset run`` or ``warmset trace import`` wrote.

    Raises:
        Error: The file is no trace.
    """
    return Trace(path)
