/* SPDX-License-Identifier: GPL-2.0 */
/* What the program knows: tasks, processors, domains, in memory that the verifier knows the bounds
 * of; and its maps. */
#ifndef WARMSET_STATE_H
#define WARMSET_STATE_H

#define NONE (-1)
#define NEVER (~0ULL)
/* The queues behind all jobs: of the thread that takes the events, and of all threads of this class
 * that are no tasks. Below are those of tasks.
 */
#define BEHIND MAX_TASKS
#define OTHERS (MAX_TASKS + 1)

/* The place of a task in the tables; within them whatever the index is, as the verifier asks. */
static u32 at(u32 index)
{
	return index % MAX_TASKS;
}

/* The place of a domain in the tables, in a way that the verifier sees, whatever the compiler
 * knows.
 */
static u32 bounded(u32 domain)
{
	asm volatile("" : "+r"(domain));
	return domain & (MAX_DOMAINS - 1);
}

static s32 lowest(u64 set)
{
	return set ? __builtin_ctzll(set) : NONE;
}

/* Takes the lowest bit out of a set that is not empty. */
static __always_inline bool take_lowest(u64 *set, u32 *bit)
{
	u32 low;

	if (!*set)
		return false;
	low = __builtin_ctzll(*set);
	/* The verifier has to see the bound here, whatever the compiler knows. */
	asm volatile("" : "+r"(low));
	*bit = low & 63;
	*set &= *set - 1;
	return true;
}

/* For each bit of a set, the lowest first. It takes as long as there are bits: a loop over all
 * processors or tasks, a few hundred instructions each time, is what decisions were late for.
 */
#define for_bits(bit, set) for_bits_as(bit, set, __COUNTER__)
#define for_bits_as(bit, set, unique) for_bits_by(bit, set, unique)
#define for_bits_by(bit, set, unique)                                \
	u64 rest_##unique = (set);                                   \
	u32 step_##unique;                                           \
	bpf_for(step_##unique, 0, 64)                                \
		if (!take_lowest(&rest_##unique, &(bit)))            \
			break;                                       \
		else

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
	OVERHEAD_BEGIN = 9,
	OVERHEAD_END = 10,
	IDLE = 11,
	SERVER_BEGIN = 12,
	SERVER_END = 13,
	WINDOW = 14,
	SUSPENSION = 15,
	WAKE_UP = 16,
	LOST = 18,
	QUANTUM = 20,
};
/* Flags: of a completion, an idle processor. */
#define CUT 1
#define DELIBERATE 2
/* A choice is on its way to a processor: `trace::Overhead::IpiLatency`. */
#define IPI_LATENCY 3
#define NO_TASK (~0U)

/* A task and its current or next job. The lock of the domain `home` protects it, but for `next`,
 * of which each domain has its own, and `home`, which that domain alone changes: it gives the task
 * away.
 */
struct task {
	/* How many jobs have ended, which is the number of the current one. */
	u64 number;
	/* By the domains of the plan: the next job that it releases, and when; NEVER: none. */
	u64 next[2];
	u64 when[2];
	/* Of the current job. */
	u64 deadline;
	u64 executed;
	/* Since when it runs, if it runs. */
	u64 began;
	/* Since when its threads wait: one has run until then, or none could run. */
	u64 since;
	/* How many pieces of work of the task are known to be done. */
	u64 taken;
	/* Of the current slice, or of the whole job: its deadline; what orders it before its tie does;
	 * what the job may have executed when it ends, NEVER: the end of the job is its end; when it
	 * becomes ready.
	 */
	u64 due;
	u64 key;
	u64 slice_end;
	u64 opens;
	/* Jobs that were cut short and whose work is not done (`job::Life::behind`). */
	u64 behind;
	/* Slots that run one of its threads in time that no job needs. Protected by nothing, as others
	 * take them at any time.
	 */
	u64 out;
	/* How many of its threads can run, wherever they are: what the kernel says of each (`note_able`).
	 */
	u32 able;
	/* The trace has the window of the slice. */
	u32 told;
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
	/* It waits for something other than a processor, and the trace says so of its job. */
	u8 blocked;
	u8 suspended;
	/* The trace shows its job on a processor. */
	u8 shown;
	/* Chosen in the decision that is under way. */
	u8 chosen;
	/* It has come into custody. */
	u8 inside;
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
	/* Its domain. */
	u32 domain;
	/* It is left idle although a job is ready. */
	u32 deliberate;
	/* The task that it ran when something of another class took it: to the schedule it still runs
	 * there, until a decision takes effect. NONE: nothing did.
	 */
	s32 interrupted;
	/* The task whose thread it is to let run for an instant; NONE. */
	s32 lets;
	/* How many more of its threads than one. */
	u32 moments;
	/* How many of the others it is to let run before its job. */
	u32 guests;
	/* It has taken one that it is to let run, which does not run yet. */
	u32 lent;
	/* It runs a thread that has to leave it in a moment. */
	u32 misplaced;
	/* Whom it takes first where it has no job: changes each time. */
	u32 turn;
	/* No timer could be had for what it runs: the next tick tries again. */
	u32 unarmed;
	/* The task that it was seen not to take, and when. */
	s32 missed;
	u64 missed_at;
	/* Since when the program that it is linked to has a thread that can run and does not come. */
	u64 awaits;
};

struct domain {
	/* Bits of tasks: their jobs could run here, and have no processor (`place`). */
	u64 waiting[TASK_WORDS];
	/* Slots that are linked to a task. */
	u64 linked;
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
	/* Its first releases have been. */
	u32 begun;
	/* Slots whose server has changed. */
	u64 changing;
	/* Slots that have not taken up yet what was chosen for them at a quantum. */
	u64 settling;
	u32 count;
	u32 fresh_count;
	/* Tasks that are chosen in the decision that is under way. */
	s32 chosen[MAX_CPUS];
	/* By server, the slot that serves it or did so last. */
	s32 served_by[MAX_TASKS];
	/* What this domain releases: twice a task, plus one for its second domain. Those of the
	 * entries `2 n + 1` and `2 n + 2` are no earlier than that of the entry `n` (a heap).
	 */
	u16 heap[2 * MAX_TASKS];
	u32 entries;
	u32 hole;
	/* Tasks with jobs that the timer releases at this moment. */
	u32 fresh[MAX_TASKS];
	u64 fresh_number[MAX_TASKS];
};

struct plan plan SEC(".data.plan");
struct page pages[MAX_TASKS] SEC(".data.pages");
struct ending ending SEC(".data.ending");
/* By domain, of those that the loader decides for. */
struct seen seen[MAX_DOMAINS] SEC(".bss.seen");
struct choice choices[MAX_DOMAINS] SEC(".bss.choices");
/* By slot, events that were lost since the last one. */
u64 lost[MAX_CPUS];
/* Events that were lost, ever. */
u64 losses SEC(".data.losses");
/* By domain, how often it has decided. */
u64 decisions[MAX_DOMAINS] SEC(".data.decisions");
struct task tasks[MAX_TASKS];
struct cpu cpus[MAX_CPUS];
struct domain domains[MAX_DOMAINS];
/* Bits of slots that have nothing to do, as the kernel says. */
u64 asleep;
/* The run is over: tasks come and go as they like. */
u32 over SEC(".data.over");
/* How many tasks have come into custody at least once. */
u32 inside SEC(".data.inside");
/* A thread waits for a processor for about that long until it is let run for an instant. */
u64 patience SEC(".data.patience") = 10000000000;
/* The first task, counted from 1, whose thread has left the class before the run was over. */
u32 gone SEC(".data.gone");

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

/* One a domain: when it looks next for threads that have waited for long. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_DOMAINS);
	__type(key, u32);
	__type(value, struct timer);
} looks SEC(".maps");

/* Of a thread that is a task's: the task, counted from 1, and the bit `ABLE` if it can run. It is the
 * thread's own, whatever number it has: one that is not the first of its process takes the first
 * one's when it starts another program.
 */
#define ABLE 0x80000000u
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, s32);
	__type(value, u32);
} members SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 24);
} events SEC(".maps");

/* Wakes the thread of the loader that tells programs of their jobs. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} calls SEC(".maps");

#endif
