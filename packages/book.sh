#!/bin/sh
# The documentation as a site with search: docs/ and the pages at the top, by mdBook, which is
# built into target/tools the first time. Ends with status 1 where a link of the site leads nowhere.
# Usage: sh packages/book.sh [DIRECTORY]; CARGO names another cargo.
set -eu

out=${1:-target/book}
cargo=${CARGO:-cargo}
version=0.4.52
tools=target/tools
mdbook=$tools/bin/mdbook
if [ "$("$mdbook" --version 2>/dev/null)" != "mdbook v$version" ]; then
    "$cargo" install mdbook --version "$version" --locked --no-default-features --features search \
        --root "$tools"
fi

rm -rf "$out"
mkdir -p "$out/src"
cp packages/book.toml "$out/book.toml"
cp -r docs/. "$out/src"
pages="README.md ARCHITECTURE.md COMPARE.md CONTRIBUTING.md CHANGELOG.md"
for page in $pages; do
    # Pages at the top name those of docs/ with the directory, which the site has not.
    sed -e 's|](docs/|](|g' "$page" >"$out/src/$page"
done
code=https://github.com/warmset/warmset/blob/main
for page in "$out"/src/*.md; do
    # What is no page of the site is shown where the code is.
    sed -i -E \
        -e 's#\]\(\.\./(README|ARCHITECTURE|COMPARE|CONTRIBUTING|CHANGELOG)\.md#](\1.md#g' \
        -e "s#\]\(\.\./#]($code/#g" \
        -e "s#\]\((crates|examples)([/)])#]($code/\1\2#g" "$page"
    # The first page of a site is its index, under that name alone.
    [ "${page##*/}" = SUMMARY.md ] || sed -i 's#](README\.md#](index.md#g' "$page"
done
"$mdbook" build "$out"
sh packages/links.sh "$out/html"
echo "the site: $out/html/index.html"
