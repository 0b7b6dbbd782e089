/* The traffic of a trial: Poisson arrivals at a bare rate, with the lengths of the class or those
 * of a trace's first rows, over and over. No scenario can name it. */
#ifndef FLEETSIM_SIM_RUN_CAPACITY_ARRIVALS_H
#define FLEETSIM_SIM_RUN_CAPACITY_ARRIVALS_H

#include <stddef.h>
#include <stdint.h>

#include "sim/base/field.h"

struct capacity_row {
    uint32_t prompt_tokens, output_tokens;
};

struct capacity_arrivals_config {
    double rate;                     /* 1/s, > 0 */
    const struct capacity_row *rows; /* borrowed; NULL: lengths are drawn */
    size_t row_count;
};

extern const struct variant capacity_arrivals_drawn, capacity_arrivals_rows;

#endif
