/* SPDX-License-Identifier: GPL-2.0 */
/* What the program in the kernel and its loader share: the plan, the pages of tasks, what is told
 * at the end. `src/intf.rs` says the same in Rust; a test holds the sizes of both against the
 * compiled program.
 *
 * Times are nanoseconds since the origin of the run, unless said otherwise.
 */
#ifndef WARMSET_INTF_H
#define WARMSET_INTF_H

/* Most of each that a plan may have. */
enum {
	MAX_CPUS = 64,
	MAX_DOMAINS = 64,
	MAX_TASKS = 256,
	MAX_PARTS = 8,
	MAX_CHANGES = 512,
	/* The numbers of the kernel's processors are below. */
	MAX_NUMBER = 1024,
	/* Sets of processors that widen, from a processor itself to its whole domain. */
	MAX_LEVELS = 6,
	/* Tasks by words of bits. */
	TASK_WORDS = MAX_TASKS / 64,
	/* The longest message of the kernel that is kept. */
	MESSAGE = 256,
	/* What a call returns that has come after the run. */
	IS_OVER = 100,
};

/* What orders jobs of one class before the tie does. */
enum keyed {
	BY_DEADLINE = 0,
	BY_PRIORITY = 1,
	BY_RELEASE = 2,
};

/* One task of the plan. */
struct task_plan {
	u64 phase;
	u64 period;
	/* Relative. */
	u64 deadline;
	/* How long a job may execute; 0: as long as it needs. */
	u64 budget;
	/* Of the first k jobs, k * part / whole, rounded up, go to the domain home[0], the others to
	 * home[1] (002 4.1). `part` is `whole`, 1, for a task with one domain.
	 */
	u64 part;
	u64 whole;
	u32 home[2];
	/* Of two jobs with one priority that of the lesser tie goes first. No two tasks have one. */
	u32 tie;
	/* What orders jobs before `tie` does: `enum keyed`. */
	u32 keyed;
	/* Jobs of a lesser class go before all of others. */
	u32 class;
	/* How many slices a job has (002 4.2); 0: it is whole. */
	u32 parts;
	/* The server of the task (002 4.3), if its domain has any. */
	u32 server;
	/* Not the time releases its jobs: `warmset_trigger` does. */
	u32 triggered;
	/* A program does its jobs, by however many threads: a job is over when its budget is used up or
	 * no thread wants its processor.
	 */
	u32 many;
	/* Where no job of it has a processor, its threads have those that no job needs. */
	u32 beyond;
	/* It asks for its jobs, sleeps until it has one, and says when it has done it. */
	u32 asks;
	u32 reserved;
};

/* One slice of the jobs of a task. Times count from the release of the job. */
struct part_plan {
	/* How long it may execute; of no meaning in the last one. */
	u64 budget;
	/* When it becomes ready, if the slice before it is used up by then; its deadline. */
	u64 released;
	u64 due;
	u32 domain;
	/* As in `struct task_plan`, among all slices. */
	u32 tie;
};

/* A domain: processors that are scheduled together. */
struct domain_plan {
	/* Bits of slots. */
	u64 cpus;
	/* How long the timetable of servers is, which begins again and again; 0: no servers. Its
	 * changes: their first one and how many they are.
	 */
	u64 period;
	u32 first;
	u32 changes;
	/* The loader decides who runs, once in so long; 0: this program does, at every event. */
	u64 quantum;
};

/* From this time on, after the beginning of the timetable, a processor serves this server, or none
 * (~0). In order.
 */
struct change_plan {
	u64 offset;
	u32 slot;
	u32 server;
};

/* Made by the loader before anything runs; never changed then. */
struct plan {
	/* What the clock of the kernel (CLOCK_MONOTONIC) reads at time zero; ~0: not known yet. */
	u64 origin;
	/* No job is released then or later. */
	u64 horizon;
	u32 tasks;
	u32 domains;
	struct domain_plan domain[MAX_DOMAINS];
	struct task_plan task[MAX_TASKS];
	/* By slot: the slots that share its nearest cache, and so on; widening. */
	u64 near[MAX_CPUS][MAX_LEVELS];
	/* Processors have slots in the order of the caches that they share. By slot, the number of the
	 * processor; by number, its slot, or -1. */
	u32 cpu_of[MAX_CPUS];
	s32 slot_of[MAX_NUMBER];
	/* The thread that has loaded the program; 0: not known yet. */
	s32 loader;
	/* How many tasks go on beyond their budgets. */
	u32 beyond;
	/* By task, its thread; of a program its first one. */
	s32 thread[MAX_TASKS];
	/* By task, where its program has the word that says how many jobs it has done; 0: nowhere. */
	u64 reply[MAX_TASKS];
	struct part_plan part[MAX_TASKS][MAX_PARTS];
	struct change_plan change[MAX_CHANGES];
};

/* What a task says of its jobs, and is told of them. On a cache line of its own. */
struct page {
	/* How many jobs the task has done. The task alone writes it, before it yields; of a program
	 * that asks for its jobs the loader and this program do, when they see it.
	 */
	u64 done;
	/* The number of the job that it was given last, from 0, with release and deadline. */
	u64 number;
	u64 release;
	u64 deadline;
	/* How many jobs it was given: it has work as long as it has done fewer. */
	u64 given;
	/* Counted from 1: the latest job that had a processor by the decision at its release. Of a program
	 * that asks for its jobs, ~0 when its first process has ended.
	 */
	u64 chosen;
	/* Of a program that asks for its jobs: how often one was preempted and went on, where it was
	 * and on another processor.
	 */
	u64 preemptions;
	u64 migrations;
};

/* One record of the trace: the words of `trace::Event`. */
struct record {
	u64 time;
	u64 job;
	u64 argument;
	u64 rest;
};

/* How the program came to its end in the kernel. */
struct ending {
	/* The kernel's kind of exit; 0: it is there. */
	u64 kind;
	u64 code;
	char reason[MESSAGE];
	char message[MESSAGE];
};

/* What the loader asks of the program for a task whose program has done a job. */
struct finished {
	u32 task;
};

/* What the loader may ask of the program: each call is about one domain. */
struct request {
	u32 domain;
};

/* What the loader asks of the program for a task that has a trigger: to release so many jobs. */
struct asking {
	u32 task;
	u32 reserved;
	u64 count;
};

/* What came of the trigger of a task. */
struct asked {
	/* Releases that are asked for and have not been; when the first of them was asked for. */
	u64 pending;
	u64 at;
	/* The latest release, if there was one. */
	u64 last;
	/* When the timer is to go off for the next one; ~0: none is due. */
	u64 next;
	/* All that was asked for; of those, what came earlier than a period after the one before. */
	u64 events;
	u64 deferred;
	/* Thousands of jobs are released and not begun: no more are. */
	u64 overrun;
	u64 reserved;
};

/* What has happened in a domain up to the beginning of a quantum, as far as the trace says so. */
struct seen {
	/* The moment. */
	u64 now;
	u64 reserved;
	/* By task, how many of its jobs have ended. */
	u64 ended[MAX_TASKS];
};

/* Who runs in a quantum. The loader writes it. */
struct choice {
	/* By slot: the job, and its task; ~0: none. */
	u64 job[MAX_CPUS];
	u64 task[MAX_CPUS];
	/* Bits of slots that are left idle although a job is ready (003 3.1). */
	u64 deliberate;
	u64 reserved;
};

#endif
