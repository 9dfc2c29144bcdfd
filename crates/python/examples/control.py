"""An engineer's question: which scheduler keeps these control loops on two processors, with the
delays of this platform, and what do the response times look like?

    python control.py
"""

import polars

import warmset as ws

tasks = ws.TaskSet([
    ws.Task(wcet, period, name=f"{name}-{processor}", wss=wss)
    for processor in (1, 2)
    for name, wcet, period, wss in [
        ("control", "1ms", "5ms", "32KiB"),
        ("detect", "22ms", "40ms", "512KiB"),
        ("camera", "2ms", "33ms", "256KiB"),
    ]
])
print(tasks)

# Delays are read by working set size, from a built-in profile or one that `warmset measure` wrote.
verdicts = ws.check(tasks, m=2, cpmd="100us")
print(verdicts)

best = verdicts[0].policy
run = ws.simulate(tasks, policy=best, m=2, horizon="10s")
print(run)
assert run.trace.check() and not run.missed

jobs = run.responses.to_polars()
longest = jobs.group_by("task").agg(polars.col("response_ns").max()).sort("task")
print(longest)

with open("schedule.svg", "w", encoding="utf-8") as file:
    file.write(run.svg("0ms", "80ms"))
