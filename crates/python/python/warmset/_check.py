"""Verdicts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Mapping, Sequence, Union

from . import _native
from ._custom import Test, decided
from ._error import Error
from ._platform import AnyPlatform, AnyProfile, native_platform, native_profile
from ._progress import Progress, reporter
from ._show import html_table, text_table
from ._table import Table
from ._tasks import AnyTasks, native_tasks
from ._values import (
    Time,
    names_text,
    optional_count,
    optional_nanoseconds,
    path_text,
    time_text,
)


class Verdict:
    """What is shown of a task set under one policy.

    Attributes:
        policy: The policy, such as ``"g-edf"``.
        schedulable: The guarantee is shown. ``False`` alone does not say that deadlines are missed.
        refuted: It is shown that the guarantee does not hold.
        reason: Why, in a sentence.
    """

    __slots__ = ("_document", "policy", "reason", "refuted", "schedulable")

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self.policy: str = document["policy"]
        self.schedulable: bool = document["schedulable"]
        self.refuted: bool = document["refuted"]
        self.reason: str = document.get("reason") or ""

    @property
    def decided_by(self) -> str | None:
        """The test that showed it."""
        return self._document.get("decided_by")

    @property
    def word(self) -> str:
        """``"yes"``, ``"no"``, or ``"not shown"`` where nothing is proven either way."""
        return "yes" if self.schedulable else "no" if self.refuted else "not shown"

    @property
    def largest_cpmd_ns(self) -> int | None:
        """The largest cache delay, the same for all tasks, with which the guarantee is still shown;
        ``None``: not asked, or there is none."""
        return (self._document.get("largest_cpmd") or {}).get("cpmd_ns")

    def to_dict(self) -> dict[str, Any]:
        """Its part of the document of ``warmset check --format json``."""
        return dict(self._document)

    def __bool__(self) -> bool:
        return self.schedulable

    def __repr__(self) -> str:
        by = f" by {self.decided_by}" if self.decided_by else ""
        return f"<Verdict {self.policy}: {self.word}{by}>"


class Verdicts:
    """What is shown of a task set, policy by policy, the best first. True where the guarantee is
    shown under at least one.

    ``verdicts["g-edf"]`` is the verdict of a policy, ``verdicts[0]`` that of the best one.
    """

    __slots__ = ("_document", "_verdicts")

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document
        self._verdicts = [Verdict(p) for p in document["policies"]]

    @property
    def advice(self) -> str:
        """Which policy comes first, and why, in a sentence."""
        return self._document["advice"]

    @property
    def guarantee(self) -> str:
        """``"hard"``: no deadline is missed; ``"soft"``: tardiness is bounded."""
        return self._document["guarantee"]

    def to_dict(self) -> dict[str, Any]:
        """The document of ``warmset check --format json``: its schema is ``docs/schema/check.json``,
        all times are integers of nanoseconds."""
        return self._document

    def __getitem__(self, policy: str | int) -> Verdict:
        if isinstance(policy, int):
            return self._verdicts[policy]
        for verdict in self._verdicts:
            if verdict.policy == policy:
                return verdict
        raise KeyError(f"`{policy}` was not judged: {', '.join(v.policy for v in self._verdicts)} were")

    def __iter__(self) -> Any:
        return iter(self._verdicts)

    def __len__(self) -> int:
        return len(self._verdicts)

    def __bool__(self) -> bool:
        return any(v.schedulable for v in self._verdicts)

    def _rows(self) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        head = ("policy", self.guarantee, "shown by", "largest delay", "reason")
        return head, [
            (
                v.policy,
                v.word,
                v.decided_by,
                None if v.largest_cpmd_ns is None else time_text(v.largest_cpmd_ns),
                v.reason,
            )
            for v in self._verdicts
        ]

    def __repr__(self) -> str:
        return f"{text_table(*self._rows())}\n{self.advice}"

    def _repr_html_(self) -> str:
        d = self._document
        about = f"{d['task_count']} tasks, utilization {d['utilization']:.3f}, on {d['platform']}; {d['costs']}"
        return html_table(*self._rows(), caption=about, after=self.advice)


def check(
    tasks: AnyTasks,
    *,
    m: int | None = None,
    platform: AnyPlatform | None = None,
    policies: str | Sequence[str] | None = None,
    guarantee: str | None = None,
    profile: AnyProfile | None = None,
    load: str | None = None,
    statistic: str | None = None,
    cpmd: Time | None = None,
    accounting: str | None = None,
    assignment: str | Path | None = None,
    certificate: str | Path | None = None,
    progress: Progress | None = None,
) -> Verdicts:
    """Decides whether a task set meets its deadlines, and under which policies.

    Args:
        tasks: A task set, a task file, or tasks.
        m: So many identical processors. Default, with no platform either: this machine.
        platform: A platform, or its name or file.
        policies: Names, such as ``["p-edf", "c-edf:l3"]``. Default: those that caches and guarantee
            suggest.
        guarantee: ``"hard"`` or ``"soft"``. Default: hard, unless every task is soft.
        profile: What preemptions, migrations and the scheduler cost. Default: nothing.
        load: The profile's delays under ``"load"`` (default) or ``"idle"``.
        statistic: ``"average"`` or ``"maximum"`` of them. Default: the maximum for hard guarantees.
        cpmd: The cache delay of one preemption or migration, the same for every task; with a
            profile: for tasks without a working set size.
        accounting: ``"one-delay"``, ``"paper"`` or ``"warmset"``: how overheads are charged.
        assignment: Judge the assignment of this file, under the one policy that is named.
        certificate: Write what is needed to verify the answer by another program to this file.
        progress: Called with what is done; ``True``: a bar.

    Raises:
        Error: A task set, platform, profile or policy is none.
        KeyboardInterrupt: Ctrl-C.
    """
    text = _native.check(
        native_tasks(tasks),
        native_platform(platform, m),
        names_text(policies),
        guarantee,
        native_profile(profile),
        load,
        statistic,
        optional_nanoseconds(cpmd, "cpmd"),
        accounting,
        path_text(assignment),
        path_text(certificate),
        reporter(progress),
    )
    return Verdicts(json.loads(text))


#: Sets as columns: whatever hands out a stream of Arrow (a :class:`Table` of :func:`generate`, a
#: table of pyarrow, a data frame of polars or pandas).
Sets = Any


def check_batch(
    sets: Sets,
    *,
    tests: str | Sequence[Union[str, Test]] | Test | None = None,
    m: int | None = None,
    grid: Time | None = None,
    progress: Progress | None = None,
) -> Table:
    """Judges many task sets: columns in, columns out, on all processors.

    Args:
        sets: One row a set. ``wcet_ns``, ``period_ns`` and ``deadline_ns`` are lists of integers of
            nanoseconds, one entry a task; without ``deadline_ns`` deadlines are the periods. ``m``
            is the number of processors. ``id``, if there, is handed through.
        tests: Names such as ``["GFB", "BCL"]``, and tests in Python (:func:`test`), which are
            thousands of times slower. Default: all built-in ones.
        m: The number of processors of every set, instead of the column.
        grid: Jobs are released at multiples of this time only. Default: at any time.
        progress: Called with what is done; ``True``: a bar.

    Returns:
        ``id``, and a column a test: true where its guarantee is shown, false where it is not, and
        missing where the test does not apply to the set.

    Raises:
        Error: A column is missing or holds no integers; names the row.
        KeyboardInterrupt: Ctrl-C.
    """
    own: list[Test] = []
    names: str | None
    if isinstance(tests, Test):
        own, names = [tests], ""
    elif tests is None or isinstance(tests, str):
        names = tests
    else:
        own = [t for t in tests if isinstance(t, Test)]
        names = ",".join(t for t in tests if not isinstance(t, Test))
    if own and grid is not None:
        raise Error("a test in Python knows no grid", "grid", "leave it out")
    if not own:
        return Table(_native.check_batch(
            sets, optional_count(m, "m"), names, optional_nanoseconds(grid, "grid"), reporter(progress)
        ))
    return decided(sets, m, own, names, progress)
