#!/bin/sh
# Do two builds of the command give the same answers, byte for byte?
#
# Usage: same_answers.sh BEFORE AFTER [SETS [SEED [DIRECTORY]]]   (200 sets a shape, seed 1, a
#     directory that is removed)
#
# BEFORE and AFTER are two binaries, such as the one of the last release and target/debug/warmset.
# Of each of six shapes (utilizations, periods, deadlines, processors) so many sets are drawn by
# BEFORE, and both are asked:
#   every set      check --batch with all tests, with and without --grid
#   every set      simulate --batch under every policy that BEFORE and AFTER both have, for 200 ms
#   each tenth     check --format json and as a table under every policy, hard and soft, without
#                  costs, with --cpmd, with a built-in profile, and with one that has overheads
#   each 20th      simulate --trace under every policy, without costs and with a profile: the trace
#   once           two studies of two sets a point, hard and soft: tables and figures
# Exit status: 0 all the same; 1 a difference, which is shown with its question and kept in
# DIRECTORY.
set -eu
# Whatever profile is in use on this machine.
export WARMSET_PROFILE=none
before=$1
after=$2
sets=${3:-200}
seed=${4:-1}
if [ $# -ge 5 ]; then
    dir=$5
    mkdir -p "$dir"
else
    dir=$(mktemp -d)
    trap 'rm -rf "$dir"' EXIT
fi
# Forms with parameters that each verb takes; global policies ignore who is where.
judged="p-edf,g-edf,c-edf:l2,c-edf:size=2,p-rm,p-fp,p-fp:dm,p-fp:rm,g-fp,g-fp:dm,g-fp:rm"
judged="$judged,edf-fm,edf-wm,nps-f,nps-f:delta=2,c-nps-f:size=2,c-nps-f:l2,pd2,ca-edf"
simulated="p-edf g-edf c-edf:size=2 p-rm p-fp p-fp:dm g-fp g-fp:dm g-edf:ties=index p-edf:quantum=1ms
    edf-fm edf-wm nps-f nps-f:delta=2 c-nps-f:size=2 pd2 ca-edf:cache=8MiB"
asked=0
differ=0
refused=0

# Asks both the same; the answers, errors and exit statuses have to be equal.
same() {
    asked=$((asked + 1))
    rm -f "$dir/run.wtrace"
    s=0
    "$before" "$@" >"$dir/a.out" 2>"$dir/a.err" </dev/null || s=$?
    [ $s = 2 ] && refused=$((refused + 1))
    echo "status $s" >>"$dir/a.err"
    rm -f "$dir/run.wtrace"
    s=0
    "$after" "$@" >"$dir/b.out" 2>"$dir/b.err" </dev/null || s=$?
    echo "status $s" >>"$dir/b.err"
    compare "$*" "$dir/a.out" "$dir/b.out"
    compare "$* (standard error)" "$dir/a.err" "$dir/b.err"
}

# compare QUESTION FILE FILE: shows and keeps a difference.
compare() {
    if ! cmp -s "$2" "$3"; then
        differ=$((differ + 1))
        echo "DIFFERENT: $1" >&2
        diff "$2" "$3" | head -10 >&2 || true
        cp "$2" "$dir/difference.$differ.before"
        cp "$3" "$dir/difference.$differ.after"
    fi
}

# A profile with all seven overheads: cache delays by working set, the rest by number of tasks.
cat >"$dir/all.toml" <<'PROFILE'
version = 1
platform = "pairs"
tick_period = "1ms"
PROFILE
for load in idle load; do
    for how in preemption L2-migration L3-migration; do
        cost=$(case $how in preemption) echo 60 ;; L2-migration) echo 90 ;; *) echo 150 ;; esac)
        cat >>"$dir/all.toml" <<PROFILE
[[cpmd]]
resumption = "$how"
load = "$load"
write_ratio = 0.25
points = [{ wss = "4KiB", samples = 9, average = "$((cost / 30))us", maximum = "$((cost / 6))us" },
          { wss = "1MiB", samples = 9, average = "${cost}us", maximum = "$((3 * cost))us" }]
PROFILE
    done
done
for kind in release:3:9 scheduling:4:12 context-switch:2:6 ipi-latency:2:5 timer-transfer:3:8 tick:2:6; do
    maximum=${kind##*:}
    rest=${kind%:*}
    cat >>"$dir/all.toml" <<PROFILE
[[overheads]]
kind = "${rest%:*}"
points = [{ tasks = 1, samples = 9, average = "${rest#*:}us", maximum = "${maximum}us" },
          { tasks = 100, samples = 9, average = "$((4 * ${rest#*:}))us", maximum = "$((4 * maximum))us" }]
PROFILE
done
# Four processors, two of which share a cache each.
{
    echo 'version = 1'
    echo 'name = "pairs"'
    for cpu in 0 1 2 3; do
        printf '[[processors]]\nid = %s\ncore = %s\nsocket = 0\n' $cpu $cpu
    done
    for shared in 0-1 2-3; do
        printf '[[caches]]\nlevel = 2\nkind = "unified"\nsize = "4MiB"\nshared_by = "%s"\n' $shared
    done
    printf '[[caches]]\nlevel = 3\nkind = "unified"\nsize = "16MiB"\nshared_by = "0-3"\n'
} >"$dir/pairs.toml"

# shape NAME M, with the options of `generate` behind.
shape() {
    name=$1
    m=$2
    shift 2
    "$before" generate "$@" -m "$m" --sets "$sets" --seed "$seed" -o "$dir/$name.jsonl"
    same check --batch "$dir/$name.jsonl"
    same check --batch "$dir/$name.jsonl" --grid 1us
    for policy in $simulated; do
        same simulate --batch "$dir/$name.jsonl" --policy "$policy" --for 200ms
    done
    number=0
    while [ "$number" -lt "$sets" ]; do
        one=$dir/set.toml
        "$before" generate "$@" -m "$m" --first "$number" --seed "$seed" --format toml -o "$dir/drawn"
        awk -v n="$number" '{ print } /^period/ { print "wss = \"" 16 * (1 + (n + NR) % 20) "KiB\"" }' \
            "$dir/drawn" >"$one"
        on="--platform symmetric:m=$m"
        [ "$m" = 4 ] && on="--platform $dir/pairs.toml"
        for how in --hard --soft; do
            # shellcheck disable=SC2086  # several words
            for costs in "$on" "$on --cpmd 100us" "--platform $dir/pairs.toml --profile xeon-l7455" \
                "--platform $dir/pairs.toml --profile $dir/all.toml"; do
                same check "$one" $how $costs --policy "$judged" --format json
            done
            # shellcheck disable=SC2086  # several words
            same check "$one" $how $on --explain
        done
        if [ $((number % 20)) = 0 ]; then
            for policy in $simulated; do
                for costs in "$on" "--platform $dir/pairs.toml --profile $dir/all.toml"; do
                    # shellcheck disable=SC2086  # several words
                    traced "$one" --policy "$policy" --for 300ms \
                        $costs
                done
            done
        fi
        number=$((number + 10))
    done
    echo "$name: $asked questions so far, $refused refused, $differ answers differ"
}

# simulate --trace by both, to a file of the same name; the command is part of a trace.
traced() {
    same simulate "$@" --trace "$dir/run.wtrace"
    for side in a b; do
        [ $side = a ] && binary=$before || binary=$after
        rm -f "$dir/run.wtrace"
        "$binary" simulate "$@" --trace "$dir/run.wtrace" >/dev/null 2>&1 </dev/null || true
        [ -e "$dir/run.wtrace" ] || : >"$dir/run.wtrace"
        mv "$dir/run.wtrace" "$dir/run.$side"
    done
    compare "simulate $* (trace)" "$dir/run.a" "$dir/run.b"
}

# A study by both: tables and figures of the results.
studied() {
    file=$1
    for side in a b; do
        [ $side = a ] && binary=$before || binary=$after
        rm -rf "$dir/study.$side"
        "$binary" study run "$file" -o "$dir/study.$side" >/dev/null 2>"$dir/study.err" </dev/null ||
            cat "$dir/study.err" >&2
    done
    for path in "$dir"/study.a/*.csv "$dir"/study.a/*.svg; do
        asked=$((asked + 1))
        compare "study run $file: ${path##*/}" "$path" "$dir/study.b/${path##*/}"
    done
}

shape medium 4 --utilization uniform-medium --periods moderate --cap 3
shape full 4 --utilization uniform-light --periods moderate --cap 39/10
shape short 4 --utilization uniform-medium --periods short --deadlines constrained --cap 2
shape heavy 2 --utilization uniform-heavy --periods long --cap 19/10
shape single 1 --utilization uniform-light --periods moderate --deadlines arbitrary --cap 9/10
shape quanta 2 --tasks 6 --total 17/10 --periods choice:10ms,20ms,50ms
for guarantee in hard soft; do
    cat >"$dir/$guarantee.toml" <<STUDY
based_on = "ospert10-fig5"
policies = ["p-edf", "g-edf", "c-edf:l2", "c-edf:l3", "p-edf:ffd", "c-edf:size=4", "EDF-WM", "NPS-F", "pd2"]
guarantee = "$guarantee"
caps = { from = 6, to = 24, step = 6 }
delays = { from = "0us", to = "500us", step = "250us" }
sets = 2
STUDY
    studied "$dir/$guarantee.toml"
done
echo "$asked questions, $refused refused, $differ answers differ"
[ "$differ" = 0 ]
