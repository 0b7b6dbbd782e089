#include "tests/validation/support_waves.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "tests/validation/support_score.h"

const int64_t waves_counts[WAVES_COUNTS] = {1, 2, 3, 5, 7, 10, 15, 20, 40};

size_t waves_held_out(const struct waves_row *rows, size_t count, size_t row)
{
    double *errors = memory_alloc(count * sizeof *errors);
    double least = INFINITY;
    size_t best = WAVES_TEN;
    for (size_t at = 0; at < WAVES_COUNTS; at++) {
        size_t others = 0;
        for (size_t i = 0; i < count; i++)
            if (rows[i].kept && rows[i].fold != rows[row].fold &&
                strcmp(rows[i].group, rows[row].group) == 0)
                errors[others++] = rows[i].errors[at];
        double median = score_of(errors, others).median;
        if (others > 0 && median < least) {
            least = median;
            best = at;
        }
    }
    free(errors);
    return best;
}
