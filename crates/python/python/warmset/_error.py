"""Errors as sentences, and remarks."""

from __future__ import annotations


class Error(Exception):
    """A failure with its cause, its place and what helps against it.

    Reads as the one sentence that the command line prints: ``place: cause; remedy``.

    Attributes:
        cause: What is wrong.
        place: Where: a file, a line, an argument. Empty: nowhere in particular.
        remedy: What to do about it. Empty: nothing is known to help.
    """

    cause: str
    place: str
    remedy: str

    def __init__(self, cause: str, place: str = "", remedy: str = "") -> None:
        super().__init__(cause, place, remedy)
        self.cause = cause
        self.place = place
        self.remedy = remedy

    def __str__(self) -> str:
        before = f"{self.place}: " if self.place else ""
        after = f"; {self.remedy}" if self.remedy else ""
        return f"{before}{self.cause}{after}"


class Remark(UserWarning):
    """What one should know of an answer, such as what of a task set was not simulated."""
