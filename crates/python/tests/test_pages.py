"""What the guide shows is what happens, and its examples run."""

import doctest
import os
import runpy
import subprocess
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

import warmset as ws

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


#: What its cells show, one after another, besides text.
NOTEBOOKS = {
    "control": ["table", "table", "table", "svg", "svg", "table"],
    "fig5": ["svg", "table", "svg"],
    "live": ["svg", "svg", "table", "table"],
}


def test_there_are_notebooks():
    assert NOTEBOOKS.keys() == {path.stem for path in (HERE / "examples").glob("*.ipynb")}


def shown(cell):
    """What a cell shows: pictures and tables, and what it said on standard error."""
    rich, said = [], ""
    for output in cell.get("outputs", []):
        data = output.get("data", {})
        rich += [data[kind] for kind in ("text/html", "image/svg+xml") if kind in data]
        said += output.get("text", "") if output.get("name") == "stderr" else ""
    return rich, said


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_runs(name, tmp_path, monkeypatch, binary):
    monkeypatch.setenv("SETS", "3")
    if name == "live":
        tasks = ws.TaskSet([ws.Task("100us", "10ms")])
        tasks.write(tmp_path / "one.toml")
        words = ["run", str(tmp_path / "one.toml"), "--cpus", "0", "--for", "20ms"]
        tried = subprocess.run(
            [os.environ["WARMSET"], *words], capture_output=True, text=True, check=False
        )
        if tried.returncode == 2:
            pytest.skip(f"this machine runs nothing for real: {tried.stderr.strip()}")
    book = nbformat.read(HERE / "examples" / f"{name}.ipynb", as_version=4)
    # Kernels are found beside the interpreter, whatever is on the path.
    client = NotebookClient(book, timeout=600, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    both = [shown(cell) for cell in book.cells]
    kinds = ["svg" if "<svg" in text else "table" for rich, _ in both for text in rich]
    assert kinds == NOTEBOOKS[name]
    said = "".join(said for _, said in both)
    assert "Warning" not in said and "Remark" not in said, said
    assert not any(cell.get("outputs") for cell in nbformat.read(
        HERE / "examples" / f"{name}.ipynb", as_version=4).cells), "outputs are not committed"
