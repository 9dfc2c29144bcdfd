#!/bin/sh
# Compiles the program for the kernel with the fetched clang. The same source and the same tools
# give the same bytes wherever it is done: no path of the machine is in them.
# Usage: sh crates/kernel/guest/bpf.sh DIRECTORY OUTPUT; OUTPUT.made, which goes beside it, says by
# which compiler it was made, from which sources, and what came out. A test of the crate compares
# that with the sources.
set -eu
fetched=$(cd "$1" && pwd)
output=$2
here=$(dirname "$0")
whole=$(mktemp "${TMPDIR:-/tmp}/warmset-bpf.XXXXXX")
trap 'rm -f "$whole"' EXIT
(cd "$here/../src/bpf" && sh "../../guest/tool.sh" "$fetched" clang -g -O2 -Wall -Werror \
    -Wno-unused-function -target bpf -mcpu=v3 -D__TARGET_ARCH_x86 \
    -resource-dir "$fetched/tools/usr/lib/llvm-19/lib/clang/19" -nostdinc -I . \
    -isystem "$fetched/tools/usr/include" \
    -fdebug-compilation-dir=. -ffile-prefix-map="$fetched"=fetched -c main.bpf.c -o "$whole")
# Leaves out what only a debugger reads, and each type that is there twice.
sh "$here/tool.sh" "$fetched" bpftool gen object "$output" "$whole"
# `sha256sum --check` reads these lines.
{
    sh "$here/tool.sh" "$fetched" clang --version | sed -n '1s/^/# /p'
    (cd "$here/../src/bpf" && sha256sum *.c *.h)
    sha256sum <"$output" | sed 's/-$/main.bpf.o/'
} >"$output.made"
