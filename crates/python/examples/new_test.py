"""A researcher's question: is this new schedulability test better than the known ones, and is it
right? Tried on random sets, and held against simulated schedules.

    python new_test.py
"""

import os

import warmset as ws


@ws.test(policy="g-edf")
def density(tasks, m):
    """GFB by densities instead of utilizations: also for deadlines shorter than periods."""
    densities = [task.density for task in tasks]
    return sum(densities) <= m - (m - 1) * max(densities)


@ws.test(policy="g-edf")
def optimistic(tasks, m):
    """Wrong: what fits by utilization need not meet its deadlines under global EDF."""
    return sum(task.utilization for task in tasks) <= m


sets = ws.generate(100 * int(os.environ.get("SETS", "10")), utilization="bimodal-medium",
                   deadlines="constrained", cap=1.8, m=3)
for test in (density, optimistic):
    print(test.compare(sets, ["GFB", "BCL", "BAK"]))
    print()
