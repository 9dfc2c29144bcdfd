"""Progress of long work."""

from __future__ import annotations

import warnings
from typing import Callable, Optional, Union

#: Called as ``progress(what, done, total)`` about twenty times a second from the thread that waits;
#: an exception that it raises ends the work. ``True`` shows a bar of `tqdm`.
Progress = Union[bool, Callable[[str, int, int], None]]


def reporter(progress: Progress | None) -> Optional[Callable[[str, int, int], None]]:
    """What the native part calls.

    Raises:
        ImportError: A bar is asked for, and `tqdm` is not installed.
    """
    if progress is None or progress is False:
        return None
    if progress is not True:
        return progress
    # Where a notebook has no widgets, tqdm warns and shows text instead: that will do.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from tqdm.auto import tqdm

    #: The bar of the stage that goes on, by its name.
    shown: dict[str, tqdm] = {}

    def show(what: str, done: int, total: int) -> None:
        if what not in shown:
            close()
            shown[what] = tqdm(total=total, desc=what)
        bar = shown[what]
        bar.total = total
        bar.update(done - bar.n)
        if done >= total:
            close()

    def close() -> None:
        while shown:
            shown.popitem()[1].close()

    return show
