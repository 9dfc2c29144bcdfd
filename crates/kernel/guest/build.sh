#!/bin/sh
# Builds the program of the guest: static, with the engine in the kernel.
# Usage: sh crates/kernel/guest/build.sh DIRECTORY; CARGO names another cargo.
set -eu
fetched=$(cd "$1" && pwd)
libraries="$fetched/libraries/usr"
LIBBPF_SYS_EXTRA_CFLAGS="-I$libraries/include -I$libraries/include/x86_64-linux-gnu"
LIBBPF_SYS_LIBRARY_PATH="$libraries/lib/x86_64-linux-gnu"
RUSTFLAGS="-C target-feature=+crt-static"
export LIBBPF_SYS_EXTRA_CFLAGS LIBBPF_SYS_LIBRARY_PATH RUSTFLAGS
# A target of its own: what is built with other flags is kept apart. With `--target`, programs that
# only build (macros, build scripts) stay dynamic.
${CARGO:-cargo} build -p warmset-guest --features init \
    --target x86_64-unknown-linux-gnu --target-dir "$fetched/build"
