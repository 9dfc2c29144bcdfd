#!/bin/sh
# Makes the command as one file that needs no library of the machine it is started on (musl), for
# Linux on x86-64 or on aarch64, in target/static/ARCHITECTURE. Whatever of Rust or of the linker is
# missing is named in one sentence, with status 2. The engine in the kernel is left out: it needs
# libelf.
# Usage: sh packages/static.sh [x86_64|aarch64]; CARGO names another cargo, LINKER another linker,
# PROFILE another profile of cargo than release.
set -eu

cargo=${CARGO:-cargo}
machine=${1:-x86_64}
missing() {
    echo "the static binary for $machine cannot be made: $1" >&2
    exit 2
}
cd "$(dirname "$0")/.."

case $machine in
x86_64 | aarch64) ;;
*) missing "nobody has tried another machine than x86_64 and aarch64" ;;
esac
if [ "$machine" = "$(uname -m)" ]; then
    linker=${LINKER:-cc}
    packages="gcc libc6-dev"
else
    linker=${LINKER:-$machine-linux-gnu-gcc}
    debian=$(echo "$machine" | sed -e s/x86_64/amd64/ -e s/aarch64/arm64/)
    packages="gcc-$(echo "$machine" | tr _ -)-linux-gnu libc6-dev-$debian-cross"
fi
command -v "$linker" >/dev/null ||
    missing "there is no linker $linker: apt install $packages"
[ -e "$("$linker" -print-file-name=crti.o)" ] ||
    missing "$linker has no C library to link with: apt install $packages"
# The library that `color exec` loads into programs is for the C library that those have.
for target in "$machine-unknown-linux-musl" "$machine-unknown-linux-gnu"; do
    found=$(rustc --print target-libdir --target "$target")
    [ -d "$found" ] ||
        missing "Rust has no library for $target: rustup target add $target"
done

target=$machine-unknown-linux-musl
variable=CARGO_TARGET_$(echo "$target" | tr a-z- A-Z_)_LINKER
profile=${PROFILE:-release}
env "$variable=$linker" "$cargo" rustc --profile "$profile" --locked -p warmset --bin warmset \
    --target "$target" --target-dir target/static/build -- -C strip=symbols
install -D -m 755 "target/static/build/$target/$profile/warmset" "target/static/$machine/warmset"
# A program that asks for a loader is not static.
if LC_ALL=C readelf -lW "target/static/$machine/warmset" | grep -q "^ *INTERP"; then
    echo "target/static/$machine/warmset is not static" >&2
    exit 1
fi
ls -l "target/static/$machine/warmset"
