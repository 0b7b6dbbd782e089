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

/* ---- hourly ---- */

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

static bool hourly_init(struct curve *curve, const void *config, const struct site *site)
{
    const struct hourly_config *c = config;
    const double *values = c->values.items;
    if (c->values.count != CURVE_HOURS) {
        site_error(site, "arrivals.curve.values", "an hourly curve has 24 values, not %zu",
                   c->values.count);
        return false;
    }
    double sum = 0;
    for (int i = 0; i < CURVE_HOURS; i++)
        sum += values[i];
    if (!(sum > 0)) {
        site_error(site, "arrivals.curve.values", "all 24 values are 0: no hour has any traffic");
        return false;
    }
    for (int i = 0; i < CURVE_HOURS; i++)
        curve->hourly[i] = values[i] * CURVE_HOURS / sum;
    return true;
}

static double hourly_value(const struct curve *curve, double hour)
{
    int index = (int)hour;
    return curve->hourly[index < CURVE_HOURS ? index : CURVE_HOURS - 1];
}

static double hourly_integral(const struct curve *curve, double day)
{
    double hour = day * CURVE_HOURS;
    double sum = 0;
    for (int i = 0; i < CURVE_HOURS && hour > i; i++)
        sum += curve->hourly[i] * (hour < i + 1 ? hour - i : 1);
    return sum / CURVE_HOURS;
}

static const struct curve_type hourly_type = {hourly_init, hourly_value, hourly_integral, true};
static const struct variant hourly_variant = {
    .name = "hourly",
    .doc = "24 values, one for each local hour.",
    .fields = hourly_fields,
    .size = sizeof(struct hourly_config),
    .ops = &hourly_type,
};

const struct variant *const curve_variants[] = {&flat_variant, &evening_variant, &hourly_variant,
                                                NULL};
const char *const curve_later[] = {"weekly", "harmonics", NULL};

/* ---- the table ---- */

bool curve_init(struct curve *curve, const struct variant_value *value, const struct site *site)
{
    check(value->type);
    *curve = (struct curve){.type = value->type->ops};
    if (!curve->type->init(curve, value->config, site))
        return false;

    for (int k = 0; k <= CURVE_SEGMENTS; k++)
        curve->knots[k] = grid(curve->type->integral(curve, (double)k / CURVE_SEGMENTS), 0x1p50);
    check_msg(curve->knots[0] == 0 && curve->knots[CURVE_SEGMENTS] == 1,
              "a curve's mean is not 1: %.17g … %.17g", curve->knots[0],
              curve->knots[CURVE_SEGMENTS]);

    for (int k = 0; k < CURVE_SEGMENTS; k++) {
        double start = curve_value(curve, k * CURVE_SEGMENT_PS);
        curve->lean[k] = 1;
        if (curve->type->steps) {
            curve->share[k] = start / CURVE_SEGMENTS;
            continue;
        }
        curve->share[k] = curve->knots[k + 1] - curve->knots[k];
        check(curve->share[k] >= 0);
        double rise = curve_value(curve, (k + 1) * CURVE_SEGMENT_PS) - start;
        double lean = 1 - rise / (2 * CURVE_SEGMENTS * curve->share[k]);
        if (curve->share[k] > 0)
            curve->lean[k] = lean < 0 ? 0 : lean > 2 ? 2 : lean;
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
    double hour = (double)(local_ps % CURVE_DAY_PS) / (double)PS_PER_HOUR;
    return grid(curve->type->value(curve, hour), 0x1p40);
}

double curve_integral(const struct curve *curve, int64_t local_ps)
{
    debug_check(local_ps >= 0);
    int64_t day = local_ps / CURVE_DAY_PS;
    int64_t within_ps = local_ps % CURVE_DAY_PS;
    int64_t segment = within_ps / CURVE_SEGMENT_PS;
    double s = (double)(within_ps % CURVE_SEGMENT_PS) / (double)CURVE_SEGMENT_PS;
    double lean = curve->lean[segment];
    return (double)day + curve->knots[segment] +
           curve->share[segment] * (lean * s + (1 - lean) * s * s);
}
