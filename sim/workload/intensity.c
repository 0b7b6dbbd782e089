#include "sim/workload/intensity.h"

#include "sim/base/check.h"

enum {
    QUANTA_BITS = 61, /* of a segment at most: a segment and a step add up within 64 bits */
    ARRIVAL_BITS = 56 /* of one arrival at most: a unit exponential is below 37 < 2^6 */
};

void intensity_init(struct intensity *in, const struct curve *curve, double daily, uint32_t start_s)
{
    check(daily > 0 && start_s < 86400);
    *in = (struct intensity){0};
    double largest = 0;
    for (int k = 0; k < CURVE_SEGMENTS; k++) {
        double count = daily * curve->share[k];
        largest = count > largest ? count : largest;
    }
    int bits = 0; /* 2^bits ≥ largest */
    frexp(largest, &bits);
    int q = QUANTA_BITS - bits;
    q = q > ARRIVAL_BITS ? ARRIVAL_BITS : q;
    check(q > 0);
    in->per_arrival = ldexp(1, q);

    for (int k = 0; k < CURVE_SEGMENTS; k++) {
        double count = daily * curve->share[k];
        struct intensity_segment *segment = &in->segments[k];
        segment->quanta = (uint64_t)(count * in->per_arrival + 0.5);
        segment->inverse = segment->quanta ? 1 / (double)segment->quanta : 0;
        segment->lean = curve->lean[k];
    }

    int64_t within_ps = (int64_t)(start_s % 60) * PS_PER_SECOND;
    in->segment = start_s / 60;
    in->start_ps = -within_ps;
    double s = (double)within_ps / (double)CURVE_SEGMENT_PS;
    double lean = curve->lean[in->segment];
    in->position =
        (uint64_t)((double)in->segments[in->segment].quanta * (lean * s + (1 - lean) * s * s));
}
