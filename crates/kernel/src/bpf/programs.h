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

/* Is a thread of a program, other than this one, between `enqueue` and its queue? Under the lock of
 * its domain nobody knows better.
 */
static bool is_coming(u32 index, s32 but, u64 now)
{
	const struct task *t = &tasks[at(index)];

	return plan.task[at(index)].many && t->comer && t->comer != but && now < t->came + SOON;
}

/* A job of a program has a processor, and no thread of the program can run: it has ended there, or,
 * of a program that asks for its jobs and has not done this one, waits. What the processor has had
 * before is over in the trace, too.
 */
__noinline int end_asleep(u32 index, u32 slot)
{
	struct gone gone = { .index = NONE };
	u64 now, changed = 0, left = 0, job = 0;
	bool ended = false, waits = false;
	struct news news = {};
	struct lock *lock;
	s32 was = NONE;
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

	if (is_coming(index, 0, now)) {
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
	}
	bpf_spin_unlock(&lock->lock);
	if (was >= 0)
		tell(now, slot, PREEMPTION, was, left, 0, 0);
	tell_gone(&gone, now);
	if (ended) {
		tell_end(index, now, slot, &news, 0);
		tell_window(index, now);
	} else if (waits)
		tell(now, slot, SUSPENSION, index, job, 0, 0);
	call(changed);
	if (tasks[index].home != domain)
		hand_over(index);
	return 0;
}

/* A processor is linked to a program: its threads have it in turn. */
static __noinline int take_turns(u32 index, u32 slot, struct task_struct *prev)
{
	bool here, waits;

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
	waits = call_in(index, slot);
	if (scx_bpf_dsq_move_to_local(index))
		return 0;
	if (scx_bpf_dsq_nr_queued(index) > 0 || waits || is_on_its_way(index))
		ask_again(index, cpu_of(slot));
	else if (!here)
		end_asleep(index, slot);
	return 0;
}

#endif
