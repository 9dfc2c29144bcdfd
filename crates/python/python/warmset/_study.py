"""Studies: which policies keep which of many task sets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Sequence

from . import _native
from ._dask import dispatcher
from ._error import Error
from ._platform import AnyPlatform, AnyProfile, native_platform, native_profile
from ._progress import Progress, reporter
from ._show import text_table
from ._table import Table
from ._values import Ratio, names_text, optional_count, ratio_text

if TYPE_CHECKING:
    from distributed import Client


class StudyResults:
    """What a study found."""

    __slots__ = ("_document", "_native")

    def __init__(self, native: _native.Results) -> None:
        self._native = native
        self._document: dict[str, Any] = json.loads(native.json())

    @property
    def title(self) -> str:
        """What it shows."""
        return self._document["title"]

    @property
    def notes(self) -> list[str]:
        """What one must know to trust it."""
        return self._document["notes"]

    @property
    def policies(self) -> list[str]:
        """The policies, as named in figures."""
        return [p["policy"] for p in self._document["policies"]]

    @property
    def schedulability(self) -> Table:
        """The shares of schedulable sets, a row for each policy, cap and point of the axis:
        ``policy``, ``cap``, what is swept (``delay_ns``, ``working_set_bytes``,
        ``overhead_factor`` or ``processors``), ``sets``, ``accepted``, ``schedulability``, and the
        95 % interval ``low`` to ``high``."""
        return Table(self._native.columns())

    @property
    def weighted(self) -> Table:
        """Weighted schedulability, a row for each policy and point of the axis: ``policy``, what is
        swept, ``weighted``, and the 95 % interval ``low`` to ``high``."""
        return Table(self._native.weighted())

    def svg(self, point: int | None = None) -> str:
        """Weighted schedulability as a chart; with `point` the shares of schedulable sets by
        utilization at that point of the axis, by its place from 0.

        Raises:
            Error: There is no such point.
        """
        return self._native.weighted_svg() if point is None else self._native.svg(point)

    def to_dict(self) -> dict[str, Any]:
        """The document ``results.json``: its schema is ``docs/schema/study-results.json``."""
        return self._document

    def to_json(self) -> str:
        """The same, byte by byte as the command line writes it."""
        return self._native.json()

    def to_csv(self) -> str:
        """The table ``results.csv``, byte by byte as the command line writes it."""
        return self._native.csv()

    def __repr__(self) -> str:
        rows = [(p["policy"], f"{p['weighted'][0]:.4f}", f"{p['weighted'][-1]:.4f}")
                for p in self._document["policies"]]
        axis = self._document["axis"]["symbol"]
        head = ("policy", f"W, first {axis}", f"W, last {axis}")
        return f"{self.title}\n{text_table(head, rows)}"

    def _repr_html_(self) -> str:
        return self.svg()


class Study:
    """A study, built-in or of a file, with what is changed of it.

    ``Study("ospert10-fig5", sets=100).run()``

    Args:
        name: The name of a built-in study (:meth:`list`), or a file such as ``"study.toml"``.
        m: So many identical processors, instead of the study's own platform.
        platform: Another platform, or its name or file.
        sets: How many task sets for each cap.
        until_ci: Add task sets to each cap until the 95 % interval of every share is at most so
            wide.
        seed: Seed of all random choices.
        profile: Other costs.
        load: The profile's delays under ``"load"`` or ``"idle"``.
        statistic: ``"average"`` or ``"maximum"`` of them.
        accounting: How overheads are charged.
        overhead_factor: Another factor on overheads.
        factor_on: Which overheads the factor is on, such as ``"release,scheduling"``; all by default.
        policies: Other policies and tests.
    """

    __slots__ = ("_options", "name")

    def __init__(
        self,
        name: str | Path,
        *,
        m: int | None = None,
        platform: AnyPlatform | None = None,
        sets: int | None = None,
        until_ci: float | None = None,
        seed: int | None = None,
        profile: AnyProfile | None = None,
        load: str | None = None,
        statistic: str | None = None,
        accounting: str | None = None,
        overhead_factor: Ratio | None = None,
        factor_on: str | Sequence[str] | None = None,
        policies: str | Sequence[str] | None = None,
    ) -> None:
        #: Its name or file.
        self.name = str(name)
        self._options: dict[str, Any] = {
            "platform": native_platform(platform, m),
            "sets": optional_count(sets, "sets"),
            "until_ci": until_ci,
            "seed": optional_count(seed, "seed", (1 << 64) - 1),
            "profile": native_profile(profile),
            "load": load,
            "statistic": statistic,
            "accounting": accounting,
            "overhead_factor": ratio_text(overhead_factor),
            "factor_on": names_text(factor_on),
            "policies": names_text(policies),
        }

    @staticmethod
    def list() -> list[dict[str, str]]:
        """The built-in studies: ``name``, ``title``, ``source``."""
        return json.loads(_native.study_list())["studies"]

    def run(
        self,
        output: str | Path | None = None,
        *,
        threads: int | None = None,
        client: Client | None = None,
        progress: Progress | None = None,
    ) -> StudyResults:
        """Runs it, or goes on with what was counted in `output`.

        Args:
            output: Keep results in this directory, as they come: stopped by Ctrl-C, a study goes on
                from there.
            threads: Default: one a processor. The results are the same with any number.
            client: Have the workers of this `distributed.Client` judge instead, which need this
                package, too. The results are the same with any number of them, whichever die.
            progress: Called with what is done; ``True``: a bar.

        Raises:
            Error: There is no such study; the directory holds another one; the scheduler is gone.
            KeyboardInterrupt: Ctrl-C.
        """
        results = self._run(output, threads, None, progress, client)
        if results is None:
            raise Error("the study has no results", self.name, "run it again")
        return results

    def run_share(
        self,
        share: str,
        output: str | Path,
        *,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> StudyResults | None:
        """Runs a share of it, such as ``"3/16"`` for the third of sixteen, for other machines to run
        the others; :meth:`merge` puts them together.

        Returns:
            The results, if with this share every part is there; else ``None``.

        Raises:
            Error: As :meth:`run`; it is no share.
            KeyboardInterrupt: Ctrl-C.
        """
        return self._run(output, threads, share, progress)

    @staticmethod
    def merge(directories: Sequence[str | Path], into: str | Path) -> StudyResults | None:
        """Puts shares together; ``None``: some are missing.

        Raises:
            Error: The directories hold no shares of one study.
        """
        results = _native.study_merge([str(d) for d in directories], str(into))
        return None if results is None else StudyResults(results)

    def _run(
        self,
        output: str | Path | None,
        threads: int | None,
        share: str | None,
        progress: Progress | None,
        client: Client | None = None,
    ) -> StudyResults | None:
        if client is not None and threads is not None:
            raise Error(
                "`threads` are those of this process, and `client` has others judge",
                "threads",
                "leave one of them out",
            )
        results = _native.study_run(
            self.name,
            **self._options,
            output=None if output is None else str(output),
            threads=optional_count(threads, "threads"),
            share=share,
            dispatch=None if client is None else dispatcher(client),
            progress=reporter(progress),
        )
        return None if results is None else StudyResults(results)

    def __repr__(self) -> str:
        given = ", ".join(f"{k}={v!r}" for k, v in self._options.items() if v is not None)
        return f"<Study {self.name}{': ' if given else ''}{given}>"
