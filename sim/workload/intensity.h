/* The integrated rate Λ of one class, and its inverse. Λ is counted in integer quanta of 2^-q
 * arrivals and kept relative to the minute it stands in, so that walking along it for a hundred
 * days adds no rounding at all. */
#ifndef FLEETSIM_SIM_WORKLOAD_INTENSITY_H
#define FLEETSIM_SIM_WORKLOAD_INTENSITY_H

#include <math.h>
#include <stdint.h>

#include "sim/base/time.h"
#include "sim/workload/curve.h"

struct intensity_segment {
    uint64_t quanta; /* expected arrivals in it */
    double inverse;  /* 1 / quanta; 0 when there are none */
    double lean;     /* curve.h */
};

struct intensity {
    double per_arrival; /* 2^q: quanta in one expected arrival */
    int64_t start_ps;   /* of the present segment; may be negative in the first one */
    uint64_t position;  /* quanta into the present segment */
    int64_t last_ps;    /* latest time returned */
    uint32_t segment;   /* 0 … CURVE_SEGMENTS − 1, minute of the local day */
    struct intensity_segment segments[CURVE_SEGMENTS];
};

/* daily: expected arrivals per day, > 0. Stands at local second of day start_s (0 … 86,399), which
 * is time 0. */
void intensity_init(struct intensity *in, const struct curve *curve, double daily,
                    uint32_t start_s);

/* Goes on by quanta (≤ 2^62) and returns the time reached, in whole ps (rounded down), never less
 * than before; TIME_NEVER when that is at or past horizon_ps. */
static inline int64_t intensity_advance(struct intensity *in, uint64_t quanta, int64_t horizon_ps)
{
    uint64_t position = in->position + quanta;
    const struct intensity_segment *segment = &in->segments[in->segment];
    while (position >= segment->quanta) {
        position -= segment->quanta;
        in->start_ps += CURVE_SEGMENT_PS;
        if (in->start_ps >= horizon_ps) {
            in->position = 0;
            in->segment = 0;
            return TIME_NEVER;
        }
        in->segment = in->segment + 1 < CURVE_SEGMENTS ? in->segment + 1 : 0;
        segment = &in->segments[in->segment];
    }
    in->position = position;
    /* lean·s + (1 − lean)·s² = u, solved without cancellation. Rounding may put u a bit above 1 and
     * the discriminant, which is ≥ min(lean, 2 − lean)² ≥ 0, a bit below 0; u = lean = 0 is 0/0. */
    double u = (double)position * segment->inverse;
    double lean = segment->lean;
    double square = lean * lean + 4 * (1 - lean) * u;
    double root = lean + sqrt(square > 0 ? square : 0);
    double s = root > 0 ? 2 * u / root : 0;
    int64_t time_ps = in->start_ps + (int64_t)(s * (double)CURVE_SEGMENT_PS);
    /* The last bit of the root is not monotone in u. */
    if (time_ps < in->last_ps)
        time_ps = in->last_ps;
    in->last_ps = time_ps;
    return time_ps < horizon_ps ? time_ps : TIME_NEVER;
}

#endif
