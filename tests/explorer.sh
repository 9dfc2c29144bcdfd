#!/bin/sh
# Runs two small studies, makes their explorer, and drives it in headless Chromium.
# Usage: sh tests/explorer.sh WARMSET [DIRECTORY [time]]; the page, its studies and screenshots stay
# in the directory. With `time` it tells instead how long a page of 10 policies over 36 scenarios
# takes to open and to answer. It needs Node.js 20, npm and Chromium, and installs Chromium by
# apt-get where CI is set and it runs as root. Without them it says `explorer: not run` with the
# reason, and ends with status 0.
set -eu

warmset=$1
out=${2:-target/explorer}
here=$(cd "$(dirname "$0")" && pwd)
not_run() {
    echo "explorer: not run: $1"
    exit 0
}
browser() { command -v chromium || command -v chromium-browser; }

node -e 'process.exit(Number(process.versions.node.split(".")[0]) < 20 ? 1 : 0)' 2>/dev/null ||
    not_run "there is no Node.js of version 20 or later"
command -v npm >/dev/null || not_run "there is no npm"
if ! browser >/dev/null && [ "${CI:-}" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null
then
    { apt-get update && apt-get install -y --no-install-recommends chromium; } >/dev/null 2>&1 || :
fi
CHROMIUM=$(browser) || not_run "there is no Chromium: install the package chromium"

rm -rf "$out"
mkdir -p "$out"
cp "$here"/explorer/* "$out"
(cd "$out" && npm ci --ignore-scripts --no-audit --no-fund >npm.log 2>&1) ||
    not_run "npm could not install playwright-core: see $out/npm.log"
if [ "${3:-}" = time ]; then
    policies=p-edf,p-edf:ffd,p-edf:bfd,p-edf:nfd,p-rm
    policies=$policies,c-edf:l2,c-edf:size=4,c-edf:l3,c-edf:size=12,g-edf
    "$warmset" study run bastoni11-6.3 --policy "$policies" --sets 2 -o "$out/ten" >/dev/null 2>&1
    "$warmset" study explore "$out"/ten/* -o "$out/ten.html"
    CHROMIUM=$CHROMIUM node "$out/time.mjs" "$out/ten.html"
    exit
fi
for name in bastoni11-fig6.4a bastoni11-fig6.5c; do
    "$warmset" study run "$name" --sets 10 -o "$out/$name" >/dev/null
done
"$warmset" study explore "$out/bastoni11-fig6.4a" "$out/bastoni11-fig6.5c" -o "$out/explorer.html"
cat >"$out/sizes.toml" <<END
policies = ["p-edf@idle", "p-edf@load", "c-nps-f:l3,delta=4@idle", "c-nps-f:l3,delta=4@load",
    "p-edf"]
platform = "xeon-l7455"
profile = "xeon-l7455"
accounting = "paper"
utilizations = "uniform-heavy"
periods = "moderate"
caps = { from = 4, to = 24, step = 4 }
working_sets = [{ from = "0KiB", to = "64KiB", step = "16KiB" }, "1MiB"]
sets = 4
END
"$warmset" study run "$out/sizes.toml" -o "$out/sizes" >/dev/null
"$warmset" study explore "$out/bastoni11-fig6.4a" "$out/sizes" -o "$out/sizes.html"
CHROMIUM=$CHROMIUM SHOTS=$out/shots node "$out/test.mjs" \
    "$out/explorer.html" "$out/sizes.html" "$out/bastoni11-fig6.4a" "$out/bastoni11-fig6.5c"
