/* The integrated rate Λ of one class, and its inverse. Λ is counted in integer quanta of 2^-q
 * arrivals and kept relative to the minute it stands in, so that walking along it for a hundred
 * days adds no rounding at all. */
#ifndef FLEETSIM_SIM_WORKLOAD_INTENSITY_H
#define FLEETSIM_SIM_WORKLOAD_INTENSITY_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "sim/base/time.h"
#include "sim/workload/curve.h"
#include "sim/workload/timeline.h"

struct intensity_segment {
    uint64_t quanta; /* expected arrivals in it */
    double inverse;  /* 1 / quanta; 0 when there are none */
    double lean;     /* curve.h */
};

struct intensity {
    double per_arrival;               /* 2^q: quanta in one expected arrival */
    struct intensity_segment stretch; /* the present one: a minute, or less where the timeline cuts
                                         it */
    int64_t start_ps;                 /* of the stretch; may be negative in the first one */
    int64_t length_ps;                /* of the stretch */
    uint64_t position;                /* quanta into the stretch */
    int64_t last_ps;                  /* latest time returned */
    int64_t minute_ps;                /* start of the present minute of the clock */
    const struct timeline *timeline;  /* borrowed */
    size_t piece;                     /* of the timeline, in force in the stretch */
    struct intensity_segment *segments; /* owned; [segment_count], minutes of the period */
    uint32_t segment_count;
};

/* daily: expected arrivals per day where the timeline's factor is 1, > 0. */
void intensity_init(struct intensity *in, const struct curve *curve, double daily,
                    const struct timeline *timeline);
void intensity_free(struct intensity *in);
/* Goes on to the next stretch; false when that begins at or past horizon_ps. */
bool intensity_step(struct intensity *in, int64_t horizon_ps);

/* Goes on by quanta (≤ 2^62) and returns the time reached, in whole ps (rounded down), never less
 * than before; TIME_NEVER when that is at or past horizon_ps. */
static inline int64_t intensity_advance(struct intensity *in, uint64_t quanta, int64_t horizon_ps)
{
    uint64_t position = in->position + quanta;
    while (position >= in->stretch.quanta) {
        position -= in->stretch.quanta;
        if (!intensity_step(in, horizon_ps)) {
            in->position = 0;
            return TIME_NEVER;
        }
    }
    in->position = position;
    /* lean·s + (1 − lean)·s² = u, solved without cancellation. Rounding may put u a bit above 1 and
     * the discriminant, which is ≥ min(lean, 2 − lean)² ≥ 0, a bit below 0; u = lean = 0 is 0/0. */
    double u = (double)position * in->stretch.inverse;
    double lean = in->stretch.lean;
    double square = lean * lean + 4 * (1 - lean) * u;
    double root = lean + sqrt(square > 0 ? square : 0);
    double s = root > 0 ? 2 * u / root : 0;
    int64_t time_ps = in->start_ps + (int64_t)(s * (double)in->length_ps);
    /* The last bit of the root is not monotone in u. */
    if (time_ps < in->last_ps)
        time_ps = in->last_ps;
    in->last_ps = time_ps;
    return time_ps < horizon_ps ? time_ps : TIME_NEVER;
}

#endif
