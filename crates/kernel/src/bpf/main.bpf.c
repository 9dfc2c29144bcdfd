// SPDX-License-Identifier: GPL-2.0
/* Carries out plans in the kernel (sched_ext): domains of processors, an order of jobs by key,
 * releases by timers, budgets. It knows no policy: what it needs of one is data that the loader
 * puts into `plan` (DESIGN, principle 1).
 *
 * How it works. Each domain has a lock. Releases, completions and budgets that are used up are
 * noted under it and followed by one decision, `decide`, which links jobs to processors: of the
 * ready jobs of a domain of k processors the k first by key have one (002 §2.2.2, §2.2.3). Linking
 * is data only. A processor whose link has changed is interrupted, and takes the task of its link
 * in `dispatch`. Jobs that no processor takes stay in the custody of this program: the kernel keeps
 * them in no queue.
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
extern u32 scx_bpf_dispatch_nr_slots(void) __ksym;
extern void scx_bpf_kick_cpu(s32 cpu, u64 flags) __ksym;
extern struct task_struct *bpf_task_from_pid(s32 pid) __ksym;
extern void bpf_task_release(struct task_struct *p) __ksym;

#define NONE (-1)
#define NEVER (~0ULL)

/* The place of a task in the tables; within them whatever the index is, as the verifier asks. */
static u32 at(u32 index)
{
	return index % MAX_TASKS;
}

/* Kinds of events: `trace::EventKind`. */
enum kind {
	RELEASE = 1,
	START = 2,
	PREEMPTION = 3,
	RESUMPTION = 4,
	MIGRATION = 5,
	COMPLETION = 6,
	DEADLINE_MISS = 7,
	BUDGET_EXHAUSTED = 8,
	IDLE = 11,
	SERVER_BEGIN = 12,
	SERVER_END = 13,
	WINDOW = 14,
	SUSPENSION = 15,
	WAKE_UP = 16,
	LOST = 18,
};
#define CUT 1
#define NO_TASK (~0U)

/* A task and its current or next job. The lock of the domain `home` protects it, but for `next`,
 * of which each domain has its own, and `home`, which that domain alone changes: it gives the task
 * away.
 */
struct task {
	/* How many jobs have ended, which is the number of the current one. */
	u64 number;
	/* By the domains of the plan: the next job that it releases. */
	u64 next[2];
	/* Of the current job. */
	u64 deadline;
	u64 executed;
	/* Since when it runs, if it runs. */
	u64 began;
	/* How many pieces of work of the task are known to be done. */
	u64 taken;
	/* Of the current slice, or of the whole job: the deadline that orders it; what the job may have
	 * executed when it ends, NEVER: the end of the job is its end; when it becomes ready.
	 */
	u64 due;
	u64 slice_end;
	u64 opens;
	/* Jobs that were cut short and whose work is not done (`job::Life::behind`). */
	u64 behind;
	/* The domain of the current slice, or of the next job. */
	u32 home;
	u32 part;
	u32 tie;
	/* The processor that it is linked to. Processors are named by their slots. */
	s32 link;
	/* The processor on which its thread runs. */
	s32 on;
	/* The processor that it was linked to last. */
	s32 last;
	/* The processor on which the current job was shown last. */
	s32 seen;
	/* A job is current. */
	u8 current;
	/* Its slice waits for its window. */
	u8 held;
	/* The trace has the window of the slice. */
	u8 told;
	/* It waits for something other than a processor. */
	u8 blocked;
	/* The trace shows its job on a processor. */
	u8 shown;
	/* Chosen in the decision that is under way. */
	u8 chosen;
};

/* A processor. The lock of its domain protects it. */
struct cpu {
	/* The task that it is to run. */
	s32 link;
	/* The task that it runs. */
	s32 on;
	/* The trace says that it has no job. */
	s32 idle;
	/* The server that it serves, and the one that its timetable says; NONE. */
	s32 serves;
	s32 due;
	/* The server that it served before the change that is to be told. */
	s32 served;
};

struct domain {
	/* Slots without a job; of those, as many as there are jobs to choose for; changed links. */
	u64 free;
	u64 left;
	u64 changed;
	/* When the next job is released, or a processor has to serve another server. */
	u64 next;
	/* The latest stamp. */
	u64 latest;
	/* The change that comes next, and when the timetable began that it is in. */
	u64 began;
	u32 change;
	u32 reserved;
	/* Slots whose server has changed. */
	u64 changing;
	u32 count;
	u32 fresh_count;
	/* Tasks that are chosen in the decision that is under way. */
	s32 chosen[MAX_CPUS];
	/* Tasks with jobs that the timer releases at this moment. */
	u32 fresh[MAX_TASKS];
	u64 fresh_number[MAX_TASKS];
};

struct plan plan SEC(".data.plan");
struct page pages[MAX_TASKS] SEC(".data.pages");
struct ending ending SEC(".data.ending");
/* By slot, events that were lost since the last one. */
u64 lost[MAX_CPUS] SEC(".data.lost");
struct task tasks[MAX_TASKS];
struct cpu cpus[MAX_CPUS];
struct domain domains[MAX_DOMAINS];
/* The run is over: tasks come and go as they like. */
u32 over SEC(".data.over");
u32 let_go_from;

struct lock {
	struct bpf_spin_lock lock;
};
struct timer {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_DOMAINS);
	__type(key, u32);
	__type(value, struct lock);
} locks SEC(".maps");

/* One a domain: its next release. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_DOMAINS);
	__type(key, u32);
	__type(value, struct timer);
} releases SEC(".maps");

/* One a processor: the end of the budget of what it runs. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_CPUS);
	__type(key, u32);
	__type(value, struct timer);
} budgets SEC(".maps");

/* One a task: when its next slice becomes ready. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_TASKS);
	__type(key, u32);
	__type(value, struct timer);
} arrivals SEC(".maps");

/* By thread, its task. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_TASKS);
	__type(key, s32);
	__type(value, u32);
} members SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 24);
} events SEC(".maps");

static u64 clock(void)
{
	u64 now = bpf_ktime_get_ns();

	return now > plan.origin ? now - plan.origin : 0;
}

static u64 rest_of(u32 task, u32 cpu, u32 kind, u32 flags)
{
	return task | (u64)plan.cpu_of[cpu % MAX_CPUS] << 32 | (u64)kind << 48 | (u64)flags << 56;
}

static __always_inline bool put(u64 time, u64 job, u64 argument, u64 rest)
{
	struct record *record = bpf_ringbuf_reserve(&events, sizeof(*record), 0);

	if (!record)
		return false;
	record->time = time;
	record->job = job;
	record->argument = argument;
	record->rest = rest;
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
	return true;
}

/* Writes an event of a processor, or counts that it is lost. What was lost before is told first. */
static __always_inline void tell(u64 time, u32 cpu, u32 kind, u32 task, u64 job, u64 argument, u32 flags)
{
	u64 count;

	/* The verifier has to see the bound here, whatever the compiler knows. */
	barrier_var(cpu);
	cpu &= MAX_CPUS - 1;
	count = lost[cpu];
	if (count) {
		if (!put(time, 0, count, rest_of(NO_TASK, cpu, LOST, 0))) {
			__sync_fetch_and_add(&lost[cpu], 1);
			return;
		}
		__sync_fetch_and_sub(&lost[cpu], count);
	}
	if (!put(time, job, argument, rest_of(task, cpu, kind, flags)))
		__sync_fetch_and_add(&lost[cpu], 1);
}

/* The stamp of what is noted under the lock of a domain: later than all before, so that what is
 * noted later is told later.
 */
static u64 stamp(u32 domain, u64 now)
{
	struct domain *d = &domains[domain % MAX_DOMAINS];

	if (now <= d->latest)
		now = d->latest + 1;
	d->latest = now;
	return now;
}

/* The slot of a processor of the kernel, or NONE. */
static s32 slot_of(u32 cpu)
{
	return cpu < MAX_NUMBER ? plan.slot_of[cpu] : NONE;
}

static s32 slot_here(void)
{
	return slot_of(bpf_get_smp_processor_id());
}

static u32 cpu_of(u32 slot)
{
	return plan.cpu_of[slot % MAX_CPUS];
}

/* The task of a thread, or NONE. */
static s32 task_of(struct task_struct *p)
{
	s32 pid = p->pid;
	u32 *index = bpf_map_lookup_elem(&members, &pid);

	if (!index || *index >= MAX_TASKS || over)
		return NONE;
	return *index;
}

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

	if (cpu < 0 || cpu >= MAX_CPUS)
		return;
	t->chosen = 0;
	t->link = cpu;
	t->last = cpu;
	cpus[cpu].link = index;
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

/* Links jobs to processors as `policy::cluster` does: jobs that have a processor keep it unless one
 * that goes before them needs it; of those that are chosen anew, first those that can return to
 * where they were, then the others, each in the order of keys, to the nearest that is free.
 *
 * The caller holds the lock of the domain. Returns the processors whose link may have changed.
 *
 * Counters are in memory: the verifier would follow each value of a register.
 */
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

static __noinline u64 decide(u32 domain)
{
	struct domain *d = &domains[domain % MAX_DOMAINS];
	u64 set = plan.domain[domain % MAX_DOMAINS].cpus;
	u32 i;

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

/* The slice of a job that begins, or the whole job. */
static void set_part(u32 index, u32 number)
{
	struct task *t = &tasks[at(index)];
	const struct task_plan *p = &plan.task[at(index)];
	const struct part_plan *part = &plan.part[at(index)][number % MAX_PARTS];
	u64 release = t->deadline - p->deadline;

	t->part = number;
	t->told = 0;
	t->due = t->deadline;
	t->tie = p->tie;
	t->slice_end = NEVER;
	t->opens = release;
	if (!p->parts)
		return;
	t->due = release + part->due;
	t->tie = part->tie;
	t->opens = release + part->released;
	if (number + 1 < p->parts)
		t->slice_end = t->executed + part->budget;
}

/* The next job of a task, which is released, becomes its current one. */
static void begin(u32 index)
{
	struct task *t = &tasks[at(index)];
	const struct task_plan *p = &plan.task[at(index)];
	struct page *page = &pages[at(index)];
	u64 release = p->phase + t->number * p->period;

	t->deadline = release + p->deadline;
	t->executed = 0;
	t->current = 1;
	t->held = 0;
	t->seen = NONE;
	set_part(index, 0);
	page->number = t->number;
	page->given = t->number + 1;
	page->release = release;
	page->deadline = t->deadline;
}

/* Has the job been released? */
static bool is_released(u32 index, u64 number)
{
	return tasks[at(index)].next[turn_of(index, number) & 1] > number;
}

/* The current job of a task has ended; on to the next one, if that is released. Its processor is
 * free for the decision that follows. If the next job is another domain's, the task is given away:
 * the caller calls `hand_over` behind the lock.
 */
static void finish(u32 index)
{
	struct task *t = &tasks[at(index)];
	u32 home;

	unlink_task(index);
	t->number++;
	t->current = 0;
	t->shown = 0;
	home = home_of(index, t->number);
	if (home != t->home)
		/* Whoever sees it has seen the rest. */
		__sync_lock_test_and_set(&t->home, home);
	else if (is_released(index, t->number))
		begin(index);
}

static __noinline int call(u64 set);
static __noinline int tell_window(u32 index, u64 now);

/* A task was given to another domain. Its next job begins if that is released already, which that
 * domain could not do before.
 */
static __noinline int hand_over(u32 index)
{
	struct task *t = &tasks[at(index)];
	u32 domain = t->home;
	struct lock *lock = bpf_map_lookup_elem(&locks, &domain);
	u64 now, changed = 0;

	if (!lock)
		return 0;
	now = clock();
	bpf_spin_lock(&lock->lock);
	now = stamp(domain, now);
	if (t->home == domain && !t->current && is_released(index, t->number)) {
		begin(index);
		changed = decide(domain);
	}
	bpf_spin_unlock(&lock->lock);
	tell_window(index, now);
	call(changed);
	return 0;
}

/* What became of a job, to be told behind the lock. */
struct news {
	u64 job;
	u64 deadline;
	u64 executed;
	/* The job that the task goes on with on the same processor. */
	u64 next;
	s32 seen;
	u8 ended;
	u8 shown;
	u8 goes_on;
};

/* A running task goes on with its next job where it is, without a switch. */
static void go_on(u32 index, s32 cpu, u64 now, struct news *news)
{
	struct task *t = &tasks[at(index)];

	if (t->link != cpu || t->on != cpu || !t->current)
		return;
	t->began = now;
	t->shown = 1;
	t->seen = cpu;
	news->goes_on = 1;
	news->next = t->number;
}

static void note_end(u32 index, struct news *news)
{
	struct task *t = &tasks[at(index)];

	news->ended = 1;
	news->shown = t->shown;
	news->seen = t->seen;
	news->job = t->number;
	news->deadline = t->deadline;
	news->executed = t->executed;
	finish(index);
}

/* Takes notice of the work that a task has done. Returns whether its current job has ended. */
static bool take_done(u32 index, struct news *news)
{
	struct task *t = &tasks[at(index)];

	if (pages[at(index)].done <= t->taken)
		return false;
	t->taken++;
	if (t->behind) {
		t->behind--;
		return false;
	}
	if (!t->current)
		return false;
	note_end(index, news);
	return true;
}

/* Tells of the end of a job. One that is on no processor in the trace gets its last one back for no
 * time.
 */
static void tell_end(u32 index, u64 now, u32 cpu, struct news *news, u32 flags)
{
	if (!news->shown && news->seen == NONE)
		tell(now, cpu, START, index, news->job, 0, 0);
	else if (!news->shown && news->seen == (s32)cpu)
		tell(now, cpu, RESUMPTION, index, news->job, 0, 0);
	else if (!news->shown)
		tell(now, cpu, MIGRATION, index, news->job, cpu_of(news->seen), 0);
	if (flags & CUT)
		tell(now, cpu, BUDGET_EXHAUSTED, index, news->job,
		     plan.task[at(index)].budget, 0);
	if (now > news->deadline)
		tell(now, cpu, DEADLINE_MISS, index, news->job, news->deadline, 0);
	tell(now, cpu, COMPLETION, index, news->job, news->executed, flags);
	if (news->goes_on)
		tell(now, cpu, START, index, news->next, 0, 0);
}

/* Tells the window of a slice that can run, once. */
static __noinline int tell_window(u32 index, u64 now)
{
	struct task *t = &tasks[at(index)];

	if (!plan.task[at(index)].parts || !t->current || t->held || t->told)
		return 0;
	t->told = 1;
	tell(now, lowest(plan.domain[t->home % MAX_DOMAINS].cpus), WINDOW, at(index), t->number,
	     t->due, 0);
	return 0;
}

/* A slice was pushed to its next domain: it becomes ready there when its window opens (002 4.4.2:
 * the processor that it leaves tells the one where it goes).
 */
static __noinline int arrive(u32 index)
{
	struct task *t = &tasks[at(index)];
	u32 domain = t->home, key = at(index);
	struct lock *lock = bpf_map_lookup_elem(&locks, &domain);
	struct timer *timer;
	u64 now, opens = 0, changed = 0;

	if (!lock)
		return 0;
	now = clock();
	bpf_spin_lock(&lock->lock);
	now = stamp(domain, now);
	if (t->home == domain && t->current && t->held) {
		opens = t->opens;
		if (opens <= now) {
			t->held = 0;
			changed = decide(domain);
		}
	}
	bpf_spin_unlock(&lock->lock);
	if (opens > now) {
		timer = bpf_map_lookup_elem(&arrivals, &key);
		if (timer)
			bpf_timer_start(&timer->timer, plan.origin + opens, BPF_F_TIMER_ABS);
		return 0;
	}
	tell_window(index, now);
	call(changed);
	return 0;
}

static int on_arrival(void *map, u32 *key, struct timer *timer)
{
	if (!over)
		arrive(*key);
	return 0;
}

/* Arms the timer for the end of the budget of the job that a processor runs from now on. */
static u64 limit_of(u32 index)
{
	u64 budget = plan.task[at(index)].budget, end = tasks[at(index)].slice_end;

	return budget && budget < end ? budget : end;
}

static void watch_budget(u32 index, u32 cpu, u64 now)
{
	struct task *t = &tasks[at(index)];
	u64 limit = limit_of(index), left;
	struct timer *timer;

	if (limit == NEVER || !t->current)
		return;
	left = t->executed < limit ? limit - t->executed : 0;
	timer = bpf_map_lookup_elem(&budgets, &cpu);
	if (timer)
		bpf_timer_start(&timer->timer, plan.origin + now + left,
				BPF_F_TIMER_ABS | BPF_F_TIMER_CPU_PIN);
}

/* The task that runs on this processor has executed until now. */
static void account(struct task *t, u64 now)
{
	if (t->on != NONE && now > t->began) {
		t->executed += now - t->began;
		t->began = now;
	}
}

static int on_budget(void *map, u32 *key, struct timer *timer)
{
	u32 cpu = *key, domain;
	struct news news = {};
	struct lock *lock;
	u64 now, changed = 0;
	bool ended = false, pushed = false;
	u64 number = 0, executed = 0;
	s32 index;

	if (cpu >= MAX_CPUS)
		return 0;
	index = cpus[cpu].on;
	if (index < 0 || index >= MAX_TASKS || over)
		return 0;
	domain = tasks[index].home;
	lock = bpf_map_lookup_elem(&locks, &domain);
	if (!lock)
		return 0;
	now = clock();
	bpf_spin_lock(&lock->lock);
	now = stamp(domain, now);
	if (cpus[cpu].on == index && tasks[index].home == domain) {
		struct task *t = &tasks[index];
		u64 budget = plan.task[index].budget;

		account(t, now);
		if (t->current && t->shown && budget && t->executed >= budget) {
			t->behind++;
			note_end(index, &news);
			changed = decide(domain);
			go_on(index, cpu, now, &news);
			ended = true;
		} else if (t->current && t->shown && t->executed >= t->slice_end) {
			number = t->number;
			executed = t->executed;
			unlink_task(index);
			t->shown = 0;
			t->held = 1;
			set_part(index, t->part + 1);
			changed = decide(domain);
			pushed = true;
			/* Whoever sees it has seen the rest. */
			__sync_lock_test_and_set(&t->home,
						 plan.part[index][t->part % MAX_PARTS].domain);
		}
	}
	bpf_spin_unlock(&lock->lock);
	if (ended) {
		tell_end(index, now, cpu, &news, CUT);
		tell_window(index, now);
		call(changed | (news.goes_on ? 0 : 1ULL << cpu));
		if (tasks[index].home != domain)
			hand_over(index);
	}
	if (pushed) {
		tell(now, cpu, BUDGET_EXHAUSTED, index, number, executed, 0);
		tell(now, cpu, PREEMPTION, index, number, 0, 0);
		call(changed | 1ULL << cpu);
		arrive(index);
		return 0;
	}
	/* Another job may have come meanwhile, or this one not have had the processor all the time. */
	if (tasks[index].on == (s32)cpu && (news.goes_on || !ended))
		watch_budget(index, cpu, now);
	return 0;
}

static u64 release_of(u32 index, u64 number)
{
	const struct task_plan *p = &plan.task[at(index)];

	return p->phase + number * p->period;
}

/* Tells which servers are served no more, and then which are from now on. */
static __noinline int tell_servers(u32 domain, u64 now)
{
	u64 changing = domains[domain % MAX_DOMAINS].changing;
	u32 cpu;

	bpf_for(cpu, 0, MAX_CPUS) {
		if ((changing >> cpu & 1) && cpus[cpu].served != NONE)
			tell(now, cpu, SERVER_END, NO_TASK, 0, cpus[cpu].served, 0);
	}
	bpf_for(cpu, 0, MAX_CPUS) {
		if ((changing >> cpu & 1) && cpus[cpu].serves != NONE)
			tell(now, cpu, SERVER_BEGIN, NO_TASK, 0, cpus[cpu].serves, 0);
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
	d->next = NEVER;
	d->fresh_count = 0;
	bpf_spin_lock(&lock->lock);
	now = stamp(domain, now);
	bpf_for(i, 0, 2 * plan.tasks) {
		u32 index = at(i / 2), turn = i & 1;
		struct task *t = &tasks[index];
		u64 number = t->next[turn], due;

		if (plan.task[index].home[turn] != domain || number == NEVER)
			continue;
		due = release_of(index, number);
		if (due < plan.horizon && due <= now) {
			t->next[turn] = next_of_turn(index, turn, number + 1);
			if (t->home == domain && !t->current && t->number == number)
				begin(index);
			d->fresh[d->fresh_count % MAX_TASKS] = index;
			d->fresh_number[d->fresh_count % MAX_TASKS] = number;
			d->fresh_count++;
			if (t->next[turn] == NEVER)
				continue;
			due = release_of(index, t->next[turn]);
		}
		if (due < plan.horizon && due < d->next)
			d->next = due;
	}
	turn_over(domain, now);
	changed = decide(domain) | d->changing;
	bpf_spin_unlock(&lock->lock);
	tell_servers(domain, now);
	bpf_for(i, 0, MAX_TASKS) {
		u64 number, set;
		u32 index;
		s32 cpu;

		if (i >= d->fresh_count)
			break;
		index = at(d->fresh[at(i)]);
		number = d->fresh_number[at(i)];
		cpu = tasks[index].last;
		set = plan.domain[domain % MAX_DOMAINS].cpus;
		if (cpu < 0 || !(set >> (cpu & 63) & 1))
			cpu = lowest(set);
		tell(now, cpu, RELEASE, index, number,
		     release_of(index, number) + plan.task[index].deadline, 0);
		tell_window(index, now);
	}
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

/* A task can run and is on no processor: it comes into custody. */
SEC("struct_ops/enqueue")
void BPF_PROG(warmset_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct lock *lock;
	u64 now, changed = 0, job = 0;
	bool woke = false;
	u32 domain;
	s32 index = known(p, &domain, &lock), link, cpu = 0;

	if (index < 0 || index >= MAX_TASKS) {
		/* No task of the plan, or the run is over: first come, first served. */
		scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, enq_flags);
		return;
	}
	now = clock();
	bpf_spin_lock(&lock->lock);
	now = stamp(domain, now);
	if (tasks[index].blocked) {
		tasks[index].blocked = 0;
		woke = tasks[index].current && tasks[index].seen != NONE;
		job = tasks[index].number;
		cpu = tasks[index].seen;
		changed = decide(domain);
	}
	link = tasks[index].link;
	bpf_spin_unlock(&lock->lock);
	if (woke)
		tell(now, cpu, WAKE_UP, index, job, 0, 0);
	/* The processor that waits for it is called when it is really here. */
	if (link >= 0 && link < MAX_CPUS)
		changed |= 1ULL << link;
	call(changed);
}

/* The run is over, and tasks may be in custody: each is dispatched. What is not in custody the
 * kernel drops.
 */
static __noinline int let_go(void)
{
	u32 i;

	bpf_for(i, 0, plan.tasks) {
		struct task_struct *p;

		if (!scx_bpf_dispatch_nr_slots())
			break;
		p = bpf_task_from_pid(plan.thread[at(i + let_go_from)]);
		if (!p)
			continue;
		scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, 0);
		bpf_task_release(p);
	}
	/* Another one is first next time: there may be more tasks than a processor may dispatch. */
	let_go_from++;
	return 0;
}

/* A processor looks for something to do. */
SEC("struct_ops/dispatch")
void BPF_PROG(warmset_dispatch, s32 cpu, struct task_struct *prev)
{
	s32 slot = slot_of(cpu), index;
	struct task_struct *p;

	if (over) {
		let_go();
		return;
	}
	if (slot < 0 || slot >= MAX_CPUS)
		return;
	index = cpus[slot].link;
	if (index < 0 || index >= MAX_TASKS)
		return;
	if (prev && prev->pid == plan.thread[index]) {
		prev->scx.slice = SCX_SLICE_INF;
		return;
	}
	/* Where it is not in custody yet, the kernel drops this, and `enqueue` calls again. */
	p = bpf_task_from_pid(plan.thread[index]);
	if (!p)
		return;
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_INF, 0);
	bpf_task_release(p);
}

SEC("struct_ops/running")
void BPF_PROG(warmset_running, struct task_struct *p)
{
	u32 cpu = slot_here(), domain, kind = 0;
	struct lock *lock;
	s32 index = known(p, &domain, &lock), from = NONE;
	bool misplaced;
	u64 now, job = 0;

	if (index < 0 || index >= MAX_TASKS || cpu >= MAX_CPUS)
		return;
	now = clock();
	bpf_spin_lock(&lock->lock);
	now = stamp(domain, now);
	struct task *t = &tasks[index];

	t->on = cpu;
	t->began = now;
	cpus[cpu].on = index;
	cpus[cpu].idle = 0;
	misplaced = t->link != (s32)cpu;
	if (t->current && !misplaced) {
		from = t->seen;
		kind = from == NONE ? START : from == (s32)cpu ? RESUMPTION : MIGRATION;
		t->seen = cpu;
		t->shown = 1;
		job = t->number;
	}
	bpf_spin_unlock(&lock->lock);
	if (kind) {
		tell_window(index, now);
		tell(now, cpu, kind, index, job, kind == MIGRATION ? cpu_of(from) : 0, 0);
		watch_budget(index, cpu, now);
	}
	if (misplaced)
		scx_bpf_kick_cpu(cpu_of(cpu), SCX_KICK_PREEMPT);
}

SEC("struct_ops/stopping")
void BPF_PROG(warmset_stopping, struct task_struct *p, bool runnable)
{
	u32 cpu = slot_here(), domain;
	struct news news = {};
	struct lock *lock;
	s32 index = known(p, &domain, &lock);
	u64 now, job = 0, changed = 0;
	bool left = false, ended;

	if (index < 0 || index >= MAX_TASKS || cpu >= MAX_CPUS)
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
	if (!runnable)
		t->blocked = 1;
	ended = take_done(index, &news);
	if (!ended) {
		left = t->shown;
		job = t->number;
		t->shown = 0;
		if (!runnable)
			unlink_task(index);
	}
	if (ended || !runnable)
		changed = decide(domain);
	bpf_spin_unlock(&lock->lock);
	if (ended) {
		tell_end(index, now, cpu, &news, 0);
		tell_window(index, now);
	} else if (left)
		tell(now, cpu, runnable ? PREEMPTION : SUSPENSION, index, job, 0, 0);
	call(changed);
	if (ended && tasks[index].home != domain)
		hand_over(index);
}

/* The task has counted the end of a job in its page, and asks for the next one. */
SEC("struct_ops/yield")
bool BPF_PROG(warmset_yield, struct task_struct *from, struct task_struct *to)
{
	u32 cpu = slot_here(), domain;
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

	/* Before time zero there is no trace. */
	if (slot < 0 || slot >= MAX_CPUS || !idle || over || bpf_ktime_get_ns() < plan.origin)
		return;
	if (!cpus[slot].idle && cpus[slot].on == NONE) {
		cpus[slot].idle = 1;
		tell(clock(), slot, IDLE, NO_TASK, 0, 0, 0);
	}
}

/* Nobody runs, and nobody has run. */
SEC("struct_ops.s/init")
s32 BPF_PROG(warmset_init)
{
	u32 i;

	bpf_for(i, 0, MAX_TASKS) {
		struct task *t = &tasks[at(i)];

		t->link = t->on = t->last = t->seen = NONE;
	}
	bpf_for(i, 0, MAX_CPUS) {
		cpus[i % MAX_CPUS].link = NONE;
		cpus[i % MAX_CPUS].on = NONE;
		cpus[i % MAX_CPUS].idle = 1;
		cpus[i % MAX_CPUS].serves = NONE;
		cpus[i % MAX_CPUS].due = NONE;
	}
	return 0;
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
	u64 set;

	if (domain >= MAX_DOMAINS)
		return 1;
	bpf_for(i, 0, 2 * plan.tasks) {
		u32 index = at(i / 2), turn = i & 1;

		if (plan.task[index].home[turn] == domain)
			tasks[index].next[turn] = next_of_turn(index, turn, 0);
		tasks[index].home = home_of(index, 0);
	}
	bpf_for(i, 0, plan.tasks) {
		u32 key = at(i);

		if (!plan.task[key].parts || plan.task[key].home[0] != domain)
			continue;
		timer = bpf_map_lookup_elem(&arrivals, &key);
		if (!timer || bpf_timer_init(&timer->timer, &arrivals, CLOCK_MONOTONIC))
			return 5;
		bpf_timer_set_callback(&timer->timer, on_arrival);
	}
	set = plan.domain[domain % MAX_DOMAINS].cpus;
	bpf_for(cpu, 0, MAX_CPUS) {
		u32 key = cpu;

		if (!(set >> cpu & 1))
			continue;
		timer = bpf_map_lookup_elem(&budgets, &key);
		if (!timer || bpf_timer_init(&timer->timer, &budgets, CLOCK_MONOTONIC))
			return 2;
		bpf_timer_set_callback(&timer->timer, on_budget);
	}
	timer = bpf_map_lookup_elem(&releases, &domain);
	if (!timer || bpf_timer_init(&timer->timer, &releases, CLOCK_MONOTONIC))
		return 3;
	bpf_timer_set_callback(&timer->timer, on_release);
	if (bpf_timer_start(&timer->timer, plan.origin, BPF_F_TIMER_ABS | BPF_F_TIMER_CPU_PIN))
		return 4;
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
	.yield = (void *)warmset_yield,
	.update_idle = (void *)warmset_update_idle,
	.init = (void *)warmset_init,
	.exit_task = (void *)warmset_exit_task,
	.exit = (void *)warmset_exit,
	.flags = SCX_OPS_SWITCH_PARTIAL | SCX_OPS_ENQ_LAST | SCX_OPS_KEEP_BUILTIN_IDLE,
	.timeout_ms = 30000,
	.name = "warmset",
};
