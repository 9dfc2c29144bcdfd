#!/bin/sh
# Do the static binaries of packages/static.sh give the same bytes as the command, and need nothing
# beside themselves? The one for aarch64 is run by qemu-user where the machine is another one.
# Usage: sh tests/static.sh WARMSET [DIRECTORY OF BINARIES]. For each that cannot be tried, and for
# one that is older than the sources, it says `static: not run` with the reason.
set -eu

warmset=$1
binaries=${2:-target/static}
# Whatever profile is in use on this machine.
export WARMSET_PROFILE=none
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
differ=0
asked=0

# same ARGUMENT…: asks both; answers, errors, exit statuses and written files have to be equal. Both
# write into a directory of the same name.
same() {
    asked=$((asked + 1))
    for side in dynamic static; do
        rm -rf "$dir/work"
        mkdir "$dir/work"
        cp examples/control.toml "$dir/work"
        status=0
        command=$plain
        [ $side = static ] && command=$dir/start
        (cd "$dir/work" && "$command" "$@") >"$dir/out" 2>"$dir/err" </dev/null || status=$?
        rm -rf "${dir:?}/$side"
        mkdir "$dir/$side"
        mv "$dir/work" "$dir/out" "$dir/err" "$dir/$side"
        echo "$status" >"$dir/$side/status"
    done
    # A question that could not be answered compares nothing.
    if [ "$(cat "$dir/dynamic/status")" = 2 ]; then
        echo "static: warmset $*: $(cat "$dir/dynamic/err")" >&2
        exit 1
    fi
    if ! diff -r "$dir/dynamic" "$dir/static" >"$dir/diff" 2>&1; then
        differ=$((differ + 1))
        echo "static: $machine: DIFFERENT: warmset $*" >&2
        head -5 "$dir/diff" >&2
    fi
}

tried() {
    machine=$1
    binary=$(realpath "$binaries/$machine/warmset" 2>/dev/null) || binary=
    if [ ! -x "$binary" ]; then
        echo "static: not run: there is no static binary for $machine: sh packages/static.sh $machine"
        return
    fi
    if find crates docs/schema Cargo.toml Cargo.lock -newer "$binary" | grep -q .; then
        echo "static: not run: the static binary for $machine is older than the sources"
        return
    fi
    if LC_ALL=C readelf -dW "$binary" | grep NEEDED; then
        echo "static: $machine: it asks for a library" >&2
        differ=$((differ + 1))
    fi
    start=
    if [ "$machine" != "$(uname -m)" ]; then
        start=$(command -v "qemu-$machine" || command -v "qemu-$machine-static") || {
            echo "static: not run: there is no qemu-$machine to start the binary: apt install qemu-user"
            return
        }
    fi
    printf '#!/bin/sh\nexec %s "%s" "$@"\n' "$start" "$binary" >"$dir/start"
    chmod +x "$dir/start"
    before=$differ
    asked=0
    same --version
    same check control.toml -m 2 --format json
    same check control.toml -m 2 --policy p-edf,g-edf,c-edf:size=2,pd2 --cpmd 100us --soft --explain
    same check control.toml -m 2 --policy p-edf --certificate proof.json
    same generate --tasks 8 --total 3 -m 4 --seed 3 --sets 50 -o sets.jsonl
    for policy in p-edf g-edf p-fp pd2; do
        same simulate control.toml -m 2 --policy "$policy" --format json --trace run.wtrace
    done
    same study run ospert10-fig5 --sets 2 -o fig5
    same schema check
    if [ "$differ" = "$before" ]; then
        echo "static: $machine: $asked questions, each answered with the same bytes"
    fi
}

plain=$(realpath "$warmset")
tried x86_64
tried aarch64
[ "$differ" = 0 ]
