/* SPDX-License-Identifier: GPL-2.0 */
/* What the loader calls: a domain begins, and quanta of those that it decides for. */
#ifndef WARMSET_CALLS_H
#define WARMSET_CALLS_H

/* Makes the timers of a domain and its processors, and arms the first. The loader calls it on the
 * first processor of the domain: timers go off where they are armed.
 */
SEC("syscall")
int warmset_start(struct request *request)
{
	u32 domain = request->domain, cpu, i;
	struct timer *timer;
	struct domain *d;
	u64 set;

	if (domain >= MAX_DOMAINS)
		return 1;
	d = &domains[bounded(domain)];
	bpf_for(i, 0, 2 * plan.tasks) {
		u32 index = at(i / 2), turn = i & 1;

		if (plan.task[index].home[turn] != domain || plan.task[index].triggered)
			continue;
		await(index, turn, 0);
		d->heap[d->entries % (2 * MAX_TASKS)] = 2 * index + turn;
		d->entries++;
	}
	bpf_for(i, 0, MAX_TASKS)
		settle_heap(domain, MAX_TASKS - 1 - i);
	bpf_for(i, 0, MAX_TASKS)
		d->served_by[at(i)] = NONE;
	bpf_for(i, 0, plan.tasks) {
		u32 key = at(i);

		if (!plan.task[key].parts || plan.task[key].home[0] != domain)
			continue;
		timer = bpf_map_lookup_elem(&arrivals, &key);
		if (!timer || bpf_timer_init(&timer->timer, &arrivals, CLOCK_MONOTONIC))
			return 5;
		bpf_timer_set_callback(&timer->timer, on_arrival);
	}
	bpf_for(i, 0, plan.tasks) {
		u32 key = at(i);

		if (!plan.task[key].triggered || plan.task[key].home[0] != domain)
			continue;
		timer = bpf_map_lookup_elem(&asks, &key);
		if (!timer || bpf_timer_init(&timer->timer, &asks, CLOCK_MONOTONIC))
			return 6;
		bpf_timer_set_callback(&timer->timer, on_asked);
		asked[at(i)].next = NEVER;
	}
	set = plan.domain[domain % MAX_DOMAINS].cpus;
	bpf_for(cpu, 0, MAX_CPUS) {
		u32 key = cpu;

		if (!(set >> cpu & 1))
			continue;
		cpus[cpu].domain = domain;
		timer = bpf_map_lookup_elem(&budgets, &key);
		if (!timer || bpf_timer_init(&timer->timer, &budgets, CLOCK_MONOTONIC))
			return 2;
		bpf_timer_set_callback(&timer->timer, on_budget);
	}
	timer = bpf_map_lookup_elem(&looks, &domain);
	if (!timer || bpf_timer_init(&timer->timer, &looks, CLOCK_MONOTONIC))
		return 7;
	bpf_timer_set_callback(&timer->timer, on_look);
	bpf_timer_start(&timer->timer, plan.origin + patience / LOOKS,
			BPF_F_TIMER_ABS | BPF_F_TIMER_CPU_PIN);
	if (plan.domain[domain % MAX_DOMAINS].quantum)
		return 0;
	timer = bpf_map_lookup_elem(&releases, &domain);
	if (!timer || bpf_timer_init(&timer->timer, &releases, CLOCK_MONOTONIC))
		return 3;
	bpf_timer_set_callback(&timer->timer, on_release);
	if (bpf_timer_start(&timer->timer, plan.origin, BPF_F_TIMER_ABS | BPF_F_TIMER_CPU_PIN))
		return 4;
	return 0;
}

/* A quantum begins in a domain that the loader decides for: releases what is due, and says what has
 * happened up to now.
 */
SEC("syscall")
int warmset_quantum(struct request *request)
{
	u32 domain = request->domain, i, first;
	struct lock *lock;
	u64 now;

	if (over)
		return IS_OVER;
	if (domain >= MAX_DOMAINS)
		return 1;
	lock = bpf_map_lookup_elem(&locks, &domain);
	if (!lock)
		return 2;
	now = clock();
	bpf_spin_lock(&lock->lock);
	now = stamp(domain, now);
	release_due(domain, now);
	bpf_for(i, 0, plan.tasks)
		seen[bounded(domain)].ended[at(i)] = tasks[at(i)].number;
	seen[bounded(domain)].now = now;
	bpf_spin_unlock(&lock->lock);
	first = lowest(plan.domain[bounded(domain)].cpus);
	look_for_lost(domain, now);
	tell_fresh(domain, now);
	/* Until `warmset_choose` it is on its way to the first one. */
	tell(now, first, OVERHEAD_BEGIN, NO_TASK, 0, IPI_LATENCY, 0);
	tell(now, first, QUANTUM, NO_TASK, 0, 0, 0);
	return 0;
}

/* Carries out what the loader has chosen. */
SEC("syscall")
int warmset_choose(struct request *request)
{
	u32 domain = request->domain, cpu;
	struct domain *d;
	struct lock *lock;
	u64 now, changed, before = 0, after = 0, set, waited, settling, idle = 0;

	if (over)
		return IS_OVER;
	if (domain >= MAX_DOMAINS)
		return 1;
	d = &domains[bounded(domain)];
	lock = bpf_map_lookup_elem(&locks, &domain);
	if (!lock)
		return 2;
	set = plan.domain[bounded(domain)].cpus;
	now = clock();
	bpf_spin_lock(&lock->lock);
	now = stamp(domain, now);
	bpf_for(cpu, 0, MAX_CPUS)
		before |= (u64)(cpus[cpu].deliberate & 1) << cpu;
	changed = choose(domain);
	bpf_for(cpu, 0, MAX_CPUS) {
		after |= (u64)(cpus[cpu].deliberate & 1) << cpu;
		idle |= (u64)(cpus[cpu].idle & 1) << cpu;
	}
	waited = d->settling;
	d->settling = unsettled_of(set);
	settling = d->settling;
	bpf_spin_unlock(&lock->lock);
	bpf_for(cpu, 0, MAX_CPUS) {
		if (((before ^ after) & set & idle) >> cpu & 1)
			tell(now, cpu, IDLE, NO_TASK, 0, 0, after >> cpu & 1 ? DELIBERATE : 0);
	}
	tell(now, lowest(set), OVERHEAD_END, NO_TASK, 0, IPI_LATENCY, 0);
	/* A choice that has not arrived and stands is still on its way. */
	tell_ways(waited & (changed | ~settling), now, OVERHEAD_END);
	tell_ways(settling & (changed | ~waited), now, OVERHEAD_BEGIN);
	call(changed);
	return 0;
}

/* A program that asks for its jobs has done one, or has gone. Where all of its threads sleep,
 * nobody but the loader has seen it: the job gets a processor, to end there. Else it ends with the
 * last thread that goes to sleep.
 */
SEC("syscall")
int warmset_finished(struct finished *request)
{
	u32 index = request->task, domain;
	struct lock *lock;
	u64 now, changed = 0, job = 0;
	s32 seen = NONE;

	if (over || index >= MAX_TASKS || !plan.task[index].asks)
		return 0;
	domain = tasks[index].home;
	lock = bpf_map_lookup_elem(&locks, &domain);
	if (!lock)
		return 2;
	now = clock();
	bpf_spin_lock(&lock->lock);
	now = stamp(domain, now);
	struct task *t = &tasks[index];

	/* It has come to the end of what was cut short, or will not any more: no job ends by that. */
	if (t->home == domain && t->behind && pages[index].done > t->taken) {
		u64 done = pages[index].done - t->taken;

		if (done > t->behind)
			done = t->behind;
		t->taken += done;
		t->behind -= done;
	}
	if (t->home == domain && t->current && t->blocked && t->on == NONE &&
	    pages[index].done > t->taken) {
		t->blocked = 0;
		place(index);
		if (t->suspended)
			seen = t->seen;
		t->suspended = 0;
		job = t->number;
		changed = decide(domain);
	}
	bpf_spin_unlock(&lock->lock);
	/* To the trace it was suspended. */
	if (seen >= 0)
		tell(now, seen, WAKE_UP, index, job, 0, 0);
	call(changed);
	return 0;
}

#endif
