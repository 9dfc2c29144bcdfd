"""Progress of long work."""

from __future__ import annotations

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
    from tqdm.auto import tqdm

    bar: list[tqdm] = []

    def show(what: str, done: int, total: int) -> None:
        if bar and bar[0].desc != f"{what}: ":
            bar.pop().close()
        if not bar:
            bar.append(tqdm(total=total, desc=what))
        bar[0].total = total
        bar[0].update(done - bar[0].n)
        if done >= total:
            bar.pop().close()

    return show
