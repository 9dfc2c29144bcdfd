#!/bin/sh
# Fetches what a guest with sched_ext is made of, and installs none of it: a kernel of Debian, QEMU,
# clang and bpftool are unpacked below a directory, and are started by their own loader.
# Usage: sh crates/kernel/guest/fetch.sh [DIRECTORY]; MIRROR names another mirror of Debian.
# Exit status 3: something that this needs is not here; the last line says what.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
into=${1:-target/kernel}
# A stable release: its versions change with point releases only. The kernel is one exactly.
suite=trixie
kernel=linux-binary-7.0.13+deb13-cloud-amd64
kernel_sha256=7e2f91866f9d857e5b08fcd915491b4cff79fbe51cdcb081b42658612074a552
tools="qemu-system-x86 clang-19 bpftool"
# Its headers alone.
headers=libbpf-dev
# Its static libraries go into the loader; those of the older release link on both.
old_suite=bookworm
libraries="libelf-dev zlib1g-dev"

missing() {
    echo "could not fetch a guest: $1" >&2
    exit 3
}

stamp="$into/fetched"
wanted="$suite $kernel $kernel_sha256 $tools $headers $old_suite $libraries"
if [ -e "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ]; then exit 0; fi
[ "$(uname -m)" = x86_64 ] || missing "this machine is no x86-64"
for program in apt-get dpkg-deb sha256sum; do
    command -v "$program" >/dev/null || missing "no $program here; it comes with Debian and Ubuntu"
done
keys=/usr/share/keyrings/debian-archive-keyring.gpg
[ -e "$keys" ] || missing "no keys of Debian ($keys): apt install debian-archive-keyring"
mirror=${MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
    grep '/debian/$' | head -1)}
[ -n "$mirror" ] || missing "no mirror of Debian is known here; name one as MIRROR"

rm -f "$stamp"
mkdir -p "$into"
into=$(cd "$into" && pwd)

. "$here/../../../packages/apart.sh"

# apt_of NAME SUITES: all of it in directories of its own.
apt_of() {
    # shellcheck disable=SC2086 # names of suites
    apt_apart "$into/apt/$1" amd64 "$mirror" "$keys" $2 ||
        missing "the package lists of $1 do not come: is there a network?"
}

# unpack DIRECTORY: every package that was fetched last.
unpack() {
    for package in "$root"/cache/archives/*.deb; do
        dpkg-deb -x "$package" "$1"
    done
    rm -f "$root"/cache/archives/*.deb
}

rm -rf "$into/tools" "$into/libraries" "$into/linux"
apt_of "$suite" "$suite $suite-backports"
(cd "$root/cache/archives" && apt-get -qq download "$kernel") || missing "no package $kernel comes"
echo "$kernel_sha256  $(ls "$root"/cache/archives/$kernel*.deb)" | sha256sum --check --quiet ||
    missing "the package $kernel is not the one that was tried"
unpack "$into/linux"
# shellcheck disable=SC2086 # names of packages
apt-get -qq -y --download-only install $tools >/dev/null || missing "not all of $tools comes"
(cd "$root/cache/archives" && apt-get -qq download "$headers") || missing "no package $headers comes"
unpack "$into/tools"
apt_of "$old_suite" "$old_suite"
# shellcheck disable=SC2086
(cd "$root/cache/archives" && apt-get -qq download $libraries) || missing "not all of $libraries comes"
unpack "$into/libraries"
echo "$wanted" >"$stamp"
