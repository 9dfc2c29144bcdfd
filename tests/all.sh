#!/bin/sh
# All that must hold before a change lands: every part runs, whatever failed before it, and the end
# tells what failed and which tests could not run, with the reason. Exit status 1 when anything
# failed.
# Usage: sh tests/all.sh [DIRECTORY FOR LOGS]; CARGO names another cargo.
set -u

cargo=${CARGO:-cargo}
logs=${1:-target/test-logs}
rm -rf "$logs"
mkdir -p "$logs" || exit 2
: >"$logs/failed"

# part NAME COMMAND…: runs it, shows what it says, and keeps that.
part() {
    name=$1
    shift
    echo "== $name: $*"
    begun=$(date +%s)
    { "$@" 2>&1; echo $? >"$logs/$name.status"; } | tee "$logs/$name.log"
    echo "== $name took $(($(date +%s) - begun)) s"
    if [ "$(cat "$logs/$name.status")" -ne 0 ]; then
        echo "$name: $*" >>"$logs/failed"
    fi
}

# Modules that a macro declares are named: they are not found otherwise.
part fmt "$cargo" fmt --check -- crates/policy/src/catalog/*.rs
part clippy "$cargo" clippy --locked --workspace --all-targets -- -D warnings
part unit "$cargo" test --locked --workspace --no-fail-fast
if "$cargo" test --locked --workspace --no-run >"$logs/build.log" 2>&1; then
    part smoke sh tests/smoke.sh target/debug/warmset
    # Behind what needs the machine for itself: a guest's time is not that of this machine, and what
    # runs beside it changes nothing there. It builds the guest's program with a feature, which
    # replaces the one without; the other parts need what is built already.
    part kernel env FAULTS= WARMSET_FETCH_SECONDS=180 sh crates/kernel/guest/test.sh target/kernel \
        short >"$logs/kernel.shown" 2>&1 &
    part static sh tests/static.sh target/debug/warmset
    part explorer sh tests/explorer.sh target/debug/warmset
    part python sh tests/python.sh target/debug/warmset target/debug/deps/lib_native.so
    wait
    cat "$logs/kernel.shown"
else
    echo "smoke: the command did not compile" >>"$logs/failed"
fi

sh tests/summary.sh "$logs"
