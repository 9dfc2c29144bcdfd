#!/bin/sh
# Every link within a site of HTML pages leads to a file that is there and, with an anchor, to a place
# in it. Names what does not; exit status 1.
# Usage: sh packages/links.sh DIRECTORY
set -eu

cd "${1:?which directory}"
asked=0
dead=0
for page in *.html; do
    # The page for printing has all others in it; the page of a wrong address has absolute links.
    case $page in print.html | 404.html | toc.html) continue ;; esac
    for link in $(grep -oE '(href|src)="[^"]*"' "$page" | cut -d'"' -f2 | sort -u); do
        case $link in http:* | https:* | data:* | mailto:* | javascript:* | '') continue ;; esac
        asked=$((asked + 1))
        file=${link%%#*}
        [ -n "$file" ] || file=$page
        if [ ! -e "$file" ]; then
            echo "$page: $link: no such file"
            dead=$((dead + 1))
            continue
        fi
        case $link in
        *#?*)
            if ! grep -qF "id=\"${link#*#}\"" "$file"; then
                echo "$page: $link: no such place"
                dead=$((dead + 1))
            fi
            ;;
        esac
    done
done
echo "$asked links within the site, $dead of them dead"
[ "$asked" -gt 200 ] && [ "$dead" -eq 0 ]
