"""Task sets of 20 tasks, judged in Python: `batch.py SETS` draws those of `run.sh`, judges them by
GFB and BCL, and prints as JSON the seconds that drawing and judging took, the peak of memory in MiB,
and how many sets each test accepts."""

import json
import resource
import sys
import time

import warmset as ws

sets = int(sys.argv[1])
start = time.perf_counter()
drawn = ws.generate(sets, tasks=20, total=4, m=8, seed=1)
between = time.perf_counter()
answers = ws.check_batch(drawn, tests=["GFB", "BCL"])
end = time.perf_counter()
frame = answers.to_arrow()
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({
    "draw_s": round(between - start, 3),
    "judge_s": round(end - between, 3),
    "peak_mib": round(peak),
    "accepted": {name: frame[name].to_pylist().count(True) for name in ("GFB", "BCL")},
}))
