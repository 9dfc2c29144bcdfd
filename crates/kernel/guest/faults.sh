#!/bin/sh
# Does faults to runs in guests, fifty rounds in each: an hour and more for a thousand. What has
# passed is noted and not done again, until the program for the kernel changes; so it can be
# interrupted and resumed.
# Usage: sh crates/kernel/guest/faults.sh [DIRECTORY [COUNT [SEED]]]. It needs what test.sh has made
# in that directory.
set -eu
here=$(dirname "$0")
fetched=${1:-target/kernel}
count=${2:-1000}
seed=${3:-3}
together=50
guest="$fetched/init"
[ -x "$guest" ] || { echo "kernel: no $guest: make test-kernel CASES=short first"; exit 1; }
notes="$fetched/faults-$(cksum <"$here/../src/bpf/main.bpf.o" | cut -d' ' -f1)"
mkdir -p "$notes"
export WARMSET_GUEST_SECONDS="${WARMSET_GUEST_SECONDS:-3600}"
: >"$notes/cases"

# The libraries of the guest's programs, where they look for them.
files="init=$guest faults=$notes/faults"
for library in $(ldd "$guest" | grep -o '/[^ ]*' | sort -u); do
    files="$files $library=$library"
done

status=0
for first in $(seq 0 "$together" "$((count - 1))"); do
    passed="$notes/seed-$seed-from-$first"
    [ -e "$passed" ] && continue
    echo "$together $seed $first" >"$notes/faults"
    # shellcheck disable=SC2086 # several files
    "$guest" pack "$notes/cases" "$notes/initramfs" $files
    rm -rf "$notes/port" "$notes/traces"
    sh "$here/boot.sh" "$fetched" "$notes/initramfs" "$notes/port" >"$notes/console" 2>&1 ||
        echo "kernel: the guest did not come to its end"
    # Without cases all that is judged are the rounds, and each has to be there.
    if "$guest" judge "$notes/port" "$notes/traces" "$notes/cases" >"$notes/judged" 2>&1 &&
        grep -q "^$together: rounds of faults, 0 of them bad" "$notes/judged"; then
        cp "$notes/traces/faults.result" "$passed"
        echo "kernel: $together rounds of seed $seed from $first on are well"
    else
        cat "$notes/judged"
        cp "$notes/console" "$notes/failed.$seed-$first"
        status=1
    fi
done
echo "kernel: $(cat "$notes"/seed-* 2>/dev/null | grep -c ' well ') rounds in all are well"
exit "$status"
