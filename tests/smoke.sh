#!/bin/sh
# A smoke run: each main command once, on real input, with its exit status. Asserts results, never times.
# Usage: sh tests/smoke.sh PATH-TO-WARMSET
set -eu

warmset=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# expect STATUS COMMAND…: runs it and fails unless it exits so.
expect() {
    wanted=$1
    shift
    status=0
    "$@" >"$dir/out" 2>"$dir/err" || status=$?
    if [ "$status" -ne "$wanted" ]; then
        echo "smoke: exit status $status instead of $wanted: $*" >&2
        cat "$dir/out" "$dir/err" >&2
        exit 1
    fi
    echo "smoke: ok: $*"
}

expect 0 "$warmset" --version
expect 2 "$warmset" no-such-verb
echo "smoke: passed"
