/* SPDX-License-Identifier: GPL-2.0 */
/* Releases by the time, and the timetables of servers: one timer a domain. */
#ifndef WARMSET_RELEASES_H
#define WARMSET_RELEASES_H

/* Tells which servers are served no more, and then which are from now on. */
__noinline int tell_servers(u32 domain, u64 now)
{
	u64 changing = domains[domain % MAX_DOMAINS].changing;
	u32 cpu;

	for_bits(cpu, changing) {
		if (cpus[cpu].served != NONE)
			tell(now, cpu, SERVER_END, NO_TASK, 0, cpus[cpu].served, 0);
	}
	for_bits(cpu, changing) {
		if (cpus[cpu].serves != NONE)
			tell(now, cpu, SERVER_BEGIN, NO_TASK, 0, cpus[cpu].serves, 0);
	}
	return 0;
}

/* The next job of a task that a domain releases is this one or a later one. */
static void await(u32 index, u32 turn, u64 number)
{
	struct task *t = &tasks[at(index)];
	u64 next = next_of_turn(index, turn, number);

	t->next[turn & 1] = next;
	t->when[turn & 1] = next == NEVER ? NEVER : release_of(index, next);
}

static u64 when_of(const struct domain *d, u32 entry)
{
	u32 what = d->heap[entry % (2 * MAX_TASKS)];

	return tasks[at(what / 2)].when[what & 1];
}

/* What is at this place of the heap may be later than what is below it: puts that right. The place
 * is in memory, as the verifier would follow each value of a register.
 */
static __noinline int settle_heap(u32 domain, u32 from)
{
	struct domain *d = &domains[bounded(domain)];
	u32 i, moved = d->heap[from % (2 * MAX_TASKS)];
	u64 when = tasks[at(moved / 2)].when[moved & 1];

	d->hole = from;
	bpf_for(i, 0, 10) {
		u32 child = 2 * d->hole + 1;

		if (child >= d->entries)
			break;
		if (child + 1 < d->entries && when_of(d, child + 1) < when_of(d, child))
			child++;
		if (when_of(d, child) >= when)
			break;
		d->heap[d->hole % (2 * MAX_TASKS)] = d->heap[child % (2 * MAX_TASKS)];
		d->hole = child;
	}
	d->heap[d->hole % (2 * MAX_TASKS)] = moved;
	return 0;
}

/* Releases all that is due in a domain, with its lock held, and finds out when the next release
 * is.
 */
static __noinline int release_due(u32 domain, u64 now)
{
	struct domain *d = &domains[bounded(domain)];
	u32 i;

	d->fresh_count = 0;
	bpf_for(i, 0, MAX_TASKS) {
		u32 what = d->heap[0], index = at(what / 2), turn = what & 1;
		struct task *t = &tasks[index];
		u64 number = t->next[turn];

		if (!d->entries || t->when[turn] > now || t->when[turn] >= plan.horizon)
			break;
		await(index, turn, number + 1);
		settle_heap(domain, 0);
		if (t->home == domain && !t->current && t->number == number)
			begin(index);
		d->fresh[d->fresh_count % MAX_TASKS] = index;
		d->fresh_number[d->fresh_count % MAX_TASKS] = number;
		d->fresh_count++;
	}
	d->next = d->entries ? when_of(d, 0) : NEVER;
	if (d->next >= plan.horizon)
		d->next = NEVER;
	return 0;
}

/* Tells what `release_due` has released. */
__noinline int tell_fresh(u32 domain, u64 now)
{
	struct domain *d = &domains[domain % MAX_DOMAINS];
	u32 i;

	bpf_for(i, 0, MAX_TASKS) {
		if (i >= d->fresh_count)
			break;
		tell_release(at(d->fresh[at(i)]), domain, d->fresh_number[at(i)], now);
	}
	return 0;
}

/* Releases all that is due in a domain, decides once, and sleeps until the next release. */
static int on_release(void *map, u32 *key, struct timer *timer)
{
	u32 domain = *key, i;
	u64 now, changed;
	struct domain *d;
	struct lock *lock;

	if (domain >= MAX_DOMAINS || over)
		return 0;
	d = &domains[domain];
	lock = bpf_map_lookup_elem(&locks, &domain);
	if (!lock)
		return 0;
	now = clock();
	bpf_spin_lock(&lock->lock);
	now = stamp(domain, now);
	release_due(domain, now);
	turn_over(domain, now);
	changed = decide(domain) | d->changing;
	bpf_for(i, 0, MAX_TASKS) {
		u32 index;

		if (i >= d->fresh_count)
			break;
		index = at(d->fresh[at(i)]);
		if (tasks[index].current && tasks[index].link != NONE && !plan.task[index].asks &&
		    tasks[index].number == d->fresh_number[at(i)])
			pages[index].chosen = tasks[index].number + 1;
	}
	/* With the first releases programs begin that go on where no job is. */
	if (plan.beyond && !d->begun) {
		d->begun = 1;
		changed |= plan.domain[bounded(domain)].cpus;
	}
	bpf_spin_unlock(&lock->lock);
	tell_servers(domain, now);
	tell_fresh(domain, now);
	call(changed);
	look_for_lost(domain, now);
	if (d->next != NEVER)
		bpf_timer_start(&timer->timer, plan.origin + d->next,
				BPF_F_TIMER_ABS | BPF_F_TIMER_CPU_PIN);
	return 0;
}

#endif
