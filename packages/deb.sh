#!/bin/sh
# A package for Debian 12: the command with manual pages and completions, the
# libraries for C and C++ with headers, the documentation. cargo-deb is built into target/tools the
# first time.
# Usage: sh packages/deb.sh; CARGO names another cargo. The package is in target/debian.
set -eu

cargo=${CARGO:-cargo}
version=3.8.0
tools=$PWD/target/tools
if [ "$("$tools/bin/cargo-deb" --version 2>/dev/null)" != "$version" ]; then
    "$cargo" install cargo-deb --version "$version" --locked --root "$tools"
fi

rm -rf target/deb target/debian
make --no-print-directory install PREFIX=/usr DESTDIR="$PWD/target/deb" CARGO="$cargo" \
    ZSH_FUNCTIONS=vendor-completions
"$cargo" deb --version >/dev/null 2>&1 || PATH="$tools/bin:$PATH"
PATH="$PATH" "$cargo" deb --package warmset --no-build --no-strip --output target/debian/
ls -l target/debian/*.deb
