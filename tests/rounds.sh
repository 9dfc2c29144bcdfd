#!/bin/sh
# Runs all tests again and again, every second round beside programs that keep all processors busy,
# and tells at the end which tests failed how often, and which could not run.
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
rm -rf "$logs"
mkdir -p "$logs" || exit 2

busy=
# Ends the busy programs, by their numbers.
calm() {
    for pid in $busy; do
        kill "$pid" 2>/dev/null
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
    mkdir -p "$here"
    : >"$here/failed"
    beside="alone"
    if [ $((round % 2)) -eq 0 ]; then
        beside="beside busy programs"
        for _ in $(seq "$(nproc)"); do
            sh -c 'while :; do :; done' &
            busy="$busy $!"
        done
    fi
    # shellcheck disable=SC2086
    "$cargo" test --locked $tests --no-fail-fast >"$here/unit.log" 2>&1
    status=$?
    calm
    if ! sh tests/summary.sh "$here" >"$here/summary.log" || [ "$status" -ne 0 ]; then
        failed=$((failed + 1))
        # A program of tests that was killed has no line of its own.
        [ -s "$here/failing" ] || echo "a program of tests: see $here/unit.log" >"$here/failing"
    fi
    echo "round $round of $rounds, $beside: $(tail -1 "$here/summary.log")"
    round=$((round + 1))
done

echo
if [ "$failed" -gt 0 ]; then
    echo "== failed in $failed of $rounds rounds: how often, what"
    cat "$logs"/*/failing | sort | uniq -c | sort -rn
fi
if [ -n "$(cat "$logs"/*/not-run)" ]; then
    echo "== could not run: how often, what, why"
    cat "$logs"/*/not-run | sort | uniq -c | sort -rn
fi
echo "== $((rounds - failed)) of $rounds rounds passed; logs in $logs"
[ "$failed" -eq 0 ]
