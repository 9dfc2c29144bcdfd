"""Tasks and task sets."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Iterable, Iterator, Mapping, Union

from . import _native
from ._error import Error
from ._show import html_table
from ._table import Table
from ._values import Time, nanoseconds, optional_nanoseconds, time_text

_TIMES = ("wcet", "period", "deadline", "phase", "blocking", "jitter")


@dataclass(frozen=True)
class Task:
    """A sporadic task.

    Times are text with a unit (``"4ms"``), a ``timedelta``, or integers of nanoseconds; what the
    object holds are integers of nanoseconds.

    Args:
        wcet: Worst-case execution time.
        period: Period, or shortest time between two arrivals.
        deadline: Relative deadline. Default: the period.
        name: Its name. Default: ``T1``, ``T2``, … by its place in the set.
        wss: Working set size of a job, such as ``"256KiB"``: by it, cache delays are read.
        phase: Release of the first job after the start.
        soft: Whether jobs may be tardy.
        group: Tasks of one group form a multithreaded task.
        priority: For policies that take priorities; the larger, the more urgent.
        cpus: Processors that it may run on, such as ``"0-1"``. Default: all.
        colors: Page colors of its working set, such as ``"0-3"``.
        blocking: Longest section of less urgent jobs that holds a job up.
        jitter: Longest time from the arrival of a job to its release.
        more: Other keys of a task file, such as ``workload`` and ``trigger``.

    Raises:
        Error: A time is a float, or is none.
    """

    wcet: Time
    period: Time
    deadline: Time | None = None
    name: str | None = None
    wss: str | None = None
    phase: Time | None = None
    soft: bool = False
    group: str | None = None
    priority: int | None = None
    cpus: str | None = None
    colors: str | None = None
    blocking: Time | None = None
    jitter: Time | None = None
    more: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for key in _TIMES:
            value = optional_nanoseconds(getattr(self, key), key)
            object.__setattr__(self, key, value)

    def __repr__(self) -> str:
        shown = [("" if f.name in ("wcet", "period") else f"{f.name}=") + self._show(f.name)
                 for f in fields(self) if getattr(self, f.name) not in (None, False, {})]
        return f"Task({', '.join(shown)})"

    def _show(self, key: str) -> str:
        value = getattr(self, key)
        return repr(time_text(value)) if key in _TIMES else repr(value)


_KEYS = [f.name for f in fields(Task) if f.name != "more"]

#: A task: an object, or a dictionary with the keys of a task file.
AnyTask = Union[Task, Mapping[str, Any]]


class TaskSet:
    """A checked set of tasks. Never changed.

    ``TaskSet([Task("4ms", "33ms"), …])``, ``TaskSet([{"wcet": "4ms", "period": "33ms"}, …])``, or
    ``TaskSet.read("tasks.toml")``. Dictionaries have the keys of a task file.

    Args:
        tasks: Tasks as objects or dictionaries.

    Raises:
        Error: No task, an unknown key, a time that is none, a WCET above its deadline, two tasks of
            one name; names the task and the key.
    """

    __slots__ = ("_native",)

    def __init__(self, tasks: Iterable[AnyTask]) -> None:
        text, places = _toml(list(tasks))
        try:
            self._native = _native.Tasks.from_toml(text)
        except Error as e:
            raise _placed(e, places) from None

    @classmethod
    def read(cls, path: str | Path) -> TaskSet:
        """Reads a task file.

        Raises:
            Error: The file cannot be read, or is no task file; names the line.
        """
        return cls._of(_native.Tasks.read(str(path)))

    @classmethod
    def from_toml(cls, text: str) -> TaskSet:
        """Reads the text of a task file.

        Raises:
            Error: It is none; names the line.
        """
        return cls._of(_native.Tasks.from_toml(text))

    @classmethod
    def _of(cls, native: _native.Tasks) -> TaskSet:
        tasks = cls.__new__(cls)
        tasks._native = native
        return tasks

    def to_toml(self) -> str:
        """The text of its task file."""
        return self._native.to_toml()

    def write(self, path: str | Path) -> None:
        """Writes it as a task file."""
        Path(path).write_text(self.to_toml(), encoding="utf-8")

    @property
    def table(self) -> Table:
        """A row a task: ``task``, ``wcet_ns``, ``period_ns``, ``deadline_ns``, ``utilization``,
        ``wss_bytes``, ``phase_ns``, ``blocking_ns``, ``jitter_ns``, ``priority``, ``soft``,
        ``group``."""
        return Table(self._native.columns())

    @property
    def utilization(self) -> float:
        """The total utilization, for people: verdicts are exact."""
        return self._native.utilization

    @property
    def names(self) -> list[str]:
        """The names of the tasks."""
        return self._native.columns().entries("task")

    def __len__(self) -> int:
        return len(self._native)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.table.to_rows())

    def __reduce__(self) -> tuple[Any, ...]:
        return TaskSet.from_toml, (self.to_toml(),)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TaskSet) and self.to_toml() == other.to_toml()

    def __hash__(self) -> int:
        return hash(self.to_toml())

    def __repr__(self) -> str:
        return f"<TaskSet of {len(self)} tasks, utilization {self.utilization:.3f}>"

    def _repr_html_(self) -> str:
        rows = [
            (
                t["task"],
                time_text(t["wcet_ns"]),
                time_text(t["period_ns"]),
                time_text(t["deadline_ns"]),
                f"{t['utilization']:.3f}",
                "" if t["wss_bytes"] is None else f"{t['wss_bytes'] / 1024:g} KiB",
            )
            for t in self.table.to_rows()
        ]
        head = ("task", "WCET", "period", "deadline", "utilization", "working set")
        return html_table(head, rows, after=repr(self)[1:-1])


#: A task set: an object, a task file, or tasks.
AnyTasks = Union[TaskSet, str, Path, Iterable[AnyTask]]


def native_tasks(tasks: AnyTasks) -> _native.Tasks:
    """The task set of a call."""
    if isinstance(tasks, TaskSet):
        return tasks._native
    if isinstance(tasks, (str, Path)):
        return TaskSet.read(tasks)._native
    return TaskSet(tasks)._native


def _toml(tasks: list[AnyTask]) -> tuple[str, list[str]]:
    """A task file, one key a line, and for each line the place that it stands for."""
    lines: list[str] = []
    places: list[str] = []
    for number, task in enumerate(tasks, 1):
        lines.append("[[task]]")
        places.append(f"task {number}")
        for key, value in _pairs(task, number):
            where = f"task {number}, `{key}`"
            if key in _TIMES:
                value = f"{nanoseconds(value, where)}ns"
            lines.append(f"{_key(key)} = {_value(value, where)}")
            places.append(where)
    return "\n".join(lines) + "\n", places


def _pairs(task: AnyTask, number: int) -> Iterator[tuple[str, Any]]:
    if isinstance(task, Task):
        given: Mapping[str, Any] = {key: getattr(task, key) for key in _KEYS} | dict(task.more)
    elif isinstance(task, Mapping):
        given = task
    else:
        raise Error(
            f"a `{type(task).__name__}` is not a task",
            f"task {number}",
            'give `Task("4ms", "33ms")` or a dictionary with `wcet` and `period`',
        )
    for key, value in given.items():
        if value is not None and not (key == "soft" and value is False):
            yield str(key), value


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _string(key)


def _string(text: str) -> str:
    # A basic string of TOML: JSON's escapes, and DEL, which TOML alone refuses.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any, where: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(str(k))} = {_value(v, where)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_value(v, where) for v in value) + "]"
    raise Error(
        f"a `{type(value).__name__}` cannot stand in a task file",
        where,
        "give text, a number, a list or a dictionary",
    )


def _placed(error: Error, places: list[str]) -> Error:
    """The same error with the task and key for the line of a file that nobody wrote."""

    def place(match: re.Match[str]) -> str:
        line = int(match.group(1))
        return places[line - 1] if 1 <= line <= len(places) else match.group(0)

    parts = [re.sub(r"line (\d+)", place, text)
             for text in (error.cause, error.place, error.remedy)]
    # The key may follow, where the line has said it.
    parts[1] = re.sub(r"`(\w+)`: `?\1`?$", r"`\1`", parts[1])
    return Error(*parts)
