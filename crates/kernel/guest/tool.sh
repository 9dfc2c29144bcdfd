#!/bin/sh
# Starts one of the fetched programs by its own loader, with its own libraries.
# Usage: sh crates/kernel/guest/tool.sh DIRECTORY PROGRAM ARGUMENTS…
set -eu
tools="$1/tools/usr"
program=$2
shift 2
libraries="$tools/lib/x86_64-linux-gnu:$tools/lib/x86_64-linux-gnu/pulseaudio:$tools/lib/llvm-19/lib"
case $program in
clang) path=lib/llvm-19/bin/clang ;;
bpftool) path=sbin/bpftool ;;
*) path=bin/$program ;;
esac
exec "$tools/lib64/ld-linux-x86-64.so.2" --library-path "$libraries" "$tools/$path" "$@"
