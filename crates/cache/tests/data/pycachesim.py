#!/usr/bin/env python3
"""Makes the counts of pycachesim that `pycachesim.rs` is held to.

Needs pycachesim (0.3.1 made what is here), in this directory: python3 pycachesim.py >pycachesim.txt
"""
import gzip
import itertools

from cachesim import Cache, CacheSimulator, MainMemory

MASK = (1 << 64) - 1


def random_trace(count, span, x):
    """A linear congruential generator, as the test has it: every fourth access is a store."""
    for _ in range(count):
        x = (x * 6364136223846793005 + 1442695040888963407) & MASK
        kind = "S" if (x >> 20) & 3 == 0 else "L"
        yield kind, (x >> 33) % span, 1 << ((x >> 28) & 3)


def recorded(name):
    with gzip.open(f"{name}.lackey.gz", "rt") as trace:
        for line in trace:
            if line[:2] in (" L", " S", " M"):
                address, size = line[3:].split(",")
                yield line[1], int(address, 16), int(size)


def simulator(levels, policy):
    """Levels from the first outwards: sets, ways, write back?, allocate?"""
    memory, outer, all_levels = MainMemory(), None, []
    for number, (sets, ways, back, allocate) in reversed(list(enumerate(levels, 1))):
        cache = Cache(f"L{number}", sets, ways, 64, policy, write_back=back,
                      write_allocate=allocate, store_to=outer, load_from=outer)
        if outer is None:
            memory.load_to(cache)
            memory.store_from(cache)
        outer = cache
        all_levels.insert(0, cache)
    return CacheSimulator(outer, memory), all_levels


def main():
    print("# trace policy [sets,ways,back,allocate]...: LOAD,STORE,HIT,MISS,EVICT of each level")
    sizes = [(4, 2), (16, 4), (64, 8)]
    strategies = [(True, True), (True, False), (False, False), (False, True)]
    traces = {
        "random:20000:16384": lambda: random_trace(20000, 16384, 1),
        "random:20000:131072": lambda: random_trace(20000, 131072, 2),
        "product": lambda: recorded("product"),
        "mixed": lambda: recorded("mixed"),
    }
    for (name, trace), policy in itertools.product(traces.items(), ["LRU", "FIFO"]):
        for strategy in itertools.product(strategies, repeat=3):
            if policy == "FIFO" and strategy != (strategies[0],) * 3:
                continue
            levels = [size + how for size, how in zip(sizes, strategy)]
            try:
                caches, each = simulator(levels, policy)
            except (AssertionError, ValueError):
                continue
            for kind, address, size in trace():
                if kind in "LM":
                    caches.load(address, length=size)
                if kind in "SM":
                    caches.store(address, length=size)
            shape = " ".join(",".join(str(int(v)) for v in level) for level in levels)
            counts = " ".join(
                ",".join(str(getattr(c.backend, f"{what}_count"))
                         for what in ("LOAD", "STORE", "HIT", "MISS", "EVICT"))
                for c in each)
            print(f"{name} {policy} {shape}: {counts}")


main()
