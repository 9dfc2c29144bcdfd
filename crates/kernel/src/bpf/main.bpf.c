// SPDX-License-Identifier: GPL-2.0
/* Carries out plans in the kernel (sched_ext): domains of processors, an order of jobs by key,
 * releases by timers, budgets. It knows no policy: what it needs of one is data that the loader
 * puts into `plan` (DESIGN, principle 1).
 *
 * How it works. Each domain has a lock. Releases, completions and budgets that are used up are
 * noted under it and followed by one decision, `decide`, which links jobs to processors: of the
 * ready jobs of a domain of k processors the k first by key have one (002 §2.2.2, §2.2.3). Linking
 * is data only. A processor whose link has changed is interrupted, and takes the task of its link
 * in `dispatch`. A task that can run and is on no processor is in custody: in a queue of its own,
 * from which the processor that it is linked to takes it.
 *
 * A job is never on two processors. A task that is linked elsewhere while it still runs comes into
 * custody when it has left its processor, and only then that processor calls the one that it is
 * linked to: migrations are pushed (002 §4.4.2).
 *
 * The end of a job is `sched_yield`, after the task has counted it in its page: a call without
 * arguments that the scheduler is asked about at once, after which the task is still runnable. So
 * the next job needs no wake-up, only a decision. A yield that counts nothing is an ordinary one.
 *
 * The trace is what happened: each event is stamped where it takes effect, by the processor on
 * which it does. Under the lock nothing can be called, so events are written behind it.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include "intf.h"

char _license[] SEC("license") = "GPL";

extern void scx_bpf_dsq_insert(struct task_struct *p, u64 dsq, u64 slice, u64 flags) __ksym;
extern s32 scx_bpf_create_dsq(u64 dsq, s32 node) __ksym;
extern bool scx_bpf_dsq_move_to_local(u64 dsq) __ksym;
extern s32 scx_bpf_dsq_nr_queued(u64 dsq) __ksym;
extern s32 scx_bpf_task_cpu(const struct task_struct *p) __ksym;
extern void scx_bpf_kick_cpu(s32 cpu, u64 flags) __ksym;
extern void scx_bpf_error_bstr(char *format, u64 *data, u32 size) __ksym;
extern bool bpf_cpumask_test_cpu(u32 cpu, const struct cpumask *set) __ksym;
extern struct task_struct *bpf_task_from_pid(s32 pid) __ksym;
extern void bpf_task_release(struct task_struct *p) __ksym;

#include "state.h"
#include "events.h"
#include "decide.h"
#include "trigger.h"
#include "jobs.h"

/* Tells which servers are served no more, and then which are from now on. */
static __noinline int tell_servers(u32 domain, u64 now)
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

/* Releases all that is due in a domain, with its lock held, and finds out when the next release is. */
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
static __noinline int tell_fresh(u32 domain, u64 now)
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
		if (tasks[index].current && tasks[index].link != NONE &&
		    tasks[index].number == d->fresh_number[at(i)])
			pages[index].chosen = tasks[index].number + 1;
	}
	bpf_spin_unlock(&lock->lock);
	tell_servers(domain, now);
	tell_fresh(domain, now);
	call(changed);
	if (d->next != NEVER)
		bpf_timer_start(&timer->timer, plan.origin + d->next,
				BPF_F_TIMER_ABS | BPF_F_TIMER_CPU_PIN);
	return 0;
}

/* The task of a thread whose domain and lock are known, or NONE. */
static s32 known(struct task_struct *p, u32 *domain, struct lock **lock)
{
	s32 index = task_of(p);

	if (index < 0 || index >= MAX_TASKS)
		return NONE;
	*domain = tasks[index].home;
	*lock = bpf_map_lookup_elem(&locks, domain);
	return *lock ? index : NONE;
}

/* Where a task was: who runs is decided by links alone. */
SEC("struct_ops/select_cpu")
s32 BPF_PROG(warmset_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return prev_cpu;
}

/* Is it the thread that takes the events? */
static bool is_behind(const struct task_struct *p)
{
	return !over && plan.loader && p->pid == plan.loader;
}

/* A thread that is no task can run. It goes behind all jobs: a processor that is linked to none
 * takes it. (An ordinary thread goes before them, and whatever it does a job waits for.) The one
 * that takes the events goes before the others. When it comes to nothing for a while, its process
 * makes it an ordinary one.
 */
static __noinline int stay_behind(s32 here, u64 how)
{
	s32 slot = slot_of(here);
	u32 i;

	if (slot < 0 || slot >= MAX_CPUS || cpus[slot].link == NONE) {
		scx_bpf_kick_cpu(here, how);
		return 0;
	}
	bpf_for(i, 0, plan.domains) {
		u64 free = plan.domain[bounded(i)].cpus & ~domains[bounded(i)].linked;

		if (free) {
			scx_bpf_kick_cpu(cpu_of(lowest(free)), how);
			break;
		}
	}
	return 0;
}

/* A task can run and is on no processor: it comes into custody. */
SEC("struct_ops/enqueue")
void BPF_PROG(warmset_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct lock *lock;
	u64 now, changed = 0, job = 0;
	bool woke = false;
	u32 domain;
	s32 index = known(p, &domain, &lock), link, cpu = 0;

	if (over) {
		/* First come, first served. */
		scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, enq_flags);
		return;
	}
	if (index < 0 || index >= MAX_TASKS) {
		bool takes_events = is_behind(p);

		scx_bpf_dsq_insert(p, takes_events ? BEHIND : OTHERS, SCX_SLICE_DFL, enq_flags);
		stay_behind(scx_bpf_task_cpu(p), takes_events ? SCX_KICK_PREEMPT : 0);
		return;
	}
	now = clock();
	bpf_spin_lock(&lock->lock);
	now = stamp(domain, now);
	if (!tasks[index].inside) {
		tasks[index].inside = 1;
		__sync_fetch_and_add(&inside, 1);
	}
	tasks[index].began = now;
	if (tasks[index].blocked) {
		tasks[index].blocked = 0;
		place(index);
		woke = tasks[index].current && tasks[index].seen != NONE;
		job = tasks[index].number;
		cpu = tasks[index].seen;
		changed = decide(domain);
	}
	link = tasks[index].link;
	bpf_spin_unlock(&lock->lock);
	scx_bpf_dsq_insert(p, index, SCX_SLICE_INF, enq_flags);
	if (woke)
		tell(now, cpu, WAKE_UP, index, job, 0, 0);
	/* The processor that waits for it is called when it is really here. */
	if (link >= 0 && link < MAX_CPUS)
		changed |= 1ULL << link;
	call(changed);
}

/* Longer no task is between its processor and its queue. */
#define ON_ITS_WAY 2000000

/* Ends the run: a thread may not run on a processor of its task. */
static __noinline int leave_out(u32 index, s32 cpu)
{
	static char format[] = "the affinity of task %llu leaves processor %llu out";
	u64 words[] = { index + 1, cpu };

	scx_bpf_error_bstr(format, words, sizeof(words));
	return 0;
}

/* A task is in custody, and does not come to the processor that it is linked to. */
static __noinline int ask_again(u32 index, s32 cpu)
{
	struct task_struct *p = bpf_task_from_pid(plan.thread[at(index)]);
	bool may;

	if (!p)
		return 0;
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

/* The affinity of a thread is set, or it comes into the class. One that leaves out a processor of
 * its task ends the run at once, before a job is linked there and does not come.
 */
SEC("struct_ops/set_cpumask")
void BPF_PROG(warmset_set_cpumask, struct task_struct *p, const struct cpumask *cpumask)
{
	s32 index = task_of(p);
	u64 places;
	u32 cpu;

	if (index < 0 || index >= MAX_TASKS)
		return;
	places = places_of(index);
	for_bits(cpu, places) {
		if (!bpf_cpumask_test_cpu(cpu_of(cpu), &p->cpus_mask)) {
			leave_out(index, cpu_of(cpu));
			break;
		}
	}
}

/* A task that has left its processor, or has woken up, comes into its queue only when `enqueue` has
 * returned. One that is linked meanwhile nobody calls for.
 */
static bool is_on_its_way(u32 index)
{
	const struct task *t = &tasks[at(index)];

	return t->on == NONE && !t->blocked && clock() < t->began + ON_ITS_WAY;
}

/* The run is over, and tasks may be in custody: a processor takes any of them. It looks again as
 * long as one is there that it cannot take yet, or is on its way there.
 */
static __noinline int let_go(s32 cpu)
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

/* A processor is linked to no job. */
static __noinline int take_others(u32 slot)
{
	if (!scx_bpf_dsq_move_to_local(BEHIND) && scx_bpf_dsq_move_to_local(OTHERS) && slot < MAX_CPUS)
		cpus[slot].visited = bpf_ktime_get_ns();
	return 0;
}

/* A processor is linked to a job: has one of the others waited for so long that it must come to it
 * for an instant? `running` calls for the job at once.
 */
static __noinline int visit(u32 slot)
{
	s32 waiting = scx_bpf_dsq_nr_queued(OTHERS);
	u64 now;

	if (waiting <= 0 || slot >= MAX_CPUS)
		return 0;
	now = bpf_ktime_get_ns();
	if (now < cpus[slot].visited + OTHERS_EVERY / waiting)
		return 0;
	cpus[slot].visited = now;
	return scx_bpf_dsq_move_to_local(OTHERS);
}

/* A processor looks for something to do. */
SEC("struct_ops/dispatch")
void BPF_PROG(warmset_dispatch, s32 cpu, struct task_struct *prev)
{
	s32 slot = slot_of(cpu), index;

	if (over) {
		let_go(cpu);
		return;
	}
	if (slot < 0 || slot >= MAX_CPUS) {
		take_others(MAX_CPUS);
		return;
	}
	index = cpus[slot].lets;
	cpus[slot].lets = NONE;
	if (index >= 0 && index < MAX_TASKS && tasks[index].link == NONE &&
	    scx_bpf_dsq_move_to_local(index))
		return;
	index = cpus[slot].link;
	if (index < 0 || index >= MAX_TASKS) {
		index = cpus[slot].breath;
		cpus[slot].breath = NONE;
		if (index >= 0 && index < MAX_TASKS && scx_bpf_dsq_move_to_local(index))
			return;
		take_others(slot);
		return;
	}
	if (visit(slot))
		return;
	/* One that was linked here after its last job had ended leaves once more, and begins the next
	 * one when it comes back: where it stays nobody is told.
	 */
	if (prev && prev->pid == plan.thread[index] && tasks[index].shown) {
		prev->scx.slice = SCX_SLICE_INF;
		return;
	}
	/* Where it is not in custody yet, `enqueue` calls again. A task must not be put into this
	 * processor's queue before: the kernel drops that, but it has given the task a new slice by
	 * then, with which another processor keeps it that is about to give it away.
	 */
	if (scx_bpf_dsq_move_to_local(index))
		return;
	/* Else it may be on its way off its processor, with a program such as this one run in its name,
	 * which forbids that it migrates: that is over at once.
	 */
	if (scx_bpf_dsq_nr_queued(index) > 0 || is_on_its_way(index))
		ask_again(index, cpu);
}

/* May a task not leave its processor? Programs such as this one are run with that forbidden to the
 * current task, which says nothing.
 */
static bool is_bound(const struct task_struct *p)
{
	bool own = (s32)bpf_get_current_pid_tgid() == p->pid;

	return p->migration_disabled > own;
}

/* A processor has no job: it is idle, or has come to a thread that is no task. What it was
 * interrupted in, if anything, is over there, and a choice that left it without a job has arrived.
 */
static __noinline int rest(u32 slot)
{
	struct gone gone = { .index = NONE };
	bool settled = false, idles = false, deliberate;
	struct lock *lock;
	u32 domain;
	u64 now;

	if (slot >= MAX_CPUS || over || cpus[slot].idle)
		return 0;
	if (bpf_ktime_get_ns() < plan.origin) {
		/* There is no trace yet, and it begins with processors that have no job. */
		cpus[slot].idle = 1;
		return 0;
	}
	domain = cpus[slot].domain;
	lock = bpf_map_lookup_elem(&locks, &domain);
	if (!lock)
		return 0;
	now = clock();
	bpf_spin_lock(&lock->lock);
	now = stamp(domain, now);
	/* What is linked here is about to come: the kernel looks for it once more. */
	if (cpus[slot].link == NONE || cpus[slot].link != cpus[slot].interrupted) {
		leave_interrupted(slot, NONE, &gone);
		settled = cpus[slot].link == NONE && settle(domain, slot);
		idles = become_idle(slot);
	}
	deliberate = cpus[slot].deliberate;
	bpf_spin_unlock(&lock->lock);
	tell_gone(&gone, now);
	if (idles)
		tell(now, slot, IDLE, NO_TASK, 0, 0, deliberate ? DELIBERATE : 0);
	if (settled)
		tell_ways(1ULL << slot, now, OVERHEAD_END);
	return 0;
}

/* When a running thread is changed (its nice value, its affinity, its control group), the kernel
 * takes it off and puts it back, and says `stopping` and `running`: on the processor of the one who
 * asks for the change, or of the thread itself. Nothing else runs meanwhile. Such a `stopping` is
 * told from one of a thread that goes to sleep: that one is called on the thread's own processor,
 * and the thread has a state. The `running` behind it is that of a thread that runs already.
 */
static bool is_change(const struct task_struct *p, bool runnable)
{
	return !runnable && (scx_bpf_task_cpu(p) != (s32)bpf_get_smp_processor_id() ||
			     p->__state == TASK_RUNNING);
}

SEC("struct_ops/running")
void BPF_PROG(warmset_running, struct task_struct *p)
{
	u32 cpu = slot_of(scx_bpf_task_cpu(p)), domain, kind = 0;
	struct lock *lock;
	s32 index = known(p, &domain, &lock), from = NONE;
	struct gone gone = { .index = NONE }, moved = { .index = NONE };
	bool misplaced, settled, resumes;
	u64 now, job = 0;

	if (over && p->scx.slice > SCX_SLICE_DFL)
		/* It comes from custody, and others may be left there. */
		p->scx.slice = SCX_SLICE_DFL;
	if (index < 0 && !over && cpu < MAX_CPUS) {
		/* A job may have been linked here, and this processor called, since it looked for one. */
		if (cpus[cpu].link != NONE)
			scx_bpf_kick_cpu(cpu_of(cpu), SCX_KICK_PREEMPT);
		else
			rest(cpu);
	}
	if (index < 0 || index >= MAX_TASKS || cpu >= MAX_CPUS)
		return;
	struct task *t = &tasks[index];

	/* The end of a change. What it does on this processor is known. */
	if (t->on == (s32)cpu)
		return;
	now = clock();
	bpf_spin_lock(&lock->lock);
	now = stamp(domain, now);
	t->on = cpu;
	t->began = now;
	cpus[cpu].on = index;
	misplaced = t->link != (s32)cpu;
	if (t->current && !misplaced)
		cpus[cpu].idle = 0;
	settled = !misplaced && settle(domain, cpu);
	leave_interrupted(cpu, index, &gone);
	from = t->seen;
	if (t->shown && from != NONE && from != (s32)cpu)
		/* It was interrupted elsewhere. */
		leave_interrupted(from, NONE, &moved);
	resumes = t->current && !misplaced && t->shown;
	if (t->current && !misplaced && !t->shown) {
		kind = from == NONE ? START : from == (s32)cpu ? RESUMPTION : MIGRATION;
		t->seen = cpu;
		t->shown = 1;
		job = t->number;
	}
	bpf_spin_unlock(&lock->lock);
	tell_gone(&gone, now);
	tell_gone(&moved, now);
	if (resumes)
		watch_budget(index, cpu, now);
	if (kind) {
		tell_window(index, now);
		tell(now, cpu, kind, index, job, kind == MIGRATION ? cpu_of(from) : 0, 0);
		watch_budget(index, cpu, now);
	}
	if (settled)
		tell_ways(1ULL << cpu, now, OVERHEAD_END);
	/* It has to come to the end of what it is in, here, and the kernel keeps it here until then. */
	if (misplaced && is_bound(p))
		watch_misplaced(cpu, now);
	else if (misplaced)
		scx_bpf_kick_cpu(cpu_of(cpu), SCX_KICK_PREEMPT);
}

SEC("struct_ops/stopping")
void BPF_PROG(warmset_stopping, struct task_struct *p, bool runnable)
{
	u32 cpu = slot_of(scx_bpf_task_cpu(p)), domain;
	struct news news = {};
	struct lock *lock;
	s32 index = known(p, &domain, &lock);
	u64 now, job = 0, changed = 0;
	bool left = false, ended, settled, idles = false, deliberate;
	bool begun = bpf_ktime_get_ns() >= plan.origin;

	if (index < 0 || index >= MAX_TASKS || cpu >= MAX_CPUS || is_change(p, runnable))
		return;
	/* It goes into custody, not to the head of the processor's own queue. */
	p->scx.slice = 0;
	now = clock();
	bpf_spin_lock(&lock->lock);
	now = stamp(domain, now);
	struct task *t = &tasks[index];

	account(t, now);
	t->on = NONE;
	cpus[cpu].on = NONE;
	if (!runnable) {
		t->blocked = 1;
		place(index);
	}
	ended = take_done(index, &news);
	if (ended)
		/* Its end is shown here, in any case. */
		cpus[cpu].idle = 0;
	if (!ended && runnable && t->link == (s32)cpu && t->shown) {
		cpus[cpu].interrupted = index;
	} else if (!ended) {
		left = t->shown;
		job = t->number;
		t->shown = 0;
		if (!runnable)
			unlink_task(index);
	}
	if (ended || !runnable)
		changed = decide(domain);
	settled = cpus[cpu].link == NONE && settle(domain, cpu);
	if (cpus[cpu].link == NONE && begun)
		idles = become_idle(cpu);
	deliberate = cpus[cpu].deliberate;
	bpf_spin_unlock(&lock->lock);
	if (ended) {
		tell_end(index, now, cpu, &news, 0);
		tell_window(index, now);
	} else if (left)
		tell(now, cpu, runnable ? PREEMPTION : SUSPENSION, index, job, 0, 0);
	if (idles)
		tell(now, cpu, IDLE, NO_TASK, 0, 0, deliberate ? DELIBERATE : 0);
	if (settled)
		tell_ways(1ULL << cpu, now, OVERHEAD_END);
	call(changed);
	if (ended && tasks[index].home != domain)
		hand_over(index);
}

/* How often a processor looks for threads that have waited for long: as a part of that time. */
#define LOOKS 8

/* A job whose thread can run may wait for as long as others go before it, and the kernel unloads a
 * program under which a thread waits for 30 s. So one that has waited for long is let run for an
 * instant, in the place of a job: it is put back at once, as it is not linked here (`running`).
 */
SEC("struct_ops/tick")
void BPF_PROG(warmset_tick, struct task_struct *p)
{
	u32 cpu = slot_of(scx_bpf_task_cpu(p)), domain, word, bit;
	u64 now = clock();

	if (over || cpu >= MAX_CPUS || now < cpus[cpu].looks)
		return;
	cpus[cpu].looks = now + patience / LOOKS;
	domain = cpus[cpu].domain;
	bpf_for(word, 0, TASK_WORDS) {
		for_bits(bit, domains[bounded(domain)].waiting[word % TASK_WORDS]) {
			u32 index = at(word * 64 + bit);

			if (tasks[index].on != NONE || now < tasks[index].began + patience)
				continue;
			cpus[cpu].lets = index;
			scx_bpf_kick_cpu(cpu_of(cpu), SCX_KICK_PREEMPT);
			return;
		}
	}
}

/* The task has counted the end of a job in its page, and asks for the next one. */
SEC("struct_ops/yield")
bool BPF_PROG(warmset_yield, struct task_struct *from, struct task_struct *to)
{
	u32 cpu = slot_of(scx_bpf_task_cpu(from)), domain;
	struct news news = {};
	struct lock *lock;
	s32 index = known(from, &domain, &lock);
	u64 now, changed = 0;
	bool ended, stays;

	if (index < 0 || index >= MAX_TASKS || cpu >= MAX_CPUS) {
		from->scx.slice = 0;
		return false;
	}
	now = clock();
	bpf_spin_lock(&lock->lock);
	now = stamp(domain, now);
	account(&tasks[index], now);
	ended = take_done(index, &news);
	if (ended) {
		cpus[cpu].idle = 0;
		changed = decide(domain);
		go_on(index, cpu, now, &news);
	}
	stays = tasks[index].link == (s32)cpu;
	bpf_spin_unlock(&lock->lock);
	if (ended) {
		tell_end(index, now, cpu, &news, 0);
		tell_window(index, now);
	}
	if (news.goes_on)
		watch_budget(index, cpu, now);
	if (!stays)
		from->scx.slice = 0;
	call(changed & ~(1ULL << cpu));
	if (ended && tasks[index].home != domain)
		hand_over(index);
	return false;
}

/* A processor has nothing to do. */
SEC("struct_ops/update_idle")
void BPF_PROG(warmset_update_idle, s32 cpu, bool idle)
{
	s32 slot = slot_of(cpu);

	if (slot >= 0 && slot < MAX_CPUS && idle)
		rest(slot);
}

/* Nobody runs, and nobody has run; each task has its queue, by its number. */
SEC("struct_ops.s/init")
s32 BPF_PROG(warmset_init)
{
	u32 i;

	bpf_for(i, 0, MAX_TASKS) {
		struct task *t = &tasks[at(i)];

		t->link = t->on = t->last = t->seen = NONE;
		t->home = home_of(at(i), 0);
	}
	bpf_for(i, 0, MAX_CPUS) {
		cpus[i % MAX_CPUS].link = NONE;
		cpus[i % MAX_CPUS].on = NONE;
		cpus[i % MAX_CPUS].idle = 1;
		cpus[i % MAX_CPUS].serves = NONE;
		cpus[i % MAX_CPUS].due = NONE;
		cpus[i % MAX_CPUS].interrupted = NONE;
		cpus[i % MAX_CPUS].breath = NONE;
		cpus[i % MAX_CPUS].lets = NONE;
	}
	bpf_for(i, 0, plan.tasks) {
		s32 error = scx_bpf_create_dsq(at(i), NONE);

		if (error)
			return error;
	}
	i = scx_bpf_create_dsq(BEHIND, NONE);
	return i ? (s32)i : scx_bpf_create_dsq(OTHERS, NONE);
}

/* The thread of a task leaves the class before the run is over: it has ended, or something from
 * outside has given it another class. What it was linked to is free at once, and it is on no
 * processor to the schedule, which cannot go on without it: the loader ends the run.
 */
SEC("struct_ops/disable")
void BPF_PROG(warmset_disable, struct task_struct *p)
{
	struct lock *lock;
	u32 domain;
	s32 index = known(p, &domain, &lock), on, seen;
	u64 now, job, changed;
	bool shown;

	if (index < 0 || index >= MAX_TASKS)
		return;
	now = clock();
	bpf_spin_lock(&lock->lock);
	now = stamp(domain, now);
	struct task *t = &tasks[index];

	account(t, now);
	on = t->on;
	seen = t->seen;
	shown = t->shown;
	job = t->number;
	t->on = NONE;
	t->shown = 0;
	t->blocked = 1;
	if (on >= 0 && on < MAX_CPUS)
		cpus[on].on = NONE;
	if (seen >= 0 && seen < MAX_CPUS && cpus[seen].interrupted == index)
		cpus[seen].interrupted = NONE;
	unlink_task(index);
	place(index);
	changed = decide(domain);
	bpf_spin_unlock(&lock->lock);
	if (shown)
		tell(now, seen, SUSPENSION, index, job, 0, 0);
	if (on >= 0 && on < MAX_CPUS)
		changed |= 1ULL << on;
	call(changed);
	__sync_val_compare_and_swap(&gone, 0, index + 1);
}

/* The thread that has loaded the program is dead. Its process dies, too, and with the last of its
 * threads the program; those that are in custody have to run to die.
 */
SEC("struct_ops/exit_task")
void BPF_PROG(warmset_exit_task, struct task_struct *p, struct scx_exit_task_args *args)
{
	u32 i;

	if (!plan.loader || p->pid != plan.loader || over)
		return;
	over = 1;
	bpf_for(i, 0, MAX_DOMAINS)
		call(plan.domain[i % MAX_DOMAINS].cpus);
}

SEC("struct_ops/exit")
void BPF_PROG(warmset_exit, struct scx_exit_info *info)
{
	ending.code = info->exit_code;
	bpf_probe_read_kernel_str(ending.reason, sizeof(ending.reason), info->reason);
	bpf_probe_read_kernel_str(ending.message, sizeof(ending.message), info->msg);
	ending.kind = info->kind;
}

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
		bpf_timer_start(&timer->timer, plan.origin + BREATH, BPF_F_TIMER_ABS);
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

	if (domain >= MAX_DOMAINS || over)
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

	if (domain >= MAX_DOMAINS || over)
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

/* Jobs of programs that take no part stay with the fair class. Only tasks of the plan come here.
 * A processor that has no job looks here before it goes on with what it ran: hence ENQ_LAST.
 */
SEC(".struct_ops.link")
struct sched_ext_ops warmset = {
	.select_cpu = (void *)warmset_select_cpu,
	.enqueue = (void *)warmset_enqueue,
	.dispatch = (void *)warmset_dispatch,
	.running = (void *)warmset_running,
	.stopping = (void *)warmset_stopping,
	.tick = (void *)warmset_tick,
	.yield = (void *)warmset_yield,
	.update_idle = (void *)warmset_update_idle,
	.set_cpumask = (void *)warmset_set_cpumask,
	.disable = (void *)warmset_disable,
	.init = (void *)warmset_init,
	.exit_task = (void *)warmset_exit_task,
	.exit = (void *)warmset_exit,
	.flags = SCX_OPS_SWITCH_PARTIAL | SCX_OPS_ENQ_LAST | SCX_OPS_KEEP_BUILTIN_IDLE,
	.timeout_ms = 30000,
	.name = "warmset",
};
