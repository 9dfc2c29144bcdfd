#!/bin/sh
# What came of a run of the tests: how many passed, which failed, and which could not run, with the
# reason of each.
# Usage: sh tests/summary.sh DIRECTORY OF LOGS; exit status 1 when anything failed.
set -eu

logs=$1
# Both harnesses print a line a test: `test NAME ... ok`, `FAILED`, or `ignored` with the reason.
# What a test prints may stand between the two halves of that line. A line of Cargo says which file
# the tests are of.
awk -v not_run="$logs/not-run" -v failing="$logs/failing" '
    function file(line) {
        sub(/^ *(Running|Doc-tests) /, "", line)
        sub(/^unittests /, "", line)
        sub(/ \(.*/, "", line)
        return line
    }
    BEGIN { printf "" >not_run; printf "" >failing }
    { gsub(/\033\[[0-9;]*m/, "") }
    /^ *Running .*\(.*\)$/ { match($0, /\(.*\)$/); binary = substr($0, RSTART + 1, RLENGTH - 2)
        sub(/.*\//, "", binary); sub(/-[0-9a-f]+$/, "", binary); where = binary " (" file($0) ")" }
    /^ *Doc-tests / { where = "documentation of " file($0) }
    /^test .* \.\.\. / { name = $0; sub(/^test /, "", name); sub(/ +\.\.\. .*/, "", name) }
    /(^|^test .* \.\.\. )ignored($|,| \()/ { reason = $0; sub(/^(test .* \.\.\. )?ignored,? ?/, "", reason)
        sub(/^\(/, "", reason); sub(/\)$/, "", reason)
        print where ": " name ": " (reason == "" ? "no reason is given" : reason) >not_run }
    /(^| )FAILED$/ && !/^test result/ { print where ": " name >failing }
    /^test result: / { for (i = 3; i < NF; i++) { n = $i
        if ($(i + 1) == "passed;") passed += n
        if ($(i + 1) == "failed;") failed += n
        if ($(i + 1) == "ignored;") ignored += n } }
    END { print passed + 0, failed + 0, ignored + 0 }
' "$logs/unit.log" >"$logs/counts"
read -r passed failed ignored <"$logs/counts"
listed=$(wc -l <"$logs/not-run")

# The smoke run and the tests of the browser, of Python, of static binaries and of guests say
# themselves what could not run.
for part in smoke explorer python static kernel; do
    said=$(sed -n "s/^$part: not run: /$part: /p" "$logs/$part.log" 2>/dev/null |
        tee -a "$logs/not-run" | wc -l)
    ignored=$((ignored + said))
    listed=$((listed + said))
done

echo
if [ "$ignored" -gt 0 ]; then
    echo "== could not run here: $ignored"
    sed 's/^/  /' "$logs/not-run"
fi
if [ "$ignored" -ne "$listed" ]; then
    # A harness that prints otherwise: nothing may be lost without a word.
    echo "summary: $ignored tests are counted as not run, $listed are listed" >>"$logs/failed"
fi
if [ -s "$logs/failing" ] || [ -s "$logs/failed" ]; then
    echo "== failed"
    sed 's/^/  /' "$logs/failing" "$logs/failed"
    # Programs of tests that ended without a result: Cargo names them.
    sed -n '/^error: [0-9]* targets\{0,1\} failed:$/,$p' "$logs/unit.log" | sed 's/^/  /'
fi
echo "== $passed passed, $failed failed, $ignored could not run; logs in $logs"
[ ! -s "$logs/failing" ] && [ ! -s "$logs/failed" ]
