#!/bin/sh
# Tries the engine in the kernel in a guest: fetches a kernel and tools, compiles the program anew
# and compares it with the one that is in the source, boots the guest, runs the cases there, and
# judges the traces that come out.
# Usage: sh crates/kernel/guest/test.sh [DIRECTORY] [CASES]; CARGO names another cargo. Where
# something is missing it says `kernel: not run` with the reason, and ends with status 0.
set -eu
here=$(dirname "$0")
fetched=${1:-target/kernel}
cases=${2:-$here/cases}
program="$here/../src/bpf/main.bpf.o"

step() { echo "kernel: $(date +%T) $*"; }

step "fetching a kernel and tools into $fetched"
mkdir -p "$fetched"
sh "$here/fetch.sh" "$fetched" 2>"$fetched/fetch.log" || {
    status=$?
    reason=$(tail -1 "$fetched/fetch.log")
    [ "$status" -eq 3 ] && { echo "kernel: not run: $reason"; exit 0; }
    cat "$fetched/fetch.log"
    exit "$status"
}
step "compiling the program for the kernel"
sh "$here/bpf.sh" "$fetched" "$fetched/main.bpf.o"
if ! cmp "$fetched/main.bpf.o" "$program"; then
    echo "kernel: $program is not what its source gives: make kernel-program"
    exit 1
fi
step "building what runs in the guest"
sh "$here/build.sh" "$fetched" >"$fetched/build.log" 2>&1 || { cat "$fetched/build.log"; exit 1; }
guest=$(tail -1 "$fetched/build.log")
cp "$guest" "$fetched/init"
strip "$fetched/init" 2>/dev/null || step "no strip here: the guest takes longer to boot"
# The libraries that it is linked with, where it looks for them.
set -- "init=$fetched/init"
for library in $(ldd "$guest" | grep -o '/[^ ]*'); do
    set -- "$@" "$library=$library"
done
"$guest" pack "$cases" "$fetched/initramfs" "$@"
step "booting"
rm -f "$fetched/port" "$fetched/console"
sh "$here/boot.sh" "$fetched" "$fetched/initramfs" "$fetched/port" >"$fetched/console" 2>&1 ||
    step "the guest did not come to its end"
tr -d '\r' <"$fetched/console" | grep '^guest:' || cat "$fetched/console"
step "judging"
rm -rf "$fetched/traces"
"$guest" judge "$fetched/port" "$fetched/traces" "$cases"
step "done"
