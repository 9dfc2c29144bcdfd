/* A digital filter whose coefficients and samples have a color each (001 §5.2). Needs a memory
 * server and a grant:
 *   warmset color serve & warmset color grant uid:$(id -u) 0-1
 *   cc filter.c -lwarmset_color -o filter && ./filter
 */
#include <stdio.h>
#include <warmset_color.h>

enum { TAPS = 512 };

int main(void) {
    double *coefficients = warmset_calloc(TAPS, sizeof *coefficients, 0);
    double *samples = warmset_calloc(TAPS, sizeof *samples, warmset_colors() - 1);
    if (!coefficients || !samples) return 1;
    for (int i = 0; i < TAPS; i++) {
        coefficients[i] = 1.0 / TAPS;
        samples[i] = i % 2 ? 1.0 : 3.0;
    }
    double sum = 0;
    for (int i = 0; i < TAPS; i++) sum += coefficients[i] * samples[TAPS - 1 - i];
    printf("color %d and %d: %.1f\n", warmset_color_of(coefficients), warmset_color_of(samples),
           sum);
    warmset_free(warmset_realloc(samples, 4 * TAPS * sizeof *samples, 0));
    warmset_free(coefficients);
    if (warmset_malloc(1, warmset_colors())) return 1;
    printf("refused: %s\n", warmset_color_error());
    return 0;
}
