/* What changes once in a class's rate, beside its periodic curve: the local clock's jumps, spikes,
 * the start and end of a cohort. A list of pieces, in each of which the clock runs evenly and the
 * curve is multiplied by one factor. */
#ifndef FLEETSIM_SIM_WORKLOAD_TIMELINE_H
#define FLEETSIM_SIM_WORKLOAD_TIMELINE_H

#include <stddef.h>
#include <stdint.h>

#include "sim/base/field.h"
#include "sim/workload/zone.h"

/* One entry of `spikes:`. */
struct timeline_spike {
    int64_t at_ps, duration_ps;
    double factor;
};

struct timeline_piece {
    int64_t from_ps;
    int64_t local_s; /* what the local clock would have shown at time 0, in s since Monday 0:00; 0 …
                        604,799 */
    double factor;
};

struct timeline {
    struct timeline_piece *pieces; /* owned; the first from 0, the last without end */
    size_t count;
};

struct timeline_setup {
    int64_t start_unix_s, horizon_ps;
    const struct zone *zone;
    const struct field_list *spikes; /* of struct timeline_spike; where they overlap their factors
                                        multiply */
    int64_t from_ps, to_ps;          /* outside of it the factor is 0 */
};

void timeline_init(struct timeline *timeline, const struct timeline_setup *setup);
void timeline_free(struct timeline *timeline);
/* The piece that holds t ≥ 0. */
const struct timeline_piece *timeline_at(const struct timeline *timeline, int64_t time_ps);
double timeline_factor_max(const struct timeline *timeline);
/* The local clock at t in a piece, since a Monday 0:00, less whole weeks that are put into *weeks.
 */
int64_t timeline_local(const struct timeline_piece *piece, int64_t time_ps, int64_t *weeks);

#endif
