/* SPDX-License-Identifier: GPL-2.0 */
/* Threads that can run and have no processor: those of tasks, in a queue for each; the one that
 * takes the events, and all others of this class, behind all jobs.
 */
#ifndef WARMSET_CUSTODY_H
#define WARMSET_CUSTODY_H

/* Is it the thread that takes the events? */
static bool is_behind(const struct task_struct *p)
{
	return !over && plan.loader && p->pid == plan.loader;
}

/* Processors of the plan that no job is linked to. */
static u64 without_job(void)
{
	u64 free = 0;
	u32 i;

	bpf_for(i, 0, plan.domains)
		free |= plan.domain[bounded(i)].cpus & ~domains[bounded(i)].linked;
	return free;
}

/* Those of these processors on which a thread may run. */
static u64 open_to(const struct task_struct *p, u64 set)
{
	u64 open = 0;
	u32 slot;

	for_bits(slot, set) {
		if (bpf_cpumask_test_cpu(cpu_of(slot), &p->cpus_mask))
			open |= 1ULL << slot;
	}
	return open;
}

/* A thread that is no task can run. It goes behind all jobs: a processor that is linked to none
 * takes it. (An ordinary thread goes before them, and whatever it does a job waits for.) The one
 * that takes the events goes before the others. When it comes to nothing for a while, its process
 * makes it an ordinary one. `elsewhere`: processors that are not in the plan take it, too.
 */
static void stay_behind(struct task_struct *p, u64 how, u64 enq_flags, bool elsewhere)
{
	s32 here = scx_bpf_task_cpu(p), slot = slot_of(here), other;
	u64 free = open_to(p, without_job()), own;
	u32 i;

	own = slot >= 0 && slot < MAX_CPUS ? 1ULL << slot : 0;
	if (!own || free & own) {
		scx_bpf_kick_cpu(here, how);
		/* Its own has nothing else to do, or nothing at all. */
		if (enq_flags & SCX_ENQ_LAST || asleep & own)
			return;
		free &= asleep;
	} else if (free & asleep) {
		/* One that is free and has something to do takes it only behind that. */
		free &= asleep;
	}
	if (free)
		scx_bpf_kick_cpu(cpu_of(lowest(free)), how);
	if (!elsewhere || free & asleep)
		return;
	/* One that is not in the plan may sleep, beside some that are about to take a job. */
	bpf_for(i, 0, 4) {
		other = scx_bpf_pick_idle_cpu(&p->cpus_mask, 0);
		if (other < 0)
			break;
		scx_bpf_kick_cpu(other, how);
		if (slot_of(other) < 0)
			break;
	}
}

/* A thread goes into a queue. If the run is over by now, all processors may have looked there
 * already, and nobody comes again: its own does, when the thread is there.
 */
static void look_behind(const struct task_struct *p)
{
	if (*(volatile u32 *)&over)
		scx_bpf_kick_cpu(scx_bpf_task_cpu(p), SCX_KICK_PREEMPT);
}

/* Longer no thread is between its processor and its queue. */
#define ON_ITS_WAY 2000000

/* A thread of a task that has left its processor, or has woken up, comes into its queue only when
 * `enqueue` has returned. One that is linked meanwhile nobody calls for.
 */
static bool is_on_its_way(u32 index)
{
	const struct task *t = &tasks[at(index)];

	return t->on == NONE && !t->blocked && clock() < t->began + ON_ITS_WAY;
}

/* Ends the run: a thread may not run on a processor of its task. */
__noinline int leave_out(u32 index, s32 cpu)
{
	static char format[] = "the affinity of task %llu leaves processor %llu out";
	u64 words[] = { index + 1, cpu };

	scx_bpf_error_bstr(format, words, sizeof(words));
	return 0;
}

/* A task is in custody, and does not come to the processor that it is linked to. */
__noinline int ask_again(u32 index, s32 cpu)
{
	struct task_struct *p;
	bool may;

	if (plan.task[at(index)].many) {
		/* One of its threads is bound to another processor for a moment. */
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
		return 0;
	}
	p = bpf_task_from_pid(plan.thread[at(index)]);
	if (!p) {
		/* It is on its way to its end, and has no number any more. */
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
		return 0;
	}
	may = bpf_cpumask_test_cpu(cpu, &p->cpus_mask);
	bpf_task_release(p);
	if (may)
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	else
		leave_out(index, cpu);
	return 0;
}

/* Where jobs of a task may run, in all of its domains. */
static u64 places_of(u32 index)
{
	const struct task_plan *p = &plan.task[at(index)];
	u64 set = plan.domain[bounded(p->home[0])].cpus;
	u32 part;

	if (p->home[1] < MAX_DOMAINS)
		set |= plan.domain[bounded(p->home[1])].cpus;
	bpf_for(part, 0, MAX_PARTS) {
		if (part < p->parts)
			set |= plan.domain[bounded(plan.part[at(index)][part].domain)].cpus;
	}
	return set;
}

/* The run is over, and tasks may be in custody: a processor takes any of them. It looks again as
 * long as one is there that it cannot take yet, or is on its way there.
 */
__noinline int let_go(s32 cpu)
{
	bool again = false;
	u32 i;

	if (scx_bpf_dsq_move_to_local(BEHIND) || scx_bpf_dsq_move_to_local(OTHERS))
		return 0;
	bpf_for(i, 0, plan.tasks) {
		if (scx_bpf_dsq_move_to_local(at(i)))
			return 0;
		if (scx_bpf_dsq_nr_queued(at(i)) > 0 || is_on_its_way(i))
			again = true;
	}
	if (again)
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	return 0;
}

/* The threads of a program that goes on beyond its budget run where no job is. They stay members of
 * its queue, out of which a processor takes one without being linked to it; `out` says which run so.
 * Where more of them wait, one that sleeps is called, too. Before the first releases nobody runs.
 */
__noinline int take_beyond(u32 slot)
{
	u64 others;
	u32 i;

	if (bpf_ktime_get_ns() < plan.origin)
		return 0;
	bpf_for(i, 0, plan.tasks) {
		struct task *t = &tasks[at(i)];

		if (!plan.task[at(i)].beyond || t->link != NONE || scx_bpf_dsq_nr_queued(at(i)) <= 0)
			continue;
		if (!scx_bpf_dsq_move_to_local(at(i)))
			continue;
		others = without_job() & asleep & ~(1ULL << (slot & 63));
		if (others && scx_bpf_dsq_nr_queued(at(i)) > 0)
			scx_bpf_kick_cpu(cpu_of(lowest(others)), 0);
		return 1;
	}
	return 0;
}

/* A processor is linked to no job: the others may have it, and programs beyond their budgets, in
 * turn.
 */
__noinline int take_others(s32 slot)
{
	if (scx_bpf_dsq_move_to_local(BEHIND))
		return 1;
	if (!plan.beyond || slot < 0 || slot >= MAX_CPUS)
		return scx_bpf_dsq_move_to_local(OTHERS);
	cpus[slot].turn ^= 1;
	if (cpus[slot].turn)
		return take_beyond(slot) || scx_bpf_dsq_move_to_local(OTHERS);
	return scx_bpf_dsq_move_to_local(OTHERS) || take_beyond(slot);
}

/* The kernel unloads a program under which a thread waits for a processor for 30 s; and jobs may
 * keep their threads, those of lesser priority and all others from it for longer, as may a task
 * that nothing releases. So each domain looks this often, as a part of `patience`, for threads that
 * wait, and lets them run for an instant: a processor takes them in the place of a job, and gives
 * them away after a `MOMENT` (`running`). One that waits does so for `patience` and a part of it. A
 * moment has to be: what a thread holds within a call of the kernel, others wait for.
 */
#define LOOKS 8

/* Lets the threads of tasks of a domain run that have waited for long, each task's on another
 * processor; where there are more tasks than processors, the rest is for the next look. Threads of
 * a program come in turn: the more of them wait, the sooner and the more of them at a look, so that
 * each waits for little more than `patience`.
 */
__noinline int let_tasks(u32 domain, u64 now)
{
	u64 open = plan.domain[bounded(domain)].cpus, free = open & ~domains[bounded(domain)].linked;
	u32 i, slot;

	bpf_for(i, 0, plan.tasks) {
		const struct task *t = &tasks[at(i)];
		s32 waiting;

		if (t->home != domain || t->on != NONE || t->link != NONE)
			continue;
		waiting = scx_bpf_dsq_nr_queued(at(i));
		if (waiting <= 0 || now < t->since + patience / (u32)waiting)
			continue;
		/* Where a processor has no job, none waits for it. */
		slot = lowest(open & free ? open & free : open);
		if (slot >= MAX_CPUS)
			break;
		/* The verifier has to see the bound here, whatever the compiler knows. */
		barrier_var(slot);
		slot &= MAX_CPUS - 1;
		open &= ~(1ULL << slot);
		cpus[slot].moments = waiting / LOOKS;
		cpus[slot].lets = at(i);
		scx_bpf_kick_cpu(cpu_of(slot), SCX_KICK_PREEMPT);
	}
	return 0;
}

/* Lets others come to the processors of a domain that have jobs: as many at a look as bring each of
 * them to every such processor within half of `patience`.
 */
__noinline int let_others(u32 domain)
{
	s32 waiting = scx_bpf_dsq_nr_queued(OTHERS);
	u32 slot;

	if (waiting <= 0)
		return 0;
	/* One that fell asleep as a thread went into the queue has not seen it. */
	call(plan.domain[bounded(domain)].cpus & ~domains[bounded(domain)].linked & asleep);
	for_bits(slot, domains[bounded(domain)].linked) {
		cpus[slot].guests = waiting * 2 / LOOKS + 1;
		scx_bpf_kick_cpu(cpu_of(slot), SCX_KICK_PREEMPT);
	}
	return 0;
}

/* A processor that sleeps for so long beside its job does not come back. */
#define LOST 300000000

/* Looks for processors of a domain that sleep although a job that is linked to them can run. One
 * that is going offline the kernel asks for nothing any more, and says so only after a grace period
 * of RCU, for which that job may be what is waited for: nothing would go on until the run is over.
 * So the run ends, as it does when the kernel says it.
 */
__noinline int look_for_lost(u32 domain, u64 now)
{
	static char format[] = "processor %llu does not take task %llu: it may be going offline";
	u32 slot;

	for_bits(slot, domains[bounded(domain)].linked) {
		s32 index = cpus[slot].link;

		if (index < 0 || index >= MAX_TASKS || !(asleep >> (slot & 63) & 1) ||
		    tasks[at(index)].on != NONE || scx_bpf_dsq_nr_queued(at(index)) <= 0) {
			cpus[slot].missed = NONE;
		} else if (cpus[slot].missed != index) {
			cpus[slot].missed = index;
			cpus[slot].missed_at = now;
			scx_bpf_kick_cpu(cpu_of(slot), SCX_KICK_PREEMPT);
		} else if (now > cpus[slot].missed_at + LOST) {
			u64 words[] = { cpu_of(slot), index + 1 };

			scx_bpf_error_bstr(format, words, sizeof(words));
			break;
		}
	}
	return 0;
}

/* No task is held back any more. */
__noinline int end_custody(void)
{
	u32 i;

	over = 1;
	bpf_for(i, 0, MAX_DOMAINS)
		call(plan.domain[i % MAX_DOMAINS].cpus);
	return 0;
}

/* Is the process that has loaded the program on its way to its end? It may come to that only when
 * its threads that are in custody have run: where one of them holds the lock of its memory, the
 * others wait for it.
 */
static bool loader_ends(void)
{
	struct task_struct *p = bpf_task_from_pid(plan.loader);
	bool ends;

	if (!p)
		return true;
	ends = p->signal->flags & SIGNAL_GROUP_EXIT;
	bpf_task_release(p);
	return ends;
}

static int on_look(void *map, u32 *key, struct timer *timer)
{
	u32 domain = *key;
	u64 now = clock();

	if (domain >= MAX_DOMAINS || over)
		return 0;
	if (loader_ends()) {
		end_custody();
		return 0;
	}
	let_tasks(domain, now);
	let_others(domain);
	look_for_lost(domain, now);
	bpf_timer_start(&timer->timer, plan.origin + now + patience / LOOKS,
			BPF_F_TIMER_ABS | BPF_F_TIMER_CPU_PIN);
	return 0;
}

/* A processor that is to let a thread run for an instant takes it, and the next one of its program
 * when that is over. Returns whether it has.
 */
__noinline int let(u32 slot)
{
	s32 index;

	barrier_var(slot);
	slot &= MAX_CPUS - 1;
	index = cpus[slot].lets;
	cpus[slot].lets = NONE;
	cpus[slot].lent = 1;
	/* Where one of its threads has the last moment, that one makes room for the next. */
	if (index >= 0 && index < MAX_TASKS && tasks[index].link == NONE &&
	    (tasks[index].on == NONE || tasks[index].on == (s32)slot) &&
	    scx_bpf_dsq_move_to_local(index)) {
		if (cpus[slot].moments) {
			cpus[slot].moments--;
			cpus[slot].lets = index;
		}
		return 1;
	}
	if (cpus[slot].guests) {
		cpus[slot].guests--;
		if (scx_bpf_dsq_move_to_local(OTHERS))
			return 1;
	}
	cpus[slot].lent = 0;
	return 0;
}

#endif
