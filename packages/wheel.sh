#!/bin/sh
# Makes a wheel of the Python package, in target/wheels: the extension module for every Python from
# 3.10 on, and the command `warmset`. It needs Python with venv, and a package index for maturin.
# Usage: sh packages/wheel.sh; CARGO names another cargo.
set -eu

cargo=${CARGO:-cargo}
cd "$(dirname "$0")/.."
"$cargo" build --release --locked -p warmset
[ -x target/maturin/bin/pip ] || python3 -m venv target/maturin
target/maturin/bin/pip install --disable-pip-version-check -q \
    "$(grep '^maturin' crates/python/requirements-test.txt)"
# What stands in this directory is installed beside the interpreter.
scripts=crates/python/warmset.data/scripts
rm -rf target/wheels crates/python/warmset.data
mkdir -p "$scripts"
trap 'rm -rf crates/python/warmset.data' EXIT
install -m 755 -s target/release/warmset "$scripts/warmset"
target/maturin/bin/maturin build --locked --release --manifest-path crates/python/Cargo.toml \
    --compression-level 9 --out target/wheels
ls -l target/wheels
