#include "sim/workload/intensity.h"

#include <stdlib.h>

#include "sim/base/arena.h"
#include "sim/base/check.h"

enum {
    QUANTA_BITS = 61, /* of a segment at most: a segment and a step add up within 64 bits */
    ARRIVAL_BITS = 56 /* of one arrival at most: a unit exponential is below 37 < 2^6 */
};

/* Share of a segment's arrivals before the share s of its time. */
static double share_before(double lean, double s)
{
    return lean * s + (1 - lean) * s * s;
}

/* Makes the stretch the part [start, start + length) of the present minute, in the present piece.
 * A whole minute under factor 1 is the table's segment itself. */
static void stretch_set(struct intensity *in, int64_t start_ps, int64_t length_ps)
{
    const struct timeline_piece *piece = &in->timeline->pieces[in->piece];
    int64_t weeks;
    int64_t local_ps = timeline_local(piece, in->minute_ps < 0 ? 0 : in->minute_ps, &weeks);
    const struct intensity_segment *segment =
        &in->segments[local_ps / CURVE_SEGMENT_PS % in->segment_count];
    in->start_ps = start_ps;
    in->length_ps = length_ps;
    in->stretch = *segment;
    if (length_ps == CURVE_SEGMENT_PS && piece->factor == 1)
        return;
    double from = (double)(start_ps - in->minute_ps) / (double)CURVE_SEGMENT_PS;
    double to = (double)(start_ps + length_ps - in->minute_ps) / (double)CURVE_SEGMENT_PS;
    double part = share_before(segment->lean, to) - share_before(segment->lean, from);
    /* The rate is linear in the minute, so also in a part of it. */
    double first = segment->lean + 2 * (1 - segment->lean) * from;
    double last = segment->lean + 2 * (1 - segment->lean) * to;
    uint64_t quanta = (uint64_t)((double)segment->quanta * part * piece->factor + 0.5);
    in->stretch = (struct intensity_segment){
        .quanta = quanta,
        .inverse = quanta ? 1 / (double)quanta : 0,
        .lean = first + last > 0 ? 2 * first / (first + last) : 1,
    };
}

/* The stretch from start on: to the end of the minute or of the piece. */
static void stretch_from(struct intensity *in, int64_t start_ps)
{
    int64_t end_ps = in->minute_ps + CURVE_SEGMENT_PS;
    if (in->piece + 1 < in->timeline->count && in->timeline->pieces[in->piece + 1].from_ps < end_ps)
        end_ps = in->timeline->pieces[in->piece + 1].from_ps;
    stretch_set(in, start_ps, end_ps - start_ps);
}

bool intensity_step(struct intensity *in, int64_t horizon_ps)
{
    int64_t from_ps = in->start_ps + in->length_ps;
    if (from_ps >= horizon_ps) {
        in->start_ps = from_ps;
        in->length_ps = 0;
        in->stretch = (struct intensity_segment){.lean = 1};
        return false;
    }
    if (from_ps == in->minute_ps + CURVE_SEGMENT_PS)
        in->minute_ps = from_ps;
    if (in->piece + 1 < in->timeline->count &&
        in->timeline->pieces[in->piece + 1].from_ps == from_ps)
        in->piece++;
    stretch_from(in, from_ps);
    return true;
}

void intensity_init(struct intensity *in, const struct curve *curve, double daily,
                    const struct timeline *timeline)
{
    check(daily > 0 && timeline->count > 0);
    *in = (struct intensity){.timeline = timeline, .segment_count = curve->segments};
    in->segments = memory_alloc(in->segment_count * sizeof *in->segments);
    double largest = 0;
    for (uint32_t k = 0; k < in->segment_count; k++) {
        double count = daily * curve->share[k];
        largest = count > largest ? count : largest;
    }
    double factor = timeline_factor_max(timeline);
    int bits = 0; /* 2^bits ≥ largest */
    frexp(factor > 1 ? largest * factor : largest, &bits);
    int q = QUANTA_BITS - bits;
    q = q > ARRIVAL_BITS ? ARRIVAL_BITS : q;
    check(q > 0);
    in->per_arrival = ldexp(1, q);

    for (uint32_t k = 0; k < in->segment_count; k++) {
        double count = daily * curve->share[k];
        struct intensity_segment *segment = &in->segments[k];
        segment->quanta = (uint64_t)(count * in->per_arrival + 0.5);
        segment->inverse = segment->quanta ? 1 / (double)segment->quanta : 0;
        segment->lean = curve->lean[k];
    }

    /* Time 0 may lie within a minute: then the first stretch begins before it. */
    in->minute_ps = -(timeline->pieces[0].local_s % 60 * PS_PER_SECOND);
    stretch_from(in, in->minute_ps);
    double s = (double)-in->minute_ps / (double)in->length_ps;
    in->position = (uint64_t)((double)in->stretch.quanta * share_before(in->stretch.lean, s));
}

void intensity_free(struct intensity *in)
{
    free(in->segments);
}
