/* A program that is a task of `warmset run`: counts, and says of every hundredth job how it went.
 *
 *     cc -O2 -o counter counter.c $(pkg-config --cflags --libs warmset)
 *
 * then workload = { program = ["./counter"] }; or, to join from outside, give the path of the
 * socket and the name of the task. */
#include <inttypes.h>
#include <stdio.h>
#include <warmset.h>

int main(int argc, char **argv) {
    int joined = argc == 3 ? warmset_join_at(argv[1], argv[2]) : warmset_join();
    if (joined != 0) {
        perror("cannot join");
        return 1;
    }
    volatile uint64_t sum = 0;
    struct warmset_job job, after;
    int more;
    while ((more = warmset_wait(&job)) == 1) {
        for (uint64_t n = 0; n < 200000; n++)
            sum += n;
        warmset_look(&after);
        if (job.number % 100 == 0) {
            printf("job %" PRIu64 ": on processor %" PRIu32 ", %" PRIu64 " preemptions and %" PRIu64
                   " migrations up to now\n",
                   after.number, after.processor, after.preemptions, after.migrations);
            fflush(stdout);
        }
    }
    printf("the run is over, the sum is %" PRIu64 "\n", sum);
    return more == 0 ? 0 : 1;
}
