/* SPDX-License-Identifier: GPL-2.0 */
/* The clock of the run, the names of processors, and the trace. */
#ifndef WARMSET_EVENTS_H
#define WARMSET_EVENTS_H

static u64 clock(void)
{
	u64 now = bpf_ktime_get_ns();

	return now > plan.origin ? now - plan.origin : 0;
}

/* The same value, of which the verifier knows nothing any more: it would check all that follows
 * anew for each value that it knows. `unknown` is anything that it does not know.
 */
static __always_inline u64 forget(u64 value, u64 unknown)
{
	asm volatile("%0 ^= %1\n\t%0 ^= %1" : "+r"(value) : "r"(unknown));
	return value;
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

static __always_inline void lose(u32 cpu)
{
	__sync_fetch_and_add(&lost[cpu & (MAX_CPUS - 1)], 1);
	__sync_fetch_and_add(&losses, 1);
}

/* Writes an event of a processor, or counts that it is lost. What was lost before is told first. */
__noinline int tell_of(u64 time, u32 cpu, u64 job, u64 argument, u64 rest)
{
	u64 count;

	/* The verifier has to see the bound here, whatever the compiler knows. */
	barrier_var(cpu);
	cpu &= MAX_CPUS - 1;
	if (lost[cpu]) {
		/* Others may write events of this processor at the same time: one tells of all. */
		count = __sync_lock_test_and_set(&lost[cpu], 0);
		if (count && !put(time, 0, count, rest_of(NO_TASK, cpu, LOST, 0))) {
			__sync_fetch_and_add(&lost[cpu], count);
			lose(cpu);
			return 0;
		}
	}
	if (!put(time, job, argument, rest))
		lose(cpu);
	return 0;
}

static void tell(u64 time, u32 cpu, u32 kind, u32 task, u64 job, u64 argument, u32 flags)
{
	tell_of(time, cpu, job, argument, rest_of(task, cpu, kind, flags));
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

static u32 cpu_of(u32 slot)
{
	return plan.cpu_of[slot % MAX_CPUS];
}

/* The task of a thread, or NONE. */
static s32 task_of(struct task_struct *p)
{
	u32 *member = bpf_task_storage_get(&members, p, 0, 0), index;

	if (!member || over)
		return NONE;
	index = (*member & ~ABLE) - 1;
	return index < MAX_TASKS ? (s32)index : NONE;
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

#endif
