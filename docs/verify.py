"""Verifies certificates of `warmset check --certificate FILE`: python3 verify.py FILE

A second verifier beside `warmset-verify`, to be read: standard library only, fractions only.
docs/certificates.md says what each proof rests on. Exit status: 0 every claim is verified, 1 some
claim is not, 2 the file could not be read. With --lines: one certificate a line on standard input.
"""
import json
import sys
from fractions import Fraction as Q
from math import ceil

ORDERS = {"p-edf": ("edf", "one"), "edf-wm": ("slices", "one"), "edf-fm": ("turns", "one"),
          "nps-f": ("servers", "all"), "c-nps-f": ("servers", "some"), "pd2": ("quanta", "all"),
          "c-edf": ("edf", "some"), "g-edf": ("edf", "all"), "g-fifo": ("fifo", "all"),
          "p-rm": ("rm", "one"), "p-fp": ("given", "one"), "p-fp:dm": ("dm", "one"),
          "p-fp:rm": ("rm", "one"), "g-fp": ("given", "all"), "g-fp:dm": ("dm", "all"),
          "g-fp:rm": ("rm", "all")}
ANY_PARAMETER = ("c-edf", "edf-wm", "edf-fm", "nps-f", "c-nps-f")
QUANTUM = 10 ** 6  # of pd2
HEAD = {"schema_version", "document", "guarantee", "rule", "processors", "ways", "tasks", "claims",
        "without"}
TASK = {"task", "wcet_ns", "period_ns", "deadline_ns", "phase_ns", "jitter_ns", "blocking_ns",
        "priority", "processors"}
CLAIM = {"policy", "says", "with", "costs", "places", "stuck", "refutation"}
PLACE = {"processors", "tasks", "inflated_ns", "windows_ns", "budgets_ns", "slices", "parts",
         "proof", "refusals"}
TURN = {"cpu", "server", "from_ns", "until_ns"}
SIX = ("release_ns", "scheduling_ns", "context_switch_ns", "ipi_latency_ns", "timer_transfer_ns",
       "tick_ns")
COSTS = {"delay_ns", "ways", "delays_ns", "tick_period_ns", *SIX}
PROOFS = {"DEMAND": {"until", "points"}, "RESPONSES": {"jobs"}, "UTILIZATION": {"total"},
          "GFB": {"total", "largest"}, "GDM-DENSITY": {"total", "largest"}, "BAK": {"sides"},
          "BCLI": {"rounds"}, "RTA": {"rounds"}, "GFP-RTA": {"responses"},
          "LOAD": {"until", "points"}, "FFDBF": {"speed", "until", "points"},
          "BAR": {"until", "windows"},
          "PD2": {"quanta", "total"}, "NPS-F": {"slot_ns", "servers", "turns"}}
REFUSALS = {"UTILIZATION": set(), "TASK": {"index"}, "DEMAND": {"until"},
            "GFB": set(), "GDM-DENSITY": set(), "BAK": {"index"}, "LOAD": {"until"},
            "MISS": {"index", "releases_ns", "schedule"}}


class Bad(Exception):
    """The file is no certificate."""


def demand_that(holds, otherwise, error=AssertionError):
    if not holds:
        raise error(otherwise)


def number(value):
    """A whole number, or text of digits or of a fraction of them."""
    if type(value) is int and 0 <= value < 2 ** 64:
        return Q(value)
    demand_that(type(value) is str, "a number is none", Bad)
    above, slash, below = value.partition("/")
    below = below if slash else "1"
    digits = all(part.isascii() and part.isdigit() for part in (above, below))
    demand_that(digits and int(below) != 0, "a number is none", Bad)
    return Q(int(above), int(below))


def index(value, most=2 ** 32):
    demand_that(type(value) is int and 0 <= value < most, "a whole number is none", Bad)
    return value


def fields(value, known, needed=()):
    is_known = type(value) is dict and set(value) <= known and set(needed) <= set(value)
    demand_that(is_known, "a field is missing or not known", Bad)
    return {key: item for key, item in value.items() if item is not None}


def listed(value, read=lambda item: item):
    demand_that(type(value) is list, "a list is none", Bad)
    return [read(item) for item in value]


def pair(value):
    demand_that(type(value) is list and len(value) == 2, "a pair is none", Bad)
    return [number(item) for item in value]


def row(read):
    return lambda value: listed(value, read)


def piece(value):
    fields(value, {"until_ns", "runs"}, ("until_ns", "runs"))
    return number(value["until_ns"]), listed(value["runs"], lambda n: index(n, 2 ** 64))


def turn(value):
    """Processor, server, from, until."""
    value = fields(value, TURN, TURN)
    numbers = index(value.get("cpu")), index(value.get("server"), 2 ** 64)
    return (*numbers, number(value.get("from_ns")), number(value.get("until_ns")))


def margin(value):
    """What a claim is about instead of the set and the delays as they were given."""
    value = fields(value, {"thousandths", "cpmd_ns"})
    return {key: number(n) for key, n in value.items()}


def tagged(value, kinds):
    demand_that(type(value) is dict and value.get("by") in kinds, "a kind is not known", Bad)
    keys = kinds[value["by"]] | {"by"}
    fields(value, keys, keys)
    read = {"until": number, "speed": number, "total": number, "largest": number,
            "points": row(pair), "windows": row(row(pair)), "sides": row(pair),
            "responses": row(number), "jobs": row(row(number)),
            "quanta": row(number), "slot_ns": number, "turns": row(turn),
            "servers": row(lambda n: index(n, 2 ** 64)),
            "rounds": row(row(lambda n: None if n is None else number(n))),
            "index": lambda n: index(n, 2 ** 64), "by": str,
            "releases_ns": row(row(number)), "schedule": row(piece)}
    return {key: read[key](value[key]) for key in keys}


class Task:
    def __init__(self, entry):
        entry = fields(entry, TASK, ("task", "wcet_ns", "period_ns", "deadline_ns"))
        self.name = entry["task"]
        demand_that(type(self.name) is str, "a name is none", Bad)
        times = [number(entry.get(key, 0)) for key in
                 ("wcet_ns", "period_ns", "deadline_ns", "phase_ns", "jitter_ns", "blocking_ns")]
        is_whole = all(t.denominator == 1 for t in times)
        is_whole = is_whole and all(0 < t < 2 ** 64 for t in times[:3])
        demand_that(is_whole, "a time is zero, a fraction or endless", Bad)
        self.e, self.p, self.d, self.phase, self.jitter, self.blocking = times
        self.priority = index(entry["priority"]) if "priority" in entry else -1
        self.cpus = listed(entry["processors"], index) if "processors" in entry else None

    def with_(self, **changes):
        other = Task.__new__(Task)
        other.__dict__.update(self.__dict__, **changes)
        return other

    def allows(self, cpus):
        return self.cpus is None or set(cpus) <= set(self.cpus)


def load(tasks):
    return sum((t.e / t.p for t in tasks), Q(0))


def ranks(order, tasks):
    keys = {"rm": lambda t: t.p, "dm": lambda t: t.d, "given": lambda t: -t.priority}
    by_rank = sorted(range(len(tasks)), key=lambda i: keys.get(order, lambda t: 0)(tasks[i]))
    return {k: rank for rank, k in enumerate(by_rank)}


class Place:
    """The tasks of a processor or cluster; `tasks` have their overheads."""

    def __init__(self, place):
        place = fields(place, PLACE)
        self.cpus = listed(place.get("processors", []), index)
        self.ids = listed(place.get("tasks", []), lambda n: index(n, 2 ** 64))
        self.inflated, self.windows, self.budgets, self.parts = (
            listed(place.get(key, []), number)
            for key in ("inflated_ns", "windows_ns", "budgets_ns", "parts"))
        self.slices = listed(place.get("slices", []), lambda n: index(n, 2 ** 64))
        self.proof = tagged(place["proof"], PROOFS) if "proof" in place else None
        self.refusals = listed(place.get("refusals", []), lambda r: tagged(r, REFUSALS))

    def enter(self, order, is_hard, tasks):
        self.order, self.is_hard, self.m = order, is_hard, len(self.cpus)
        windows = self.windows or [tasks[i].d for i in self.ids]
        self.tasks = [tasks[i].with_(e=wcet, d=window)
                      for i, wcet, window in zip(self.ids, self.inflated, windows)]
        self.ranks = ranks(order, self.tasks)
        self.is_fixed = order in ("rm", "dm", "given")

    def reduced(self, sporadic, may_be_late=False):
        """Blocking as execution, deadlines (and periods) less jitter; D <= p."""
        tasks = [t.with_(e=t.e + t.blocking, d=t.d - t.jitter, p=t.p - sporadic * t.jitter)
                 for t in self.tasks]
        demand_that(all(0 < t.d <= t.p for t in tasks), "the test does not apply")
        demand_that(may_be_late or all(t.e <= t.d for t in tasks), "a task alone is late")
        return tasks


# One processor.

def demand(tasks, t):
    return sum(((t - k.d) // k.p + 1) * k.e for k in tasks if k.d <= t)


def deadline_before(tasks, t):
    return max((k.d + (ceil((t - k.d) / k.p) - 1) * k.p for k in tasks if k.d < t), default=None)


def demand_holds(tasks, until, points):
    """Blocking and demand, with deadlines from the latest releases, by every deadline."""
    tasks = [t.with_(d=t.d - t.jitter) for t in tasks]
    most = max((t.blocking for t in tasks), default=Q(0))
    is_over = until > 0 and most + sum(ceil(until / t.p) * t.e for t in tasks) <= until
    fits = until >= most and is_below_from(tasks, 1 - most / until if most else 1, until)
    demand_that(is_over or fits, "the demand may fail later")

    def first(t):
        return max((k.d for k in tasks if k.d <= t), default=Q(0))

    def due(t):
        blocked = (k.blocking for k in tasks if k.d <= t and k.d == first(t))
        return demand(tasks, t) + max(blocked, default=0)
    is_below(1, due, lambda t: deadline_before(tasks, t), until, points,
             first if most else lambda t: 0)


def is_below_from(tasks, rate, t):
    """Is the demand at most rate * t from t on? It is at most U*t + the sum of max(0, e - u*D)."""
    ahead = sum((max(0, k.e - k.e / k.p * k.d) for k in tasks), Q(0))
    return load(tasks) <= rate and ahead <= (rate - load(tasks)) * t


def is_below(rate, due, last_before, until, points, rises_from=lambda t: 0):
    """Is due(t) at most rate * t for all t, if nothing can fail beyond `until`?"""
    left = until + 1
    for t, stated in points:
        demand_that(due(t) == stated <= rate * t, f"the demand by {t} is not as stated")
        last = last_before(left)
        demand_that(last is None or last <= t, f"times after {t} are left out")
        left = min(left, max(stated / rate, rises_from(t)))
    demand_that(last_before(left) is None, f"what is due before {left} is left out")


def before_done(here_tasks, rank, k, job, w):
    others = sum(ceil((w + t.jitter) / t.p) * t.e
                 for i, t in enumerate(here_tasks) if rank[i] < rank[k])
    return (job + 1) * here_tasks[k].e + here_tasks[k].blocking + others


def responses_hold(tasks, rank, jobs):
    demand_that(len(jobs) == len(tasks), "not every task has its jobs")
    for k, (task, times) in enumerate(zip(tasks, jobs)):
        for job, by in enumerate(times):
            demand_that(0 < by and before_done(tasks, rank, k, job, by) <= by, "not complete")
            may_be_late = by + task.jitter > job * task.p + task.d
            demand_that(not may_be_late, f"job {job} of task {k} may be late")
        is_over = times and times[-1] + task.jitter <= len(times) * task.p
        demand_that(is_over, "the busy window goes on")


def misses(here, late, releases, schedule):
    """Does the schedule leave a job of the task incomplete at its deadline? In each part the m most
    urgent of the pending jobs run, and none is released or complete within it; equal urgency goes
    by the earlier release, then by the order of the set. Blocking and jitter may not come."""
    tasks = here.tasks
    apart = (b - a >= t.p for t, r in zip(tasks, releases) for a, b in zip(r, r[1:]))
    demand_that(len(releases) == len(tasks) and all(apart), "releases are not a period apart")
    now, done, left = Q(0), [0] * len(tasks), [t.e for t in tasks]
    for until, runs in schedule:
        pending = [(here.ranks[k] if here.is_fixed else r[done[k]] + tasks[k].d, r[done[k]], k)
                   for k, r in enumerate(releases) if done[k] < len(r) and r[done[k]] <= now]
        first = sorted(k for _, _, k in sorted(pending)[:here.m])
        demand_that([here.ids[k] for k in first] == runs, f"from {now} on other jobs run")
        is_whole = now < until and not any(now < t < until for r in releases for t in r)
        demand_that(is_whole, f"a job is released before {until}")
        for k in first:
            left[k] -= until - now
            demand_that(left[k] >= 0, f"a job is complete before {until}")
            if left[k] == 0:
                left[k], done[k] = tasks[k].e, done[k] + 1
        now = until
    times = releases[late][done[late]:]
    return bool(times) and times[0] + tasks[late].d <= now


# Reservations.

def is_plain(t):
    return t.d == t.p and not t.jitter and not t.blocking


def quanta_hold(here, quanta, total):
    demand_that(len(quanta) == len(here.tasks), "not every task has its quanta")
    for t, count in zip(here.tasks, quanta):
        are_whole = count.denominator == 1 and t.p % QUANTUM == 0 and t.phase % QUANTUM == 0
        fits = count * QUANTUM == t.e <= t.p and is_plain(t)
        demand_that(are_whole and fits, f"`{t.name}` does not have whole quanta")
    demand_that(load(here.tasks) == total <= here.m, "U is not as stated, or too much")


def turns_are_apart(cpus, slot, turns):
    for at, (cpu, server, start, end) in enumerate(turns):
        demand_that(start <= end <= slot and cpu in cpus, "a turn is not within the slot")
        for cpu2, server2, start2, end2 in turns[:at]:
            apart = (cpu != cpu2 and server != server2) or end2 <= start or end <= start2
            demand_that(apart, "a processor serves two servers at once, or two serve one")


def server_holds(tasks, slot, turns, lost, interrupted):
    """Is a server of these tasks served long enough by turns of these lengths, of which it loses
    something, if interrupts take a part of the time and, at once, more?"""
    x = sum((max(Q(0), length - lost(length)) for length in turns), Q(0))
    shortest = min(t.p for t in tasks)
    demand_that(0 < slot <= shortest, "a period is shorter than the slot")
    slots, (part, once) = shortest // slot, interrupted
    holds = (load(tasks) + part + once / shortest) * ((slots + 1) * slot - x) <= slots * x
    demand_that(holds and all(is_plain(t) and t.e <= t.p for t in tasks),
                "a server is not served for as long as it needs")


# Several processors.

def densities(here, tasks, fixed):
    """Their sum, their maximum, and whether the test holds: GFB, or GDM-DENSITY."""
    if fixed:
        in_order = [tasks[k].d for k in sorted(here.ranks, key=here.ranks.get)]
        demand_that(here.m >= 2 and in_order == sorted(in_order), "priorities are not by deadline")
    all_ = [t.e / t.d for t in tasks]
    total, largest, m = sum(all_, Q(0)), max(all_, default=Q(0)), here.m
    holds = 2 * total + (m - 2) * largest <= m if fixed else total + (m - 1) * largest <= m
    return total, largest, holds


def bak(tasks, m, k):
    d, density = tasks[k].d, tasks[k].e / tasks[k].d
    left = sum((min(d, t.e / t.p * (d + t.p - t.d) + max(0, t.e - density * t.p)) for t in tasks),
               Q(0))
    right = m * d - (m - 1) * tasks[k].e
    return left, right, left <= right


def others(tasks, k):
    return [i for i in range(len(tasks)) if i != k]


def within(t, length, slack):
    return length // t.p * t.e + min(t.e, max(0, length % t.p - slack))


def is_short(works, m, x):
    total = sum(min(w, x) for w in works)
    return total < m * x or (total == m * x and sum(w > x for w in works) < m)


def rounds_hold(rounds, count, slack_of):
    slacks = [Q(0)] * count
    for stated in rounds:
        demand_that(len(stated) == count, "a round does not have every task")
        after = list(slacks)
        for k, n in enumerate(stated):
            if n is not None:
                after[k] = slack_of(k, n, slacks)
                demand_that(after[k] is not None and after[k] >= slacks[k], f"{n} does not follow")
        slacks = after
    demand_that(count == 0 or (rounds and None not in rounds[-1]), "a task does not pass")


def brought(tasks, k, slacks):
    return [within(tasks[i], tasks[k].d, slacks[i]) for i in others(tasks, k)]


def bcli(here, rounds):
    tasks, m = here.reduced(False), here.m

    def slack_of(k, slack, slacks):
        most = tasks[k].d - tasks[k].e
        works = brought(tasks, k, slacks)
        holds = sum(min(w, most) for w in works) <= m * (most - slack) and is_short(works, m, most)
        return slack if holds else None
    rounds_hold(rounds, len(tasks), slack_of)


def rta(here, rounds):
    tasks, m = here.reduced(True), here.m

    def slack_of(k, response, slacks):
        def bring(i):
            t = tasks[i]
            fits = within(t, response + t.d - t.e - slacks[i], 0)
            return min(fits, within(t, tasks[k].d, slacks[i]))
        works = [bring(i) for i in others(tasks, k)]
        holds = tasks[k].e <= response <= tasks[k].d and is_short(works, m, response - tasks[k].e)
        return tasks[k].d - response if holds else None
    rounds_hold(rounds, len(tasks), slack_of)


def carried_in(m, works):
    """Of works without and with what is carried in, the most in all if m - 1 tasks carry in."""
    more = sorted((max(0, b - a) for a, b in works), reverse=True)
    return sum(a for a, _ in works) + sum(more[:m - 1])


def gfp_rta(here, responses):
    tasks, m = here.reduced(True), here.m
    is_whole = all(r.denominator == 1 for r in responses)
    demand_that(len(responses) == len(tasks) and is_whole, "not every task has a whole bound")
    for k, (task, window) in enumerate(zip(tasks, responses)):
        works = [(within(t, window, 0),
                  t.e + within(t, max(Q(0), window - t.e), t.p - responses[i]))
                 for i, t in enumerate(tasks) if here.ranks[i] < here.ranks[k]]

        def interference(z):
            return carried_in(m, [(min(a, z), min(b, z)) for a, b in works])
        x = window - task.e
        half = x + Q(1, 2)
        holds = interference(x) < m * x or (interference(x) == m * x
                                            and interference(half) < m * half)
        demand_that(x >= 0 and window <= task.d and holds, f"{window} bounds no response")


def load_bound(here):
    """The tasks, and the most that may be due of each unit of time."""
    m, tasks = here.m, [t.with_(e=t.e + t.blocking, d=t.d - t.jitter) for t in here.tasks]
    demand_that(all(t.d > 0 for t in tasks), "a deadline is before the latest release")
    largest = max((t.e / min(t.d, t.p) for t in tasks), default=Q(0))
    mu = m - (m - 1) * largest
    whole = ceil(mu) - 1
    rate = max(mu - whole * largest, whole - (whole - 1) * largest)
    demand_that(largest <= 1, "a task is too dense")
    return tasks, rate


def load_holds(here, until, points):
    tasks, rate = load_bound(here)
    demand_that(is_below_from(tasks, rate, until), "the demand may fail later")
    is_below(rate, lambda t: demand(tasks, t), lambda t: deadline_before(tasks, t), until, points)


def ffdbf(here, speed, until, points):
    tasks, rate = here.reduced(False), here.m - (here.m - 1) * speed
    is_speed = speed <= 1 and all(t.e <= speed * t.d for t in tasks)
    demand_that(is_speed and is_below_from(tasks, rate, until), "no speed, or it may fail later")

    def due(t):
        return sum((t // k.p * k.e + max(0, k.e - speed * max(0, k.d - t % k.p)) for k in tasks),
                   Q(0))
    is_below(rate, due, lambda t: deadline_before(tasks, t), until, points)


def bar(here, until, windows):
    tasks, m = here.reduced(False), here.m
    demand_that(len(windows) == len(tasks) and m > 1 and until > 0, "windows are missing")
    longest = max((t.e for t in tasks), default=Q(0))
    rate = m - (2 * m - 1) * longest / until
    demand_that(is_below_from(tasks, rate, until), f"a window beyond {until} may fail")
    for k, (task, stated) in enumerate(zip(tasks, windows)):
        def due(window):
            works = []
            for i, t in enumerate(tasks):
                own, limit = (t.e, t.d) if i == k else (0, task.e - 1)
                works.append([min(work - own, window - limit)
                              for work in (demand([t], window), within(t, window, 0))])
            return carried_in(m, works) / m + task.e

        def last_before(left):
            return ceil(left) - 1 if ceil(left) - 1 >= task.d else None
        is_below(1, due, last_before, until, stated)


# Claims.

def holds(here, proof):
    by, edf = proof["by"], here.order == "edf"
    by_demand = edf or here.order == "slices"
    if by == "DEMAND" and by_demand and here.m == 1:
        demand_holds(here.tasks, proof["until"], proof["points"])
    elif by == "RESPONSES" and here.is_fixed and here.m == 1:
        responses_hold(here.tasks, here.ranks, proof["jobs"])
    elif by == "UTILIZATION" and not here.is_hard and here.order in ("edf", "fifo", "turns"):
        are_plain = all(is_plain(t) for t in here.tasks)
        demand_that(here.order != "turns" or are_plain, "tasks in turns do not have D = p")
        several = here.m > 1
        demand_that(not several or not any(t.jitter for t in here.tasks), "jitter is not taken")
        tasks = [t.with_(e=t.e + several * t.blocking) for t in here.tasks]
        # Under EDF-fm parts of tasks count; those that run elsewhere, too, go first.
        parts = here.parts or [Q(1)] * len(tasks)
        total = sum((t.e / t.p * part for t, part in zip(tasks, parts)), Q(0))
        demand_that(total == proof["total"] <= here.m, "U is not as stated")
        first = load([t for t, part in zip(tasks, parts) if part < 1])
        demand_that(first <= 1, "tasks that run elsewhere, too, ask for more than the processor")
        demand_that(all(t.e <= t.p for t in tasks), "a task asks for more than a processor")
    elif (by == "GFB" and edf) or (by == "GDM-DENSITY" and here.is_fixed):
        found = densities(here, here.reduced(here.is_fixed), by != "GFB")
        demand_that(found == (proof["total"], proof["largest"], True), "the densities do not fit")
    elif by == "BAK" and edf:
        tasks = here.reduced(False)
        demand_that(len(tasks) == len(proof["sides"]), "not every task has its inequality")
        for k, (left, right) in enumerate(proof["sides"]):
            demand_that(bak(tasks, here.m, k) == (left, right, True), f"it fails for task {k}")
    elif by in ("BCLI", "RTA") and edf:
        (bcli if by == "BCLI" else rta)(here, proof["rounds"])
    elif by == "GFP-RTA" and here.is_fixed:
        gfp_rta(here, proof["responses"])
    elif by == "LOAD" and edf:
        load_holds(here, proof["until"], proof["points"])
    elif by == "FFDBF" and edf:
        ffdbf(here, proof["speed"], proof["until"], proof["points"])
    elif by == "BAR" and edf:
        bar(here, proof["until"], proof["windows"])
    elif by == "PD2" and here.order == "quanta":
        quanta_hold(here, proof["quanta"], proof["total"])
    else:
        raise AssertionError("the proof is not one for this policy, place and guarantee")


def is_refused(here, why):
    by, edf = why["by"], here.order == "edf"
    if "index" in why:
        demand_that(why["index"] in here.ids, "the task is not there")
        k = here.ids.index(why["index"])
    if by == "UTILIZATION":
        return load(here.tasks) > here.m
    if by == "TASK":
        t = here.tasks[k]
        return t.e > t.p or (here.is_hard and t.e + t.jitter > t.d)
    if by == "DEMAND" and edf and here.m == 1 and here.is_hard:
        return demand(here.tasks, why["until"]) > why["until"]
    if by == "MISS" and (edf or here.is_fixed):
        return misses(here, k, why["releases_ns"], why["schedule"])
    if (by == "GFB" and edf) or (by == "GDM-DENSITY" and here.is_fixed):
        return not densities(here, here.reduced(by != "GFB", True), by != "GFB")[2]
    if by == "LOAD" and edf:
        tasks, rate = load_bound(here)
        return load(tasks) > rate or demand(tasks, why["until"]) > rate * why["until"]
    if by == "BAK" and edf:
        return not bak(here.reduced(False, True), here.m, k)[2]
    raise AssertionError("the refusal is not one for this policy and place")


class Certificate:
    def __init__(self, text):
        try:
            head = json.loads(text)
        except ValueError as error:
            raise Bad(error) from error
        head = fields(head, HEAD, HEAD - {"ways", "without"})
        kind = (head["document"], head["schema_version"])
        demand_that(kind == ("warmset certificate", 1), "it is no certificate of version 1", Bad)
        demand_that(head["guarantee"] in ("hard", "soft"), "the guarantee is not known", Bad)
        rules = ("one-delay", "by-piece", "all-overheads", "paper")
        demand_that(head["rule"] in rules, "the rule is not known", Bad)
        self.is_hard, self.rule = head["guarantee"] == "hard", head["rule"]
        self.cpus, m = listed(head["processors"], index), len(head["processors"])
        demand_that(m and len(set(self.cpus)) == m, "the processors are no list of them", Bad)
        ways = [listed(line) for line in listed(head.get("ways", []))]
        is_square = len(ways) == m and all(len(line) == m for line in ways)
        demand_that(is_square or (self.rule == "one-delay" and not ways), "ways are missing", Bad)
        demand_that(all(type(w) is str for line in ways for w in line), "a way is none", Bad)
        self.ways = {(a, b): w for a, line in zip(self.cpus, ways) for b, w in zip(self.cpus, line)}
        self.tasks = self.given = listed(head["tasks"], Task)
        self.claims = listed(head["claims"], self.read_claim)
        for one in listed(head.get("without", [])):
            one = fields(one, {"policy", "with", "why"}, ("policy", "why"))
            margin(one.get("with", {}))
            demand_that(type(one["policy"]) is type(one["why"]) is str, "a text is none", Bad)

    @staticmethod
    def read_claim(claim):
        claim = fields(claim, CLAIM, ("policy", "says"))
        demand_that(type(claim["policy"]) is str, "the policy is none", Bad)
        demand_that(claim["says"] in ("yes", "refuted", "not-shown"), "it says nothing", Bad)
        claim["with"] = margin(claim.get("with", {}))
        costs = fields(claim.get("costs", {}), COSTS)
        if "stuck" in claim:
            index(claim["stuck"], 2 ** 64)
        claim["places"] = listed(claim.get("places", []), Place)
        claim["ways"] = listed(costs.pop("ways", []))
        demand_that(all(type(w) is str for w in claim["ways"]), "a way is none", Bad)
        claim["delays"] = listed(costs.pop("delays_ns", []), row(number))
        claim["costs"] = {key: number(costs.get(key, 0))
                          for key in ("delay_ns", "tick_period_ns", *SIX)}
        if "refutation" in claim:
            claim["refutation"] = tagged(claim["refutation"], REFUSALS)
        return claim

    def verify(self, claim):
        """Raises AssertionError with what is wrong."""
        name = claim["policy"]
        base = name.partition(":")[0]
        plain = base if base in ANY_PARAMETER else name.removesuffix(":")
        known = ORDERS.get(plain)
        demand_that(known is not None, "there are no proofs for the policy")
        order, width = known
        factor = claim["with"].get("thousandths", Q(1000)) / 1000
        self.tasks = [t.with_(e=Q(ceil(t.e * factor))) for t in self.given]
        says, why, places = claim["says"], claim.get("refutation"), claim["places"]
        if says == "refuted":
            alone = not places and "stuck" not in claim and "cpmd_ns" not in claim["with"]
            demand_that(why and alone, "no refutation alone")
            demand_that(self.refutes(order, width, why), "what is said to refute the set does not")
            return
        demand_that(why is None, "a refutation is given")
        is_split = order in ("slices", "turns", "servers")
        demand_that(not is_split or says == "yes", "what splitting does not find refutes nothing")
        self.check_costs(claim, order)
        self.check_places(claim, order, width)
        for place in places:
            place.enter(order, self.is_hard, self.tasks)
            self.compare(claim, place, order)
            if says == "yes":
                demand_that(place.proof and not place.refusals, "no proof alone")
                if (order, place.proof["by"]) == ("servers", "NPS-F"):
                    self.servers_hold(claim, place)
                else:
                    holds(place, place.proof)
            else:
                demand_that(place.refusals and not place.proof, "no refusals alone")
                for refusal in place.refusals:
                    demand_that(is_refused(place, refusal), "a test does not refuse the tasks")

    def refutes(self, order, width, why):
        everywhere = Place({"processors": self.cpus, "tasks": [], "inflated_ns": []})
        everywhere.ids = list(range(len(self.tasks)))
        everywhere.inflated = [t.e for t in self.tasks]
        everywhere.enter(order, self.is_hard, self.tasks)
        together = self.is_hard and all(t.phase == 0 for t in self.tasks)
        all_share = width == "all" or (width == "one" and len(self.cpus) == 1)
        anywhere = together and all_share and all(t.allows(self.cpus) for t in self.tasks)
        kinds = {"UTILIZATION", "TASK"} | ({"DEMAND"} if together else set()) \
            | ({"MISS"} if anywhere else set())
        return why["by"] in kinds and is_refused(everywhere, why)

    def check_costs(self, claim, order):
        costs, ways, delays = claim["costs"], claim["ways"], claim["delays"]
        are_free = not any(costs[key] for key in SIX)
        is_table = len(delays) == len(self.tasks) and all(len(r) == len(ways) for r in delays)
        # In quanta each task has its own delay by that rule.
        own = delays and is_table and order == "quanta" and not costs["delay_ns"]
        fits = {"one-delay": are_free and (own or not (ways or delays)),
                "by-piece": are_free and is_table and not costs["delay_ns"]}
        several = is_table and not costs["delay_ns"] and costs["tick_period_ns"] > 0
        demand_that(fits.get(self.rule, several), "the costs are not those of the rule")
        one = [costs["delay_ns"]] if self.rule == "one-delay" and not own else []
        are_named = all(d == claim["with"].get("cpmd_ns", d) for r in [*delays, one] for d in r)
        demand_that(are_named, "a cache delay is not that of the margin")

    def is_whole(self, claim, order, task):
        """All of a task: slices with all of its execution, in windows one after the other (EDF-WM);
        all of its jobs, on two processors at most (EDF-fm); all of it in one place."""
        here = [(p, p.ids.index(task)) for p in claim["places"] if task in p.ids]
        t = self.tasks[task]
        if order == "slices":
            windows = sum(p.windows[k] for p, k in here)
            # One that is whole goes by the deadline of its task.
            fits = windows == t.d if len(here) == 1 else windows <= min(t.d, t.p)
            return fits and sum(p.budgets[k] for p, k in here) >= t.e + claim["costs"]["delay_ns"]
        if order == "turns":
            return len(here) <= 2 and sum(p.parts[k] for p, k in here) == 1
        return len(here) == 1

    def check_places(self, claim, order, width):
        free, counts = set(self.cpus), [0] * len(self.tasks)
        for place in claim["places"]:
            size = len(place.cpus)
            fits = {"one": size == 1, "all": size == len(self.cpus), "some": size > 0}[width]
            fits = fits and len(set(place.cpus)) == size and set(place.cpus) <= free
            demand_that(fits, "it is no place of this policy")
            free -= set(place.cpus)
            count = len(place.ids)
            lists = [len(place.windows), len(place.budgets), len(place.slices)]
            are_all = lists == [count * (order == "slices")] * 3 and len(place.inflated) == count
            are_all = are_all and len(place.parts) == count * (order == "turns")
            is_whole = all(wcet.denominator == 1 for wcet in place.inflated)
            demand_that(are_all and is_whole, "a WCET is missing")
            demand_that(place.ids == sorted(set(place.ids)), "the tasks are not in order")
            for i in place.ids:
                demand_that(i < len(counts) and self.tasks[i].allows(place.cpus), "not allowed")
                counts[i] += 1
        stuck = claim.get("stuck")
        if claim["says"] == "yes":
            in_order = stuck is None and all(self.is_whole(claim, order, i)
                                             for i in range(len(counts)))
        elif stuck is None:
            in_order = claim["places"] and all(count <= 1 for count in counts)
        else:
            demand_that(stuck < len(counts), "there is no such task")
            left = any(self.tasks[stuck].allows([cpu]) for cpu in free)
            in_order = not left and counts[stuck] == len(claim["places"]) \
                and all(count <= 1 for i, count in enumerate(counts) if i != stuck)
        demand_that(in_order, "a task is left out, or is in two places")

    def compare(self, claim, place, order):
        endless = Q(2 ** 64 - 1)
        for i, stated, needed in zip(place.ids, place.inflated, self.needed(claim, place, order)):
            if claim["says"] != "yes":
                needed = min(needed, endless)
                demand_that(stated <= min(needed + 2, endless), "a WCET is too long")
            demand_that(needed <= stated, f"`{self.tasks[i].name}` needs {needed} ns")

    def longest(self, claim, task, cpus):
        """The longest delay with which a task can resume among these processors."""
        if self.rule == "one-delay":
            return Q(0)
        ways = {"preemption"} | {self.ways[a, b] for n, a in enumerate(cpus) for b in cpus[n + 1:]}
        demand_that(ways <= set(claim["ways"]), "a way to resume has no delay")
        return max(claim["delays"][task][claim["ways"].index(way)] for way in ways)

    def residents(self, claim, place, order):
        """By task of a place what executes there, the delays with which that begins and goes on,
        which part of its jobs comes, how early timers may be transferred for it, and calls."""
        all_, loaded = [], self.rule == "by-piece"  # the WCET has the first loading in it
        for k, i in enumerate(place.ids):
            t, stays = self.tasks[i], self.longest(claim, i, place.cpus)
            one = (t.e, Q(0) if loaded else stays, stays, Q(1), None, 0)
            having = {p.slices[p.ids.index(i)] if p.slices else n: p.cpus[0]
                      for n, p in enumerate(claim["places"]) if i in p.ids}
            if order == "turns" and place.parts[k] < 1:
                ends = [cpu for cpu in having.values() if cpu != place.cpus[0]] + place.cpus
                moves = self.longest(claim, i, ends)
                one = (t.e, Q(0) if loaded else moves, stays, place.parts[k], t.p, 1)
            elif order == "slices":
                count = sum(i in p.ids for p in claim["places"])
                is_order = sorted(having) == list(range(count)) or count == 1
                demand_that(is_order, f"the slices of `{t.name}` are not in order")
                at, budget = place.slices[k], place.budgets[k]
                one = (budget, *one[1:])
                if count > 1:
                    ends = (having[(at - 1) % count], place.cpus[0])
                    moves = self.longest(claim, i, ends)
                    one = (budget, moves, moves, Q(1), place.windows[k], 1) if at > 0 else \
                        (budget, Q(0) if loaded else moves, stays, Q(1), max(t.p, t.d), 0)
            all_.append(one)
        return all_

    def disturbing(self, place, order, residents, wide):
        """By task the longest delay of another one that goes on where a job of it completes."""
        by_piece, m = self.rule == "by-piece", place.m
        is_unordered = any(t.jitter or t.blocking for t in self.tasks)
        first = [(one[3] == 1, t.d) for one, t in zip(residents, place.tasks)]

        def disturbs(k, i):
            if not by_piece or is_unordered:
                return True
            if order == "fifo":
                return False
            if place.is_fixed:
                return place.ranks[k] < place.ranks[i]
            return wide or first[k] < first[i]
        waits = not by_piece or not wide or len(residents) > m
        return [max((residents[i][2] for i in others(residents, k) if waits and disturbs(k, i)),
                    default=Q(0)) for k in range(len(residents))]

    def needed(self, claim, place, order, served=False):
        """By task the least WCET that holds its overheads."""
        costs, m, is_hard = claim["costs"], place.m, self.is_charged_hard()
        if order == "servers" and not served and self.rule != "one-delay":
            needed = {}
            for server, _ in self.servers(place):
                needed.update(zip(server.ids, self.needed(claim, server, order, True)))
            return [needed[i] for i in place.ids]
        residents = self.residents(claim, place, order)
        if order == "quanta":
            return [self.quanta(claim, place, t, one[2]) for t, one in zip(place.tasks, residents)]
        if self.rule == "one-delay":  # the budgets of slices contain it
            return [one[0] + costs["delay_ns"] * (order != "slices") for one in residents]
        other = self.disturbing(place, order, residents, m > 1 and not served)
        own = [one[0] + one[1] + o for one, o in zip(residents, other)]
        if self.rule == "by-piece":
            return own
        counts = {(0, 0): (2, 2, 0), (0, 1): (2, 2, 1), (1, 0): (3, 3, 0),
                  (1, 1): (4, 4, 1) if served else (6, 5, 2)}[is_hard, m > 1]
        release, tick = costs["release_ns"], costs["tick_ns"]
        own = [e + sections(costs, *counts) + costs["ipi_latency_ns"] * one[5]
               for e, one in zip(own, residents)]
        if served:
            return [e + release for e in own]
        once, rate = tick, tick / costs["tick_period_ns"]
        for t, (_, _, _, part, early, _) in zip(place.tasks, residents):
            transfer = costs["timer_transfer_ns"] * (early is not None)
            # Of n jobs in a row n * part + 1 come here, or all.
            once += (part + (part < 1)) * (release + transfer) + part * transfer * (early or 0) / t.p
            rate += part * (release + transfer) / t.p
        return [(e + once) / (1 - rate) if rate < 1 else Q(2 ** 64) for e in own]

    def is_charged_hard(self):
        return self.is_hard and self.rule == "all-overheads"

    def quanta(self, claim, place, task, delay):
        """The quanta of a job, each of which loses something."""
        costs, e = claim["costs"], self.tasks[place.ids[place.tasks.index(task)]].e

        def count(time, lost):
            return Q(ceil(time / (QUANTUM - lost)) * QUANTUM if lost < QUANTUM else 2 ** 64)
        if self.rule == "one-delay":
            own = claim["delays"][place.ids[place.tasks.index(task)]] if claim["delays"] else []
            return count(e, max([*own, costs["delay_ns"]]))
        if self.rule == "by-piece":  # all but the first
            return QUANTUM + (count(e - QUANTUM, delay) if e > QUANTUM else 0)
        counts = ((1, 1, 0), (2, 1, 0), (3, 2, 1))[self.is_charged_hard() * (1 + (place.m > 1))]
        each = delay + sections(costs, *counts) \
            + costs["tick_ns"] * ceil(QUANTUM / costs["tick_period_ns"])
        # Releases: one of each task in every quantum, or all that come while the job is there.
        release = costs["release_ns"]
        meanwhile = ceil(release * sum(task.p / t.p + 2 for t in place.tasks))
        return min(count(e, each + release * len(place.tasks)), count(e + meanwhile, each))

    def servers(self, place):
        """Each server as a place of its own, and the lengths of its turns."""
        demand_that(place.proof["by"] == "NPS-F", "servers have no turns")
        server_of, turns = place.proof["servers"], place.proof["turns"]
        demand_that(len(server_of) == len(place.ids), "not every task has its server")
        for server in set(server_of):
            alone, mine = Place({}), [k for k, s in enumerate(server_of) if s == server]
            own = [turn for turn in turns if turn[1] == server]
            demand_that({turn[0] for turn in own} <= set(place.cpus), "a turn is not there")
            alone.cpus = sorted({turn[0] for turn in own})
            alone.ids, alone.inflated = ([of[k] for k in mine] for of in (place.ids, place.inflated))
            alone.enter("servers", self.is_hard, self.tasks)
            yield alone, [end - start for _, _, start, end in own]

    def servers_hold(self, claim, place):
        costs, slot = claim["costs"], place.proof["slot_ns"]
        turns_are_apart(place.cpus, slot, place.proof["turns"])
        all_ = list(self.servers(place))
        for server, turns in all_:
            counts = ((1, 1, 0), (1, 1, 1), (2, 2, 0), (5, 4, 1))[
                2 * self.is_charged_hard() + (server.m > 1)]
            switch = sections(costs, *counts) \
                + max(self.longest(claim, i, server.cpus) for i in server.ids)

            def lost(length):
                """To the switch to it, if it is ever left, and to ticks."""
                tick = costs["tick_ns"]
                ticks = tick and tick * (ceil((length + tick) / costs["tick_period_ns"]) + 1)
                return switch * (turns != [slot]) + ticks
            near = [t for other, _ in all_ for t in other.tasks
                    if other is not server and set(other.cpus) & set(server.cpus)]
            part = sum((costs["release_ns"] / t.p for t in near), Q(0))
            once = costs["release_ns"] * (len(near) + len(server.ids))
            server_holds(server.tasks, slot, turns, lost, (part, once))


def sections(costs, scheduling, switches, calls):
    return costs["scheduling_ns"] * scheduling + costs["context_switch_ns"] * switches \
        + costs["ipi_latency_ns"] * calls


def answer(text):
    """`verified`, `not verified: …` or `bad: …`, and the exit status."""
    try:
        certificate = Certificate(text)
    except (Bad, RecursionError) as error:
        return f"bad: {error}", 2
    for claim in certificate.claims:
        try:
            certificate.verify(claim)
        except AssertionError as error:
            return f"not verified: {claim['policy']}: {error}", 1
    return ("verified", 0) if certificate.claims else ("not verified: no claim is made", 1)


def main(arguments):
    if arguments == ["--lines"]:
        for line in sys.stdin:
            print(answer(line)[0])
        return 0
    try:
        with open(arguments[0], encoding="utf-8") as file:
            told, status = answer(file.read())
    except (IndexError, OSError, UnicodeDecodeError) as error:
        told, status = f"bad: {error}", 2
    print(told)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
