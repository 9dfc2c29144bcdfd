/* Colored heaps: memory whose page colors follow from what its user names, or from the task.
 *
 * A process attaches to the memory server (`warmset color serve`) by the first call, or by
 * warmset_color_attach. It then has colors 0 to warmset_colors() - 1: those that the operator
 * granted it (`warmset color grant`), as super colors. The environment may say WARMSET_COLOR_SOCKET
 * (the server), WARMSET_COLORS (page colors to use, such as 0-3), WARMSET_HEAPS (how many colors to
 * make of them), WARMSET_COLOR_BY=task (the color is the number of the task modulo the number of
 * colors; colors that are named are ignored) and WARMSET_COLOR_BY=none (no server is asked, and
 * memory is that of malloc: there is one color, and whatever is named is ignored). The first color
 * that is ignored is told on standard error. All functions may be called by any thread; memory may
 * be freed by another one.
 * What fails says why on standard error, and sets errno. Link with -lwarmset_color.
 */
#ifndef WARMSET_COLOR_H
#define WARMSET_COLOR_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Attaches to the server behind a socket; NULL: the usual one. 0, or -1. */
int warmset_color_attach(const char *socket);
/* How many colors there are; 0 where the process cannot be attached, 1 where it runs without. */
unsigned warmset_colors(void);

/* The malloc family in a color; NULL where no more can be had, or the color is beyond the last
 * one. */
void *warmset_malloc(size_t size, unsigned color);
void *warmset_calloc(size_t number, size_t size, unsigned color);
void *warmset_aligned_alloc(size_t alignment, size_t size, unsigned color);
/* Memory keeps its color; `color` counts where `memory` is NULL. */
void *warmset_realloc(void *memory, size_t size, unsigned color);
/* Ends the program, with a message, if the memory is from no colored heap or was freed before. */
void warmset_free(void *memory);
size_t warmset_malloc_usable_size(void *memory);

/* The color of memory; -1 if it has none. */
int warmset_color_of(const void *memory);
/* The calling thread is the task of this number. 0, or -1. */
int warmset_color_set_task(size_t number);
/* Gives unused memory back to the server; bytes. */
size_t warmset_color_trim(void);
/* Why the last call of this thread failed. */
const char *warmset_color_error(void);

#ifdef __cplusplus
}
#endif
#endif
