"""Times, sizes, ratios and platforms, as the native part takes them."""

from __future__ import annotations

import operator
from datetime import timedelta
from fractions import Fraction
from typing import Any, Sequence, Union

from . import _native
from ._error import Error

#: A time: text with a unit (``"4ms"``), a ``timedelta``, or an integer of nanoseconds. Never a
#: float, whose unit nobody knows.
Time = Union[str, timedelta, int]

#: A ratio: text (``"3.2"``, ``"2/3"``), an integer, a ``Fraction``, or a float, which is taken by
#: its shortest decimal digits: ``0.1`` is exactly one tenth.
Ratio = Union[str, int, float, Fraction]


def nanoseconds(value: Time, what: str = "time") -> int:
    """A time in nanoseconds, exactly.

    Raises:
        Error: It is a float, has no unit, is negative, or is finer than a nanosecond.
    """
    if isinstance(value, str):
        try:
            return _native.nanoseconds(value)
        except Error as e:
            raise Error(e.cause, what, e.remedy) from None
    if isinstance(value, timedelta):
        # A Timedelta of pandas also has nanoseconds.
        whole = (value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds
        ns = whole * 1_000 + int(getattr(value, "nanoseconds", 0))
    elif isinstance(value, bool):
        raise Error(f"{value} is not a time", what, 'write such as "4ms"')
    elif isinstance(value, float):
        raise Error(
            f"{value} is a float, whose unit nobody knows",
            what,
            'write such as "4ms", give a timedelta, or an integer of nanoseconds',
        )
    else:
        try:
            ns = operator.index(value)
        except TypeError:
            raise Error(
                f"a `{type(value).__name__}` is not a time",
                what,
                'write such as "4ms", give a timedelta, or an integer of nanoseconds',
            ) from None
    if not 0 <= ns < 1 << 64:
        raise Error(f"{ns} ns is out of range", what, "give a time from 0 to 584 years")
    return ns


def optional_nanoseconds(value: Time | None, what: str) -> int | None:
    """The same where there may be no time."""
    return None if value is None else nanoseconds(value, what)


def time_text(ns: int) -> str:
    """Nanoseconds as people write them: ``4ms``."""
    return _native.time_text(ns)


def ratio_text(value: Ratio | None) -> str | None:
    """A ratio as the native part reads it."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, float):
        # Never in exponents, which the reader does not take.
        return format(Fraction(repr(value)).limit_denominator(10**15), "")
    return str(value)


def count(value: int, what: str, most: int = (1 << 64) - 1) -> int:
    """A whole number from 0 on, as numpy's integers are as well.

    Raises:
        Error: It is none, is negative, or is larger than `most`.
    """
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or not 0 <= number <= most:
        raise Error(f"{value!r} is not a whole number from 0 to {most}", what, "give such a number")
    return number


def optional_count(value: int | None, what: str, most: int = (1 << 32) - 1) -> int | None:
    """The same where there may be none."""
    return None if value is None else count(value, what, most)


def names_text(value: str | Sequence[str] | None) -> str | None:
    """Names as the native part reads them: separated by commas."""
    if value is None or isinstance(value, str):
        return value
    return ",".join(value)


def path_text(value: Any) -> Any:
    """A path that the native part takes, or nothing."""
    return None if value is None else str(value)
