#include "tests/validation/support_score.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct score score_of(const double *errors, size_t count)
{
    struct score s = {.count = count};
    double *sorted = malloc(count * sizeof *sorted);
    for (size_t i = 0; i < count; i++) {
        sorted[i] = errors[i];
        s.within20 += fabs(errors[i]) <= 0.2;
        s.within30 += fabs(errors[i]) <= 0.3;
    }
    qsort(sorted, count, sizeof *sorted, compare);
    s.bias = count ? sorted[count / 2] : 0;
    for (size_t i = 0; i < count; i++)
        sorted[i] = fabs(errors[i]);
    qsort(sorted, count, sizeof *sorted, compare);
    s.median = count ? sorted[count / 2] : 0;
    s.within20 /= count ? (double)count : 1;
    s.within30 /= count ? (double)count : 1;
    free(sorted);
    return s;
}

void score_print(const char *name, struct score s)
{
    printf("| %-44s | %4zu | %5.1f %% | %5.1f %% | %5.1f %% | %+6.1f %% |\n", name, s.count,
           100 * s.median, 100 * s.within20, 100 * s.within30, 100 * s.bias);
}

void score_print_head(const char *title)
{
    printf("\n| %-44s | rows | median  | <= 20 %% | <= 30 %% | bias     |\n", title);
    printf("| --- | --- | --- | --- | --- | --- |\n");
}
