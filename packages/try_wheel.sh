#!/bin/sh
# Has the Python of another machine load the wheel for it, under qemu-user: Debian's Python for that
# machine is unpacked below a directory, and is not installed. It judges a set, draws sets and judges
# them as columns; what it says is what the Python package says here.
# Usage: sh packages/try_wheel.sh [MACHINE] [WHEEL]; MIRROR names another mirror of Debian, OWN a
# Python here that has the package.
set -eu

machine=${1:-aarch64}
wheel=${2:-$(ls target/wheels-$machine/*.whl)}
own=${OWN:-target/python/venv/bin/python}
missing() { echo "the wheel cannot be tried: $1" >&2; exit 2; }
case $machine in
aarch64) debian=arm64 ;;
*) missing "\`$machine\` is no machine that has a wheel: aarch64 has one" ;;
esac
qemu=$(command -v "qemu-$machine" || command -v "qemu-$machine-static") ||
    missing "no qemu-$machine here: apt install qemu-user"
"$own" -c 'import warmset' 2>/dev/null || missing "$own has no package to compare with: make test-python"
keys=/usr/share/keyrings/debian-archive-keyring.gpg
[ -e "$keys" ] || missing "no keys of Debian ($keys): apt install debian-archive-keyring"

dir=$(mktemp -d "${TMPDIR:-/tmp}/warmset-wheel.XXXXXX")
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/root"
. "$(dirname "$0")/apart.sh"
apt_apart "$dir/apt" "$debian" "${MIRROR:-http://deb.debian.org/debian}" "$keys" bookworm ||
    missing "the lists of Debian's packages do not come: is there a network?"
apt-get -qq -y --download-only install python3.11 >/dev/null || missing "no Python for $debian comes"
for package in "$dir"/apt/cache/archives/*.deb; do
    dpkg-deb -x "$package" "$dir/root"
done
"$own" -m zipfile -e "$wheel" "$dir/site"

cat >"$dir/try.py" <<'TRY'
import json

import warmset as ws

judged = ws.check("examples/control.toml", m=2, policies="p-edf,g-edf")
sets = ws.generate(200, cap=2.5, m=4, seed=7)
run = ws.simulate("examples/control.toml", m=2, policy="g-edf", horizon="200ms")
print(json.dumps([str(judged), ws.check_batch(sets).to_dict(), str(run)]))
try:
    ws.generate(10, cap="much")
except ws.Error as e:
    print(e)
TRY
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE
"$own" "$dir/try.py" >"$dir/here"
PYTHONPATH="$dir/site" "$qemu" -L "$dir/root" "$dir/root/usr/bin/python3.11" "$dir/try.py" >"$dir/there"
cmp "$dir/here" "$dir/there"
echo "the Python of $machine loads $wheel, and says what it says here: $(wc -c <"$dir/there") bytes"
