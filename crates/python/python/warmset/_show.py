"""How results look in a terminal and in a notebook."""

from __future__ import annotations

from html import escape
from typing import Any, Iterable, Sequence

STYLE = "text-align:left;padding:0.2em 0.8em 0.2em 0"


def text_table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table for a terminal: columns apart by two blanks."""
    lines = [list(head)] + [["" if v is None else str(v) for v in row] for row in rows]
    widths = [max(len(line[at]) for line in lines) for at in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip()
        for line in lines
    )


def html_table(
    head: Sequence[str], rows: Iterable[Sequence[Any]], caption: str = "", after: str = ""
) -> str:
    """A table for a notebook; all text is escaped."""

    def line(cells: Sequence[Any], tag: str) -> str:
        shown = ("" if c is None else escape(str(c)) for c in cells)
        return "<tr>" + "".join(f'<{tag} style="{STYLE}">{c}</{tag}>' for c in shown) + "</tr>"

    above = f"<caption style=\"{STYLE}\">{escape(caption)}</caption>" if caption else ""
    below = f"<p>{escape(after)}</p>" if after else ""
    body = "".join(line(row, "td") for row in rows)
    return f"<table>{above}<thead>{line(head, 'th')}</thead><tbody>{body}</tbody></table>{below}"
