"""Columns of results."""

from __future__ import annotations

from typing import Any, Iterator

from . import _native
from ._show import html_table, text_table

_SHOWN = 10


class Table:
    """Columns of equal length in Arrow's layout.

    pandas, polars, pyarrow and DuckDB take a table without a copy: ``pandas.DataFrame.from_arrow(t)``,
    ``polars.DataFrame(t)``, ``pyarrow.table(t)``. Names say the unit: ``…_ns`` are integers of
    nanoseconds, ``…_bytes`` of bytes. Without any of these packages, ``t["name"]`` is a list.
    """

    __slots__ = ("_columns",)

    def __init__(self, columns: _native.Columns) -> None:
        self._columns = columns

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self._columns.names

    @property
    def types(self) -> dict[str, str]:
        """Arrow's type of each column."""
        return dict(zip(self._columns.names, self._columns.types))

    def __len__(self) -> int:
        return len(self._columns)

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns.names)

    def __getitem__(self, name: str) -> list[Any]:
        return self._columns.entries(name)

    def select(self, *names: str) -> Table:
        """These columns alone, in this order."""
        return Table(self._columns.select(list(names)))

    def head(self, rows: int = _SHOWN, first: int = 0) -> Table:
        """Some rows from the row `first` on, without a copy."""
        return Table(self._columns.slice(first, rows))

    def to_dict(self) -> dict[str, list[Any]]:
        """All columns as lists."""
        return {name: self._columns.entries(name) for name in self._columns.names}

    def to_rows(self) -> list[dict[str, Any]]:
        """All rows as dictionaries."""
        lists = [self._columns.entries(name) for name in self._columns.names]
        return [dict(zip(self._columns.names, row)) for row in zip(*lists)]

    def to_arrow(self) -> Any:
        """A ``pyarrow.Table`` of the same memory.

        Raises:
            ImportError: pyarrow is not installed.
        """
        import pyarrow

        return pyarrow.table(self)

    def to_pandas(self) -> Any:
        """A ``pandas.DataFrame``; lists and words are made anew, numbers are the same memory.

        Raises:
            ImportError: pandas or pyarrow is not installed.
        """
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """A ``polars.DataFrame`` of the same memory.

        Raises:
            ImportError: polars is not installed.
        """
        import polars

        return polars.DataFrame(self)

    def __arrow_c_schema__(self) -> object:
        """Arrow's PyCapsule interface."""
        return self._columns.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Arrow's PyCapsule interface."""
        return self._columns.__arrow_c_stream__(requested_schema)

    def _shown(self) -> tuple[list[str], list[tuple[Any, ...]], str]:
        first = self._columns.slice(0, _SHOWN)
        rows = list(zip(*(map(_short, first.entries(name)) for name in first.names)))
        left = len(self) - len(rows)
        return first.names, rows, f"… and {left} more rows" if left else ""

    def __repr__(self) -> str:
        head, rows, after = self._shown()
        return text_table(head, rows) + (f"\n{after}" if after else "")

    def _repr_html_(self) -> str:
        head, rows, after = self._shown()
        return html_table(head, rows, after=after)


def _short(value: Any) -> Any:
    if isinstance(value, list) and len(value) > 3:
        return "[" + ", ".join(map(str, value[:3])) + f", … {len(value)}]"
    return value
