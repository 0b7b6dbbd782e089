#include "sim/workload/lengths.h"

#include <math.h>
#include <stddef.h>

#include "sim/base/check.h"
#include "sim/base/detmath.h"
#include "sim/base/rng.h"
#include "sim/workload/lengths_table.h"

/* ⌈x⌉ within [min, max]; x ≥ 0. */
static inline uint32_t rounded_up(double x, uint32_t min, uint32_t max)
{
    if (x >= (double)max)
        return max;
    uint32_t whole = (uint32_t)x;
    whole += (double)whole < x;
    return whole < min ? min : whole;
}

/* ---- constant ---- */

struct constant_config {
    int64_t value;
};

static const struct field constant_fields[] = {
    {.name = "value",
     .kind = FIELD_INT,
     .unit = UNIT_TOKENS,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct constant_config, value),
     .min = 0,
     .max = LENGTHS_TOKENS_MAX,
     .doc = "Tokens of every request; an output may be 0."},
    {0}};

static bool constant_init(struct lengths *lengths, const void *config, const struct site *site,
                          const char *key)
{
    (void)site;
    (void)key;
    const struct constant_config *c = config;
    lengths->min = lengths->max = (uint32_t)c->value;
    lengths->mean = (double)c->value;
    return true;
}

static uint32_t constant_draw(const struct lengths *lengths, uint64_t bits)
{
    (void)bits;
    return lengths->min;
}

static const struct lengths_type constant_type = {constant_init, constant_draw, false};
static const struct variant constant_variant = {
    .name = "constant",
    .doc = "The same length every time.",
    .fields = constant_fields,
    .size = sizeof(struct constant_config),
    .ops = &constant_type,
};

/* ---- uniform ---- */

struct uniform_config {
    int64_t min, max;
};

static const struct field uniform_fields[] = {{.name = "min",
                                               .kind = FIELD_INT,
                                               .unit = UNIT_TOKENS,
                                               .flags = FIELD_REQUIRED,
                                               .offset = offsetof(struct uniform_config, min),
                                               .min = 0,
                                               .max = LENGTHS_TOKENS_MAX,
                                               .doc = "Shortest; an output may be 0."},
                                              {.name = "max",
                                               .kind = FIELD_INT,
                                               .unit = UNIT_TOKENS,
                                               .flags = FIELD_REQUIRED,
                                               .offset = offsetof(struct uniform_config, max),
                                               .min = 0,
                                               .max = LENGTHS_TOKENS_MAX,
                                               .doc = "Longest."},
                                              {0}};

static bool uniform_init(struct lengths *lengths, const void *config, const struct site *site,
                         const char *key)
{
    const struct uniform_config *c = config;
    if (c->min > c->max) {
        site_error(site, key, "min is above max");
        return false;
    }
    lengths->min = (uint32_t)c->min;
    lengths->max = (uint32_t)c->max;
    lengths->mean = ((double)c->min + (double)c->max) / 2;
    return true;
}

static uint32_t uniform_draw(const struct lengths *lengths, uint64_t bits)
{
    unsigned __int128 width = (uint64_t)lengths->max - lengths->min + 1;
    return lengths->min + (uint32_t)(width * bits >> 64);
}

static const struct lengths_type uniform_type = {uniform_init, uniform_draw, false};
static const struct variant uniform_variant = {
    .name = "uniform",
    .doc = "Every whole number of tokens from min to max alike.",
    .fields = uniform_fields,
    .size = sizeof(struct uniform_config),
    .ops = &uniform_type,
};

/* ---- exponential and geometric: ⌈scale · E⌉, E a unit exponential ---- */

struct mean_config {
    double mean;
};

static uint32_t exponential_draw(const struct lengths *lengths, uint64_t bits)
{
    return rounded_up(-detmath_log(rng_unit_open(bits)) * lengths->a, 1, LENGTHS_TOKENS_MAX);
}

static const struct field exponential_fields[] = {
    {.name = "mean",
     .kind = FIELD_REAL,
     .unit = UNIT_TOKENS,
     .flags = FIELD_REQUIRED | FIELD_MIN_OPEN,
     .offset = offsetof(struct mean_config, mean),
     .min = 0,
     .max = 1e7,
     .doc = "Mean before rounding up to whole tokens; after it 1/(1 − exp(−1/mean)), about half a "
            "token more."},
    {0}};

/* P(⌈mE⌉ > k) = exp(−k/m): geometric with success probability 1 − exp(−1/m). */
static bool exponential_init(struct lengths *lengths, const void *config, const struct site *site,
                             const char *key)
{
    (void)site;
    (void)key;
    lengths->a = ((const struct mean_config *)config)->mean;
    double x = 1 / lengths->a; /* 1 − exp(−x), by its series where the difference would cancel */
    lengths->mean = 1 / (x < 1e-4 ? x * (1 - x / 2 * (1 - x / 3)) : 1 - detmath_exp(-x));
    lengths->min = 1;
    lengths->max = LENGTHS_TOKENS_MAX;
    return true;
}

static const struct lengths_type exponential_type = {exponential_init, exponential_draw, true};
static const struct variant exponential_variant = {
    .name = "exponential",
    .doc = "Exponential, rounded up to whole tokens.",
    .fields = exponential_fields,
    .size = sizeof(struct mean_config),
    .ops = &exponential_type,
};

static const struct field geometric_fields[] = {
    {.name = "mean",
     .kind = FIELD_REAL,
     .unit = UNIT_TOKENS,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct mean_config, mean),
     .min = 1,
     .max = 1e7,
     .doc = "Mean; the probability of stopping after each token is 1/mean."},
    {0}};

/* P(X > k) = (1 − 1/mean)^k = exp(−k/a) with a = −1/log(1 − 1/mean). */
static bool geometric_init(struct lengths *lengths, const void *config, const struct site *site,
                           const char *key)
{
    (void)site;
    (void)key;
    lengths->mean = ((const struct mean_config *)config)->mean;
    lengths->a = lengths->mean > 1 ? -1 / detmath_log(1 - 1 / lengths->mean) : 0;
    lengths->min = 1;
    lengths->max = LENGTHS_TOKENS_MAX;
    return true;
}

static const struct lengths_type geometric_type = {geometric_init, exponential_draw, true};
static const struct variant geometric_variant = {
    .name = "geometric",
    .doc = "Geometric on 1, 2, 3 …: every token is the last with the same probability.",
    .fields = geometric_fields,
    .size = sizeof(struct mean_config),
    .ops = &geometric_type,
};

/* ---- lognormal ---- */

struct lognormal_config {
    double mean, sigma, cv;
    int64_t min, max;
};

static const struct field lognormal_fields[] = {
    {.name = "mean",
     .kind = FIELD_REAL,
     .unit = UNIT_TOKENS,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct lognormal_config, mean),
     .min = 1,
     .max = 1e7,
     .doc = "Mean of the lengths as used: after rounding up and clipping. The median of the "
            "underlying log-normal is adjusted until it is so."},
    {.name = "sigma",
     .kind = FIELD_REAL,
     .flags = FIELD_OPTIONAL,
     .offset = offsetof(struct lognormal_config, sigma),
     .min = 0.001,
     .max = 5,
     .doc = "Standard deviation of the logarithm, before rounding and clipping. One of sigma and "
            "cv is given."},
    {.name = "cv",
     .kind = FIELD_REAL,
     .flags = FIELD_OPTIONAL,
     .offset = offsetof(struct lognormal_config, cv),
     .min = 0.001,
     .max = 1e5,
     .doc = "Standard deviation over mean, before rounding and clipping: sigma² = log(1 + cv²)."},
    {.name = "min",
     .kind = FIELD_INT,
     .unit = UNIT_TOKENS,
     .offset = offsetof(struct lognormal_config, min),
     .fallback = "1",
     .min = 1,
     .max = LENGTHS_TOKENS_MAX,
     .doc = "Shorter lengths become this."},
    {.name = "max",
     .kind = FIELD_INT,
     .unit = UNIT_TOKENS,
     .flags = FIELD_OPTIONAL,
     .offset = offsetof(struct lognormal_config, max),
     .min = 1,
     .max = LENGTHS_TOKENS_MAX,
     .doc = "Longer lengths become this; 2^30 when not given."},
    {0}};

/* From detmath only, because the median solved with it decides draws: the series
 * φ(x)·Σ x^(2n+1)/(2n+1)!! (Abramowitz & Stegun 26.2.11) near 0, the continued fraction 26.2.14
 * beyond; absolute error below 1e-15, relative below 1e-12. */
double lengths_normal_cdf(double x)
{
    const double inverse_sqrt_2pi = 0.39894228040143267794;
    double size = fabs(x);
    if (size > 38)
        return x > 0;
    double density = inverse_sqrt_2pi * detmath_exp(-x * x / 2);
    if (size < 2.5) {
        double term = x, sum = x;
        for (int n = 1; fabs(term) > 1e-18 * fabs(sum); n++) {
            term *= x * x / (2 * n + 1);
            sum += term;
        }
        return 0.5 + density * sum;
    }
    double fraction = size;
    for (int n = 80; n > 0; n--)
        fraction = size + n / fraction;
    double tail = density / fraction;
    return x > 0 ? 1 - tail : tail;
}

/* ∫ P(Y > x) dx over [from, to] for Y = exp(mu + sigma·Z), by parts:
 * [x P(Y > x)] + E[Y; from < Y < to]. */
static double survival_integral(double mu, double sigma, double from, double to)
{
    double low = (detmath_log(from) - mu) / sigma;
    double high = (detmath_log(to) - mu) / sigma;
    double inside = detmath_exp(mu + sigma * sigma / 2) *
                    (lengths_normal_cdf(high - sigma) - lengths_normal_cdf(low - sigma));
    return to * lengths_normal_cdf(-high) - from * lengths_normal_cdf(-low) + inside;
}

static double survival(double mu, double sigma, double k)
{
    return lengths_normal_cdf((mu - detmath_log(k)) / sigma);
}

/* d/dx P(Y > x). */
static double survival_slope(double mu, double sigma, double x)
{
    double z = (mu - detmath_log(x)) / sigma;
    return -0.39894228040143267794 * detmath_exp(-z * z / 2) / (sigma * x);
}

enum { SUM_WHOLE_MAX = 1024, SUM_HEAD = 256 };

/* E = min + Σ P(⌈Y⌉ > k) over k = min … max − 1, and ⌈Y⌉ > k iff Y > k. Below e^(mu − 9σ) a term is
 * 1, above e^(mu + 9σ) it is 0. A long sum is taken term by term at its head, where the terms
 * change fastest from one k to the next, and by Euler and Maclaurin after it. */
double lengths_lognormal_mean(double mu, double sigma, uint32_t min, uint32_t max)
{
    double low = floor(detmath_exp(mu - 9 * sigma)), high = ceil(detmath_exp(mu + 9 * sigma));
    low = fmin(fmax(low, min), max);
    high = fmin(fmax(high, min), max);
    double mean = low;
    double head = high - low <= SUM_WHOLE_MAX ? high : low + SUM_HEAD;
    for (double k = low; k < head; k++)
        mean += survival(mu, sigma, k);
    if (head < high)
        mean += survival_integral(mu, sigma, head, high) +
                (survival(mu, sigma, head) - survival(mu, sigma, high)) / 2 +
                (survival_slope(mu, sigma, high) - survival_slope(mu, sigma, head)) / 12;
    return mean;
}

/* The mu with the wanted mean (it rises with mu), by false position with the Illinois rule on a
 * bracket, to the last bits that matter; deterministic. */
static double lognormal_solve(double mean, double sigma, uint32_t min, uint32_t max)
{
    double low = detmath_log(mean) - sigma * sigma / 2, high = low;
    double below = lengths_lognormal_mean(low, sigma, min, max) - mean, above = below;
    while (below > 0) {
        low -= 1 + sigma;
        below = lengths_lognormal_mean(low, sigma, min, max) - mean;
    }
    while (above < 0) {
        high += 1 + sigma;
        above = lengths_lognormal_mean(high, sigma, min, max) - mean;
    }
    double mid = low;
    int side = 0;
    for (int i = 0; i < 200 && high - low > 1e-14 * (1 + fabs(mid)); i++) {
        mid = above > below ? high - above * (high - low) / (above - below) : low;
        if (!(mid > low && mid < high))
            mid = low + (high - low) / 2;
        double off = lengths_lognormal_mean(mid, sigma, min, max) - mean;
        if (fabs(off) <= 1e-14 * mean)
            break;
        if (off < 0) {
            low = mid;
            below = off;
            above = side < 0 ? above / 2 : above;
            side = -1;
        } else {
            high = mid;
            above = off;
            below = side > 0 ? below / 2 : below;
            side = 1;
        }
    }
    return mid;
}

static bool lognormal_init(struct lengths *lengths, const void *config, const struct site *site,
                           const char *key)
{
    const struct lognormal_config *c = config;
    if (isnan(c->sigma) == isnan(c->cv)) {
        site_error(site, key, "a lognormal needs %s of sigma and cv",
                   isnan(c->sigma) ? "one" : "only one");
        return false;
    }
    lengths->min = (uint32_t)c->min;
    lengths->max = c->max == FIELD_INT_UNSET ? LENGTHS_TOKENS_MAX : (uint32_t)c->max;
    if (lengths->min > lengths->max) {
        site_error(site, key, "min is above max");
        return false;
    }
    bool single = lengths->min == lengths->max && c->mean == (double)lengths->min;
    if (!single && !(c->mean > (double)lengths->min && c->mean < (double)lengths->max)) {
        site_error(site, key, "the mean of a lognormal clipped to %u … %u must lie between them",
                   lengths->min, lengths->max);
        return false;
    }
    lengths->b = isnan(c->sigma) ? sqrt(detmath_log(1 + c->cv * c->cv)) : c->sigma;
    lengths->a = single ? detmath_log(c->mean)
                        : lognormal_solve(c->mean, lengths->b, lengths->min, lengths->max);
    lengths->mean = lengths_lognormal_mean(lengths->a, lengths->b, lengths->min, lengths->max);
    if (fabs(lengths->mean - c->mean) > 1e-6 * c->mean) {
        site_error(site, key,
                   "no lognormal with this spread has the mean %g when clipped to %u … %u", c->mean,
                   lengths->min, lengths->max);
        return false;
    }
    return true;
}

static uint32_t lognormal_draw(const struct lengths *lengths, uint64_t bits)
{
    double z = detmath_normal_quantile(rng_unit_open(bits));
    return rounded_up(detmath_exp(lengths->a + lengths->b * z), lengths->min, lengths->max);
}

static void lognormal_draw_two(const struct lengths *first, const struct lengths *second,
                               const uint64_t bits[2], uint32_t tokens[2])
{
    double x[2] = {rng_unit_open(bits[0]), rng_unit_open(bits[1])};
    detmath_normal_quantile_pair(x);
    x[0] = first->a + first->b * x[0];
    x[1] = second->a + second->b * x[1];
    detmath_exp_pair(x);
    tokens[0] = rounded_up(x[0], first->min, first->max);
    tokens[1] = rounded_up(x[1], second->min, second->max);
}

static const struct lengths_type lognormal_type = {lognormal_init, lognormal_draw, false};
static const struct variant lognormal_variant = {
    .name = "lognormal",
    .doc = "Log-normal, rounded up to whole tokens, then clipped; the mean is that of the result.",
    .fields = lognormal_fields,
    .size = sizeof(struct lognormal_config),
    .ops = &lognormal_type,
};

const struct variant *const lengths_variants[] = {&constant_variant,
                                                  &uniform_variant,
                                                  &exponential_variant,
                                                  &geometric_variant,
                                                  &lognormal_variant,
                                                  &lengths_table_gamma_variant,
                                                  &lengths_table_pareto_lognormal_variant,
                                                  &lengths_table_empirical_variant,
                                                  NULL};

bool lengths_init(struct lengths *lengths, const struct variant_value *value, uint32_t least,
                  const struct site *site, const char *key)
{
    check(value->type);
    *lengths = (struct lengths){.type = value->type->ops};
    if (!lengths->type->init(lengths, value->config, site, key))
        return false;
    if (lengths->min < least) {
        site_error(site, key, "a prompt has at least 1 token");
        return false;
    }
    return true;
}

void lengths_free(struct lengths *lengths)
{
    lengths_table_free(lengths->table);
    lengths->table = NULL;
}

void lengths_draw_two(const struct lengths *first, const struct lengths *second,
                      const uint64_t bits[2], uint32_t tokens[2])
{
    if (first->type == &lognormal_type && second->type == &lognormal_type) {
        lognormal_draw_two(first, second, bits, tokens);
        return;
    }
    tokens[0] = lengths_draw(first, bits[0]);
    tokens[1] = lengths_draw(second, bits[1]);
}

uint64_t lengths_correlate(const struct lengths *prompt, uint64_t prompt_bits,
                           const struct lengths *output, uint64_t own, double correlation)
{
    double z = detmath_normal_quantile(rng_unit_open(prompt_bits));
    z = prompt->type->falling ? -z : z;
    double rest = sqrt(1 - correlation * correlation);
    double score = correlation * z + rest * detmath_normal_quantile(rng_unit_open(own));
    double share = lengths_normal_cdf(output->type->falling ? -score : score);
    return share < 1 ? (uint64_t)(share * 0x1p64) : UINT64_MAX;
}
