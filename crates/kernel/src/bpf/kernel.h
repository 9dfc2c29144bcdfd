/* SPDX-License-Identifier: GPL-2.0 */
/* The parts of the kernel's types that the program reads. Their places in the kernel that is there
 * are found when the program is loaded (CO-RE), so that one object serves all kernels, and building
 * it needs no kernel.
 */
#ifndef WARMSET_KERNEL_H
#define WARMSET_KERNEL_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;
typedef long long s64;
typedef u8 __u8;
typedef u16 __u16;
typedef u32 __u32;
typedef s32 __s32;
typedef u64 __u64;
typedef s64 __s64;
typedef u16 __be16;
typedef u32 __be32;
typedef u32 __wsum;
typedef _Bool bool;
#define true 1
#define false 0

enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
	BPF_ANY = 0,
	BPF_F_NO_PREALLOC = 1,
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1,
	BPF_RB_NO_WAKEUP = 1,
	BPF_RB_FORCE_WAKEUP = 2,
	BPF_F_TIMER_ABS = 1,
	BPF_F_TIMER_CPU_PIN = 2,
	CLOCK_MONOTONIC = 1,
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sched_ext_entity {
	u32 flags;
	u64 slice;
};

struct cpumask {
	unsigned long bits[1];
};

/* What the threads of a process have in common. */
struct signal_struct {
	unsigned int flags;
};

struct mm_struct;

struct task_struct {
	unsigned int __state;
	unsigned int flags;
	int pid;
	int tgid;
	struct signal_struct *signal;
	/* Its memory, which it gives back on its way to its end. */
	struct mm_struct *mm;
	/* Where it may run, whatever holds it on one processor for a moment (`cpus_ptr`). */
	struct cpumask cpus_mask;
	unsigned short migration_disabled;
	struct sched_ext_entity scx;
};

enum scx_exit_kind {
	SCX_EXIT_NONE = 0,
};

struct scx_init_task_args {
	/* The thread is being born; else it is there. */
	bool fork;
};

struct scx_exit_info {
	enum scx_exit_kind kind;
	s64 exit_code;
	const char *reason;
	char *msg;
};

#pragma clang attribute pop

struct scx_exit_task_args;

struct bpf_timer {
	u64 opaque[2];
} __attribute__((aligned(8)));

struct bpf_iter_num {
	u64 opaque[1];
} __attribute__((aligned(8)));

struct bpf_spin_lock {
	u32 val;
};

/* The members that this scheduler has; the kernel's are found by their names. The loader may change
 * the first one before it loads the program.
 */
struct sched_ext_ops {
	u32 timeout_ms;
	s32 (*select_cpu)(struct task_struct *p, s32 prev_cpu, u64 wake_flags);
	void (*enqueue)(struct task_struct *p, u64 enq_flags);
	void (*dispatch)(s32 cpu, struct task_struct *prev);
	void (*runnable)(struct task_struct *p, u64 enq_flags);
	void (*running)(struct task_struct *p);
	void (*stopping)(struct task_struct *p, bool runnable);
	void (*quiescent)(struct task_struct *p, u64 deq_flags);
	bool (*yield)(struct task_struct *from, struct task_struct *to);
	void (*update_idle)(s32 cpu, bool idle);
	void (*tick)(struct task_struct *p);
	void (*set_cpumask)(struct task_struct *p, const struct cpumask *cpumask);
	void (*disable)(struct task_struct *p);
	s32 (*init_task)(struct task_struct *p, struct scx_init_task_args *args);
	void (*exit_task)(struct task_struct *p, struct scx_exit_task_args *args);
	s32 (*init)(void);
	void (*exit)(struct scx_exit_info *info);
	u64 flags;
	char name[128];
};

#define ENOMEM 12

/* Of the flags of a process: it is on its way to its end. */
#define SIGNAL_GROUP_EXIT 4

/* Of the flags of a thread: it is on its way to its end. */
#define PF_EXITING 4

/* The state of a thread that does not wait for anything. */
#define TASK_RUNNING 0

/* Flags and places, as they are since Linux 6.12. */
#define SCX_OPS_KEEP_BUILTIN_IDLE (1ULL << 0)
#define SCX_OPS_ENQ_LAST (1ULL << 1)
#define SCX_OPS_ENQ_EXITING (1ULL << 2)
#define SCX_OPS_SWITCH_PARTIAL (1ULL << 3)
#define SCX_DSQ_GLOBAL (1ULL << 63 | 1)
#define SCX_KICK_PREEMPT (1ULL << 1)
#define SCX_TASK_QUEUED 1
#define SCX_ENQ_LAST (1ULL << 41)
#define SCX_DEQ_SLEEP (1ULL << 0)
#define SCX_SLICE_DFL 20000000ULL
#define SCX_SLICE_INF (~0ULL)

#endif
