/* SPDX-License-Identifier: GPL-2.0 */
/* Programs that are tasks: their threads have the processor of a job in turn. */
#ifndef WARMSET_PROGRAMS_H
#define WARMSET_PROGRAMS_H

/* How long one thread of a program has its processor while others of it can run. */
#define TURN 1000000ULL

/* How long a thread of a task may run until its processor looks for another one. */
static u64 slice_of(u32 index)
{
	if (!plan.task[at(index)].many)
		return SCX_SLICE_INF;
	return plan.task[at(index)].beyond && tasks[at(index)].link == NONE ? SCX_SLICE_DFL : TURN;
}

/* A thread can run from now on, or can no more: each is counted once. */
static void note_able(struct task_struct *p, bool able)
{
	u32 *member = bpf_task_storage_get(&members, p, 0, 0);
	struct task *t;

	if (!member || !*member || able == !!(*member & ABLE))
		return;
	t = &tasks[at((*member & ~ABLE) - 1)];
	*member ^= ABLE;
	if (!able)
		__sync_fetch_and_sub(&t->able, 1);
	else if (!__sync_fetch_and_add(&t->able, 1))
		t->since = clock();
}

/* Can a thread of a program run, other than this one, which is about to sleep? */
static bool others_able(u32 index, struct task_struct *p)
{
	u32 *member = bpf_task_storage_get(&members, p, 0, 0);

	return tasks[at(index)].able > (member && *member & ABLE);
}

/* A job of a program has a processor, and no thread of the program can run: it has ended there, or,
 * of a program that asks for its jobs and has not done this one, waits. What the processor has had
 * before is over in the trace, too.
 */
__noinline int end_asleep(u32 index, u32 slot)
{
	struct gone gone = { .index = NONE }, moved = { .index = NONE };
	u64 now, changed = 0, left = 0, job = 0;
	bool ended = false, waits = false, settled = false, idles = false, deliberate = false;
	struct news news = {};
	struct lock *lock;
	s32 was = NONE, from;
	u32 domain;

	if (index >= MAX_TASKS || slot >= MAX_CPUS)
		return 0;
	/* The verifier has to see the bound here, whatever the compiler knows. */
	barrier_var(slot);
	slot &= MAX_CPUS - 1;
	domain = tasks[index].home;
	lock = bpf_map_lookup_elem(&locks, &domain);
	if (!lock)
		return 0;
	now = clock();
	bpf_spin_lock(&lock->lock);
	now = stamp(domain, now);
	struct task *t = &tasks[index];

	if (t->able) {
		changed = 1ULL << slot;
	} else if (t->home == domain && t->link == (s32)slot && t->on == NONE && t->current) {
		was = cpus[slot].on;
		if (was >= 0 && was < MAX_TASKS && tasks[was].shown) {
			account(&tasks[was], now);
			tasks[was].shown = 0;
			left = tasks[was].number;
		} else {
			was = NONE;
		}
		leave_interrupted(slot, index, &gone);
		from = t->seen;
		if (t->shown && from != NONE && from != (s32)slot)
			/* It was interrupted elsewhere. */
			leave_interrupted(from, NONE, &moved);
		if (!plan.task[index].asks)
			note_end(index, &news);
		else if (!take_done(index, &news)) {
			waits = t->shown;
			job = t->number;
			t->shown = 0;
			t->blocked = 1;
			t->suspended = waits;
			unlink_task(index);
		}
		ended = news.ended;
		if (ended)
			cpus[slot].idle = 0;
		changed = decide(domain) | 1ULL << slot;
		settled = cpus[slot].link == NONE && settle(domain, slot);
		idles = cpus[slot].link == NONE && become_idle(slot);
		deliberate = cpus[slot].deliberate;
	}
	bpf_spin_unlock(&lock->lock);
	if (was >= 0)
		tell(now, slot, PREEMPTION, was, left, 0, 0);
	tell_gone(&gone, now);
	tell_gone(&moved, now);
	if (ended) {
		tell_end(index, now, slot, &news, 0);
		if (news.begun)
			tell_window(index, now);
	} else if (waits)
		tell(now, slot, SUSPENSION, index, job, 0, 0);
	if (idles)
		tell(now, slot, IDLE, NO_TASK, 0, 0, deliberate ? DELIBERATE : 0);
	if (settled)
		tell_ways(1ULL << slot, now, OVERHEAD_END);
	call(changed);
	if (tasks[index].home != domain)
		hand_over(index);
	return 0;
}

/* The job of a program has a processor, and others run its threads beyond its budget: they are
 * called. One that has to let a thread come to the end of what it is in is not disturbed in that.
 */
static void call_in(u32 index, u32 slot)
{
	u64 others = tasks[at(index)].out & ~(1ULL << (slot & 63));
	u32 cpu;

	for_bits(cpu, others) {
		if (!cpus[cpu].misplaced)
			scx_bpf_kick_cpu(cpu_of(cpu), SCX_KICK_PREEMPT);
	}
}

/* For so long a processor looks at once for a thread that comes; then once in a `MOMENT`. */
#define SOON 200000

/* A processor is linked to a program, of which a thread can run and is not in its queue, or bound to
 * another processor: it comes. Mostly it is on its way; it may be behind an ordinary thread, in
 * another processor's own queue.
 */
static void await_thread(u32 slot)
{
	u64 now = clock();

	if (!cpus[slot].awaits)
		cpus[slot].awaits = now;
	if (now < cpus[slot].awaits + SOON)
		scx_bpf_kick_cpu(cpu_of(slot), SCX_KICK_PREEMPT);
	else
		arm(slot, now + MOMENT);
}

/* A processor is linked to a program: its threads have it in turn. */
static __noinline int take_turns(u32 index, u32 slot, struct task_struct *prev)
{
	bool here;

	if (index >= MAX_TASKS || slot >= MAX_CPUS)
		return 0;
	here = tasks[index].on == (s32)slot;
	/* One whose job has begun after the last one has ended leaves once more, and begins it when it
	 * comes back: where it stays nobody is told, and no budget counts.
	 */
	if (here && prev && tasks[index].shown && scx_bpf_dsq_nr_queued(index) <= 0) {
		prev->scx.slice = TURN;
		return 0;
	}
	/* Where one of them runs elsewhere, that processor calls when it has left. */
	if (!here && tasks[index].on != NONE)
		return 0;
	call_in(index, slot);
	if (scx_bpf_dsq_move_to_local(index))
		return 0;
	if (!here && tasks[index].able)
		await_thread(slot);
	else if (scx_bpf_dsq_nr_queued(index) > 0)
		ask_again(index, cpu_of(slot));
	else if (!here)
		end_asleep(index, slot);
	return 0;
}

#endif
