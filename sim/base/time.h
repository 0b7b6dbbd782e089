/* Simulated time: int64_t picoseconds since the scenario's start, names end in _ps. No double ever
 * holds a time; a conversion from the user's seconds rounds once (to nearest, half away from zero).
 */
#ifndef FLEETSIM_SIM_BASE_TIME_H
#define FLEETSIM_SIM_BASE_TIME_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/check.h"

#define PS_PER_SECOND  INT64_C(1000000000000)
#define PS_PER_HOUR    (3600 * PS_PER_SECOND)
#define TIME_NEVER     INT64_MAX                /* sorts after every time */
#define TIME_NONE      INT64_MIN                /* "undefined" in records and optional fields */
#define HORIZON_MAX_PS (100 * 24 * PS_PER_HOUR) /* longer scenarios are refused */

typedef __int128 int128;

/* a + b where both build a time; an overflow (an overloaded drain has no horizon) ends the run with
 * a clear message rather than wrapping. */
static inline int64_t time_add(int64_t a, int64_t b)
{
    int64_t sum;
    bool overflow = __builtin_add_overflow(a, b, &sum);
    check_limit(!overflow, "simulated time passed 106 days: steps far too slow, or the drain of an "
                           "overloaded fleet");
    return sum;
}

/* floor(stamp / 1 h); stamp ≥ 0. The hour of an event is a function of its stamp alone. */
static inline int64_t time_hour(int64_t stamp_ps)
{
    return stamp_ps / PS_PER_HOUR;
}

/* For printing and statistics only. */
static inline double time_seconds(int64_t ps)
{
    return (double)ps / (double)PS_PER_SECOND;
}

/* Nearest picosecond; saturates at ±INT64_MAX. For cost models and statistics, never for sums. */
int64_t time_from_seconds(double seconds);

/* "12.345" with exactly the digits needed (at most 12 decimals), no exponent; "" for TIME_NONE.
 * buffer: at least TIME_TEXT_MAX bytes; returns buffer. */
enum { TIME_TEXT_MAX = 32 };
char *time_text(int64_t ps, char *buffer);

#endif
