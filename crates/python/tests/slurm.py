"""The recipe for Slurm of docs/cluster.md as it stands there, for a cluster as small as that of
`tests/slurm.sh`: python slurm.py SETS DIRECTORY."""

import itertools
import os
import sys
from pathlib import Path

import dask
import dask_jobqueue  # noqa: F401: what it is set up with, to be changed below

PAGE = Path(__file__).resolve().parents[3] / "docs" / "cluster.md"


def recipe(sets: str, directory: str) -> str:
    section = PAGE.read_text().split("\n## Slurm\n")[1].split("\n## ")[0]
    lines = section[section.index("    from "):].splitlines()
    block = itertools.takewhile(lambda line: line.startswith("    ") or not line, lines)
    code = "\n".join(line[4:] for line in block)
    less = {
        "cores=32, processes=32, memory=\"32GB\"": "cores=1, processes=1, memory=\"500MB\"",
        "04:00:00": "00:10:00",
        "maximum_jobs=30": "maximum_jobs=2",
        "100_000": sets,
        '"fig5"': repr(directory),
    }
    for this, that in less.items():
        if this not in code:
            sys.exit(f"{PAGE.name} has no {this}")
        code = code.replace(this, that)
    return code


if __name__ == "__main__":
    # What a site sets in a file of Dask's, such as ~/.config/dask/jobqueue.yaml.
    dask.config.set({"jobqueue.slurm": dask.config.get("jobqueue.slurm") | {
        "scheduler-options": {"host": "127.0.0.1", "dashboard": False},
        "worker-extra-args": ["--host", "127.0.0.1", "--no-dashboard"],
        "log-directory": os.getcwd(),
        "local-directory": os.getcwd(),
    }})
    names: dict = {}
    exec(recipe(*sys.argv[1:]), names)
    names["cluster"].close()
