#!/bin/sh
# Fetches what a guest with sched_ext is made of, and installs none of it: a kernel of Debian, QEMU,
# clang and bpftool are unpacked below a directory, and are started by their own loader.
# Usage: sh crates/kernel/guest/fetch.sh [DIRECTORY]; MIRROR names another mirror of Debian.
#
# Each package is the one that `pins` names: part, name, version, SHA-256. A mirror drops a version
# when a newer one comes. UNPINNED=yes then takes the versions that the mirror has, KERNEL names
# another kernel, and DIRECTORY/pins says what was fetched: as a new `pins` it pins that.
# Exit status 3: something that this needs is not here; the last line says what.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
into=${1:-target/kernel}
pins="$here/pins"
# The compiler and the emulator are of the newer release. The static libraries go into the loader;
# those of the older release link on both, and cyclictest of the older release runs on both.
suite=trixie
old_suite=bookworm

missing() {
    echo "could not fetch a guest: $1" >&2
    exit 3
}

stamp="$into/fetched"
wanted="pinned $(cksum <"$pins")"
[ "${UNPINNED:-}" = yes ] && wanted="not pinned ${KERNEL:-}"
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
    rm -f "$root"/cache/archives/*.deb
}

# download PACKAGE…: of the versions that are named.
download() {
    (cd "$root/cache/archives" && apt-get -qq download "$@") && return
    gone=
    for package in "$@"; do
        apt-get -qq --print-uris download "$package" >/dev/null 2>&1 || gone="$gone $package"
    done
    [ -z "$gone" ] || missing "the mirror has these no more:$gone; name as MIRROR one that has \
them, or give UNPINNED=yes to take what is there instead"
    missing "not all packages come: is there a network?"
}

# part NAME: fetches the packages of this part as they are pinned, and unpacks them.
part() {
    # shellcheck disable=SC2046 # names of packages
    download $(awk -v part="$1" '$1 == part { print $2 "=" $3 }' "$pins")
    for package in "$root"/cache/archives/*.deb; do
        sum=$(sha256sum <"$package" | cut -d' ' -f1)
        grep -q "^$1 .* $sum\$" "$pins" ||
            missing "$(basename "$package") is not the one that is pinned: its SHA-256 is $sum"
    done
    unpack "$1"
}

# unpack NAME: every package that was fetched last, into the directory of this part.
unpack() {
    for package in "$root"/cache/archives/*.deb; do
        dpkg-deb -x "$package" "$into/$1"
        echo "$1 $(dpkg-deb -W --showformat '${Package} ${Version}' "$package")" \
            "$(sha256sum <"$package" | cut -d' ' -f1)" >>"$into/pins"
    done
    rm -f "$root"/cache/archives/*.deb
}

rm -rf "$into/tools" "$into/libraries" "$into/cyclictest" "$into/linux" "$into/pins"
if [ "${UNPINNED:-}" != yes ]; then
    apt_of "$suite" "$suite $suite-backports"
    part linux
    part tools
    apt_of "$old_suite" "$old_suite"
    part libraries
    part cyclictest
else
    echo "fetching what the mirror has, which need not be what was tried" >&2
    apt_of "$suite" "$suite $suite-backports"
    kernel=${KERNEL:-$(awk '$1 == "linux" { print $2 }' "$pins")}
    apt-cache show "$kernel" >/dev/null 2>&1 || missing "the mirror has no $kernel; name as KERNEL \
one of these: $(apt-cache pkgnames linux-binary- | grep -e '-cloud-amd64$' | sort -V | tr '\n' ' ')"
    download "$kernel"
    unpack linux
    apt-get -qq -y --download-only install qemu-system-x86 clang-19 bpftool >/dev/null ||
        missing "not all tools come: is there a network?"
    # Its headers alone.
    download libbpf-dev
    unpack tools
    apt_of "$old_suite" "$old_suite"
    download libelf-dev zlib1g-dev
    unpack libraries
    download rt-tests libnuma1
    unpack cyclictest
fi
echo "$wanted" >"$stamp"
