#!/bin/sh
# Installs the Python package into an environment of its own, target/python/venv, and tests it there.
# Usage: sh tests/python.sh WARMSET [LIBRARY]: the binary that answers are compared with, and the
# extension module where it is built already, by the tests of Rust; without it a wheel is built by
# maturin. It needs Python 3.11 with venv, which it installs by apt-get where CI is set and it runs as
# root, and a package index. Without them it says `python: not run` with the reason, and ends with
# status 0. It says the same of each test that pytest skips.
set -eu

warmset=$(realpath "$1")
library=${2:-}
out=target/python
here=$(cd "$(dirname "$0")/.." && pwd)
not_run() {
    echo "python: not run: $1"
    exit 0
}

python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
    not_run "there is no Python of version 3.11 or later"
mkdir -p "$out"
# What an environment needs is there or is not: without python3-venv Debian's Python has no
# ensurepip.
if ! python3 -c 'import ensurepip' 2>/dev/null && [ "${CI:-}" ] && [ "$(id -u)" = 0 ] &&
    command -v apt-get >/dev/null
then
    { apt-get update && apt-get install -y --no-install-recommends python3-venv; } \
        >"$out/apt.log" 2>&1 || :
fi
python3 -c 'import ensurepip' 2>/dev/null ||
    not_run "Python has no venv: install the package python3-venv"
[ -x "$out/venv/bin/pip" ] || python3 -m venv "$out/venv"
bin=$(realpath "$out/venv")/bin
"$bin/pip" install --disable-pip-version-check -q -r "$here/crates/python/requirements-test.txt" \
    >"$out/pip.log" 2>&1 || not_run "pip could not install what the tests need: see $out/pip.log"

if [ "$library" ]; then
    # No dependency is compiled twice: the wheel would be of another set of their features.
    site=$("$bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    rm -rf "$site/warmset"
    cp -r "$here/crates/python/python/warmset" "$site/warmset"
    cp "$library" "$site/warmset/_native.abi3.so"
else
    rm -rf "$out/wheels"
    VIRTUAL_ENV=$(dirname "$bin") "$bin/maturin" build --locked --profile dev -q \
        --manifest-path "$here/crates/python/Cargo.toml" --out "$out/wheels"
    "$bin/pip" install --disable-pip-version-check -q --no-deps --force-reinstall \
        "$out"/wheels/*.whl
fi

out=$(realpath "$out")
# Nothing of the sources is imported: what is tested is what is installed.
cd "$here/crates/python"
export PYTHONDONTWRITEBYTECODE=1 WARMSET="$warmset"
# The status is kept in a file: that of a pipe is the status of its last command.
{
    status=0
    "$bin/python" -m pytest --import-mode=importlib -rsfE --no-fold-skipped --color=no 2>&1 ||
        status=$?
    echo "$status" >"$out/status"
} | tee "$out/pytest.log"
sed -n -e 's/^SKIPPED \(.*\) - Skipped: /SKIPPED \1: /' -e 's/^SKIPPED /python: not run: /p' \
    "$out/pytest.log"
exit "$(cat "$out/status")"
