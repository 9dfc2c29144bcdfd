#!/bin/sh
# Runs random sets of each policy in guests, 10 s each, and judges them: hours, if all is asked for.
# What has passed is noted and not done again, until the program for the kernel changes; so it can
# be interrupted and resumed, and done in parts. A guest is booted for up to six sets.
# Usage: sh crates/kernel/guest/sets.sh [DIRECTORY] [FIRST LAST [POLICY…]]: the seeds, the policies.
# It needs what test.sh has made in that directory.
set -eu
here=$(dirname "$0")
fetched=${1:-target/kernel}
first=${2:-1}
last=${3:-20}
if [ "$#" -gt 3 ]; then
    shift 3
else
    set -- p-edf g-edf c-edf:size=2 p-rm p-fp:dm g-fp:dm g-fifo edf-fm edf-wm nps-f c-nps-f \
        pd2 ca-edf:cache=8MiB
fi
guest="$fetched/init"
[ -x "$guest" ] || { echo "kernel: no $guest: make test-kernel CASES=short first"; exit 1; }
notes="$fetched/sets-$(cksum <"$here/../src/bpf/main.bpf.o" | cut -d' ' -f1)"
mkdir -p "$notes"
export WARMSET_GUEST_SECONDS="${WARMSET_GUEST_SECONDS:-3600}"
together=6

# The libraries of the guest's programs, where they look for them.
files="init=$guest"
for library in $(ldd "$guest" | grep -o '/[^ ]*' | sort -u); do
    files="$files $library=$library"
done

status=0
# Boots a guest for the cases that are written down, if there are any, and notes which have passed.
boot() {
    [ -s "$notes/cases" ] || return 0
    # shellcheck disable=SC2086 # several files
    "$guest" pack "$notes/cases" "$notes/initramfs" $files
    rm -rf "$notes/port" "$notes/traces"
    sh "$here/boot.sh" "$fetched" "$notes/initramfs" "$notes/port" >"$notes/console" 2>&1 ||
        echo "kernel: the guest did not come to its end"
    judged=0
    "$guest" judge "$notes/port" "$notes/traces" "$notes/cases" >"$notes/judged" 2>&1 || judged=1
    for passed in "$notes"/traces/set-*.passed; do
        [ -e "$passed" ] || continue
        name=$(basename "$passed" .passed)
        cat "$passed"
        echo
        mv "$passed" "$notes/${name#set-}"
    done
    # What is wrong is said in the words of the judge, and its traces are kept.
    if [ "$judged" -ne 0 ]; then
        cat "$notes/judged"
        status=1
        kept="$notes/failed.$(date +%s)"
        mv "$notes/traces" "$kept"
        cp "$notes/console" "$notes/cases" "$kept"
    fi
    : >"$notes/cases"
}

: >"$notes/cases"
for seed in $(seq "$first" "$last"); do
    for policy in "$@"; do
        name=$(echo "$policy" | tr ':=' '--')
        [ -e "$notes/$name-$seed" ] && continue
        case $policy in
        # A quantum is a decision of a thread, and a guest carries not so many tasks.
        pd2) set="random:6:2:$seed" ;;
        ca-edf*) set="random:6:2:$seed wss=3MiB" ;;
        *) set="random:9:2.4:$seed" ;;
        esac
        echo "set-$name-$seed $policy 10s $set" >>"$notes/cases"
        [ "$(wc -l <"$notes/cases")" -lt "$together" ] || boot
    done
done
boot
echo "kernel: of $(ls "$notes" | grep -c -- '-[0-9]*$') sets in all no rule was broken"
exit "$status"
