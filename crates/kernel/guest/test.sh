#!/bin/sh
# Tries the engine in the kernel in guests: fetches a kernel and tools, compiles the program anew and
# compares it with the one that is in the source, boots a guest, runs cases, calls of the command and
# rounds of faults there, and judges the traces that come out.
# Usage: sh crates/kernel/guest/test.sh [DIRECTORY] [full|short|CASES]; CARGO names another cargo,
# FAULTS other rounds than usual, `COUNT SEED [FIRST TIMES]`; with a file of cases, which may be
# empty, CALLS one call of the command and how often, such as `run-best-effort 40`. `full`, which
# is meant where nothing is said, compares five sets of each policy with the simulator and boots
# the 24 processors of 002 and 003, too. Where something is missing it says `kernel: not run` with
# the reason, and ends with status 0.
set -eu
here=$(dirname "$0")
fetched=${1:-target/kernel}
which=${2:-full}
program="$here/../src/bpf/main.bpf.o"

step() { echo "kernel: $(date +%T) $*"; }

step "fetching a kernel and tools into $fetched"
mkdir -p "$fetched"
# `make test` has no time for a slow network: there it is limited.
limit=
[ -n "${WARMSET_FETCH_SECONDS:-}" ] && limit="timeout $WARMSET_FETCH_SECONDS"
# shellcheck disable=SC2086 # a command, or nothing
$limit sh "$here/fetch.sh" "$fetched" 2>"$fetched/fetch.log" || {
    status=$?
    reason=$(tail -1 "$fetched/fetch.log")
    [ "$status" -eq 124 ] && [ -n "$limit" ] && status=3 &&
        reason="a kernel and tools do not come within $WARMSET_FETCH_SECONDS s: make test-kernel"
    [ "$status" -eq 3 ] && { echo "kernel: not run: $reason"; exit 0; }
    cat "$fetched/fetch.log"
    exit "$status"
}
step "compiling the program for the kernel"
sh "$here/bpf.sh" "$fetched" "$fetched/main.bpf.o"
if ! cmp "$fetched/main.bpf.o" "$program" || ! cmp "$fetched/main.bpf.o.made" "$program.made"; then
    echo "kernel: $program is not what its source gives: make kernel-program"
    exit 1
fi
step "building what runs in the guest"
# The command is called in the full form alone: the others need not wait until it is built again.
programs=warmset-guest
what=init
case $which in
full) what=all ;;
short) ;;
*) [ -z "${CALLS:-}" ] || what=all ;;
esac
[ "$what" = all ] && programs="$programs warmset"
sh "$here/build.sh" "$fetched" "$what" >"$fetched/build.log" 2>&1 ||
    { cat "$fetched/build.log"; exit 1; }
built=$(tail -1 "$fetched/build.log")
guest="$built/warmset-guest"
set --
for program in $programs; do
    # The libraries that it is linked with, where it looks for them.
    for library in $(ldd "$built/$program" | grep -o '/[^ ]*' | sort -u); do
        set -- "$@" "$library"
    done
    cp "$built/$program" "$fetched/$program"
    strip "$fetched/$program" 2>/dev/null ||
        step "no strip here: the guest takes longer to boot"
done
mv "$fetched/warmset-guest" "$fetched/init"
# For cases with `peers=yes`: a fetched program, which has one fetched library.
peer="$fetched/cyclictest/usr"
numa=lib/x86_64-linux-gnu/libnuma.so.1
for library in $(ldd "$peer/bin/cyclictest" | grep -o '/[^ ]*' | grep -v libnuma | sort -u); do
    set -- "$@" "$library"
done
libraries=$(printf '%s\n' "$@" | sort -u)
set -- "init=$fetched/init"
for library in $libraries; do
    set -- "$@" "$library=$library"
done
set -- "$@" "cyclictest=$peer/bin/cyclictest" "$numa=$peer/$numa"

# try NAME CASES FAULTS KIND FILE…: boots a guest for these cases and judges them. A guest that does
# not come to its end brings out too little, which is judged, too.
status=0
try() {
    name=$1 cases=$2 faults=$3 kind=$4
    shift 4
    if [ -n "$faults" ]; then
        echo "$faults" >"$fetched/faults"
        set -- "$@" "faults=$fetched/faults"
    fi
    "$guest" pack "$cases" "$fetched/$name.initramfs" "$@"
    rm -rf "$fetched/$name.port" "$fetched/$name.console" "$fetched/$name.traces"
    step "booting the guest of $name"
    sh "$here/boot.sh" "$fetched" "$fetched/$name.initramfs" "$fetched/$name.port" $kind \
        >"$fetched/$name.console" 2>&1 || step "the guest did not come to its end"
    tr -d '\r' <"$fetched/$name.console" | grep '^guest:' || tail -40 "$fetched/$name.console"
    step "judging"
    "$guest" judge "$fetched/$name.port" "$fetched/$name.traces" "$cases" || status=1
}

case $which in
full)
    try four "$here/cases" "${FAULTS:-45 1}" "" "$@" "warmset=$fetched/warmset"
    try sim "$here/cases-sim" "" "" "$@"
    try xeon "$here/cases-xeon" "" xeon "$@"
    ;;
short) try short "$here/cases-short" "${FAULTS:-15 1}" "" "$@" ;;
*)
    if [ "$what" = all ]; then
        echo "$CALLS" >"$fetched/calls"
        set -- "$@" "warmset=$fetched/warmset" "calls=$fetched/calls"
    fi
    try four "$which" "${FAULTS:-}" "" "$@"
    ;;
esac
[ "$status" -eq 0 ] && step "all is well" || step "something is wrong"
exit "$status"
