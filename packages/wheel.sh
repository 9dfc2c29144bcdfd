#!/bin/sh
# Makes a wheel of the Python package, in target/wheels: the extension module for every Python from
# 3.10 on, and the command `warmset`. It needs Python with venv, and a package index for maturin.
# Usage: sh packages/wheel.sh; CARGO names another cargo.
set -eu

cargo=${CARGO:-cargo}
# Bytes that a wheel may have at most: it has to be smaller than 15 MB.
most=14999999
cd "$(dirname "$0")/.."
# The command is most of the wheel. Its profile optimizes it as a whole, which Cargo does not for the
# extension module: that is built as `rlib` as well (crates/python/Cargo.toml).
"$cargo" build --profile wheel --locked -p warmset
[ -x target/maturin/bin/pip ] || python3 -m venv target/maturin
target/maturin/bin/pip install --disable-pip-version-check -q \
    "$(grep '^maturin' crates/python/requirements-test.txt)"
# What stands in this directory is installed beside the interpreter.
scripts=crates/python/warmset.data/scripts
rm -rf target/wheels "$scripts"
mkdir -p "$scripts"
trap 'rm -rf crates/python/warmset.data/scripts' EXIT
install -m 755 target/wheel/warmset "$scripts/warmset"
target/maturin/bin/maturin build --locked --release --manifest-path crates/python/Cargo.toml \
    --compression-level 9 --out target/wheels
# zlib at its best leaves it above what it may have.
target/maturin/bin/pip install --disable-pip-version-check -q zopflipy==1.14
target/maturin/bin/python packages/denser.py target/wheels/*.whl
ls -l target/wheels
# A directory that maturin does not know is left out without a word.
if ! python3 -m zipfile -l target/wheels/*.whl | grep -q "\.data/scripts/warmset "; then
    echo "the wheel lacks the command" >&2
    exit 1
fi
size=$(stat -c %s target/wheels/*.whl)
if [ "$size" -gt "$most" ]; then
    echo "the wheel has $size bytes, and may have $most: see unzip -lv for what grew" >&2
    exit 1
fi
