#!/bin/sh
# Random task sets for real, under every policy: are the rules kept, is no event lost, how late were
# decisions at most?
#
# Usage: live_sets.sh WARMSET DIRECTORY [SETS [TIME [TOLERANCE]]]   (10 sets, 60s each, 2ms)
#
# Set after set, each under all policies, so that what was interrupted is balanced; called again
# with the same directory it goes on where it was. Sets take 30 to 85 % of the processors that this
# process may use. A set that a policy or the preflight refuses is replaced by the next one drawn,
# and told. What is shown is all that was run, with violations and with misses, next to those of the
# same set in virtual time: not every policy keeps all deadlines of every set; how often and how
# long the machine stood still; and the least tolerance, of 100, 200, 500 us ... 500 ms, with which
# its trace keeps every rule. Traces that need more than the one stated are kept.
# AROUND: a command to put before each run, such as `flock /tmp/lock`, where others measure on the
# same machine.
# Needs the right to real-time priorities. Exit status: 0 no rule was broken and no event lost; 1
# otherwise.
set -eu
# Whatever profile is in use on this machine.
export WARMSET_PROFILE=none
warmset=$1
dir=$2
sets=${3:-10}
time=${4:-60s}
tolerance=${5:-2ms}
around=${AROUND:-}
policies=$("$warmset" policies --words)
processors=$(nproc)
mkdir -p "$dir"

# One line of figures from the JSON document of a run: jobs misses preemptions migrations decisions
# gaps lost violations, by how much releases were late (median, 99.9 %, maximum in nanoseconds), how
# many decisions overdue and by how much (the same), how the run ended, how often and how long the
# machine stood still (in all, at most). The misses in virtual time are put behind.
figures() {
    awk -F'[:,]' '
        function first(key) { if (!(key in found)) found[key] = $2 + 0 }
        /"ended_by"/ { gsub(/[ "]/, "", $2); ended = $2 }
        /"verdict": / { verdict = 1 }
        /"overdue": / { part = "overdue " }      /"late_releases": / { part = "late " }
        /"standstills": / { part = "stood " }
        /"jobs"/ { first("jobs") }               /"misses"/ { first("misses") }
        /"preemptions"/ { first("preemptions") } /"migrations": [0-9]/ { first("migrations") }
        /"decisions"/ { first("decisions") }     /"gaps_over_5ms"/ { first("gaps") }
        /"lost_events"/ { found["lost"] = $2 + 0 }
        verdict && /"violations"/ { first("violations") }
        part && /"count"|"median_ns"|"p999_ns"|"max_ns"|"total_ns"/ { gsub(/[ "]/, "", $1); first(part $1) }
        END {
            print found["jobs"], found["misses"], found["preemptions"], found["migrations"], found["decisions"], found["gaps"],
                found["lost"], found["violations"], found["late median_ns"], found["late p999_ns"], found["late max_ns"], found["overdue count"],
                found["overdue median_ns"], found["overdue p999_ns"], found["overdue max_ns"], ended,
                found["stood count"] + 0, found["stood total_ns"] + 0, found["stood max_ns"] + 0
        }' "$1"
}

# The misses of a set in virtual time, with the execution times that a run has by default.
simulated() {
    "$warmset" simulate "$1" --policy "$2" --for "$time" --execution 0.9 --format json 2> /dev/null |
        awk -F'[:,]' '/"misses"/ { print $2 + 0; exit }'
}

# The least tolerance in microseconds with which a trace keeps every rule, or "none".
needed() {
    for us in 100 200 500 1000 2000 5000 10000 20000 50000 100000 200000 500000; do
        if "$warmset" trace check "$1" --tolerance "${us}us" > "$1.checked" 2>&1; then
            rm "$1.checked"
            echo $us
            return
        fi
    done
    echo none
}

# The set of a number, at a percentage of the processors; every task has a working set, which ca-edf
# needs to know.
draw() {
    "$warmset" generate --cap "$((processors * $2))/100" --fill scale -m "$processors" \
        --first "$1" --format toml -o "$3.drawn"
    awk -v n="$1" '{ print } /^period/ { print "wss = \"" 32 * (1 + (n + NR) % 4) "KiB\"" }' "$3.drawn" > "$3"
    rm "$3.drawn"
}

# A line for each policy.
show() {
    printf '\n%-9s %4s %7s %7s %6s %9s %11s %10s %4s %4s %10s   %25s   %25s   %21s   %13s\n' policy sets refused jobs misses simulated preemptions migrations \
        gaps lost violations 'releases late (us)' 'decisions overdue (us)' 'stood still (ms)' 'needed (us)'
    for policy in $policies; do
        cat "$dir"/*/"$policy.figures" 2> /dev/null | awk -v policy="$policy" \
            -v refused="$(cat "$dir"/*/"$policy.refused" 2> /dev/null | wc -l)" '
            function middle(values, n,   i, j, t) {
                for (i = 2; i <= n; i++)
                    for (j = i; j > 1 && values[j] < values[j - 1]; j--) { t = values[j]; values[j] = values[j - 1]; values[j - 1] = t }
                return values[int((n + 1) / 2)]
            }
            { n++; jobs += $1; misses += $2; simulated += $20; stood += $17; still += $18; if ($19 > longest) longest = $19; preemptions += $3; migrations += $4; gaps += $6; lost += $7; violations += $8
              late[n] = $9; if ($10 > late999) late999 = $10; if ($11 > latest) latest = $11
              if ($12) over[++m] = $13; if ($14 > over999) over999 = $14; if ($15 > most) most = $15
              need[n] = $21 == "none" ? 1e9 : $21; if (need[n] > needed) needed = need[n] }
            END { if (n + refused) printf "%-9s %4d %7d %7d %6d %9d %11d %10d %4d %4d %10d   %7.1f %8.1f %8.1f   %7.1f %8.1f %8.1f   %6d %7.0f %6.1f   %6s %6s\n",
                policy, n, refused, jobs, misses, simulated, preemptions, migrations, gaps, lost, violations, middle(late, n) / 1000,
                late999 / 1000, latest / 1000, middle(over, m) / 1000, over999 / 1000, most / 1000, stood, still / 1e6, longest / 1e6, middle(need, n), needed }'
    done
    echo "(tolerance $tolerance, runs of $time; of times: the median run's median, the worst run's 99.9 % and longest;"
    echo "stood still: how often, for how long in all and at most, which is not counted as overdue;"
    echo "needed: the least tolerance with which no rule is broken, of the median run and of the worst)"
    cat "$dir"/*/*.failed 2> /dev/null || true
}
trap 'show; exit 130' INT TERM

number=0
while [ "$number" -lt "$sets" ]; do
    # 7 steps on each time: few sets spread over the whole range too.
    percent=$((sets > 1 ? 30 + 55 * (7 * number % sets) / (sets - 1) : 60))
    here=$dir/$number
    mkdir -p "$here"
    for policy in $policies; do
        [ -e "$here/$policy.figures" ] && continue
        rm -f "$here/$policy.failed" "$here/$policy.refused"
        for try in 0 1 2 3 4 5 6 7; do
            set=$here/$policy.toml
            drawn=$((number + 1000 * try))
            draw "$drawn" "$percent" "$set"
            if ! why=$("$warmset" run "$set" --policy "$policy" --preflight 2>&1 > "$here/preflight"); then
                echo "set $drawn at $percent %: ${why:-$(grep refused "$here/preflight")}" >> "$here/$policy.refused"
                continue
            fi
            status=0
            $around "$warmset" run "$set" --policy "$policy" --for "$time" --tolerance "$tolerance" --format json \
                --trace "$here/$policy.wtrace" -o "$here/$policy.json" 2> "$here/$policy.log" || status=$?
            if [ $status -le 1 ]; then
                echo "$(figures "$here/$policy.json") $(simulated "$set" "$policy") $(needed "$here/$policy.wtrace")" \
                    > "$here/$policy.figures"
                awk '{ exit $7 + $8 > 0 }' "$here/$policy.figures" && rm "$here/$policy.wtrace"
                echo "set $number, $percent %, $policy: $(cat "$here/$policy.figures")"
            elif grep -q 'cannot be policed' "$here/$policy.log"; then
                # The run measures again what the machine can police, and may find it slower than a
                # moment ago.
                echo "set $drawn at $percent %: $(tail -1 "$here/$policy.log")" >> "$here/$policy.refused"
                continue
            else
                echo "set $number, $percent %, $policy: exit status $status: $(tail -1 "$here/$policy.log")" |
                    tee "$here/$policy.failed"
            fi
            break
        done
    done
    number=$((number + 1))
done
show
cat "$dir"/*/*.figures | awk '{ bad += $7 + $8 } END { exit bad > 0 }' && ! ls "$dir"/*/*.failed > /dev/null 2>&1
