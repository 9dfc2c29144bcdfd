#!/bin/sh
# Makes a wheel of the Python package, in target/wheels (for another machine than this one in
# target/wheels-MACHINE): the extension module for every Python from 3.10 on, and the command
# `warmset`. It needs Python with venv, and a package index for maturin.
# For another machine than this one the command is static, without the engine in the kernel; whatever
# of Rust or of the linker is missing is named in one sentence, with status 2.
# Usage: sh packages/wheel.sh [x86_64|aarch64]; CARGO names another cargo.
set -eu

cargo=${CARGO:-cargo}
machine=${1:-$(uname -m)}
out=target/wheels
[ "$machine" = "$(uname -m)" ] || out=target/wheels-$machine
# Bytes that a wheel may have at most: it has to be smaller than 15 MB.
most=14999999
cd "$(dirname "$0")/.."
# The command is most of the wheel. Its profile optimizes it as a whole, which Cargo does not for the
# extension module: that is built as `rlib` as well (crates/python/Cargo.toml).
if [ "$machine" = "$(uname -m)" ]; then
    "$cargo" build --profile wheel --locked -p warmset
    command=target/wheel/warmset
    for_target=
else
    PROFILE=wheel CARGO="$cargo" sh packages/static.sh "$machine"
    command=target/static/$machine/warmset
    for_target="--target $machine-unknown-linux-gnu"
    variable=CARGO_TARGET_$(echo "$machine" | tr a-z A-Z)_UNKNOWN_LINUX_GNU_LINKER
    export "$variable=$machine-linux-gnu-gcc"
fi
[ -x target/maturin/bin/pip ] || python3 -m venv target/maturin
target/maturin/bin/pip install --disable-pip-version-check -q \
    "$(grep '^maturin' crates/python/requirements-test.txt)"
# What stands in this directory is installed beside the interpreter.
scripts=crates/python/warmset.data/scripts
rm -rf "$out" "$scripts"
mkdir -p "$scripts"
trap 'rm -rf crates/python/warmset.data/scripts' EXIT
install -m 755 "$command" "$scripts/warmset"
# shellcheck disable=SC2086 # two words or none
target/maturin/bin/maturin build --locked --release --manifest-path crates/python/Cargo.toml \
    --compression-level 9 --out "$out" $for_target
# zlib at its best leaves it above what it may have.
target/maturin/bin/pip install --disable-pip-version-check -q zopflipy==1.14
target/maturin/bin/python packages/denser.py "$out"/*.whl
ls -l "$out"
# A directory that maturin does not know is left out without a word.
if ! python3 -m zipfile -l "$out"/*.whl | grep -q "\.data/scripts/warmset "; then
    echo "the wheel lacks the command" >&2
    exit 1
fi
size=$(stat -c %s "$out"/*.whl)
if [ "$size" -gt "$most" ]; then
    echo "the wheel has $size bytes, and may have $most: see unzip -lv for what grew" >&2
    exit 1
fi
