"""Platforms and profiles."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Union

from . import _native
from ._error import Error
from ._show import html_table
from ._table import Table
from ._values import count


class Platform:
    """Processors and the caches that they share. Never changed.

    ``Platform("xeon-l7455")`` is a built-in one, ``Platform("board.toml")`` one of a file,
    ``Platform("this-machine")`` this machine, and ``Platform(m=4)`` four identical processors
    without caches.

    Args:
        name: A name or a file.
        m: The number of processors, instead of a name.

    Raises:
        Error: There is no such platform.
    """

    __slots__ = ("_native",)

    def __init__(self, name: str | Path | None = None, *, m: int | None = None) -> None:
        if (name is None) == (m is None):
            raise Error(
                "a platform has either a name or a number of processors",
                "Platform",
                'write `Platform("xeon-l7455")` or `Platform(m=4)`',
            )
        if name is not None:
            self._native = _native.Platform.find(str(name))
        else:
            assert m is not None
            self._native = _native.Platform.identical(count(m, "m", (1 << 32) - 1))

    @classmethod
    def from_toml(cls, text: str) -> Platform:
        """Reads the text of a platform file.

        Raises:
            Error: It is none; names the line.
        """
        return cls._of(_native.Platform.from_toml(text))

    @classmethod
    def _of(cls, native: _native.Platform) -> Platform:
        platform = cls.__new__(cls)
        platform._native = native
        return platform

    @property
    def name(self) -> str:
        """Its name."""
        return self._native.name

    @property
    def processors(self) -> int:
        """How many of its processors can be used."""
        return self._native.processors

    def to_dict(self) -> dict[str, Any]:
        """The document of ``warmset platform --format json``."""
        return json.loads(self._native.json())

    def to_toml(self) -> str:
        """The text of its file."""
        return self._native.to_toml()

    def svg(self) -> str:
        """A picture of processors and caches."""
        return self._native.svg()

    def __reduce__(self) -> tuple[Any, ...]:
        return Platform.from_toml, (self.to_toml(),)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Platform) and self.to_toml() == other.to_toml()

    def __hash__(self) -> int:
        return hash(self.to_toml())

    def __repr__(self) -> str:
        return f"<Platform {self.name}: {self.processors} processors>"

    def _repr_html_(self) -> str:
        return self.svg()


class Profile:
    """What a platform costs: cache delays and overheads. Never changed.

    ``Profile("xeon-l7455")`` is a built-in one, ``Profile("profile.toml")`` one of a file, such as
    ``warmset measure`` writes.

    Args:
        name: A name or a file.

    Raises:
        Error: There is no such profile.
    """

    __slots__ = ("_native",)

    def __init__(self, name: str | Path) -> None:
        self._native = _native.Profile.find(str(name))

    @classmethod
    def from_toml(cls, text: str) -> Profile:
        """Reads the text of a profile file.

        Raises:
            Error: It is none; names the line.
        """
        profile = cls.__new__(cls)
        profile._native = _native.Profile.from_toml(text)
        return profile

    @staticmethod
    def builtin() -> list[str]:
        """The names of the built-in profiles."""
        return _native.Profile.builtin()

    @property
    def platform(self) -> str:
        """The name of the platform that it is of."""
        return self._native.platform

    @property
    def source(self) -> str:
        """Where it comes from."""
        return self._native.source

    @property
    def cpmd(self) -> Table:
        """Cache-related preemption and migration delays, a row a point of a curve: ``resumption``,
        ``load``, ``write_ratio``, ``wss_bytes``, ``samples``, ``average_ns``, ``deviation_ns``,
        ``maximum_ns``."""
        return Table(self._native.cpmd())

    @property
    def overheads(self) -> Table:
        """Overheads of scheduling, a row a point of a curve: ``overhead``, ``policy``, ``code``,
        ``tasks``, ``samples``, ``average_ns``, ``maximum_ns``."""
        return Table(self._native.overheads())

    def values(self, *, wss: str | None = None, tasks: int | None = None) -> list[dict[str, Any]]:
        """Reads the curves at a working set size, at a number of tasks, or at both.

        Args:
            wss: A size such as ``"256KiB"``.
            tasks: A number of tasks.

        Returns:
            Dictionaries with ``curve``, ``statistic``, ``value_ns``, and ``extrapolated``: outside
            of what was measured.
        """
        return json.loads(self._native.values(wss, tasks))["values"]

    def to_toml(self) -> str:
        """The text of its file."""
        return self._native.to_toml()

    def svg(self) -> str | None:
        """Its cache delays by working set size as a chart; ``None``: it has none."""
        return self._native.svg()

    def __reduce__(self) -> tuple[Any, ...]:
        return Profile.from_toml, (self.to_toml(),)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Profile) and self.to_toml() == other.to_toml()

    def __hash__(self) -> int:
        return hash(self.to_toml())

    def __repr__(self) -> str:
        return f"<Profile of {self.platform}: {self.source}>"

    def _repr_html_(self) -> str:
        rows = [("platform", self.platform), ("source", self.source)]
        return (self.svg() or "") + html_table(("", "profile"), rows)


#: A platform, or the name or file of one.
AnyPlatform = Union[Platform, str, Path]
#: A profile, or the name or file of one.
AnyProfile = Union[Profile, str, Path]


def native_platform(platform: AnyPlatform | None, m: int | None) -> _native.Platform | None:
    """The platform of a call; ``None``: this machine."""
    if m is not None and platform is not None:
        raise Error(
            "both a platform and a number of processors are given", "m", "give one of them"
        )
    if m is not None:
        return Platform(m=m)._native
    if platform is None or isinstance(platform, Platform):
        return None if platform is None else platform._native
    return Platform(platform)._native


def native_profile(profile: AnyProfile | None) -> _native.Profile | None:
    """The profile of a call; ``None``: nothing is charged."""
    if profile is None or isinstance(profile, Profile):
        return None if profile is None else profile._native
    return Profile(profile)._native
