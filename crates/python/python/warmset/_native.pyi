"""
The native part of the package `warmset`.
"""

from _typeshed import SupportsGetItem
from os import PathLike
from typing import Any, SupportsFloat, SupportsIndex, final

__all__ = ["Columns", "Parts", "Platform", "Profile", "Results", "Tasks", "check", "check_batch", "generate", "nanoseconds", "policies", "read_samples", "set_rows", "simulate", "simulate_ranked", "study_judge", "study_list", "study_merge", "study_run", "tests", "time_text", "trace_check", "trace_events", "trace_header", "trace_jobs", "trace_stats", "trace_svg", "version"]

@final
class Columns:
    """
    Columns of equal length. pandas, polars, pyarrow and DuckDB take them without a copy.
    """
    def __arrow_c_schema__(self, /) -> "object":
        """
        Arrow's schema, as a capsule.
        """
    def __arrow_c_stream__(self, /, requested_schema: Any | None = None) -> "object":
        """
        A stream of the rows in Arrow's layout, as a capsule. Another schema may be asked for, and
        is not given: values keep their types.
        """
    def __len__(self, /) -> int:
        """
        How many rows.
        """
    def entries(self, /, name: str) -> "list[Any]":
        """
        The values of a column as a list of Python's values.
        """
    @property
    def names(self, /) -> list[str]:
        """
        The names of the columns.
        """
    def select(self, /, names: SupportsGetItem[int, str]) -> Columns:
        """
        These columns alone, in this order.
        """
    def slice(self, /, first: SupportsIndex, rows: SupportsIndex) -> Columns:
        """
        Some rows from a first one on, without a copy.
        """
    @property
    def types(self, /) -> list[str]:
        """
        The types of the columns, by Arrow's names.
        """
    def with_truths(self, /, name: str, values: SupportsGetItem[int, bool | None]) -> Columns:
        """
        The same with one more column of truths; no value stands for none.

        It has as many entries as there are rows.
        """

@final
class Parts:
    """
    Parts that are still to be sent, the heaviest first.
    """
    def __len__(self, /) -> int: ...
    def take(self, /, count: SupportsIndex) -> list[tuple[int, int, int]]:
        """
        Takes so many of the next ones, or as many as are left.
        """

@final
class Platform:
    """
    Processors and the caches that they share; never changed.
    """
    @staticmethod
    def find(name: str) -> Platform:
        """
        A built-in platform such as `xeon-l7455`, one of a file, or `this-machine`.
        """
    @staticmethod
    def from_toml(text: str) -> Platform:
        """
        Reads the text of a platform file.
        """
    @staticmethod
    def identical(m: SupportsIndex) -> Platform:
        """
        So many identical processors without caches.
        """
    def json(self, /) -> str:
        """
        The document of `warmset platform --format json`.
        """
    @property
    def name(self, /) -> str:
        """
        Its name.
        """
    @property
    def processors(self, /) -> int:
        """
        How many of its processors can be used.
        """
    def svg(self, /) -> str:
        """
        A picture of processors and caches, as SVG.
        """
    def to_toml(self, /) -> str:
        """
        The text of its platform file.
        """

@final
class Profile:
    """
    What a platform costs; never changed.
    """
    @staticmethod
    def builtin() -> list[str]:
        """
        The names of the built-in profiles.
        """
    def cpmd(self, /) -> Columns:
        """
        Cache delays by working set size, a row a point of a curve.
        """
    @staticmethod
    def find(name: str) -> Profile:
        """
        A built-in profile, one of a file, or the one in use on this machine.
        """
    @staticmethod
    def from_toml(text: str) -> Profile:
        """
        Reads the text of a profile file.
        """
    def overheads(self, /) -> Columns:
        """
        Overheads by number of tasks, a row a point of a curve.
        """
    @property
    def platform(self, /) -> str:
        """
        The name of the platform that it is of.
        """
    @property
    def source(self, /) -> str:
        """
        Where it comes from.
        """
    def svg(self, /) -> str | None:
        """
        Cache delays by working set size as a chart, as SVG; `None`: it has none.
        """
    def to_toml(self, /) -> str:
        """
        The text of its file.
        """
    def values(self, /, wss: str | None = None, tasks: SupportsIndex | None = None) -> str:
        """
        The values at a working set size, at a number of tasks, or at both: the document of `warmset
        profile show --wss SIZE --tasks N --format json`.
        """

@final
class Results:
    """
    What a study found.
    """
    def columns(self, /) -> Columns:
        """
        The shares of schedulable sets: a row for each policy, cap and point of the axis.
        """
    def csv(self, /) -> str:
        """
        The table `results.csv`.
        """
    def json(self, /) -> str:
        """
        The document `results.json`.
        """
    def svg(self, /, point: SupportsIndex = 0) -> str:
        """
        The shares of schedulable sets by utilization at a point of the axis, by its place from 0,
        as a chart, as SVG.
        """
    def weighted(self, /) -> Columns:
        """
        Weighted schedulability: a row for each policy and point of the axis.
        """
    def weighted_svg(self, /) -> str:
        """
        Weighted schedulability as a chart, as SVG.
        """

@final
class Tasks:
    """
    A checked task set; never changed.
    """
    def __len__(self, /) -> int:
        """
        How many tasks.
        """
    def columns(self, /) -> Columns:
        """
        A row a task.
        """
    @staticmethod
    def from_toml(text: str) -> Tasks:
        """
        Reads the text of a task file.
        """
    @property
    def place(self, /) -> str:
        """
        What errors call it.
        """
    @staticmethod
    def read(path: str | PathLike[str]) -> Tasks:
        """
        Reads a task file.
        """
    def to_toml(self, /) -> str:
        """
        The text of its task file.
        """
    @property
    def utilization(self, /) -> float:
        """
        The total utilization, for people: decisions are exact.
        """

def check(tasks: Tasks, platform: Platform | None = None, policies: str | None = None, guarantee: str | None = None, profile: Profile | None = None, load: str | None = None, statistic: str | None = None, cpmd_ns: SupportsIndex | None = None, accounting: str | None = None, assignment: str | PathLike[str] | None = None, certificate: str | PathLike[str] | None = None, progress: Any | None = None) -> str:
    """
    Judges a task set: the document of `warmset check --format json`.
    """

def check_batch(data: Any, m: SupportsIndex | None = None, tests: str | None = None, grid_ns: SupportsIndex | None = None, progress: Any | None = None) -> Columns:
    """
    Judges every set by tests. One column a test: whether its guarantee is shown, and no value where
    the test does not apply; before them `id`, where there is one.
    """

def generate(sets: SupportsIndex = 1, utilization: str | None = None, periods: str | None = None, deadlines: str | None = None, cap: str | None = None, fill: str | None = None, tasks: SupportsIndex | None = None, total: str | None = None, method: str | None = None, range: str | None = None, until: str | None = None, platform: Platform | None = None, seed: SupportsIndex = 1, first: SupportsIndex = 0, progress: Any | None = None) -> Columns:
    """
    Draws task sets: one row a set, with `id`, `m` and lists of nanoseconds.
    """

def nanoseconds(text: str) -> int:
    """
    A time such as `4ms` in nanoseconds.
    """

def policies() -> Columns:
    """
    The scheduling policies, a row each.
    """

def read_samples(path: str | PathLike[str]) -> Columns:
    """
    Reads the samples that `warmset measure cpmd` kept, a row each, in the order in which they were
    taken. A directory stands for the file in it.
    """

def set_rows(data: Any, m: SupportsIndex | None = None) -> Columns:
    """
    The sets with all columns in their plain form: `id` where there is one, `m`, and lists of 64-bit
    integers.
    """

def simulate(tasks: Tasks, policy: str = "g-edf", platform: Platform | None = None, horizon_ns: SupportsIndex | None = None, releases: str | None = None, execution: str | None = None, jitter: str = "random", seed: SupportsIndex = 1, brute_force: bool = False, profile: Profile | None = None, load: str | None = None, statistic: str | None = None, fit: str | None = None, enforcement: str | None = None, quantum_ns: SupportsIndex | None = None, assignment: str | PathLike[str] | None = None, trace: str | PathLike[str] | None = None, command: str = "", progress: Any | None = None) -> tuple[str, bool]:
    """
    Simulates a task set: the document of `warmset simulate --format json`, and whether a deadline
    that counts was missed.
    """

def simulate_ranked(tasks: Tasks, rank: Any, name: str, partitioned: bool = False, like: str | None = None, platform: Platform | None = None, horizon_ns: SupportsIndex | None = None, releases: str | None = None, execution: str | None = None, seed: SupportsIndex = 1, brute_force: bool = False, fit: str | None = None, trace: str | PathLike[str] | None = None, progress: Any | None = None) -> tuple[str, bool]:
    """
    Simulates a task set under a policy that ranks jobs by a function `rank(task, number, release_ns,
    deadline_ns)`, on all processors or on those that bin packing gives each task: the document of
    `warmset simulate --format json`, and whether a deadline that counts was missed. The trace names
    the policy `like`, where that is given, so that the checker holds it against the rules of that.
    """

def study_judge(study: str, parts: SupportsGetItem[int, tuple[SupportsIndex, SupportsIndex, SupportsIndex]]) -> str:
    """
    Judges parts of a study that came as text, on this thread alone: lines of counts.
    """

def study_list() -> str:
    """
    The built-in studies: the document of `warmset study list --format json`.
    """

def study_merge(directories: SupportsGetItem[int, str | PathLike[str]], into: str | PathLike[str]) -> Results | None:
    """
    Puts the shares of a study in several directories together in another one; `None`: some are
    missing.
    """

def study_run(name: str, platform: Platform | None = None, sets: SupportsIndex | None = None, until_ci: SupportsFloat | SupportsIndex | None = None, seed: SupportsIndex | None = None, profile: Profile | None = None, load: str | None = None, statistic: str | None = None, accounting: str | None = None, overhead_factor: str | None = None, factor_on: str | None = None, policies: str | None = None, output: str | PathLike[str] | None = None, threads: SupportsIndex | None = None, share: str | None = None, dispatch: Any | None = None, progress: Any | None = None) -> Results | None:
    """
    Runs a study by name or of a file, or goes on with one in a directory. `None`: a share was asked
    for, and other shares are missing. `dispatch` has parts judged elsewhere: called with the study as
    text and its `Parts`, it returns an iterator of pairs of text, lines of counts and a remark.
    """

def tests() -> Columns:
    """
    The schedulability tests, a row each.
    """

def time_text(nanoseconds: SupportsIndex) -> str:
    """
    A time of nanoseconds as people write it, such as `4ms`.
    """

def trace_check(path: str | PathLike[str], tolerance_ns: SupportsIndex | None = None, progress: Any | None = None) -> str:
    """
    Whether a trace keeps the rules of every schedule and of its policy: the document of `warmset
    trace check --format json`.
    """

def trace_events(path: str | PathLike[str], from_ns: SupportsIndex = 0, until_ns: SupportsIndex | None = None, progress: Any | None = None) -> Columns:
    """
    The events of a trace, a row each, as `warmset trace export --to csv` has them.
    """

def trace_header(path: str | PathLike[str]) -> str:
    """
    What a trace opens with: where it comes from, tasks, platform, policies. As JSON.
    """

def trace_jobs(path: str | PathLike[str], progress: Any | None = None) -> Columns:
    """
    The finished jobs of a trace, a row each, in the order of their completions.
    """

def trace_stats(path: str | PathLike[str], progress: Any | None = None) -> str:
    """
    What a trace adds up to: the document of `warmset trace stats --format json`.
    """

def trace_svg(path: str | PathLike[str], from_ns: SupportsIndex = 0, until_ns: SupportsIndex | None = None, rows: str = "processors", width: SupportsIndex = 760, title: str | None = None) -> str:
    """
    A window of a trace as a picture, as SVG.
    """

def version() -> str:
    """
    The version of the program.
    """
