/* SPDX-License-Identifier: GPL-2.0 */
/* The program itself and threads come and go. */
#ifndef WARMSET_COMINGS_H
#define WARMSET_COMINGS_H

/* Nobody runs, and nobody has run; each task has its queue, by its number. */
SEC("struct_ops.s/init")
s32 BPF_PROG(warmset_init)
{
	u32 i;

	bpf_for(i, 0, MAX_TASKS) {
		struct task *t = &tasks[at(i)];

		t->link = t->on = t->last = t->seen = NONE;
		t->home = home_of(at(i), 0);
		/* A program that asks for its jobs sleeps until it has one. */
		t->blocked = plan.task[at(i)].asks;
	}
	bpf_for(i, 0, MAX_CPUS) {
		cpus[i % MAX_CPUS].link = NONE;
		cpus[i % MAX_CPUS].on = NONE;
		cpus[i % MAX_CPUS].idle = 1;
		cpus[i % MAX_CPUS].serves = NONE;
		cpus[i % MAX_CPUS].due = NONE;
		cpus[i % MAX_CPUS].interrupted = NONE;
		cpus[i % MAX_CPUS].lets = NONE;
		cpus[i % MAX_CPUS].missed = NONE;
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
	s32 index = known(p, &domain, &lock), on, seen, link;
	u64 now, job, changed, left = 0;
	bool shown;

	if (index < 0 || index >= MAX_TASKS)
		return;
	note_able(p, false);
	if (plan.task[index].many) {
		/* Threads of a program end, and those that do not are held by nothing any more. */
		if (!(p->flags & PF_EXITING))
			__sync_val_compare_and_swap(&gone, 0, index + 1);
		return;
	}
	now = clock();
	bpf_spin_lock(&lock->lock);
	now = stamp(domain, now);
	struct task *t = &tasks[index];

	account(t, now);
	on = t->on;
	seen = t->seen;
	shown = t->shown;
	job = t->number;
	link = t->link;
	t->on = NONE;
	t->shown = 0;
	t->blocked = 1;
	if (on >= 0 && on < MAX_CPUS) {
		cpus[on].on = NONE;
		left = 1ULL << on;
	}
	if (seen >= 0 && seen < MAX_CPUS && cpus[seen].interrupted == index)
		cpus[seen].interrupted = NONE;
	unlink_task(index);
	place(index);
	left = forget(left, now);
	changed = decide(domain) | let_down(link, on);
	bpf_spin_unlock(&lock->lock);
	if (shown)
		tell(now, seen, SUSPENSION, index, job, 0, 0);
	call(changed | left);
	__sync_val_compare_and_swap(&gone, 0, index + 1);
}

/* A thread is born: what a program starts is of its task. */
SEC("struct_ops.s/init_task")
s32 BPF_PROG(warmset_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	u32 *member, task;

	if (!args->fork)
		return 0;
	member = bpf_task_storage_get(&members, bpf_get_current_task_btf(), 0, 0);
	if (!member)
		return 0;
	task = *member & ~ABLE;
	if (!task || !plan.task[at(task - 1)].many)
		return 0;
	/* Where there is no memory for it, nothing is born. */
	member = bpf_task_storage_get(&members, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!member)
		return -ENOMEM;
	*member = task;
	return 0;
}

/* A thread is of its task no more. If it is the first one of a program that asks for its jobs,
 * those that are still to come have nothing to do.
 */
static void leave_task(struct task_struct *p)
{
	u32 *member = bpf_task_storage_get(&members, p, 0, 0), index;

	if (!member || !*member)
		return;
	note_able(p, false);
	index = at(*member - 1);
	*member = 0;
	if (plan.task[index].asks && p->pid == plan.thread[index]) {
		pages[index].chosen = NEVER;
		call_program(index);
	}
}

/* A thread of a program on its way to its end gets what is left of its program's job. Behind that
 * it is of the program no more: it goes behind all jobs, with the others, since the next job may be
 * far away. Returns whether it is so.
 */
static bool leaves_to_die(u32 index, struct task_struct *p)
{
	if (!(p->flags & PF_EXITING) || !plan.task[at(index)].many || tasks[at(index)].current)
		return false;
	leave_task(p);
	return true;
}

/* A thread is dead: its number may be another's soon.
 *
 * If it is the one that has loaded the program, its process dies, too, and with the last of its
 * threads the program; those that are in custody have to run to die.
 */
SEC("struct_ops/exit_task")
void BPF_PROG(warmset_exit_task, struct task_struct *p, struct scx_exit_task_args *args)
{
	leave_task(p);
	if (plan.loader && p->pid == plan.loader && !over)
		end_custody();
}

SEC("struct_ops/exit")
void BPF_PROG(warmset_exit, struct scx_exit_info *info)
{
	ending.code = info->exit_code;
	bpf_probe_read_kernel_str(ending.reason, sizeof(ending.reason), info->reason);
	bpf_probe_read_kernel_str(ending.message, sizeof(ending.message), info->msg);
	ending.kind = info->kind;
}

#endif
