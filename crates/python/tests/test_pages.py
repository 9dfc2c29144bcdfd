"""What the guide shows is what happens, and its examples run."""

import doctest
import os
import runpy
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parents[1]


def test_the_guide_says_what_happens(root, tmp_path, monkeypatch):
    monkeypatch.chdir(root)
    page = root / "docs" / "python.md"
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    done = doctest.testfile(
        str(page), module_relative=False, optionflags=flags, globs={"tmp": tmp_path}
    )
    assert done.attempted > 20
    assert done.failed == 0


EXAMPLES = sorted(path.name for path in (HERE / "examples").glob("*.py"))


def test_there_are_examples():
    assert EXAMPLES == ["control.py", "fig5.py", "new_test.py"]


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs(name, tmp_path, monkeypatch, capsys, root):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SETS", "3")
    monkeypatch.setenv("ROOT", str(root))
    runpy.run_path(str(HERE / "examples" / name), run_name="__main__")
    assert capsys.readouterr().out.strip()
    assert all(os.path.getsize(path) for path in tmp_path.rglob("*") if path.is_file())
