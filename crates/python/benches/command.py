"""The command line on the same task sets: `command.py WARMSET FILE` prints as JSON the seconds that
judging took, the peak of memory in MiB, and how many sets each test accepts."""

import json
import resource
import subprocess
import sys
import time

start = time.perf_counter()
done = subprocess.run(
    [sys.argv[1], "check", "--batch", sys.argv[2], "--tests", "GFB,BCL"],
    stdout=subprocess.PIPE, check=True,
)
end = time.perf_counter()
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
accepted = {n: done.stdout.count(f'"{n}":true'.encode()) for n in ("GFB", "BCL")}
print(json.dumps({"judge_s": round(end - start, 3), "peak_mib": round(peak), "accepted": accepted}))
