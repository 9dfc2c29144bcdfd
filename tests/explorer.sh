#!/bin/sh
# Runs two small studies, makes their explorer, and drives it in headless Chromium.
# Usage: sh tests/explorer.sh WARMSET [DIRECTORY]; the page, its studies and screenshots stay in
# the directory. It needs Node.js 20, npm and Chromium, and installs Chromium by apt-get where CI is
# set and it runs as root. Without them it says `explorer: not run` with the reason, and ends with
# status 0.
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
for name in bastoni11-fig6.4a bastoni11-fig6.5c; do
    "$warmset" study run "$name" --sets 10 -o "$out/$name" >/dev/null
done
"$warmset" study explore "$out/bastoni11-fig6.4a" "$out/bastoni11-fig6.5c" -o "$out/explorer.html"
CHROMIUM=$CHROMIUM SHOTS=$out/shots node "$out/test.mjs" \
    "$out/explorer.html" "$out/bastoni11-fig6.4a" "$out/bastoni11-fig6.5c"
