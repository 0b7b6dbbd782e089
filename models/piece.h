/* Functions of an iteration's index i that are affine in pieces, in whole picoseconds:
 * f(i) = base + slope·i for i < valid. Sums, minima and maxima of such functions are again such
 * functions; the end of the piece is found exactly, so that evaluating the same expression k
 * iterations later gives f(k). That is what makes the step models exact across a crossing. */
#ifndef FLEETSIM_MODELS_PIECE_H
#define FLEETSIM_MODELS_PIECE_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/check.h"

struct piece {
    int64_t base;
    int64_t slope;
    uint32_t valid; /* ≥ 1; UINT32_MAX: no end */
};

static inline struct piece piece_constant(int64_t value)
{
    return (struct piece){value, 0, UINT32_MAX};
}

static inline struct piece piece_line(int64_t base, int64_t slope)
{
    return (struct piece){base, slope, UINT32_MAX};
}

static inline uint32_t piece_sooner(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static inline struct piece piece_add(struct piece a, struct piece b)
{
    return (struct piece){a.base + b.base, a.slope + b.slope, piece_sooner(a.valid, b.valid)};
}

static inline struct piece piece_scale(struct piece a, int64_t factor)
{
    struct piece scaled = {0, 0, a.valid};
    bool overflow = __builtin_mul_overflow(a.base, factor, &scaled.base);
    overflow |= __builtin_mul_overflow(a.slope, factor, &scaled.slope);
    check_msg(!overflow, "a step of more than 106 days");
    return scaled;
}

/* `count` (a number that grows by `growth` > 0 per iteration, or stays) times a real weight,
 * rounded so that it is exact under advance: the growth's weight is rounded once and multiplied by
 * whole growths, the remainder, which never changes, is rounded apart. ps(): to whole picoseconds.
 */
static inline struct piece piece_weigh(struct piece count, int64_t growth, double weight,
                                       int64_t (*ps)(double))
{
    struct piece unit = piece_scale(piece_line(count.base / growth, count.slope / growth),
                                    ps(weight * (double)growth));
    unit.base += ps(weight * (double)(count.base % growth));
    unit.valid = count.valid;
    return unit;
}

/* The smallest i ≥ 1 with low(i) > high(i), given low(0) ≤ high(0); UINT32_MAX when none. */
static inline uint32_t piece_crossing(struct piece low, struct piece high)
{
    int64_t gap = high.base - low.base, closing = low.slope - high.slope;
    if (closing <= 0)
        return UINT32_MAX;
    int64_t i = gap / closing + 1;
    return i < (int64_t)UINT32_MAX ? (uint32_t)i : UINT32_MAX;
}

static inline struct piece piece_min(struct piece a, struct piece b)
{
    struct piece low = b.base < a.base ? b : a, high = b.base < a.base ? a : b;
    low.valid = piece_sooner(piece_sooner(low.valid, high.valid), piece_crossing(low, high));
    return low;
}

static inline struct piece piece_max(struct piece a, struct piece b)
{
    struct piece high = b.base > a.base ? b : a, low = b.base > a.base ? a : b;
    high.valid = piece_sooner(piece_sooner(low.valid, high.valid), piece_crossing(low, high));
    return high;
}

#endif
