/* SPDX-License-Identifier: GPL-2.0 */
/* Jobs that something other than the time releases (002 2.1.1): their tasks are sporadic. A thread
 * of the loader waits for the events, and says here that releases are asked for. Two releases of a
 * task are a period apart at least: those that are asked for earlier wait, and a timer of the task
 * carries them out. The rules are those of `execute::trigger::releaser`.
 */
#ifndef WARMSET_TRIGGER_H
#define WARMSET_TRIGGER_H

/* So many jobs of a task may be released and not begun, plus one. */
#define MOST_BEHIND 4096

/* By task, protected by the lock of the domain that releases its jobs. */
struct asked asked[MAX_TASKS] SEC(".data.asked");
/* By task and number of the job, modulo, when it was released. */
u64 released_at[MAX_TASKS][MOST_BEHIND] SEC(".bss.released");

/* One a task: when its next release may be, that is asked for. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_TASKS);
	__type(key, u32);
	__type(value, struct timer);
} asks SEC(".maps");

/* When a job is or was released. One of a task with a trigger has to have been. */
static u64 release_of(u32 index, u64 number)
{
	const struct task_plan *p = &plan.task[at(index)];

	if (p->triggered)
		return released_at[at(index)][number % MOST_BEHIND];
	return p->phase + number * p->period;
}

/* Before this the next job of a task may not be released. */
static u64 soonest(u32 index)
{
	const struct task_plan *p = &plan.task[at(index)];

	return tasks[at(index)].next[0] ? asked[at(index)].last + p->period : p->phase;
}

/* When the next job of a task is to be released, if that is asked for; else NEVER. */
static u64 due_of(u32 index)
{
	u64 first = soonest(index), when = asked[at(index)].at;

	if (!asked[at(index)].pending)
		return NEVER;
	if (when < first)
		when = first;
	return when < plan.horizon ? when : NEVER;
}

static void begin(u32 index);
__noinline int tell_window(u32 index, u64 now);

/* A job of a program that asks for its jobs has been released, or the one before has ended. A call
 * that finds no room finds others there, which do the same.
 */
static void call_program(u32 index)
{
	if (plan.task[at(index)].asks)
		bpf_ringbuf_output(&calls, &index, sizeof(index), BPF_RB_FORCE_WAKEUP);
}

/* Tells of a release, on the processor that the task had last. */
__noinline int tell_release(u32 index, u32 domain, u64 number, u64 now)
{
	u64 set = plan.domain[domain % MAX_DOMAINS].cpus;
	s32 cpu = tasks[at(index)].last;

	if (cpu < 0 || !(set >> (cpu & 63) & 1))
		cpu = lowest(set);
	tell(now, cpu, RELEASE, at(index), number,
	     release_of(index, number) + plan.task[at(index)].deadline, 0);
	tell_window(index, now);
	call_program(index);
	return 0;
}

/* The next job of a task is due that is asked for, at this time: releases it, with the lock held.
 * Returns whether there was room for it.
 */
static bool release_asked(u32 index, u32 domain, u64 when)
{
	struct task *t = &tasks[at(index)];
	struct asked *a = &asked[at(index)];
	u64 number = t->next[0];

	if (number - t->number >= MOST_BEHIND - 1) {
		a->overrun = 1;
		return false;
	}
	if (soonest(index) > a->at)
		a->deferred++;
	released_at[at(index)][number % MOST_BEHIND] = when;
	a->last = when;
	a->pending--;
	t->next[0] = number + 1;
	if (t->home == domain && !t->current && t->number == number)
		begin(index);
	return true;
}

/* So many releases are asked for, or none more: carries out the one that is due, and arms the timer
 * for the next one. Called by the loader's thread and by the timer, with no lock held.
 */
__noinline int ask(u32 index, u64 count)
{
	struct task *t = &tasks[at(index)];
	struct asked *a = &asked[at(index)];
	u32 domain = plan.task[at(index)].home[0], key = at(index), i;
	struct lock *lock = bpf_map_lookup_elem(&locks, &domain);
	struct timer *timer = bpf_map_lookup_elem(&asks, &key);
	bool begun = bpf_ktime_get_ns() >= plan.origin, released = false;
	u64 now, when, number = 0, changed = 0, seen;

	if (!lock || !timer || domain >= MAX_DOMAINS)
		return 1;
	now = clock();
	bpf_spin_lock(&lock->lock);
	now = stamp(domain, now);
	if (count && !a->pending)
		a->at = begun ? now : 0;
	a->pending += count;
	a->events += count;
	when = due_of(index);
	if (begun && when <= now) {
		number = t->next[0];
		released = release_asked(index, domain, when);
		changed = decide(domain);
		if (released && t->current && t->link != NONE && t->number == number &&
		    !plan.task[at(index)].asks)
			pages[at(index)].chosen = number + 1;
		when = released ? due_of(index) : NEVER;
	}
	a->next = when;
	bpf_spin_unlock(&lock->lock);
	if (released)
		tell_release(index, domain, number, now);
	call(changed);
	if (a->overrun)
		return 2;
	/* Of several who arm it one at once the last one may know less than another: looks again. */
	bpf_for(i, 0, 4) {
		seen = *(volatile u64 *)&a->next;
		if (seen == NEVER)
			break;
		bpf_timer_start(&timer->timer, plan.origin + seen,
				BPF_F_TIMER_ABS | BPF_F_TIMER_CPU_PIN);
		if (*(volatile u64 *)&a->next == seen)
			break;
	}
	return 0;
}

static int on_asked(void *map, u32 *key, struct timer *timer)
{
	if (!over)
		ask(*key, 0);
	return 0;
}

/* So many releases of a task are asked for. */
SEC("syscall")
int warmset_trigger(struct asking *asking)
{
	u32 index = asking->task;

	if (index >= MAX_TASKS || !plan.task[at(index)].triggered || over)
		return 0;
	return ask(index, asking->count);
}

#endif
