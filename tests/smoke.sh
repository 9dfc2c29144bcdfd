#!/bin/sh
# A smoke run: each main command once, on real input, with its exit status. Asserts results, never
# times. Commands that cannot run here are told as `smoke: not run: REASON: COMMAND`.
# Usage: sh tests/smoke.sh PATH-TO-WARMSET
set -eu
# Whatever profile is in use on this machine.
export WARMSET_PROFILE=none

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
    echo "smoke: ok ($status): $*"
}

# once WANTED COMMAND…: runs it; does it exit with one of these statuses?
once() {
    wanted=$1
    shift
    status=0
    "$@" >"$dir/out" 2>"$dir/err" || status=$?
    case " $wanted " in *" $status "*) return 0 ;; esac
    return 1
}

colored=0
refused=0
# colored WANTED COMMAND…: runs it, up to three times: others may disturb it, or colors may not be
# told apart on this machine. That is all right here, and nothing else.
colored() {
    wanted=$1
    shift
    for _ in 1 2 3; do
        if once "$wanted" "$@"; then
            colored=$((colored + 1))
            echo "smoke: ok ($status): $*"
            return 0
        fi
        if [ "$status" -ne 2 ] || ! grep -q \
            -e "could not be told apart for sure" -e "cannot be told apart" -e "has no colors" \
            -e "has colors" -e "beyond the last one" -e "no pages of these colors are there" \
            -e "when the machine is idle" -e "when the machine is less busy" "$dir/err"; then
            echo "smoke: exit status $status instead of one of $wanted: $*" >&2
            cat "$dir/out" "$dir/err" >&2
            exit 1
        fi
        [ "$told" = yes ] || break
    done
    refused=$((refused + 1))
    # The reason is the last line: notes may stand before it.
    echo "smoke: not run: $(tail -n 1 "$dir/err"): $*"
    return 1
}

# live WANTED COMMAND…: runs it where tasks may run in real time.
live() {
    wanted=$1
    shift
    if [ "$permitted" = no ]; then
        echo "smoke: not run: tasks may not run in real time here: $*"
        return 1
    fi
    if ! once "$wanted" "$@"; then
        echo "smoke: exit status $status instead of one of $wanted: $*" >&2
        cat "$dir/out" "$dir/err" >&2
        exit 1
    fi
    echo "smoke: ok ($status): $*"
}

# holds FILE TEXT: the file is there and has the text.
holds() {
    if ! grep -qF "$2" "$1"; then
        echo "smoke: no \`$2\` in $1" >&2
        exit 1
    fi
}

expect 0 "$warmset" --version
expect 2 "$warmset" no-such-verb

expect 0 "$warmset" platform
expect 0 "$warmset" platform --platform xeon-l7455 --picture "$dir/xeon.svg"
holds "$dir/xeon.svg" "</svg>"
expect 0 "$warmset" profile show xeon-l7455 --wss 256KiB
holds "$dir/out" "1027.77"

expect 0 "$warmset" check examples/control.toml --platform symmetric:m=2 --policy p-edf
expect 1 "$warmset" check examples/control.toml --platform symmetric:m=1
expect 2 "$warmset" check "$dir/no-such-file.toml"
expect 0 "$warmset" check examples/control.toml --platform symmetric:m=2 --policy p-edf \
    --certificate "$dir/proof.json"
expect 0 "$(dirname "$warmset")/warmset-verify" "$dir/proof.json"
holds "$dir/out" "p-edf: yes, the guarantee is kept: verified"
sed 's/"inflated_ns":\[[0-9]*/"inflated_ns":[1/' "$dir/proof.json" >"$dir/false.json"
expect 1 "$(dirname "$warmset")/warmset-verify" "$dir/false.json"
expect 2 "$(dirname "$warmset")/warmset-verify" "$dir/no-such-file.json"

expect 0 "$warmset" advise examples/control.toml -m 2 -o "$dir/plan.json"
holds "$dir/plan.json" "warmset plan"
expect 0 "$warmset" advise examples/control.toml -m 2 --policy p-edf --html "$dir/advice.html"
holds "$dir/advice.html" "How far it can be stretched"
expect 0 "$warmset" check examples/control.toml -m 2 --plan "$dir/plan.json"
expect 0 "$warmset" simulate examples/control.toml -m 2 --plan "$dir/plan.json" --for 1s
expect 0 "$warmset" advise examples/control.toml -m 2 --policy p-rm -o "$dir/p-rm.json"
expect 0 "$warmset" plan export examples/control.toml "$dir/p-rm.json" --to chrt -o "$dir/plan.sh"
holds "$dir/plan.sh" "taskset"
sh -n "$dir/plan.sh"
expect 2 "$warmset" plan export examples/control.toml "$dir/p-rm.json" --to sched-deadline
expect 1 "$warmset" advise examples/control.toml -m 1
holds "$dir/out" "one of these changes"
expect 2 "$warmset" advise "$dir/no-such-file.toml"

expect 0 "$warmset" generate --utilization uniform-medium --periods moderate --cap 12 -m 24 \
    --sets 20 --seed 1 -o "$dir/sets.jsonl"
expect 0 "$warmset" check --batch "$dir/sets.jsonl" --tests GFB,BAK,BCL,PEDF-WFD
[ "$(wc -l <"$dir/out")" -eq 20 ] || { echo "smoke: not one answer a set" >&2; exit 1; }
holds "$dir/out" '"GFB":'

expect 0 "$warmset" simulate examples/control.toml --platform symmetric:m=2 --policy p-edf \
    --for 1s --trace "$dir/run.trace"
expect 0 "$warmset" trace check "$dir/run.trace"
expect 0 "$warmset" trace stats "$dir/run.trace"

expect 0 "$warmset" cache crates/cache/tests/data/product.lackey.gz --platform i7-2600 \
    --picture "$dir/misses.svg"
holds "$dir/out" "L3"
holds "$dir/misses.svg" "</svg>"

# The experiments of 001 in the model of its machines: those that `reproduce` runs stand below.
expect 0 "$warmset" cache estimate --platform pentium-90
holds "$dir/out" "L2"
expect 0 "$warmset" cache coloring --platform pentium-pro --picture "$dir/coloring.svg"
holds "$dir/coloring.svg" "</svg>"
expect 0 "$warmset" cache filter --platform pentium-90 --sizes 64,1024 --rates 12.5,5000 \
    --picture "$dir/filter.svg"
holds "$dir/filter.svg" "</svg>"
expect 0 "$warmset" cache cosine --platform pentium-pro --step 50ns --sizes 64 \
    --picture "$dir/cosine.svg"
holds "$dir/cosine.svg" "</svg>"
expect 0 "$warmset" cache fourier --platform pentium-pro --step 50ns --sizes 64 \
    --picture "$dir/fourier.svg"
holds "$dir/fourier.svg" "</svg>"
expect 0 "$warmset" cache matrix --platform pentium-133 --write through --slices 1ms \
    --picture "$dir/matrix.svg"
holds "$dir/matrix.svg" "</svg>"
expect 0 "$warmset" cache combined --platform pentium-133 --write through --rates 2000,5000 \
    --picture "$dir/combined.svg"
holds "$dir/combined.svg" "</svg>"

# Jobs that find caches cold miss deadlines: the answer is no.
expect 1 "$warmset" simulate examples/figures/profiler.toml --cache --fresh --for 32ms \
    --platform examples/figures/shared-cache.toml --policy ca-edf:wss=profiled
holds "$dir/out" "768KiB"
expect 0 "$warmset" cache sets --platform core-i7 --sets 1 --for 300ms --distributions heavy \
    --picture "$dir/sets.svg"
holds "$dir/out" "sequential"
holds "$dir/sets.svg" "</svg>"
expect 0 "$warmset" cache videos --platform core-i7 --for 300ms --picture "$dir/videos.svg"
holds "$dir/videos.svg" "</svg>"
# 004 in the model of its machine.
expect 0 "$warmset" cache multicore --platform i7-2600 --sets 1 --jobs 1 --hasten 50 \
    --wss 32KiB --picture "$dir/multicore.svg"
holds "$dir/multicore.svg" "</svg>"

expect 0 "$warmset" reproduce list --state in-part
expect 0 "$warmset" reproduce 003-fig2
expect 1 "$warmset" reproduce 001-fig4-model
expect 0 "$warmset" reproduce 001-fig5-model
# In part: a single writer is as near to write-through as the paper says in longer slices alone.
expect 1 "$warmset" reproduce 001-fig7-model
expect 1 "$warmset" reproduce 001-fig8-model
# 004-fig10-model and 004-fig12-model read the same answer.
expect 0 "$warmset" reproduce 004-fig11-model
holds "$dir/out" "P-EDF"
expect 0 "$warmset" study list
expect 0 "$warmset" study run ospert10-fig5 --sets 2 -o "$dir/study"
holds "$dir/study/weighted.svg" "</svg>"
expect 0 "$warmset" study run examples/study/slices.toml --sets 2 -o "$dir/slices"
holds "$dir/slices/weighted.csv" "EDF-WM-SLICE-1MS"

# The experiments of 001 and 004 on this machine. Where its colors are told, most of them have to
# run.
told=no
if once 0 "$warmset" color find; then
    told=yes
elif ! grep -q -e "told apart" -e "has no colors" -e "has colors" "$dir/out" "$dir/err"; then
    echo "smoke: colors were not looked for:" >&2
    cat "$dir/out" "$dir/err" >&2
    exit 1
fi
for name in filter cosine fourier; do
    if colored 0 "$warmset" color experiment "$name" --runs 1 --activations 6 -o "$dir/live"; then
        holds "$dir/live/$name.svg" "</svg>"
    fi
done
for name in matrix combined; do
    if colored 0 "$warmset" color experiment "$name" --runs 1 -o "$dir/live"; then
        holds "$dir/live/$name.svg" "</svg>"
    fi
done
if colored "0 1" "$warmset" color experiment isolation --runs 1 --activations 5 -o "$dir/live"; then
    holds "$dir/live/isolation.txt" "isolates: "
fi
if colored 0 "$warmset" color experiment multicore --sets 1 --jobs 2 --hasten 20 \
    -o "$dir/live"; then
    holds "$dir/live/multicore.svg" "</svg>"
fi
# Programs as they are, with all defaults: memory is sorted for each run, as no server is found.
if ! command -v python3 >/dev/null; then
    echo "smoke: not run: there is no python3: a program of it in colors"
elif colored 0 env XDG_RUNTIME_DIR="$dir" "$warmset" color exec --colors 0-3 -- \
    python3 -c 'print(sorted([3, 1, 2]))'; then
    holds "$dir/out" "[1, 2, 3]"
    holds "$dir/err" "in colors 0-3, by"
fi
if colored 0 env XDG_RUNTIME_DIR="$dir" "$warmset" color exec --colors 0-3 -- ls /; then
    holds "$dir/out" "tmp"
    holds "$dir/err" "in colors 0-3, by"
fi
if [ "$told" = yes ] && [ "$refused" -gt "$colored" ]; then
    echo "smoke: colors are told here, and $refused commands with them did not run" >&2
    exit 1
fi

permitted=yes
once "0 1" "$warmset" run examples/control.toml --preflight || permitted=no
if live "0 1" "$warmset" run examples/control.toml --for 500ms --trace "$dir/run.wtrace"; then
    expect 0 "$warmset" trace stats "$dir/run.wtrace"
fi
if live 0 "$warmset" measure overheads --policy p-edf,g-edf --tasks 12 --sets 1 --for 1s \
    -o "$dir/overheads"; then
    holds "$dir/overheads/profile.toml" "[[overheads]]"
    holds "$dir/overheads/overheads-average.svg" "</svg>"
fi

expect 0 "$warmset" measure cpmd -o "$dir/measured" \
    --wss 4KiB,64KiB --samples 12 --max-preemption 1ms
holds "$dir/measured/profile.toml" "[[cpmd]]"
expect 0 "$warmset" measure cpmd -o "$dir/modelled" --platform xeon-l7455 --model \
    --samples 2 --load idle --wss 4KiB
holds "$dir/modelled/cpmd-model.svg" "</svg>"
# Decisions at quanta are not the kernel's, whatever this one has.
expect 2 "$warmset" measure overheads -o "$dir/kernel" --engine kernel --policy pd2
expect 0 "$warmset" measure wss --every 20ms -- sleep 0.3
holds "$dir/out" "wss ="
expect 0 "$warmset" measure task --runs 2 -- ls /
holds "$dir/out" "wcet ="
expect 0 "$warmset" check examples/control.toml --profile xeon-l7455 --platform symmetric:m=4
expect 0 "$warmset" report "$dir/measured"
holds "$dir/measured/index.html" "</html>"
expect 0 "$warmset" tour --profile xeon-l7455 --platform xeon-l7455 --sets 2 -o "$dir/tour"
holds "$dir/tour/index.html" "</html>"

echo "smoke: passed"
