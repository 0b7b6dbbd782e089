#include "sim/workload/curve.h"

#include <math.h>
#include <stddef.h>

#include "sim/base/check.h"
#include "sim/base/detmath.h"
#include "sim/base/time.h"

/* Knots are multiples of 2^-50 of a day's arrivals, values of f multiples of 2^-40: detmath already
 * gives the same bits everywhere, the grid keeps a change of its last bit away from most draws. */
static double grid(double x, double steps)
{
    return floor(x * steps + 0.5) / steps;
}

/* ---- flat ---- */

static bool flat_init(struct curve *curve, const void *config, const struct site *site)
{
    (void)curve;
    (void)config;
    (void)site;
    return true;
}

static double flat_value(const struct curve *curve, double hour)
{
    (void)curve;
    (void)hour;
    return 1;
}

static double flat_integral(const struct curve *curve, double day)
{
    (void)curve;
    return day;
}

static const struct curve_type flat_type = {flat_init, flat_value, flat_integral, true};
static const struct variant flat_variant = {
    .name = "flat",
    .doc = "The same rate at every hour.",
    .ops = &flat_type,
};

/* ---- evening_peak ---- */

struct evening_config {
    double peak_hour;
    double peak_factor;
};

static const struct field evening_fields[] = {
    {.name = "peak_hour",
     .kind = FIELD_REAL,
     .offset = offsetof(struct evening_config, peak_hour),
     .fallback = "20",
     .min = 0,
     .max = 24,
     .doc = "Local hour of the peak; 20.5 is half past eight in the evening."},
    {.name = "peak_factor",
     .kind = FIELD_REAL,
     .offset = offsetof(struct evening_config, peak_factor),
     .fallback = "3",
     .min = 1,
     .max = 100,
     .doc = "Rate at the peak over the day's mean rate."},
    {0}};

/* f(h) = 1 + (P − 1)(cⁿ − mₙ)/(1 − mₙ), c = (1 + cos(2π(h − peak)/24))/2: mean 1 and peak P. It is
 * nowhere negative iff mₙ ≤ 1/P: n = 4, or more for a sharper peak. mₙ = mₙ₋₁ (2n − 1)/(2n). */
static bool evening_init(struct curve *curve, const void *config, const struct site *site)
{
    (void)site;
    const struct evening_config *c = config;
    curve->peak_hour = c->peak_hour;
    curve->peak_factor = c->peak_factor;
    uint32_t n = 4;
    double mean = 70.0 / 256.0; /* C(8, 4) / 4⁴ */
    while (mean * c->peak_factor > 1) {
        n++;
        mean *= (2.0 * n - 1) / (2.0 * n);
    }
    curve->power = n;
    curve->power_mean = mean;
    return true;
}

static double evening_value(const struct curve *curve, double hour)
{
    double base = (1 + detmath_cos_turns((hour - curve->peak_hour) / 24)) / 2;
    double power = 1;
    for (uint32_t n = curve->power; n > 0; n >>= 1) {
        if (n & 1)
            power *= base;
        base *= base;
    }
    double m = curve->power_mean;
    double f = 1 + (curve->peak_factor - 1) * (power - m) / (1 - m);
    return f > 0 ? f : 0;
}

static double sin_turns(double x)
{
    return detmath_cos_turns(x - 0.25);
}

/* cⁿ = cos²ⁿ(θ/2) = mₙ + 2 Σⱼ (C(2n, n − j)/4ⁿ) cos jθ, j = 1 … n, so the integral is a finite sum
 * of sines; C(2n, n − j)/4ⁿ = (the same at j − 1) · (n − j + 1)/(n + j). */
static double evening_integral(const struct curve *curve, double day)
{
    const double two_pi = 6.283185307179586477;
    double n = curve->power;
    double phase = curve->peak_hour / 24;
    double coefficient = curve->power_mean;
    double sum = 0;
    for (uint32_t j = 1; j <= curve->power && coefficient > 1e-20; j++) {
        coefficient *= (n - j + 1) / (n + j);
        sum +=
            2 * coefficient * (sin_turns(j * (day - phase)) + sin_turns(j * phase)) / (two_pi * j);
    }
    return day + (curve->peak_factor - 1) * sum / (1 - curve->power_mean);
}

static const struct curve_type evening_type = {evening_init, evening_value, evening_integral,
                                               false};
static const struct variant evening_variant = {
    .name = "evening_peak",
    .doc = "A smooth day with one peak: powers of a raised cosine, mean 1, exactly peak_factor at "
           "peak_hour.",
    .fields = evening_fields,
    .size = sizeof(struct evening_config),
    .ops = &evening_type,
};

/* ---- hourly and weekly ---- */

struct hourly_config {
    struct field_list values; /* of double */
};

static const struct field hourly_item = {
    .kind = FIELD_REAL, .min = 0, .max = 1e15, .doc = "Rate in one hour, relative or absolute."};
static const struct field hourly_fields[] = {
    {.name = "values",
     .kind = FIELD_LIST,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct hourly_config, values),
     .min = CURVE_HOURS,
     .max = CURVE_HOURS,
     .doc = "24 rates from local midnight, each constant within its hour; only their ratios "
            "count: they are divided by their mean.",
     .item = &hourly_item,
     .item_size = sizeof(double)},
    {0}};
static const struct field weekly_fields[] = {
    {.name = "values",
     .kind = FIELD_LIST,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct hourly_config, values),
     .min = CURVE_HOURS_MAX,
     .max = CURVE_HOURS_MAX,
     .doc = "168 rates from Monday's local midnight, each constant within its hour; only their "
            "ratios count: they are divided by their mean.",
     .item = &hourly_item,
     .item_size = sizeof(double)},
    {0}};

static bool hours_init(struct curve *curve, const struct field_list *list, size_t hours,
                       const struct site *site)
{
    const double *values = list->items;
    if (list->count != hours) {
        site_error(site, "arrivals.curve.values", "this curve has %zu values, not %zu", hours,
                   list->count);
        return false;
    }
    double sum = 0;
    for (size_t i = 0; i < hours; i++)
        sum += values[i];
    if (!(sum > 0)) {
        site_error(site, "arrivals.curve.values", "all %zu values are 0: no hour has any traffic",
                   hours);
        return false;
    }
    for (size_t i = 0; i < hours; i++)
        curve->hourly[i] = values[i] * (double)hours / sum;
    return true;
}

static bool hourly_init(struct curve *curve, const void *config, const struct site *site)
{
    return hours_init(curve, &((const struct hourly_config *)config)->values, CURVE_HOURS, site);
}

static bool weekly_init(struct curve *curve, const void *config, const struct site *site)
{
    curve->days = CURVE_DAYS_MAX;
    return hours_init(curve, &((const struct hourly_config *)config)->values, CURVE_HOURS_MAX,
                      site);
}

static double hourly_value(const struct curve *curve, double hour)
{
    uint32_t index = (uint32_t)hour, hours = curve->days * CURVE_HOURS;
    return curve->hourly[index < hours ? index : hours - 1];
}

static double hourly_integral(const struct curve *curve, double day)
{
    double hour = day * CURVE_HOURS;
    double sum = 0;
    for (uint32_t i = 0; i < curve->days * CURVE_HOURS && hour > i; i++)
        sum += curve->hourly[i] * (hour < i + 1 ? hour - i : 1);
    return sum / CURVE_HOURS;
}

static const struct curve_type hourly_type = {hourly_init, hourly_value, hourly_integral, true};
static const struct curve_type weekly_type = {weekly_init, hourly_value, hourly_integral, true};
static const struct variant hourly_variant = {
    .name = "hourly",
    .doc = "24 values, one for each local hour.",
    .fields = hourly_fields,
    .size = sizeof(struct hourly_config),
    .ops = &hourly_type,
};
static const struct variant weekly_variant = {
    .name = "weekly",
    .doc = "168 values, one for each local hour of the week, from Monday.",
    .fields = weekly_fields,
    .size = sizeof(struct hourly_config),
    .ops = &weekly_type,
};

/* ---- harmonics ---- */

struct curve_term {
    int64_t period_ps, peak_ps;
    double amplitude;
};

struct harmonics_config {
    double mean;
    struct field_list terms; /* of struct curve_term */
};

static const struct field term_fields[] = {
    {.name = "period",
     .kind = FIELD_TIME,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct curve_term, period_ps),
     .min = 60,
     .max = 604800,
     .doc = "Its period: a week divided by a whole number, say 24 h, 12 h or 168 h."},
    {.name = "amplitude",
     .kind = FIELD_REAL,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct curve_term, amplitude),
     .min = 0,
     .max = 1e15,
     .doc = "Height of the wave, in the unit of mean."},
    {.name = "phase",
     .kind = FIELD_TIME,
     .offset = offsetof(struct curve_term, peak_ps),
     .fallback = "0 s",
     .min = 0,
     .max = 604800,
     .doc = "When the wave is highest, from Monday's local midnight."},
    {0}};
static const struct field term_item = {.kind = FIELD_STRUCT, .fields = term_fields};
static const struct field harmonics_fields[] = {
    {.name = "mean",
     .kind = FIELD_REAL,
     .flags = FIELD_MIN_OPEN,
     .offset = offsetof(struct harmonics_config, mean),
     .fallback = "1",
     .max = 1e15,
     .doc = "Mean around which the waves go up and down; only ratios to it count."},
    {.name = "terms",
     .kind = FIELD_LIST,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct harmonics_config, terms),
     .min = 1,
     .max = 64,
     .doc = "The waves: mean + Σ amplitude · cos(2π (t − phase) / period), nowhere below 0.",
     .item = &term_item,
     .item_size = sizeof(struct curve_term)},
    {0}};

static bool harmonics_init(struct curve *curve, const void *config, const struct site *site)
{
    const struct harmonics_config *c = config;
    curve->terms = c->terms.items;
    curve->term_count = c->terms.count;
    curve->mean = c->mean;
    for (size_t i = 0; i < curve->term_count; i++) {
        int64_t period_ps = curve->terms[i].period_ps;
        if (CURVE_DAYS_MAX * CURVE_DAY_PS % period_ps != 0) {
            site_error(site, "arrivals.curve.terms",
                       "a period must go into a week a whole number of times");
            return false;
        }
        if (CURVE_DAY_PS % period_ps != 0)
            curve->days = CURVE_DAYS_MAX;
    }
    for (uint32_t k = 0; k < curve->days * CURVE_SEGMENTS; k++) {
        if (curve->type->value(curve, k / 60.0) < 0) {
            site_error(site, "arrivals.curve.terms",
                       "the rate falls below 0 at %02u:%02u of day %u: smaller amplitudes or a "
                       "larger mean",
                       k / 60 % 24, k % 60, k / CURVE_SEGMENTS + 1);
            return false;
        }
    }
    return true;
}

static double harmonics_value(const struct curve *curve, double hour)
{
    double sum = 0;
    for (size_t i = 0; i < curve->term_count; i++) {
        const struct curve_term *term = &curve->terms[i];
        double period = time_seconds(term->period_ps) / 3600;
        sum += term->amplitude *
               detmath_cos_turns((hour - time_seconds(term->peak_ps) / 3600) / period);
    }
    double f = 1 + sum / curve->mean;
    return fabs(f) < 1e-12 ? 0 : f; /* a wave that just touches 0 */
}

static double harmonics_integral(const struct curve *curve, double day)
{
    const double two_pi = 6.283185307179586477;
    double sum = 0;
    for (size_t i = 0; i < curve->term_count; i++) {
        const struct curve_term *term = &curve->terms[i];
        double period = time_seconds(term->period_ps) / 86400;
        double phase = time_seconds(term->peak_ps) / 86400;
        sum += term->amplitude * period / two_pi *
               (sin_turns((day - phase) / period) + sin_turns(phase / period));
    }
    return day + sum / curve->mean;
}

static const struct curve_type harmonics_type = {harmonics_init, harmonics_value,
                                                 harmonics_integral, false};
static const struct variant harmonics_variant = {
    .name = "harmonics",
    .doc = "A mean and a sum of cosine waves: daily, weekly and their fractions.",
    .fields = harmonics_fields,
    .size = sizeof(struct harmonics_config),
    .ops = &harmonics_type,
};

const struct variant *const curve_variants[] = {
    &flat_variant, &evening_variant, &hourly_variant, &weekly_variant, &harmonics_variant, NULL};

/* ---- the table ---- */

/* How the rate leans within a segment whose share is known. */
static double segment_lean(const struct curve *curve, uint32_t k)
{
    double share = curve->share[k];
    double rise =
        curve_value(curve, (k + 1) * CURVE_SEGMENT_PS) - curve_value(curve, k * CURVE_SEGMENT_PS);
    double lean = 1 - rise / (2 * CURVE_SEGMENTS * share);
    return !(share > 0) ? 1 : lean < 0 ? 0 : lean > 2 ? 2 : lean;
}

bool curve_init(struct curve *curve, const struct variant_value *value, const struct site *site)
{
    check(value->type);
    curve->type = value->type->ops;
    curve->days = 1;
    if (!curve->type->init(curve, value->config, site))
        return false;
    uint32_t segments = curve->segments = curve->days * CURVE_SEGMENTS;

    for (uint32_t k = 0; k <= segments; k++)
        curve->knots[k] = grid(curve->type->integral(curve, (double)k / CURVE_SEGMENTS), 0x1p50);
    check_msg(curve->knots[0] == 0 && fabs(curve->knots[segments] - curve->days) < 1e-12,
              "a curve's mean is not 1: %.17g … %.17g", curve->knots[0], curve->knots[segments]);
    curve->knots[segments] = curve->days;

    for (uint32_t k = 0; k < segments; k++) {
        if (curve->type->steps) {
            curve->share[k] = curve_value(curve, k * CURVE_SEGMENT_PS) / CURVE_SEGMENTS;
            curve->lean[k] = 1;
            continue;
        }
        curve->share[k] = curve->knots[k + 1] - curve->knots[k];
        check(curve->share[k] > -1e-12);
        curve->share[k] = curve->share[k] > 0 ? curve->share[k] : 0;
        curve->lean[k] = segment_lean(curve, k);
    }
    return true;
}

bool curve_is_flat(const struct curve *curve)
{
    return curve->type == &flat_type;
}

double curve_value(const struct curve *curve, int64_t local_ps)
{
    debug_check(local_ps >= 0);
    double hour = (double)(local_ps % (curve->days * CURVE_DAY_PS)) / (double)PS_PER_HOUR;
    return grid(curve->type->value(curve, hour), 0x1p40);
}

double curve_integral(const struct curve *curve, int64_t local_ps)
{
    debug_check(local_ps >= 0);
    int64_t period_ps = curve->days * CURVE_DAY_PS;
    int64_t period = local_ps / period_ps;
    int64_t within_ps = local_ps % period_ps;
    int64_t segment = within_ps / CURVE_SEGMENT_PS;
    double s = (double)(within_ps % CURVE_SEGMENT_PS) / (double)CURVE_SEGMENT_PS;
    double lean = curve->lean[segment];
    return (double)period * curve->days + curve->knots[segment] +
           curve->share[segment] * (lean * s + (1 - lean) * s * s);
}
