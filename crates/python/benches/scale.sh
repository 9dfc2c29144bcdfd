#!/bin/sh
# What a cluster is worth for studies (scale.py), measured here and modelled from that.
# Usage: sh crates/python/benches/scale.sh [OPTIONS OF scale.py]; the wheel has to be in
# target/wheels.
set -eu

cd "$(dirname "$0")/../../.."
out=target/bench-python
mkdir -p "$out"
[ -x "$out/venv/bin/pip" ] || python3 -m venv "$out/venv"
"$out/venv/bin/pip" install --disable-pip-version-check -q \
    "$(grep '^distributed' crates/python/requirements-test.txt)"
"$out/venv/bin/pip" install --disable-pip-version-check -q --force-reinstall --no-deps \
    target/wheels/*.whl
"$out/venv/bin/python" crates/python/benches/scale.py --keep "$out/scale.json" "$@"
