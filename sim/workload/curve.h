/* How a rate varies over the local day or week: f(hour), with mean 1. A class's rate at t is its
 * mean rate times f. Curves are integrated in closed form at every minute; between two minutes the
 * rate is taken as linear, leaning as f does and with exactly f's integral, so that expected counts
 * are exact and the inverse of the integral is the root of a quadratic (sqrt is exact IEEE
 * everywhere).
 */
#ifndef FLEETSIM_SIM_WORKLOAD_CURVE_H
#define FLEETSIM_SIM_WORKLOAD_CURVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/base/field.h"
#include "sim/workload/site.h"

enum {
    CURVE_SEGMENTS = 1440, /* minutes of a day */
    CURVE_DAYS_MAX = 7,
    CURVE_SEGMENTS_MAX = CURVE_DAYS_MAX * CURVE_SEGMENTS,
    CURVE_HOURS = 24,
    CURVE_HOURS_MAX = CURVE_DAYS_MAX * CURVE_HOURS
};
#define CURVE_SEGMENT_PS INT64_C(60000000000000)
#define CURVE_DAY_PS     (CURVE_SEGMENTS * CURVE_SEGMENT_PS)

struct curve;

/* A shape: callbacks registered as a variant's ops. */
struct curve_type {
    /* Fills the parameters from the variant's config; false after reporting at `arrivals.curve`. */
    bool (*init)(struct curve *curve, const void *config, const struct site *site);
    /* f at hour in [0, 24 · days). */
    double (*value)(const struct curve *curve, double hour);
    /* ∫₀ˣ f, x and result in days: 0 at 0, days at days. */
    double (*integral)(const struct curve *curve, double day);
    bool steps; /* f jumps at whole minutes and is constant between: segments do not lean */
};

struct curve {
    const struct curve_type *type;
    uint32_t days;     /* its period: 1, or 7 from Monday 0:00; set by init, 1 before it */
    uint32_t segments; /* minutes in the period */
    /* Parameters of evening_peak. */
    double peak_hour, peak_factor;
    double power_mean; /* mₙ = C(2n, n) / 4ⁿ, the mean of cⁿ */
    uint32_t power;    /* n */
    /* Parameters of hourly and weekly: normalised to mean 1; [24 · days]. */
    double hourly[CURVE_HOURS_MAX];
    /* Parameters of harmonics. */
    const struct curve_term *terms; /* borrowed from the config */
    size_t term_count;
    double mean;
    /* Only the first `segments` (+ 1) of what follows is ever touched. */
    /* The integral at each minute, in days; knots[0] = 0, knots[segments] = days. */
    double knots[CURVE_SEGMENTS_MAX + 1];
    /* The integral over each segment, in days. */
    double share[CURVE_SEGMENTS_MAX];
    /* Rate at the start of each segment over the segment's mean rate, 0 … 2: within it the share s
     * of the time holds the share lean·s + (1 − lean)·s² of its arrivals. */
    double lean[CURVE_SEGMENTS_MAX];
};

extern const struct variant *const curve_variants[];

/* Builds the table. value: a variant of curve_variants. False when the user's values are wrong,
 * after reporting. Nothing to free. */
bool curve_init(struct curve *curve, const struct variant_value *value, const struct site *site);
/* Whether the rate never changes. */
bool curve_is_flat(const struct curve *curve);
/* f at a local time since some Monday's midnight, in ps, ≥ 0; f itself, not the piecewise form. */
double curve_value(const struct curve *curve, int64_t local_ps);
/* ∫₀ᵗ f in days, t in ps since some Monday's local midnight, ≥ 0. */
double curve_integral(const struct curve *curve, int64_t local_ps);

#endif
