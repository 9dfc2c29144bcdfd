#!/bin/sh
# Installs the package in a fresh Debian 12 of its own, as root: a directory that debootstrap fills.
# There the command judges a set, its manual page is where it is looked for, zsh and fish find its
# completions, a program in C is compiled and started as docs/programs.md says; then it is removed,
# and nothing is left of it.
# Usage: sh packages/try_deb.sh [PACKAGE]
set -eu

package=${1:-$(ls target/debian/*.deb)}
mirror=${MIRROR:-http://deb.debian.org/debian}
root=$(mktemp -d "${TMPDIR:-/tmp}/warmset-deb.XXXXXX")
trap 'rm -rf "$root"' EXIT
command -v debootstrap >/dev/null || { echo "no debootstrap: apt install debootstrap" >&2; exit 2; }

debootstrap --variant=minbase bookworm "$root" "$mirror"
cp "$package" "$root/warmset.deb"
cp -r examples "$root/examples"
cat >"$root/try.sh" <<'TRY'
set -eu
export DEBIAN_FRONTEND=noninteractive
apt-get update
apt-get install -y --no-install-recommends /warmset.deb
warmset --version
warmset check /examples/control.toml -m 2 --policy p-edf --certificate proof.json
warmset-verify proof.json
rm proof.json
test -e /usr/share/man/man1/warmset-check.1.gz
test -e /usr/share/bash-completion/completions/warmset
apt-get install -y --no-install-recommends zsh fish
zsh -fc "autoload -U compinit && compinit -D && whence -v _warmset" | grep "autoload shell function"
fish -c "complete -C 'warmset che'" | grep check
test -e /usr/share/warmset/schema/check.json
apt-get install -y --no-install-recommends gcc libc6-dev pkg-config
cc -O2 -o counter /examples/counter.c $(pkg-config --cflags --libs warmset)
# It was loaded with its library, and says that it cannot join outside of a run.
if ./counter >said 2>&1; then exit 1; fi
grep "cannot join" said
apt-get purge -y warmset
find / -xdev -path /proc -prune -o -path /examples -prune -o -name '*warmset*' -print |
    grep -v -e '^/warmset.deb$' -e /var/log -e /var/cache -e /proc && exit 1
echo "installed, tried, removed: nothing is left"
TRY
chroot "$root" sh /try.sh
