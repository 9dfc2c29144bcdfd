#!/bin/sh
# Makes the traces and the counts of Cachegrind that `cachegrind.rs` is held to. Needs gcc, gzip and
# valgrind (3.19 made what is here). Usage: sh cachegrind.sh, in this directory.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
out=cachegrind.txt
{
    echo "# I1, D1 and LL as size,ways,line; then Cachegrind's counts:"
    echo "# program I1 D1 LL: Ir I1mr ILmr Dr D1mr DLmr Dw D1mw DLmw"
} >"$out"
number=0
for program in product sort mixed; do
    number=$((number + 1))
    gcc -O1 -static -nostdlib -fno-stack-protector -fno-pie -no-pie -fno-tree-vectorize \
        -DPROGRAM=$number -o "$work/$program" programs.c
    # Nothing of the environment, so that both tools see the same stack.
    env -i valgrind --tool=lackey --trace-mem=yes --log-file="$work/trace" "$work/$program"
    gzip -9n <"$work/trace" >"$program.lackey.gz"
    for caches in \
        "32768,8,64 32768,8,64 8388608,16,64" \
        "1024,2,32 1024,2,32 16384,1,32" \
        "512,1,64 2048,4,64 8192,8,64" \
        "8192,4,32 1024,32,32 4096,2,32"; do
        set -- $caches
        env -i valgrind --tool=cachegrind --cache-sim=yes --cachegrind-out-file="$work/counts" \
            --log-file="$work/log" --I1="$1" --D1="$2" --LL="$3" "$work/$program"
        echo "$program $1 $2 $3: $(sed -n 's/^summary: *//p' "$work/counts")" >>"$out"
    done
done
