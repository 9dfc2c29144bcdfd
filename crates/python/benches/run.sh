#!/bin/sh
# A million task sets of 20 tasks (GFB, BCL): the command beside the Python package, in turns. Time
# and peak of memory; how many sets each test accepts has to be the same.
# Usage: sh crates/python/benches/run.sh WARMSET [SETS]; the wheel has to be in target/wheels.
set -eu

warmset=$(realpath "$1")
sets=${2:-1000000}
cd "$(dirname "$0")/../../.."
out=target/bench-python
mkdir -p "$out"
[ -x "$out/venv/bin/pip" ] || python3 -m venv "$out/venv"
"$out/venv/bin/pip" install --disable-pip-version-check -q \
    "$(grep '^pyarrow' crates/python/requirements-test.txt)"
"$out/venv/bin/pip" install --disable-pip-version-check -q --force-reinstall --no-deps \
    target/wheels/*.whl
[ -s "$out/sets-$sets.jsonl" ] ||
    "$warmset" generate --tasks 20 --total 4 -m 8 --seed 1 --sets "$sets" -o "$out/sets-$sets.jsonl"

for turn in 1 2 3; do
    echo "turn $turn"
    "$out/venv/bin/python" crates/python/benches/command.py "$warmset" "$out/sets-$sets.jsonl"
    "$out/venv/bin/python" crates/python/benches/batch.py "$sets"
done
