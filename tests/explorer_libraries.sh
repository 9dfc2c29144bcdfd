#!/bin/sh
# Brings D3 and Observable Plot into the explorer, as npm has them, with their licenses.
# Usage: sh tests/explorer_libraries.sh VERSION_OF_D3 VERSION_OF_PLOT
set -eu
to=$(cd "$(dirname "$0")/../crates/report/src/explorer/vendor" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm init -y >/dev/null
npm install --ignore-scripts "d3@$1" "@observablehq/plot@$2"
modules=$work/node_modules
cp "$modules/d3/dist/d3.min.js" "$modules/@observablehq/plot/dist/plot.umd.min.js" "$to"
{
    echo "d3 $1 (d3.min.js)"
    cat "$modules/d3/LICENSE"
    echo
    echo "@observablehq/plot $2 (plot.umd.min.js)"
    cat "$modules/@observablehq/plot/LICENSE"
} >"$to/LICENSE"
