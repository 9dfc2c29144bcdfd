#!/bin/sh
# What colors are worth to a program that knows nothing of them: its working set (128 KiB) beside a
# flooder on one processor, without colors and in colors of its own, half of which it fills where a
# color is 32 KiB.
# Usage: sh beside.sh [PATH-TO-WARMSET [PROCESSOR]]; needs cc and taskset.
set -eu
warmset=${1:-warmset}
processor=${2:-0}
here=$(dirname "$0")
dir=$(mktemp -d)
children=
finish() {
    for child in $children; do kill "$child" 2>/dev/null || true; done
    wait 2>/dev/null || true
    rm -rf "$dir"
}
trap finish EXIT
trap 'exit 130' INT TERM
cc -O2 -o "$dir/beside" "$here/beside.c"
"$warmset" color serve --size 96MiB --cpu "$processor" --socket "$dir/socket" 2>"$dir/log" &
children=$!
until [ -S "$dir/socket" ] && grep -q serving "$dir/log"; do
    kill -0 "$children" 2>/dev/null || { cat "$dir/log" >&2; exit 2; }
    sleep 0.2
done
grep serving "$dir/log"
last=$(($("$warmset" color list --socket "$dir/socket" | sed -n 's/^\([0-9]*\) colors.*/\1/p') - 1))
# The memory that a flooder needs at least: twice the cache.
flood=$((4 * 1024 * 1024))

one() { # one NAME FLOODER-PREFIX... : VICTIM-PREFIX...
    name=$1
    shift
    before=
    while [ "$1" != : ]; do before="$before $1"; shift; done
    shift
    flooder=
    if [ "$before" != " none" ]; then
        # The prefix is words without spaces.
        taskset -c "$processor" $before "$dir/beside" flood $flood 2>/dev/null &
        flooder=$!
        sleep 1.5
    fi
    printf '%-40s' "$name"
    taskset -c "$processor" "$@" "$dir/beside" victim 131072 400
    if [ -n "$flooder" ]; then
        pkill -P "$flooder" 2>/dev/null || true
        kill "$flooder" 2>/dev/null || true
        wait "$flooder" 2>/dev/null || true
    fi
}

exec_in="$warmset color exec --quiet --parts heap,mappings --socket $dir/socket --colors"
one "alone" none : env
one "beside a flooder" env : env
one "in colors 0-7, the flooder in the others" $exec_in "8-$last" -- : $exec_in 0-7 --
