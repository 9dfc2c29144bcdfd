// SPDX-License-Identifier: GPL-2.0
/* Carries out plans in the kernel (sched_ext): domains of processors, an order of jobs by key,
 * releases by timers, budgets. It knows no policy: what it needs of one is data that the loader
 * puts into `plan` (DESIGN, principle 1).
 *
 * How it works. Each domain has a lock. Releases, completions and budgets that are used up are
 * noted under it and followed by one decision, `decide`, which links jobs to processors: of the
 * ready jobs of a domain of k processors the k first by key have one (002 §2.2.2, §2.2.3).
 * Linking is data only. A processor whose link has changed is interrupted, and takes the task of
 * its link in `dispatch`. A task that can run and is on no processor is in custody: in a queue of
 * its own, from which the processor that it is linked to takes it.
 *
 * A job is never on two processors. A task that is linked elsewhere while it still runs comes into
 * custody when it has left its processor, and only then that processor calls the one that it is
 * linked to: migrations are pushed (002 §4.4.2).
 *
 * The end of a job is `sched_yield`, after the task has counted it in its page: a call without
 * arguments that the scheduler is asked about at once, after which the task is still runnable. So
 * the next job needs no wake-up, only a decision. A yield that counts nothing is an ordinary one.
 *
 * A program that is a task (`many`) has any number of threads, which inherit the task. Those that
 * can run share its queue, and the processor that it is linked to takes one after the other. It
 * counts nothing: its job is over when its budget is, or when its processor finds none that can
 * run. In between they stay in custody, so that nobody has to stop them.
 *
 * A function that is not static the kernel checks once a program, whoever calls it; a static one
 * with each call. Under a lock only static ones may be called.
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
extern s32 scx_bpf_pick_idle_cpu(const struct cpumask *allowed, u64 flags) __ksym;
extern void scx_bpf_error_bstr(char *format, u64 *data, u32 size) __ksym;
extern bool bpf_cpumask_test_cpu(u32 cpu, const struct cpumask *set) __ksym;
extern struct task_struct *bpf_task_from_pid(s32 pid) __ksym;
extern void bpf_task_release(struct task_struct *p) __ksym;

#include "state.h"
#include "events.h"
#include "decide.h"
#include "trigger.h"
#include "jobs.h"
#include "custody.h"
#include "releases.h"
#include "calls.h"
#include "programs.h"
#include "comings.h"

/* Where a task was: who runs is decided by links alone. */
SEC("struct_ops/select_cpu")
s32 BPF_PROG(warmset_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return prev_cpu;
}

/* How often a program such as this one forbids the current task to leave its processor, which
 * depends on how the kernel is built: as often as it is forbidden to a thread that nothing else
 * forbids it to.
 */
static u32 forbids = 1;

static void learn_what_forbids(void)
{
	struct task_struct *idle = bpf_get_current_task_btf();

	if (!idle->pid)
		forbids = idle->migration_disabled;
}

/* May a task not leave its processor? Such a one the kernel puts back where it was, before all that
 * others want there, and asks nobody. So it must not be called off: it would be there again at
 * once, and neither would come further. Some kernels run programs such as this one with that
 * forbidden to the current task, which says nothing: see `forbids`.
 */
static bool is_bound(const struct task_struct *p)
{
	bool own = (s32)bpf_get_current_pid_tgid() == p->pid;

	return p->migration_disabled > (own ? forbids : 0);
}

/* A thread can run: it is about to come, or to change. */
SEC("struct_ops/runnable")
void BPF_PROG(warmset_runnable, struct task_struct *p, u64 enq_flags)
{
	note_able(p, true);
	/* A thread that is bound to a processor goes into that one's own queue, and what runs there from
	 * custody need not end soon.
	 */
	if (!over && is_bound(p))
		scx_bpf_kick_cpu(scx_bpf_task_cpu(p), SCX_KICK_PREEMPT);
}

/* A thread can run no more; or it is changed, and goes on. */
SEC("struct_ops/quiescent")
void BPF_PROG(warmset_quiescent, struct task_struct *p, u64 deq_flags)
{
	if (deq_flags & SCX_DEQ_SLEEP)
		note_able(p, false);
}

/* A thread of a task comes into custody: has the processor that the task is linked to to be called?
 * One that is between two threads of a program has looked already, and taken the next one, which
 * the call would take off again at once; unless it has found none.
 */
static bool is_awaited(u32 index, s32 link, u64 enq_flags)
{
	if (link < 0 || link >= MAX_CPUS)
		return false;
	if (!plan.task[at(index)].many)
		return true;
	return tasks[at(index)].on == NONE &&
	       (cpus[link].interrupted != (s32)index || enq_flags & SCX_ENQ_LAST);
}

/* What follows from that a thread has come into custody, to be done behind the lock. */
struct coming {
	u64 now;
	u64 changed;
	u64 job;
	s32 seen;
	s32 link;
	u8 woke;
	u8 awaited;
};

/* Notes that a thread of a task can run. Returns whether the task has gone to another domain before
 * the lock was there: another thread of its program has ended a job.
 */
__noinline int come_in(u32 index, u64 enq_flags, struct coming *coming)
{
	struct lock *lock;
	u32 domain;
	u64 now;

	if (!coming || index >= MAX_TASKS)
		return 0;
	domain = tasks[index].home;
	lock = bpf_map_lookup_elem(&locks, &domain);
	if (!lock)
		return 0;
	now = clock();
	bpf_spin_lock(&lock->lock);
	struct task *t = &tasks[index];

	if (t->home != domain) {
		bpf_spin_unlock(&lock->lock);
		return 1;
	}
	now = stamp(domain, now);
	if (!t->inside && !plan.task[index].asks) {
		t->inside = 1;
		__sync_fetch_and_add(&inside, 1);
	}
	/* While another thread of a program runs, it says since when that one does. */
	if (t->on == NONE)
		t->began = now;
	if (t->blocked) {
		t->blocked = 0;
		place(index);
		coming->woke = t->current && t->suspended;
		t->suspended = 0;
		coming->job = t->number;
		coming->seen = t->seen;
		coming->changed = decide(domain);
	}
	coming->link = t->link;
	coming->awaited = is_awaited(index, t->link, enq_flags);
	coming->now = now;
	bpf_spin_unlock(&lock->lock);
	return 0;
}

/* A task can run and is on no processor: it comes into custody. */
SEC("struct_ops/enqueue")
void BPF_PROG(warmset_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct coming c = { .link = NONE };
	s32 index = task_of(p);
	u32 i;

	if (over) {
		/* First come, first served. */
		scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, enq_flags);
		return;
	}
	if (index < 0 || index >= MAX_TASKS || leaves_to_die(index, p)) {
		bool takes_events = is_behind(p);

		scx_bpf_dsq_insert(p, takes_events ? BEHIND : OTHERS, SCX_SLICE_DFL, enq_flags);
		stay_behind(p, takes_events ? SCX_KICK_PREEMPT : 0, enq_flags, true);
		look_behind(p);
		return;
	}
	bpf_for(i, 0, 3) {
		if (!come_in(index, enq_flags, &c))
			break;
	}
	scx_bpf_dsq_insert(p, index, slice_of(index), enq_flags);
	if (c.woke)
		tell(c.now, c.seen, WAKE_UP, index, c.job, 0, 0);
	/* The processor that waits for it is called when it is really here. */
	if (c.awaited)
		c.changed |= 1ULL << (c.link & 63);
	call(c.changed);
	if (c.link == NONE && plan.task[index].beyond)
		stay_behind(p, 0, enq_flags, false);
	look_behind(p);
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
		take_others(NONE);
		return;
	}
	/* One that is bound here comes to the end of what it is in first: behind what is taken now it
	 * might wait for long, and nobody else can have it.
	 */
	index = cpus[slot].link;
	if (prev && prev->scx.flags & SCX_TASK_QUEUED && is_bound(prev) &&
	    (index == NONE || task_of(prev) != index)) {
		prev->scx.slice = MOMENT;
		watch_misplaced(slot, clock());
		return;
	}
	if (let(slot))
		return;
	index = cpus[slot].link;
	if (index < 0 || index >= MAX_TASKS) {
		/* A job may have been linked here while its lock was given away for a thread that then was
		 * not there any more.
		 */
		if (!take_others(slot) && cpus[slot].link != NONE)
			scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
		return;
	}
	if (plan.task[index].many) {
		take_turns(index, slot, prev);
		return;
	}
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
	else if (cpus[slot].link != index)
		/* As above. */
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
}

/* A processor has no job: it is idle, or has come to a thread that is no task. What it was
 * interrupted in, if anything, is over there, and a choice that left it without a job has arrived.
 */
__noinline int rest(u32 slot)
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

/* A processor has come to a thread that has to leave it: at once, or in a moment, where the thread
 * was let run for that, or has to come to the end of what it is in, for which the kernel keeps it
 * here.
 */
static void call_off(const struct task_struct *p, u32 cpu, bool lent)
{
	if (lent || is_bound(p))
		watch_misplaced(cpu, clock());
	else
		scx_bpf_kick_cpu(cpu_of(cpu), SCX_KICK_PREEMPT);
}

SEC("struct_ops/running")
void BPF_PROG(warmset_running, struct task_struct *p)
{
	u32 cpu = slot_of(scx_bpf_task_cpu(p)), domain, kind = 0;
	struct lock *lock;
	s32 index = known(p, &domain, &lock), from = NONE;
	struct gone gone = { .index = NONE }, moved = { .index = NONE };
	bool misplaced, settled, resumes, lent = false;
	u64 now, job = 0;

	if (over && p->scx.slice > SCX_SLICE_DFL)
		/* It comes from custody, and others may be left there. */
		p->scx.slice = SCX_SLICE_DFL;
	if (cpu < MAX_CPUS) {
		lent = cpus[cpu].lent;
		cpus[cpu].lent = 0;
		cpus[cpu].misplaced = 0;
	}
	if (index < 0 && !over && cpu < MAX_CPUS) {
		/* A job may have been linked here, and this processor called, since it looked for one. */
		if (cpus[cpu].link != NONE)
			call_off(p, cpu, lent);
		else
			rest(cpu);
	}
	if (index < 0 || index >= MAX_TASKS || cpu >= MAX_CPUS)
		return;
	struct task *t = &tasks[index];

	/* The end of a change. What it does on this processor is known. */
	if (t->on == (s32)cpu)
		return;
	if (plan.task[index].beyond && t->link != (s32)cpu) {
		__sync_fetch_and_or(&t->out, 1ULL << (cpu & 63));
		/* In time that no job needs, unless one has been linked here, or elsewhere to its own: that
		 * processor calls, if it was linked since the bit is there.
		 */
		if (cpus[cpu].link == NONE && t->link == NONE)
			rest(cpu);
		else
			call_off(p, cpu, lent);
		return;
	}
	/* The processor that its program was linked to before has taken one more of its threads. */
	if (plan.task[index].many && t->on != NONE) {
		call_off(p, cpu, lent);
		return;
	}
	if (plan.task[index].beyond)
		/* What it was given where it had no job was more. */
		p->scx.slice = TURN;
	now = clock();
	bpf_spin_lock(&lock->lock);
	if (plan.task[index].many && (t->on != NONE || t->home != domain)) {
		/* Another one was here first. */
		bpf_spin_unlock(&lock->lock);
		call_off(p, cpu, lent);
		return;
	}
	now = stamp(domain, now);
	t->on = cpu;
	cpus[cpu].awaits = 0;
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
		pages[index].preemptions += kind == RESUMPTION;
		pages[index].migrations += kind == MIGRATION;
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
	if (misplaced)
		call_off(p, cpu, lent);
}

SEC("struct_ops/stopping")
void BPF_PROG(warmset_stopping, struct task_struct *p, bool runnable)
{
	u32 cpu = slot_of(scx_bpf_task_cpu(p)), domain;
	struct news news = {};
	struct lock *lock;
	s32 index = known(p, &domain, &lock), link;
	u64 now, job = 0, changed = 0;
	bool left = false, ended, settled, idles = false, deliberate, many, asks, goes_on, sleeps;
	bool begun = bpf_ktime_get_ns() >= plan.origin;

	/* The processor that takes nothing else would be idle beside it, as nobody calls. */
	if (runnable && is_bound(p))
		scx_bpf_kick_cpu(scx_bpf_task_cpu(p), 0);
	if (index < 0 || index >= MAX_TASKS || cpu >= MAX_CPUS || is_change(p, runnable))
		return;
	/* It goes into custody, not to the head of the processor's own queue. */
	p->scx.slice = 0;
	struct task *t = &tasks[index];

	many = plan.task[index].many;
	asks = plan.task[index].asks;
	if (many && t->on != (s32)cpu) {
		if (plan.task[index].beyond) {
			__sync_fetch_and_and(&t->out, ~(1ULL << (cpu & 63)));
			t->since = clock();
		}
		return;
	}
	/* Whether another thread of its program can go on in its place. */
	goes_on = runnable || (many && others_able(index, p));
	/* Its job goes on when it wakes up. */
	sleeps = !goes_on && (!many || asks);
	if (sleeps && asks)
		see_done(index, p);
	now = clock();
	bpf_spin_lock(&lock->lock);
	now = stamp(domain, now);
	account(t, now);
	link = t->link;
	t->since = now;
	t->on = NONE;
	cpus[cpu].on = NONE;
	if (sleeps) {
		t->blocked = 1;
		place(index);
	}
	if (many && !asks)
		ended = !goes_on && take_all_asleep(index, &news);
	else
		ended = (sleeps || !many) && take_done(index, &news);
	if (ended)
		/* Its end is shown here, in any case. */
		cpus[cpu].idle = 0;
	if (!ended && goes_on && t->link == (s32)cpu && t->shown) {
		cpus[cpu].interrupted = index;
	} else if (!ended) {
		left = t->shown;
		job = t->number;
		t->shown = 0;
		if (sleeps) {
			t->suspended = left;
			unlink_task(index);
		}
	}
	if (ended || !goes_on)
		changed = decide(domain) | let_down(link, cpu);
	/* This one does not come into custody, which would call for it. */
	if (!runnable && t->link != NONE)
		changed |= 1ULL << (t->link & 63);
	settled = cpus[cpu].link == NONE && settle(domain, cpu);
	if (cpus[cpu].link == NONE && begun)
		idles = become_idle(cpu);
	deliberate = cpus[cpu].deliberate;
	bpf_spin_unlock(&lock->lock);
	if (ended) {
		tell_end(index, now, cpu, &news, 0);
		if (news.begun)
			tell_window(index, now);
	} else if (left)
		tell(now, cpu, sleeps ? SUSPENSION : PREEMPTION, index, job, 0, 0);
	if (idles)
		tell(now, cpu, IDLE, NO_TASK, 0, 0, deliberate ? DELIBERATE : 0);
	if (settled)
		tell_ways(1ULL << cpu, now, OVERHEAD_END);
	call(changed);
	if (ended && tasks[index].home != domain)
		hand_over(index);
}

/* The task has counted the end of a job in its page, and asks for the next one. */
SEC("struct_ops/yield")
bool BPF_PROG(warmset_yield, struct task_struct *from, struct task_struct *to)
{
	u32 cpu = slot_of(scx_bpf_task_cpu(from)), domain;
	struct news news = {};
	struct lock *lock;
	s32 index = known(from, &domain, &lock), link;
	u64 now, changed = 0;
	bool ended, stays;

	if (index < 0 || index >= MAX_TASKS || cpu >= MAX_CPUS || plan.task[index].many) {
		from->scx.slice = 0;
		return false;
	}
	now = clock();
	bpf_spin_lock(&lock->lock);
	now = stamp(domain, now);
	account(&tasks[index], now);
	link = tasks[index].link;
	ended = take_done(index, &news);
	if (ended) {
		cpus[cpu].idle = 0;
		changed = decide(domain) | let_down(link, cpu);
		go_on(index, cpu, now, &news);
	}
	stays = tasks[index].link == (s32)cpu;
	bpf_spin_unlock(&lock->lock);
	if (ended) {
		tell_end(index, now, cpu, &news, 0);
		if (news.begun)
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

	if (slot < 0 || slot >= MAX_CPUS)
		return;
	if (idle)
		__sync_fetch_and_or(&asleep, 1ULL << (slot & 63));
	else
		__sync_fetch_and_and(&asleep, ~(1ULL << (slot & 63)));
	cpus[slot].missed = NONE;
	if (idle)
		rest(slot);
	else
		learn_what_forbids();
}

/* A tick, while a thread of this class runs: a timer that could not be armed is, now. */
SEC("struct_ops/tick")
void BPF_PROG(warmset_tick, struct task_struct *p)
{
	s32 slot = slot_of(scx_bpf_task_cpu(p)), index;

	if (slot < 0 || slot >= MAX_CPUS || !cpus[slot].unarmed || over)
		return;
	cpus[slot].unarmed = 0;
	index = cpus[slot].on;
	if (cpus[slot].misplaced)
		watch_misplaced(slot, clock());
	else if (index >= 0 && index < MAX_TASKS)
		watch_budget(index, slot, tasks[index].began);
}

/* Jobs of programs that take no part stay with the fair class. Only tasks of the plan come here.
 * A processor that has no job looks here before it goes on with what it ran: hence ENQ_LAST. A
 * thread on its way to its end is in custody as others are, and needs milliseconds for it: hence
 * ENQ_EXITING, without which the kernel would let it run where it is, before jobs.
 */
SEC(".struct_ops.link")
struct sched_ext_ops warmset = {
	.select_cpu = (void *)warmset_select_cpu,
	.enqueue = (void *)warmset_enqueue,
	.dispatch = (void *)warmset_dispatch,
	.runnable = (void *)warmset_runnable,
	.running = (void *)warmset_running,
	.stopping = (void *)warmset_stopping,
	.quiescent = (void *)warmset_quiescent,
	.yield = (void *)warmset_yield,
	.update_idle = (void *)warmset_update_idle,
	.tick = (void *)warmset_tick,
	.set_cpumask = (void *)warmset_set_cpumask,
	.disable = (void *)warmset_disable,
	.init = (void *)warmset_init,
	.init_task = (void *)warmset_init_task,
	.exit_task = (void *)warmset_exit_task,
	.exit = (void *)warmset_exit,
	.flags = SCX_OPS_SWITCH_PARTIAL | SCX_OPS_ENQ_LAST | SCX_OPS_ENQ_EXITING |
		 SCX_OPS_KEEP_BUILTIN_IDLE,
	.timeout_ms = 30000,
	.name = "warmset",
};
