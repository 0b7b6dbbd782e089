#include "sim/cli/transient.h"

#include <math.h>
#include <stdlib.h>

#include "sim/base/arena.h"
#include "sim/metrics/warmup_mser.h"

/* Whole intervals in [warmup, horizon): first and count. */
static size_t whole_intervals(const struct run_outcome *o, size_t *first)
{
    size_t count = 0;
    *first = 0;
    for (size_t k = 0; k < o->hour_count; k++) {
        const struct metrics_hour *row = &o->hours_all[k];
        bool whole = row->is_drain == 0 && row->covered_ps == o->interval_ps;
        if (whole && count++ == 0)
            *first = k;
    }
    return count;
}

size_t transient_series(const struct run_outcome *o, enum transient_series which, double *values)
{
    size_t first, count = whole_intervals(o, &first);
    for (size_t i = 0; i < count; i++) {
        const struct metrics_hour *row = &o->hours_all[first + i];
        if (which == TRANSIENT_TTFT && row->ttft.count == 0)
            return 0;
        values[i] = which == TRANSIENT_TTFT ? time_seconds(row->ttft.mean_ps) : row->in_flight_mean;
    }
    return count;
}

static bool load_is_constant(const struct run_outcome *o)
{
    size_t first, count = whole_intervals(o, &first);
    double rate = count > 0 ? o->hours_all[first].expected_rate : NAN;
    for (size_t i = 0; i < count; i++) {
        if (!(fabs(o->hours_all[first + i].expected_rate - rate) <= 1e-9 * rate))
            return false;
    }
    return rate > 0;
}

/* Takes one series into account. */
static void series_judge(struct transient *t, const struct run_outcome *o,
                         enum transient_series which, double *values)
{
    size_t first, count = transient_series(o, which, values);
    whole_intervals(o, &first);
    struct warmup_mser w = warmup_mser_find(values, count);
    if (!w.known || !w.differs || t->state == TRANSIENT_UNSETTLED)
        return;
    int64_t end_ps = o->hours_all[first + w.drop].start_ps;
    if (!w.settled) {
        t->state = TRANSIENT_UNSETTLED;
        t->series = which;
        t->end_ps = TIME_NONE;
    } else if (t->state != TRANSIENT_FOUND || end_ps > t->end_ps) {
        t->state = TRANSIENT_FOUND;
        t->series = which;
        t->end_ps = end_ps;
    }
}

struct transient transient_find(const struct run_outcome *o)
{
    size_t first;
    struct transient t = {.constant = load_is_constant(o), .end_ps = TIME_NONE};
    t.intervals = whole_intervals(o, &first);
    if (!t.constant)
        return t;
    if (t.intervals < WARMUP_MSER_BATCHES_MIN) {
        t.state = TRANSIENT_TOO_SHORT;
        return t;
    }
    t.state = TRANSIENT_NONE;
    double *values = memory_alloc((o->hour_count + 1) * sizeof *values);
    series_judge(&t, o, TRANSIENT_IN_FLIGHT, values);
    series_judge(&t, o, TRANSIENT_TTFT, values);
    free(values);
    return t;
}
