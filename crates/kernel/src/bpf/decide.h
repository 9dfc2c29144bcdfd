/* SPDX-License-Identifier: GPL-2.0 */
/* Who goes first, and who gets which processor. All of it is called with the lock of the domain held,
 * but for `call`. */
#ifndef WARMSET_DECIDE_H
#define WARMSET_DECIDE_H

static bool before(u32 a, u32 b)
{
	const struct task_plan *pa = &plan.task[at(a)], *pb = &plan.task[at(b)];
	const struct task *ta = &tasks[at(a)], *tb = &tasks[at(b)];
	u64 da = pa->fixed ? 0 : ta->due, db = pb->fixed ? 0 : tb->due;

	if (pa->class != pb->class)
		return pa->class < pb->class;
	return da != db ? da < db : ta->tie < tb->tie;
}

/* How many of the first jobs go to the first domain of a task. */
static u64 dealt(const struct task_plan *p, u64 jobs)
{
	return p->whole ? (jobs * p->part + p->whole - 1) / p->whole : jobs;
}

/* Which of the two domains of a task has this job. */
static u32 turn_of(u32 index, u64 number)
{
	const struct task_plan *p = &plan.task[at(index)];

	return dealt(p, number + 1) == dealt(p, number);
}

static u32 home_of(u32 index, u64 number)
{
	return plan.task[at(index)].home[turn_of(index, number) & 1];
}

/* The first job from `number` on that is this turn's. Of `whole` jobs in a row one is. */
static u64 next_of_turn(u32 index, u32 turn, u64 number)
{
	const struct task_plan *p = &plan.task[at(index)];
	u64 had = dealt(p, number), others = number - had;

	/* The k-th of the first domain is the least n for which n * part / whole, rounded up, is k;
	 * that of the second the least for which the rest is.
	 */
	if (!turn)
		return p->part ? (had * p->whole) / p->part : NEVER;
	if (p->whole <= p->part)
		return NEVER;
	return ((others + 1) * p->whole + (p->whole - p->part) - 1) / (p->whole - p->part) - 1;
}

static bool is_candidate(u32 index, u32 domain)
{
	const struct task *t = &tasks[at(index)];

	return t->home == domain && t->current && !t->held && !t->blocked && t->link == NONE &&
	       !t->chosen;
}

/* The first of the ready jobs of a domain that have no processor, by key. */
static s32 first_waiting(u32 domain)
{
	s32 best = NONE;
	u32 i;

	bpf_for(i, 0, plan.tasks) {
		if (is_candidate(i, domain) && (best == NONE || before(i, best)))
			best = i;
	}
	return best;
}

/* The last of the jobs that have a processor of a domain, by key; none: NONE. */
static s32 last_linked(u64 set)
{
	s32 worst = NONE;
	u32 cpu;

	bpf_for(cpu, 0, MAX_CPUS) {
		s32 link = cpus[cpu].link;

		if (!(set >> cpu & 1) || link == NONE)
			continue;
		if (worst == NONE || before(worst, link))
			worst = link;
	}
	return worst;
}

static u64 free_of(u64 set)
{
	u64 free = 0;
	u32 cpu;

	bpf_for(cpu, 0, MAX_CPUS) {
		if ((set >> cpu & 1) && cpus[cpu].link == NONE)
			free |= 1ULL << cpu;
	}
	return free;
}

static s32 lowest(u64 set)
{
	return set ? __builtin_ctzll(set) : NONE;
}

/* The free processor that is nearest to where the task was, the lowest of several. */
static s32 nearest(u64 free, s32 last)
{
	u32 level;

	if (last < 0 || last >= MAX_CPUS)
		return lowest(free);
	bpf_for(level, 0, MAX_LEVELS) {
		u64 around = plan.near[(u32)last % MAX_CPUS][level % MAX_LEVELS] & free;

		if (around)
			return lowest(around);
	}
	return lowest(free);
}

static void link_to(u32 index, s32 cpu)
{
	struct task *t = &tasks[at(index)];

	u32 slot = cpu;

	if (cpu < 0 || cpu >= MAX_CPUS)
		return;
	/* The verifier has to see the bound here, whatever the compiler knows. */
	barrier_var(slot);
	slot &= MAX_CPUS - 1;
	t->chosen = 0;
	t->link = slot;
	t->last = slot;
	cpus[slot].link = index;
}

static void unlink_task(u32 index)
{
	struct task *t = &tasks[at(index)];

	if (t->link >= 0 && t->link < MAX_CPUS)
		cpus[t->link].link = NONE;
	t->link = NONE;
}

/* The first by key of the ready jobs of a server, of which one may be linked to `cpu`; no server or
 * no job: NONE.
 */
static s32 first_of_server(u32 domain, s32 server, s32 cpu)
{
	s32 best = NONE;
	u32 i;

	if (server == NONE)
		return NONE;
	bpf_for(i, 0, plan.tasks) {
		const struct task *t = &tasks[at(i)];

		if (t->home != domain || plan.task[at(i)].server != (u32)server || !t->current ||
		    t->blocked || (t->link != NONE && t->link != cpu))
			continue;
		if (best == NONE || before(i, best))
			best = i;
	}
	return best;
}

/* The changes of the timetable that are due. Those that leave a server are first, so that a server
 * is never at two places. When the next one is due goes into `next`.
 */
static void turn_over(u32 domain, u64 now)
{
	struct domain *d = &domains[domain % MAX_DOMAINS];
	const struct domain_plan *p = &plan.domain[domain % MAX_DOMAINS];
	u32 i;

	d->changing = 0;
	if (!p->changes || !p->period)
		return;
	if (now >= d->began + p->period) {
		/* Every timetable begins with all places. */
		d->began = now / p->period * p->period;
		d->change = 0;
	}
	bpf_for(i, 0, MAX_CHANGES) {
		const struct change_plan *change =
			&plan.change[(p->first + d->change) % MAX_CHANGES];
		u32 cpu = change->slot % MAX_CPUS;

		if (d->began + change->offset > now) {
			if (d->began + change->offset < d->next)
				d->next = d->began + change->offset;
			break;
		}
		cpus[cpu].due = change->server;
		d->changing |= 1ULL << cpu;
		d->change++;
		if (d->change >= p->changes) {
			d->change = 0;
			d->began += p->period;
		}
	}
	bpf_for(i, 0, MAX_CPUS) {
		struct cpu *c = &cpus[i];

		if (!(d->changing >> i & 1))
			continue;
		c->served = c->serves;
		if (c->serves == c->due) {
			d->changing &= ~(1ULL << i);
			continue;
		}
		if (c->link != NONE)
			unlink_task(c->link);
	}
	bpf_for(i, 0, MAX_CPUS) {
		if (d->changing >> i & 1)
			cpus[i].serves = cpus[i].due;
	}
}

/* Each processor runs the first ready job of the server that it serves (002 4.3). */
static __noinline u64 decide_servers(u32 domain)
{
	struct domain *d = &domains[domain % MAX_DOMAINS];
	u64 set = plan.domain[domain % MAX_DOMAINS].cpus;
	u32 cpu;

	d->changed = 0;
	bpf_for(cpu, 0, MAX_CPUS) {
		s32 best, link = cpus[cpu].link;

		if (!(set >> cpu & 1))
			continue;
		best = first_of_server(domain, cpus[cpu].serves, cpu);
		if (best == link)
			continue;
		if (link != NONE)
			unlink_task(link);
		if (best != NONE)
			link_to(best, cpu);
		d->changed |= 1ULL << cpu;
	}
	return d->changed;
}

/* Links jobs to processors as `policy::cluster` does: jobs that have a processor keep it unless one
 * that goes before them needs it; of those that are chosen anew, first those that can return to
 * where they were, then the others, each in the order of keys, to the nearest that is free.
 *
 * The caller holds the lock of the domain. Returns the processors whose link may have changed.
 *
 * Counters are in memory: the verifier would follow each value of a register.
 */
static __noinline u64 decide(u32 domain)
{
	struct domain *d = &domains[domain % MAX_DOMAINS];
	u64 set = plan.domain[domain % MAX_DOMAINS].cpus;
	u32 i;

	/* Between quanta nobody decides. */
	if (plan.domain[domain % MAX_DOMAINS].quantum)
		return 0;
	decisions[domain % MAX_DOMAINS]++;
	if (plan.domain[domain % MAX_DOMAINS].changes)
		return decide_servers(domain);
	d->free = free_of(set);
	d->left = d->free;
	d->count = 0;
	d->changed = 0;
	bpf_for(i, 0, MAX_CPUS) {
		s32 best = first_waiting(domain), worst;

		if (best == NONE)
			break;
		/* `left` has one bit less for each that is chosen. */
		if (!d->left) {
			worst = last_linked(set);
			if (worst == NONE || !before(best, worst))
				break;
			d->free |= 1ULL << (tasks[at(worst)].link & 63);
			unlink_task(worst);
		} else {
			d->left &= d->left - 1;
		}
		tasks[at(best)].chosen = 1;
		d->chosen[d->count % MAX_CPUS] = best;
		d->count++;
	}
	bpf_for(i, 0, MAX_CPUS) {
		u32 index;
		s32 last;

		if (i >= d->count)
			break;
		index = d->chosen[i % MAX_CPUS];
		last = tasks[at(index)].last;
		if (last < 0 || !(d->free >> (last & 63) & 1))
			continue;
		link_to(index, last);
		d->free &= ~(1ULL << (last & 63));
		d->changed |= 1ULL << (last & 63);
	}
	bpf_for(i, 0, MAX_CPUS) {
		u32 index;
		s32 cpu;

		if (i >= d->count)
			break;
		index = d->chosen[i % MAX_CPUS];
		if (!tasks[at(index)].chosen)
			continue;
		cpu = nearest(d->free, tasks[at(index)].last);
		if (cpu < 0)
			continue;
		link_to(index, cpu);
		d->free &= ~(1ULL << (cpu & 63));
		d->changed |= 1ULL << (cpu & 63);
	}
	return d->changed;
}

/* The domain of a processor. */
static u32 domain_of(u32 cpu)
{
	u32 i, found = 0;

	bpf_for(i, 0, plan.domains) {
		if (plan.domain[i % MAX_DOMAINS].cpus >> (cpu & 63) & 1)
			found = i % MAX_DOMAINS;
	}
	return found;
}

/* A processor may have no job any more. Returns whether that is new. */
static bool become_idle(u32 cpu)
{
	barrier_var(cpu);
	cpu &= MAX_CPUS - 1;
	if (cpus[cpu].idle || cpus[cpu].on != NONE || cpus[cpu].interrupted != NONE)
		return false;
	cpus[cpu].idle = 1;
	return true;
}

/* Processors that have not taken up yet what is linked to them, or that nothing is. */
static u64 unsettled_of(u64 set)
{
	u64 unsettled = 0;
	u32 cpu;

	bpf_for(cpu, 0, MAX_CPUS) {
		const struct cpu *c = &cpus[cpu];
		/* To the schedule it still has the job in which it was interrupted. */
		s32 has = c->on != NONE ? c->on : c->interrupted;

		if ((set >> cpu & 1) && has != c->link)
			unsettled |= 1ULL << cpu;
	}
	return unsettled;
}

/* A processor has taken up what is linked to it. Returns whether a choice was on its way to it. */
static bool settle(u32 domain, u32 cpu)
{
	struct domain *d = &domains[domain % MAX_DOMAINS];

	if (!(d->settling >> (cpu & 63) & 1))
		return false;
	d->settling &= ~(1ULL << (cpu & 63));
	return true;
}

/* Takes a choice over: jobs that have ended meanwhile, or wait for something, run nowhere. Returns the
 * processors whose link has changed.
 */
static __noinline u64 choose(u32 domain)
{
	struct domain *d = &domains[domain % MAX_DOMAINS];
	const struct choice *choice = &choices[domain % MAX_DOMAINS];
	u64 set = plan.domain[domain % MAX_DOMAINS].cpus;
	u32 cpu;

	d->changed = 0;
	decisions[domain % MAX_DOMAINS]++;
	bpf_for(cpu, 0, MAX_CPUS) {
		u64 index = choice->task[cpu];
		const struct task *t = &tasks[at(index)];
		s32 want = NONE;

		if (!(set >> cpu & 1))
			continue;
		if (index < MAX_TASKS && t->home == domain && t->current && !t->blocked &&
		    t->number == choice->job[cpu])
			want = index;
		d->chosen[cpu] = want;
		if (cpus[cpu].link == want)
			continue;
		if (cpus[cpu].link != NONE)
			unlink_task(cpus[cpu].link);
		d->changed |= 1ULL << cpu;
	}
	bpf_for(cpu, 0, MAX_CPUS) {
		if ((d->changed >> cpu & 1) && d->chosen[cpu] != NONE)
			link_to(d->chosen[cpu], cpu);
		if (set >> cpu & 1)
			cpus[cpu].deliberate = choice->deliberate >> cpu & 1;
	}
	return d->changed;
}

/* Makes processors look at their links. */
static __noinline int call(u64 set)
{
	u32 cpu;

	bpf_for(cpu, 0, MAX_CPUS) {
		if (set >> cpu & 1)
			scx_bpf_kick_cpu(cpu_of(cpu), SCX_KICK_PREEMPT);
	}
	return 0;
}

#endif
