"""What the tests share. `make test-python` sets WARMSET, the binary that answers are compared with."""

import os
import subprocess
from pathlib import Path

import hypothesis
import pytest

# A test never asserts a time.
hypothesis.settings.register_profile("warmset", deadline=None, max_examples=60)
hypothesis.settings.load_profile("warmset")

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the repository."""
    return ROOT


@pytest.fixture(scope="session")
def binary():
    """Runs the command line; returns what it printed."""
    path = os.environ.get("WARMSET")
    if not path:
        pytest.skip("WARMSET does not name the binary to compare with: run `make test-python`")

    def run(*words, status=(0,), **how):
        done = subprocess.run(
            [path, *map(str, words)], capture_output=True, text=True, check=False, **how
        )
        assert done.returncode in status, done.stderr
        return done.stdout

    return run
