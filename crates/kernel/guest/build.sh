#!/bin/sh
# Builds the programs of the guest, with the engine in the kernel: its init, and with `all` the
# command, too. What they share with the rest of the workspace is built once: hence `--workspace`,
# by which features are the same.
# Usage: sh crates/kernel/guest/build.sh DIRECTORY init|all; CARGO names another cargo. The last
# line is the directory of the programs.
set -eu
fetched=$(cd "$1" && pwd)
case $2 in
init) set -- --bin warmset-guest --features warmset-guest/init ;;
*) set -- --bin warmset-guest --bin warmset --features warmset-guest/init,warmset/in-kernel ;;
esac
libraries="$fetched/libraries/usr"
LIBBPF_SYS_EXTRA_CFLAGS="-I$libraries/include -I$libraries/include/x86_64-linux-gnu"
LIBBPF_SYS_LIBRARY_PATH="$libraries/lib/x86_64-linux-gnu"
export LIBBPF_SYS_EXTRA_CFLAGS LIBBPF_SYS_LIBRARY_PATH
${CARGO:-cargo} build --locked --workspace "$@"
echo "${CARGO_TARGET_DIR:-target}/debug"
