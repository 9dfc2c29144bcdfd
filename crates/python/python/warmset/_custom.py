"""Tests and policies written in Python, tried against the built-in ones."""

from __future__ import annotations

import functools
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Callable, NamedTuple, Optional, Sequence, overload

from . import _native
from ._error import Error
from ._progress import Progress, reporter
from ._show import html_table, text_table
from ._table import Table
from ._values import optional_count

if TYPE_CHECKING:
    from ._tasks import TaskSet


class Timing(NamedTuple):
    """What a test in Python sees of a task: integers of nanoseconds."""

    wcet_ns: int
    period_ns: int
    deadline_ns: int

    @property
    def utilization(self) -> Fraction:
        """WCET by period, exactly."""
        return Fraction(self.wcet_ns, self.period_ns)

    @property
    def density(self) -> Fraction:
        """WCET by the shorter of deadline and period, exactly."""
        return Fraction(self.wcet_ns, min(self.deadline_ns, self.period_ns))


#: Decides a set on `m` processors: its guarantee is shown, is not, or (``None``) the test does not
#: apply.
Decide = Callable[[Sequence[Timing], int], Optional[bool]]


class Test:
    """A schedulability test written in Python. Made by :func:`test`."""

    # Not for pytest to collect.
    __test__ = False

    def __init__(self, decide: Decide, name: str, policy: str) -> None:
        functools.update_wrapper(self, decide)
        self.decide = decide
        #: Its name in tables.
        self.name = name
        #: The policy that it is for: what it accepts is held against schedules of it.
        self.policy = policy

    def __call__(self, tasks: Sequence[Timing], m: int) -> bool | None:
        return self.decide(tasks, m)

    def __repr__(self) -> str:
        return f"<Test {self.name} for {self.policy}>"

    def compare(
        self,
        sets: Any,
        tests: str | Sequence[str] | None = None,
        *,
        m: int | None = None,
        simulate: int = 1000,
        progress: Progress | None = None,
    ) -> Comparison:
        """Holds the test against built-in ones, and what it accepts against simulated schedules.

        Args:
            sets: Sets as columns, as :func:`generate` draws them.
            tests: Names of tests. Default: all built-in ones for the same policy.
            m: The number of processors, where the sets have no column ``m``.
            simulate: Of the accepted sets, at most so many are simulated under :attr:`policy` for
                one hyperperiod, released at once and periodically. A miss there disproves the test.
                No miss proves nothing: other releases may be worse.
            progress: Called with what is done; ``True``: a bar.
        """
        if tests is None:
            known = Table(_native.tests())
            tests = [t for t, p in zip(known["test"], known["policy"]) if p == self.policy]
        names = tests if isinstance(tests, str) else ",".join(tests)
        rows = _native.set_rows(sets, optional_count(m, "m"))
        answers = decided(rows, None, [self], names, progress)
        return Comparison(self, rows, answers, simulate)


class Comparison:
    """How a test in Python does beside built-in ones.

    Attributes:
        accepted: How many sets it accepted.
        sets: How many there were.
        disproved: Places of accepted sets of which a simulated schedule misses a deadline.
        simulated: How many accepted sets were simulated.
    """

    def __init__(self, test: Test, rows: _native.Columns, answers: Table, simulate: int) -> None:
        self.test = test
        self._rows = rows
        #: The answers, a row a set, a column a test.
        self.answers = answers
        own = answers[test.name]
        self.sets = len(own)
        self.accepted = sum(a is True for a in own)
        self._others = [n for n in answers.columns if n not in (test.name, "id")]
        yes = [at for at, a in enumerate(own) if a is True][: max(simulate, 0)]
        self.simulated = len(yes)
        self.disproved = [at for at in yes if self._misses(at)]

    def _misses(self, at: int) -> bool:
        from ._simulate import simulate

        row = Table(self._rows.slice(at, 1)).to_rows()[0]
        return simulate(
            self.set(at), policy=self.test.policy, m=row["m"], record=False
        ).missed

    def set(self, at: int) -> TaskSet:
        """The set at a place, such as one that disproves the test."""
        from ._generate import task_sets

        return task_sets(Table(self._rows.slice(at, 1)))[0]

    @property
    def table(self) -> list[dict[str, Any]]:
        """A row a built-in test: sets that ``both`` accept, ``only_this`` one, ``only_other``."""
        own = self.answers[self.test.name]
        rows = []
        for name in self._others:
            other = self.answers[name]
            pairs = [(a is True, b is True) for a, b in zip(own, other)]
            rows.append({
                "test": name,
                "both": pairs.count((True, True)),
                "only_this": pairs.count((True, False)),
                "only_other": pairs.count((False, True)),
                "neither": pairs.count((False, False)),
            })
        return rows

    def _says(self) -> str:
        judged = f"{self.test.name} accepts {self.accepted} of {self.sets} sets"
        if self.disproved:
            return (f"{judged}, and {len(self.disproved)} of {self.simulated} simulated ones miss a "
                    f"deadline under {self.test.policy}: the test is wrong "
                    f"(`.set({self.disproved[0]})`)")
        return (f"{judged}; none of {self.simulated} simulated ones misses a deadline under "
                f"{self.test.policy}, which proves nothing")

    def _shown(self) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        head = ("test", "both", f"only {self.test.name}", "only the other", "neither")
        return head, [tuple(row.values()) for row in self.table]

    def __repr__(self) -> str:
        return f"{text_table(*self._shown())}\n{self._says()}"

    def _repr_html_(self) -> str:
        return html_table(*self._shown(), after=self._says())


@overload
def test(decide: Decide, /) -> Test: ...


@overload
def test(*, name: str | None = None, policy: str = "g-edf") -> Callable[[Decide], Test]: ...


def test(
    decide: Decide | None = None, /, *, name: str | None = None, policy: str = "g-edf"
) -> Test | Callable[[Decide], Test]:
    """Makes a schedulability test of a function.

    The function takes the tasks (a sequence of :class:`Timing`) and the number of processors, and
    returns whether the guarantee is shown, or ``None`` where it does not apply. It is called set by
    set, with the interpreter's lock: a thousand times slower than a built-in test::

        @ws.test(policy="g-edf")
        def density(tasks, m):
            densities = [t.density for t in tasks]
            return sum(densities) <= m - (m - 1) * max(densities)

        density.compare(ws.generate(1000, cap=3, m=4))

    Args:
        decide: The function.
        name: Its name in tables. Default: that of the function.
        policy: The policy that it is for.
    """

    def made(decide: Decide) -> Test:
        return Test(decide, name or decide.__name__, policy)

    return made if decide is None else made(decide)


def decided(
    sets: Any, m: int | None, own: list[Test], names: str | None, progress: Progress | None
) -> Table:
    """The answers of built-in tests and of tests in Python, a column each."""
    rows = _native.set_rows(sets, optional_count(m, "m"))
    doing = reporter(progress)
    if names == "":
        answers = rows.select([name for name in rows.names if name in ("id", "m")])
    else:
        answers = _native.check_batch(rows, None, names, None, doing)
    for test in own:
        if test.name in answers.names:
            raise Error(
                f"two columns would have the name `{test.name}`", "tests", "name it otherwise"
            )
        answers = answers.with_truths(test.name, _each(rows, test, doing))
    return Table(answers.select([name for name in answers.names if name != "m"]))


_CHUNK = 1024


def _each(rows: _native.Columns, test: Test, doing: Any) -> list[bool | None]:
    answers: list[bool | None] = []
    for first in range(0, len(rows), _CHUNK):
        part = rows.slice(first, _CHUNK)
        lists = (part.entries(name) for name in ("m", "wcet_ns", "period_ns", "deadline_ns"))
        for m, wcets, periods, deadlines in zip(*lists):
            answer = test.decide(tuple(map(Timing, wcets, periods, deadlines)), m)
            if answer is not None and not isinstance(answer, bool):
                raise Error(
                    f"the test `{test.name}` answered {answer!r}",
                    f"row {len(answers)}",
                    "return True, False, or None where it does not apply",
                )
            answers.append(answer)
        if doing:
            doing(test.name, len(answers), len(rows))
    return answers


class Job(NamedTuple):
    """What a policy in Python sees of a job: times are integers of nanoseconds."""

    #: The place of the task in its set, from 0.
    task: int
    #: Which job of the task, from 0.
    number: int
    release_ns: int
    deadline_ns: int
    wcet_ns: int
    period_ns: int


#: The rank of a job: of all ready jobs, those with the smallest ranks run; ties go to the task that
#: stands earlier in its set. From 0 to 2^64 - 1, the same whenever asked for one job.
Rank = Callable[[Job], int]


class Policy:
    """A scheduling policy written in Python. Made by :func:`policy`."""

    def __init__(self, rank: Rank, name: str, partitioned: bool, like: str | None) -> None:
        functools.update_wrapper(self, rank)
        self.rank = rank
        #: Its name in traces and tables.
        self.name = name
        #: Whether tasks stay on one processor each.
        self.partitioned = partitioned
        #: The built-in policy that it is to be the same as.
        self.like = like

    def __call__(self, job: Job) -> int:
        return self.rank(job)

    def __repr__(self) -> str:
        return f"<Policy {self.name}>"


@overload
def policy(rank: Rank, /) -> Policy: ...


@overload
def policy(
    *, name: str | None = None, partitioned: bool = False, like: str | None = None
) -> Callable[[Rank], Policy]: ...


def policy(
    rank: Rank | None = None,
    /,
    *,
    name: str | None = None,
    partitioned: bool = False,
    like: str | None = None,
) -> Policy | Callable[[Rank], Policy]:
    """Makes a scheduling policy of a function that ranks jobs.

    Of all ready jobs, those with the smallest ranks run: on all processors, or each task on the one
    that bin packing gave it. A job has one rank for its life, so earliest deadline first, fixed
    priorities and first come first served can be written, least laxity first cannot. The function
    is called once for each job, with the interpreter's lock: a hundred times slower than a built-in
    policy::

        @ws.policy(like="g-edf:ties=index")
        def edf(job):
            return job.deadline_ns

        run = ws.simulate(tasks, policy=edf, m=2)
        run.trace.check()

    The checker judges its schedules by the rules of every schedule, and with `like` by those of
    that policy besides, ties too: ``"g-edf"`` runs of equal deadlines that of the earlier release.

    Args:
        rank: The function.
        name: Its name: lower-case letters, digits and ``-``. Default: that of the function.
        partitioned: Each task stays on one processor.
        like: The built-in policy that it is to be the same as, such as ``"g-edf:ties=index"``.
    """

    def made(rank: Rank) -> Policy:
        called = name or rank.__name__.strip("_").replace("_", "-").lower()
        return Policy(rank, called, partitioned, like)

    return made if rank is None else made(rank)
