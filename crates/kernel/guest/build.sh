#!/bin/sh
# Builds the program of the guest, with the engine in the kernel. What it shares with the rest of
# the workspace is built once: hence `--workspace`, by which features are the same.
# Usage: sh crates/kernel/guest/build.sh DIRECTORY; CARGO names another cargo. The last line is the
# program.
set -eu
fetched=$(cd "$1" && pwd)
libraries="$fetched/libraries/usr"
LIBBPF_SYS_EXTRA_CFLAGS="-I$libraries/include -I$libraries/include/x86_64-linux-gnu"
LIBBPF_SYS_LIBRARY_PATH="$libraries/lib/x86_64-linux-gnu"
export LIBBPF_SYS_EXTRA_CFLAGS LIBBPF_SYS_LIBRARY_PATH
${CARGO:-cargo} build --locked --workspace --features warmset-guest/init --bin warmset-guest
echo "${CARGO_TARGET_DIR:-target}/debug/warmset-guest"
