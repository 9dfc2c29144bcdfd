#!/bin/sh
# Many tasks and many jobs for real: 200 tasks on two processors, then a million jobs of 100 tasks.
# No rule is broken, no event is lost, memory does not grow with the number of jobs, and the trace
# takes the bytes that its events do.
# Usage: many.sh WARMSET [TASKS-TIME [JOBS-TIME]]. Needs two processors and the right to real-time
#     priorities.
set -eu
warmset=$1
long=${2:-30s}
longer=${3:-101s}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# Each takes half of a hundredth of a processor: all of them half of two.
awk 'BEGIN { for (n = 0; n < 200; n++) { p = 50 + n; printf "[[task]]\nwcet = \"%dus\"\nperiod = \"%dms\"\n", p * 5, p } }' > "$dir/tasks.toml"
# Ten thousand jobs a second. What a deadline misses here says little: soft.
awk 'BEGIN { for (n = 0; n < 100; n++) printf "[[task]]\nwcet = \"50us\"\nperiod = \"10ms\"\nphase = \"%dus\"\nsoft = true\n", n * 100 }' > "$dir/jobs.toml"

# run NAME TIME OPTION...
run() {
    name=$1
    time=$2
    shift 2
    "$warmset" run "$dir/$name.toml" --cpus 0-1 --for "$time" --tolerance 5ms --trace "$dir/$name.wtrace" \
        --format json -o "$dir/$name.json" "$@" 2> "$dir/$name.log" &
    run=$!
    first= last=
    while kill -0 $run 2> /dev/null; do
        sleep 2
        # Once it writes the trace it runs.
        [ -s "$dir/$name.wtrace" ] || continue
        now=$(sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$run/status" 2> /dev/null || true)
        [ -n "$now" ] || continue
        [ -n "$first" ] || first=$now
        last=$now
    done
    status=0
    wait $run || status=$?
    [ $status -le 1 ] || { cat "$dir/$name.log" >&2; exit $status; }
    grep -q '"clean": true' "$dir/$name.json" || { echo "$name: a rule is broken" >&2; exit 1; }
    ! grep -q '"lost_events": [1-9]' "$dir/$name.json" || { echo "$name: events were lost" >&2; exit 1; }
    if [ -n "$first" ] && [ "$last" -gt $((first + 16384)) ]; then
        echo "$name: memory grew from $first to $last KiB" >&2
        exit 1
    fi
    # The sums stand last.
    sum() { awk -F '[:,]' -v key="\"$1\"" '$1 ~ key { n = $2 } END { print n + 0 }' "$dir/$name.json"; }
    total() { awk -F '[:,]' -v key="\"$1\"" '$1 ~ key { n += $2 } END { print n + 0 }' "$dir/$name.json"; }
    echo "$name: $(grep -c '^\[\[task' "$dir/$name.toml") tasks, $time: $(total unfinished) unfinished, $(sum decisions) decisions, $(sum gaps_over_5ms) gaps, no rule broken, no event lost"
    echo "$name: memory from ${first:-?} to ${last:-?} KiB, trace of $(sum events) events in $(wc -c < "$dir/$name.wtrace") bytes"
    grep -E '^  "(jobs|misses|preemptions|migrations)":' "$dir/$name.json" | tr -d ' ,"' | tr '\n' ' '
    echo
}

run tasks "$long" --policy g-edf
run jobs "$longer" --policy p-edf
