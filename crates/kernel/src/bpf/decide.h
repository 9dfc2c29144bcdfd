/* SPDX-License-Identifier: GPL-2.0 */
/* Who goes first, and who gets which processor. All of it is called with the lock of the domain
 * held, but for `call`. */
#ifndef WARMSET_DECIDE_H
#define WARMSET_DECIDE_H

static bool before(u32 a, u32 b)
{
	const struct task_plan *pa = &plan.task[at(a)], *pb = &plan.task[at(b)];
	const struct task *ta = &tasks[at(a)], *tb = &tasks[at(b)];

	if (pa->class != pb->class)
		return pa->class < pb->class;
	return ta->key != tb->key ? ta->key < tb->key : ta->tie < tb->tie;
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

/* A task waits for a processor of its domain, or does so no more: after each change of what is
 * asked here.
 */
static void place(u32 index)
{
	const struct task *t = &tasks[at(index)];
	u64 *word = &domains[bounded(t->home)].waiting[at(index) / 64], bit = 1ULL << (index & 63);
	/* One condition: the verifier follows each by itself. */
	u32 kept = !t->current | t->held | t->blocked | t->chosen | (u32)(t->link ^ NONE);

	*word &= ~bit;
	if (!kept)
		*word |= bit;
}

/* The first of the ready jobs of a domain that have no processor, by key. */
static s32 first_waiting(u32 domain)
{
	s32 best = NONE;
	u32 word, bit;

	bpf_for(word, 0, TASK_WORDS) {
		for_bits(bit, domains[bounded(domain)].waiting[word % TASK_WORDS]) {
			u32 index = word * 64 + bit;

			if (best == NONE || before(index, best))
				best = index;
		}
	}
	return best;
}

/* The last of the jobs that have a processor of a domain, by key; none: NONE. */
static s32 last_linked(u32 domain)
{
	s32 worst = NONE;
	u32 cpu;

	for_bits(cpu, domains[bounded(domain)].linked) {
		s32 link = cpus[cpu].link;

		if (worst == NONE || before(worst, link))
			worst = link;
	}
	return worst;
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
	cpus[slot].awaits = 0;
	domains[bounded(t->home)].linked |= 1ULL << slot;
	place(index);
}

static void unlink_task(u32 index)
{
	struct task *t = &tasks[at(index)];

	if (t->link >= 0 && t->link < MAX_CPUS) {
		cpus[t->link].link = NONE;
		domains[bounded(t->home)].linked &= ~(1ULL << (t->link & 63));
	}
	t->link = NONE;
	place(index);
}

/* The changes of the timetable that are due. Those that leave a server are first, so that a server
 * is never at two places. When the next one is due goes into `next`.
 */
static void turn_over(u32 domain, u64 now)
{
	struct domain *d = &domains[domain % MAX_DOMAINS];
	const struct domain_plan *p = &plan.domain[domain % MAX_DOMAINS];
	u32 i, cpu;

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
		u32 slot = change->slot % MAX_CPUS;

		if (d->began + change->offset > now) {
			if (d->began + change->offset < d->next)
				d->next = d->began + change->offset;
			break;
		}
		cpus[slot].due = change->server;
		d->changing |= 1ULL << slot;
		d->change++;
		if (d->change >= p->changes) {
			d->change = 0;
			d->began += p->period;
		}
	}
	for_bits(cpu, d->changing) {
		struct cpu *c = &cpus[cpu];

		c->served = c->serves;
		if (c->serves == c->due) {
			d->changing &= ~(1ULL << cpu);
			continue;
		}
		if (c->link != NONE)
			unlink_task(c->link);
	}
	for_bits(cpu, d->changing) {
		cpus[cpu].serves = cpus[cpu].due;
		if (cpus[cpu].serves != NONE)
			d->served_by[at(cpus[cpu].serves)] = cpu;
	}
}

/* Each processor runs the first ready job of the server that it serves (002 4.3). */
static __noinline u64 decide_servers(u32 domain)
{
	struct domain *d = &domains[domain % MAX_DOMAINS];
	u64 set = plan.domain[domain % MAX_DOMAINS].cpus;
	u32 word, bit, cpu;

	d->changed = 0;
	for_bits(cpu, set)
		d->chosen[cpu] = cpus[cpu].link;
	bpf_for(word, 0, TASK_WORDS) {
		for_bits(bit, d->waiting[word % TASK_WORDS]) {
			u32 index = word * 64 + bit, server = plan.task[at(index)].server;
			s32 best;

			cpu = d->served_by[at(server)] & (MAX_CPUS - 1);
			if (cpus[cpu].serves != (s32)server || !(set >> cpu & 1))
				continue;
			best = d->chosen[cpu];
			if (best == NONE || before(index, best))
				d->chosen[cpu] = index;
		}
	}
	for_bits(cpu, set) {
		s32 best = d->chosen[cpu], link = cpus[cpu].link;

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
	d->free = set & ~d->linked;
	d->left = d->free;
	d->count = 0;
	d->changed = 0;
	bpf_for(i, 0, MAX_CPUS) {
		s32 best = first_waiting(domain), worst;

		if (best == NONE)
			break;
		/* `left` has one bit less for each that is chosen. */
		if (!d->left) {
			worst = last_linked(domain);
			if (worst == NONE || !before(best, worst))
				break;
			d->free |= 1ULL << (tasks[at(worst)].link & 63);
			unlink_task(worst);
		} else {
			d->left &= d->left - 1;
		}
		tasks[at(best)].chosen = 1;
		place(best);
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

	for_bits(cpu, set) {
		const struct cpu *c = &cpus[cpu];
		/* To the schedule it still has the job in which it was interrupted. */
		s32 has = c->on != NONE ? c->on : c->interrupted;

		/* It may have the thread and not the job: between two of them, on its way off. */
		if (has != c->link || (has != NONE && !tasks[at(has)].shown))
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

/* Takes a choice over: jobs that have ended meanwhile, or wait for something, run nowhere. Returns
 * the processors whose link has changed.
 */
static __noinline u64 choose(u32 domain)
{
	struct domain *d = &domains[domain % MAX_DOMAINS];
	const struct choice *choice = &choices[domain % MAX_DOMAINS];
	u64 set = plan.domain[domain % MAX_DOMAINS].cpus;
	u32 cpu;

	d->changed = 0;
	decisions[domain % MAX_DOMAINS]++;
	for_bits(cpu, set) {
		u64 index = choice->task[cpu];
		const struct task *t = &tasks[at(index)];
		s32 want = NONE;

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
	for_bits(cpu, set) {
		if ((d->changed >> cpu & 1) && d->chosen[cpu] != NONE)
			link_to(d->chosen[cpu], cpu);
		cpus[cpu].deliberate = choice->deliberate >> cpu & 1;
	}
	return d->changed;
}

/* Makes processors look at their links. */
__noinline int call(u64 set)
{
	u32 cpu;

	for_bits(cpu, set)
		scx_bpf_kick_cpu(cpu_of(cpu), SCX_KICK_PREEMPT);
	return 0;
}

#endif
