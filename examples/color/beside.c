/* An ordinary program that knows nothing of colors, for beside.sh: `beside victim BYTES TIMES`
 * walks its working set again and again, gives its processor away in between, and prints how long that
 * took; `beside flood BYTES` reads and writes its memory without end. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LINE = 64 };

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Each line names the next one, in an order that no prefetcher follows. */
static size_t walk(char *memory, size_t lines) {
    size_t at = 0;
    for (size_t i = 0; i < lines; i++) at = *(volatile size_t *)(memory + at * LINE);
    return at;
}

int main(int number, char **arguments) {
    if (number < 3) return 2;
    size_t bytes = strtoul(arguments[2], NULL, 10), lines = bytes / LINE;
    char *memory = malloc(bytes);
    if (!memory) return 1;
    memset(memory, 1, bytes);
    if (!strcmp(arguments[1], "flood"))
        for (;;)
            for (size_t i = 0; i < bytes; i += LINE)
            ((volatile char *)memory)[i * 7919 / LINE * LINE % bytes]++;
    size_t *order = malloc(lines * sizeof *order);
    int times = number > 3 ? atoi(arguments[3]) : 500;
    double *took = malloc((size_t)times * sizeof *took);
    if (!order || !took) return 1;
    for (size_t i = 0; i < lines; i++) order[i] = i;
    for (size_t i = lines - 1; i > 0; i--) {
        size_t j = (size_t)random() % (i + 1), other = order[i];
        order[i] = order[j], order[j] = other;
    }
    for (size_t i = 0; i < lines; i++)
        *(size_t *)(memory + order[i] * LINE) = order[(i + 1) % lines];
    double least = 1e9;
    for (int i = -20; i < times; i++) {
        struct timespec from, to;
        /* Twice: what is in the caches is what the program's use left there. */
        walk(memory, lines);
        walk(memory, lines);
        clock_gettime(CLOCK_MONOTONIC, &from);
        walk(memory, lines);
        clock_gettime(CLOCK_MONOTONIC, &to);
        double warm = (to.tv_sec - from.tv_sec) * 1e6 + (to.tv_nsec - from.tv_nsec) / 1e3;
        if (warm < least) least = warm;
        /* Not asleep: an idle processor of a virtual machine goes to others, and its cache with
             * it. */
        do {
            sched_yield();
            clock_gettime(CLOCK_MONOTONIC, &from);
        } while ((from.tv_sec - to.tv_sec) * 1000000000L + from.tv_nsec - to.tv_nsec < 1500000);
        clock_gettime(CLOCK_MONOTONIC, &from);
        walk(memory, lines);
        clock_gettime(CLOCK_MONOTONIC, &to);
        if (i >= 0) took[i] = (to.tv_sec - from.tv_sec) * 1e6 + (to.tv_nsec - from.tv_nsec) / 1e3;
    }
    qsort(took, (size_t)times, sizeof *took, compare);
    printf("%8.1f us warm, %8.1f at the median (%.2f times), "
           "%8.1f at the 90th percentile (%.2f times)\n",
           least, took[times / 2], took[times / 2] / least, took[times * 9 / 10],
           took[times * 9 / 10] / least);
    return 0;
}
