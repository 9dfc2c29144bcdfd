#!/usr/bin/env python3
"""What pycachesim takes for the patterns of `accesses.rs`, round by round as it is asked."""
import sys
import time

from cachesim import Cache, CacheSimulator, MainMemory

COUNT = 1 << 20
MASK = (1 << 64) - 1


def at_random(span, x=1):
    for _ in range(COUNT):
        x = (x * 6364136223846793005 + 1442695040888963407) & MASK
        yield (x >> 33) % span


patterns = {
    "all hit L1": [8 * i % (16 << 10) for i in range(COUNT)],
    "lines in 256 KiB": [64 * i % (256 << 10) for i in range(COUNT)],
    "random in 4 MiB": list(at_random(4 << 20)),
}


def hierarchy():
    memory = MainMemory()
    l3 = Cache("L3", 16384, 16, 64, "LRU")
    l2 = Cache("L2", 1024, 16, 64, "LRU", store_to=l3, load_from=l3)
    l1 = Cache("L1", 64, 8, 64, "LRU", store_to=l2, load_from=l2)
    memory.load_to(l3)
    memory.store_from(l3)
    return CacheSimulator(l1, memory)


# A line of standard input is the name of a pattern: its loads are done once more, and the seconds
# that they took are answered.
caches = {name: hierarchy() for name in patterns}
for line in sys.stdin:
    name = line.rstrip("\n")
    start = time.perf_counter()
    caches[name].load(patterns[name], length=1)
    print(time.perf_counter() - start, flush=True)
