/* SPDX-License-Identifier: GPL-2.0 */
/* The life of a job: it begins, changes domains, ends by itself or with its budget. */
#ifndef WARMSET_JOBS_H
#define WARMSET_JOBS_H

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
	t->key = p->keyed == BY_DEADLINE ? t->due : p->keyed == BY_RELEASE ? release : 0;
	t->tie = p->tie;
	t->slice_end = NEVER;
	t->opens = release;
	if (!p->parts)
		return;
	t->due = release + part->due;
	if (p->keyed == BY_DEADLINE)
		t->key = t->due;
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
	u64 release = release_of(index, t->number);

	t->deadline = release + p->deadline;
	t->executed = 0;
	t->current = 1;
	t->held = 0;
	t->suspended = 0;
	t->seen = NONE;
	set_part(index, 0);
	place(index);
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

	t->current = 0;
	t->shown = 0;
	unlink_task(index);
	t->number++;
	home = home_of(index, t->number);
	if (home != t->home)
		/* Whoever sees it has seen the rest. */
		__sync_lock_test_and_set(&t->home, home);
	else if (is_released(index, t->number))
		begin(index);
}

/* Choices are on their way to processors, or have arrived. */
__noinline int tell_ways(u64 set, u64 now, u32 kind)
{
	u32 cpu;

	for_bits(cpu, set)
		tell(now, cpu, kind, NO_TASK, 0, IPI_LATENCY, 0);
	return 0;
}

/* A job that was interrupted on a processor and is linked elsewhere, or nowhere, by now. */
struct gone {
	u64 job;
	s32 index;
	s32 cpu;
};

/* What a processor was interrupted in, if anything, is over there: `gone` says what is to be told
 * behind the lock. `next` is the task that it runs now, or NONE.
 */
static void leave_interrupted(u32 cpu, s32 next, struct gone *gone)
{
	s32 index;

	barrier_var(cpu);
	cpu &= MAX_CPUS - 1;
	index = cpus[cpu].interrupted;
	cpus[cpu].interrupted = NONE;
	if (index < 0 || index >= MAX_TASKS || index == next)
		return;
	if (!tasks[at(index)].shown || tasks[at(index)].seen != (s32)cpu)
		return;
	tasks[at(index)].shown = 0;
	gone->job = tasks[at(index)].number;
	gone->index = index;
	gone->cpu = cpu;
}

__noinline int tell_gone(const struct gone *gone, u64 now)
{
	if (!gone)
		return 0;
	if (gone->index >= 0)
		tell(now, gone->cpu, PREEMPTION, gone->index, gone->job, 0, 0);
	return 0;
}

/* A task was given to another domain. Its next job begins if that is released already, which that
 * domain could not do before.
 */
__noinline int hand_over(u32 index)
{
	struct task *t = &tasks[at(index)];
	u32 domain = t->home;
	struct lock *lock = bpf_map_lookup_elem(&locks, &domain);
	u64 now, changed = 0;
	bool begun = false;

	if (!lock)
		return 0;
	now = clock();
	bpf_spin_lock(&lock->lock);
	now = stamp(domain, now);
	if (t->home == domain && !t->current && is_released(index, t->number)) {
		begin(index);
		begun = true;
		changed = decide(domain);
	}
	bpf_spin_unlock(&lock->lock);
	if (begun)
		tell_window(index, now);
	call(changed);
	call_program(index);
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
	/* The next job has begun with the end of this one. */
	u8 begun;
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
	news->begun = t->current;
}

/* The processor that a task was linked to, where its job ends on another one, has a job no more: it
 * is called, too, as it may sleep beside threads behind jobs.
 */
static u64 let_down(s32 link, u32 cpu)
{
	return link != NONE && link != (s32)cpu ? 1ULL << (link & 63) : 0;
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

/* A program that asks for its jobs has no thread that can run: has it done its job, or does it wait
 * for something else? Its word is read where it goes to sleep, in the process that has it; what
 * another process of it does last, the loader knows before.
 */
static void see_done(u32 index, const struct task_struct *p)
{
	u64 *done = &pages[at(index)].done, word = plan.reply[at(index)], known = *done;
	u32 seen;
	s32 more;

	if (!word || !p->mm || p->tgid != plan.thread[at(index)])
		return;
	if (bpf_probe_read_user(&seen, sizeof(seen), (void *)(unsigned long)word))
		return;
	/* It wraps. Where it fails, the loader has seen the same. */
	more = (s32)(seen - (u32)known);
	if (more > 0)
		__sync_val_compare_and_swap(done, known, known + more);
}

/* A program whose job runs, or has a processor, has no thread that can run. Returns whether there
 * was such a job: it has ended.
 */
static bool take_all_asleep(u32 index, struct news *news)
{
	struct task *t = &tasks[at(index)];

	if (!t->current || !t->shown)
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
	call_program(index);
	if (news->goes_on)
		tell(now, cpu, START, index, news->next, 0, 0);
}

/* Tells the window of a slice that can run, once: whoever comes first. */
__noinline int tell_window(u32 index, u64 now)
{
	struct task *t = &tasks[at(index)];

	if (!plan.task[at(index)].parts || !t->current || t->held ||
	    __sync_lock_test_and_set(&t->told, 1))
		return 0;
	tell(now, lowest(plan.domain[t->home % MAX_DOMAINS].cpus), WINDOW, at(index), t->number,
	     t->due, 0);
	return 0;
}

/* A slice was pushed to its next domain: it becomes ready there when its window opens (002 4.4.2:
 * the processor that it leaves tells the one where it goes).
 */
__noinline int arrive(u32 index)
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
			place(index);
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

/* Arms the timer of a processor. Where interrupts are off, newer kernels need memory for that, of
 * which there may be none just then.
 */
static void arm(u32 cpu, u64 when)
{
	struct timer *timer = bpf_map_lookup_elem(&budgets, &cpu);

	if (timer && bpf_timer_start(&timer->timer, plan.origin + when,
				     BPF_F_TIMER_ABS | BPF_F_TIMER_CPU_PIN))
		cpus[cpu & (MAX_CPUS - 1)].unarmed = 1;
}

static u64 limit_of(u32 index)
{
	u64 budget = plan.task[at(index)].budget, end = tasks[at(index)].slice_end;

	return budget && budget < end ? budget : end;
}

/* Arms the timer for the end of the budget of the job that a processor runs from now on. */
static void watch_budget(u32 index, u32 cpu, u64 now)
{
	struct task *t = &tasks[at(index)];
	u64 limit = limit_of(index), left;

	if (limit == NEVER || !t->current)
		return;
	left = t->executed < limit ? limit - t->executed : 0;
	arm(cpu, now + left);
}

/* So long a task that must not leave a processor may end what it is in there. */
#define MOMENT 50000

/* A processor runs what is not linked to it: looks again in a moment. */
static void watch_misplaced(u32 cpu, u64 now)
{
	cpus[cpu & (MAX_CPUS - 1)].misplaced = 1;
	arm(cpu, now + MOMENT);
}

/* The task that runs on this processor has executed until now. */
static void account(struct task *t, u64 now)
{
	/* Between the end of a job and its switch it is the next one's, which does not run yet. */
	if (t->on != NONE && t->shown && now > t->began)
		t->executed += now - t->began;
	t->began = now;
}

static int on_budget(void *map, u32 *key, struct timer *timer)
{
	u32 cpu = *key, domain;
	struct news news = {};
	struct lock *lock;
	u64 now, changed = 0;
	bool ended = false, pushed = false;
	u64 number = 0, executed = 0;
	s32 index, link = NONE;

	if (cpu >= MAX_CPUS)
		return 0;
	index = cpus[cpu].on;
	if (index == NONE && (cpus[cpu].link != NONE || cpus[cpu].misplaced) && !over) {
		/* What runs here is nothing that the schedule knows of. */
		cpus[cpu].misplaced = 0;
		call(1ULL << cpu);
		return 0;
	}
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

		link = t->link;
		account(t, now);
		if (t->current && t->shown && budget && t->executed >= budget) {
			/* A program that knows nothing of jobs leaves nothing to the next one. */
			if (!plan.task[index].many || plan.task[index].asks)
				t->behind++;
			note_end(index, &news);
			changed = decide(domain);
			go_on(index, cpu, now, &news);
			ended = true;
		} else if (t->current && t->shown && t->executed >= t->slice_end) {
			number = t->number;
			executed = t->executed;
			t->shown = 0;
			t->held = 1;
			unlink_task(index);
			set_part(index, t->part + 1);
			changed = decide(domain);
			pushed = true;
			/* Whoever sees it has seen the rest. */
			__sync_lock_test_and_set(&t->home,
						 plan.part[index][t->part % MAX_PARTS].domain);
		}
	}
	if (ended || pushed)
		changed |= let_down(link, cpu);
	bpf_spin_unlock(&lock->lock);
	if (ended) {
		tell_end(index, now, cpu, &news, CUT);
		if (news.begun)
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
	if (tasks[index].on == (s32)cpu && tasks[index].link != (s32)cpu) {
		call(1ULL << cpu);
		return 0;
	}
	/* Another job may have come meanwhile, or this one not have had the processor all the time. */
	if (tasks[index].on == (s32)cpu && (news.goes_on || !ended))
		watch_budget(index, cpu, now);
	return 0;
}

#endif
