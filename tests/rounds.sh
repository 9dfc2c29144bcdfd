#!/bin/sh
# Runs all tests again and again, every second round beside programs that keep all processors busy,
# and tells at the end which tests failed how often, and which could not run. Called again for the
# same state of the same files, it goes on after the last round that was completed; of another state
# it keeps nothing, unless ACROSS=yes: then it keeps the rounds that passed, each with its commit.
# Usage: sh tests/rounds.sh NUMBER [DIRECTORY FOR LOGS]. Arguments for `cargo test` may stand in
# TESTS, such as TESTS="-p warmset-execute"; without it the whole workspace is tested. Exit status 1
# when any test failed in any round.
set -u

rounds=${1:?how many rounds}
logs=${2:-target/rounds}
cargo=${CARGO:-cargo}
tests=${TESTS:---workspace}
case $rounds in
*[!0-9]* | 0) echo "rounds: \`$rounds\` is no number of rounds: write one such as 30" >&2; exit 2 ;;
esac

# Did the round of this line pass?
passed() { ! grep -q ", failed: " "$1"; }

# What is tested: rounds of different files or tests are not added up.
state=$(
    echo "$tests"
    git rev-parse HEAD && git status --porcelain && git diff HEAD
) 2>/dev/null || state=
# Without version control nobody knows whether the files are the same.
if [ -z "$state" ] || [ "$(cat "$logs/state" 2>/dev/null)" != "$state" ]; then
    if [ -n "$state" ] && [ "${ACROSS:-}" = yes ]; then
        # What failed may be mended since, and has to be shown again.
        for here in "$logs"/*/; do
            [ -f "$here/done" ] && passed "$here/done" || rm -rf "$here"
        done
    else
        rm -rf "$logs"
    fi
    mkdir -p "$logs" || exit 2
    echo "$state" >"$logs/state"
fi
commit=$(git rev-parse --short HEAD 2>/dev/null) && commit=" of $commit"
if [ -n "$(git status --porcelain 2>/dev/null)" ]; then commit="$commit and changes"; fi

busy=
# Starts a busy program for each processor, and waits until they run.
keep_busy() {
    running="$here/busy"
    : >"$running"
    for _ in $(seq "$(nproc)"); do
        sh -c 'echo $$ >>"$0"; while :; do :; done' "$running" &
        busy="$busy $!"
    done
    tries=600
    until [ "$(wc -l <"$running")" -eq "$(nproc)" ]; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || { echo "rounds: no busy programs start: see $running" >&2; exit 2; }
        sleep 0.1
    done
}
# Ends the busy programs, by their numbers. One that is about to begin still has the traps of this
# shell, and would lose any other signal.
calm() {
    for pid in $busy; do
        kill -KILL "$pid" 2>/dev/null
        wait "$pid" 2>/dev/null
    done
    busy=
}
trap calm EXIT
trap 'exit 130' INT TERM

# shellcheck disable=SC2086 # the words of TESTS are arguments
if ! "$cargo" test --locked $tests --no-run >"$logs/build.log" 2>&1; then
    cat "$logs/build.log" >&2
    exit 2
fi

round=1
failed=0
while [ "$round" -le "$rounds" ]; do
    here="$logs/$round"
    if [ -f "$here/done" ]; then
        cat "$here/done"
        passed "$here/done" || failed=$((failed + 1))
        round=$((round + 1))
        continue
    fi
    rm -rf "$here"
    mkdir -p "$here"
    : >"$here/failed"
    beside="alone"
    if [ $((round % 2)) -eq 0 ]; then
        beside="beside busy programs"
        keep_busy
    fi
    # shellcheck disable=SC2086
    "$cargo" test --locked $tests --no-fail-fast >"$here/unit.log" 2>&1
    status=$?
    calm
    verdict="passed"
    if ! sh tests/summary.sh "$here" >"$here/summary.log" || [ "$status" -ne 0 ]; then
        failed=$((failed + 1))
        verdict="failed"
        # A program of tests that was killed has no line of its own.
        [ -s "$here/failing" ] || echo "a program of tests: see $here/unit.log" >"$here/failing"
    fi
    echo "round $round$commit, $beside, $verdict: $(tail -1 "$here/summary.log")" | tee "$here/done.new"
    mv "$here/done.new" "$here/done"
    round=$((round + 1))
done

echo
of_all() {
    for i in $(seq "$rounds"); do cat "$logs/$i/$1"; done
}
if [ "$failed" -gt 0 ]; then
    echo "== failed in $failed of $rounds rounds: how often, what"
    of_all failing | sort | uniq -c | sort -rn
fi
if [ -n "$(of_all not-run)" ]; then
    echo "== could not run: how often, what, why"
    of_all not-run | sort | uniq -c | sort -rn
fi
echo "== $((rounds - failed)) of $rounds rounds passed; logs in $logs"
[ "$failed" -eq 0 ]
