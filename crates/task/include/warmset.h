/* For programs that run as tasks of Warmset: join, wait for the next job, read the control page.
 *
 *     cc -o program program.c $(pkg-config --cflags --libs warmset)
 *
 * All times are nanoseconds of CLOCK_MONOTONIC. Functions that fail return -1 and set errno. */
#ifndef WARMSET_H
#define WARMSET_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A job, as the control page has it. */
struct warmset_job {
    uint64_t number;            /* from 1 */
    uint64_t release;           /* when it was released */
    uint64_t deadline;          /* until when it has to be done */
    /* how often this task went on where it had been preempted, since the run began */
    uint64_t preemptions;
    uint64_t migrations;        /* how often it went on on another processor */
    uint64_t preemption_length; /* how long it was off its processor the last time */
    uint32_t processor;         /* the one that it was chosen for; UINT32_MAX: not known */
};

/* Joins the run that started this program: workload = { program = ["./program"] }. 0, or -1. */
int warmset_join(void);

/* Joins a run from outside, as the task of this name: workload = { kind = "join" },
 * warmset run --socket PATH. 0, or -1. */
int warmset_join_at(const char *path, const char *name);

/* The job before is done; sleeps until the next one. 1: here it is; 0: the run is over; -1: not
 * joined. */
int warmset_wait(struct warmset_job *job);

/* What the control page says now: without a system call, never a mixture of two states. 1, or -1:
 * not joined.
 * For the thread that does the jobs. */
int warmset_look(struct warmset_job *job);

#ifdef __cplusplus
}
#endif
#endif
