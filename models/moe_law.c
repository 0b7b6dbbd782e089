#include "models/moe_law.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/check.h"
#include "sim/base/detmath.h"
#include "sim/base/time.h"

enum { UNIT = 65536 };
/* Up to this mean the counts are summed one by one. */
static const double COUNTED_MAX = 24;
enum { SIMPSON = 64, COUNT_LIMIT = 4096 };

static int64_t grid_tokens(size_t point)
{
    if (point < 2) {
        return (int64_t)point + 1;
    }
    return (point % 2 == 0 ? INT64_C(3) : INT64_C(4)) << (point / 2 - 1);
}

/* ---- expected maximum ----------------------------------------------------------------------- */

/* Φ(x) after Hart (1968) in the form of West (2005): |error| < 1e-14. */
static double normal_cdf(double x)
{
    double a = fabs(x), tail;
    if (a > 37) {
        tail = 0;
    } else if (a < 7.07106781186547) {
        static const double p[] = {220.206867912376,  221.213596169931, 112.079291497871,
                                   33.912866078383,   6.37396220353165, 0.700383064443688,
                                   0.0352624965998911};
        static const double q[] = {440.413735824752, 793.826512519948,  637.333633378831,
                                   296.564248779674, 86.7807322029461,  16.064177579207,
                                   1.75566716318264, 0.0883883476483184};
        double above = p[6], below = q[7];
        for (int i = 5; i >= 0; i--) {
            above = above * a + p[i];
        }
        for (int i = 6; i >= 0; i--) {
            below = below * a + q[i];
        }
        tail = detmath_exp(-a * a / 2) * above / below;
    } else {
        double f = a + 1 / (a + 2 / (a + 3 / (a + 4 / (a + 0.65))));
        tail = detmath_exp(-a * a / 2) / f / 2.506628274631;
    }
    return x > 0 ? 1 - tail : tail;
}

/* P(count ≤ x) of a count with this mean, standard deviation and skewness γ: the normal-power
 * approximation y = u + γ/6 (u² − 1), solved for u. */
static double power_cdf(double x, double mean, double sd, double skew)
{
    double y = (x - mean) / sd;
    if (y > 9) {
        return 1;
    }
    if (skew < 1e-4) {
        return normal_cdf(y);
    }
    double r = 9 / (skew * skew) + 1 + 6 * y / skew;
    return r <= 0 ? 0 : normal_cdf(sqrt(r) - 3 / skew);
}

/* ∫ 1 − ∏ P(count ≤ x) dx by Simpson's rule over where the product rises. */
static double max_smooth(const double *mean, const double *variance, size_t count)
{
    double low = 0, high = 0;
    for (size_t i = 0; i < count; i++) {
        double sd = sqrt(variance[i]);
        low = mean[i] - 5 * sd > low ? mean[i] - 5 * sd : low;
        high = mean[i] + 7 * sd > high ? mean[i] + 7 * sd : high;
    }
    double step = (high - low) / SIMPSON, product[SIMPSON + 1], integral = 0;
    if (step <= 0) {
        return low;
    }
    for (int s = 0; s <= SIMPSON; s++) {
        product[s] = 1;
    }
    for (size_t i = 0; i < count; i++) {
        double sd = sqrt(variance[i]);
        if (mean[i] + 9 * sd < low) {
            continue; /* never the largest */
        }
        double skew = sd > 0 ? (1 - (1 - variance[i] / mean[i]) * 2) / sd : 0;
        for (int s = 0; s <= SIMPSON; s++) {
            double x = low + s * step;
            if (sd <= 0) {
                product[s] = x < mean[i] ? 0 : product[s];
            } else if (product[s] > 0) {
                product[s] *= power_cdf(x, mean[i], sd, skew > 0 ? skew : 0);
            }
        }
    }
    for (int s = 0; s <= SIMPSON; s++) {
        double weight = s == 0 || s == SIMPSON ? 1 : s % 2 == 1 ? 4 : 2;
        integral += weight * (1 - product[s]);
    }
    return low + integral * step / 3;
}

/* The same sum over whole numbers; each count is binomial with the given mean and variance, its
 * number of trials any real. */
static double max_counted(const double *mean, const double *variance, size_t count)
{
    double *below = memory_alloc(3 * count * sizeof *below), *now = below + count;
    double *odds = now + count, expected = 0;
    for (size_t i = 0; i < count; i++) {
        double p = mean[i] > 0 ? 1 - variance[i] / mean[i] : 0;
        p = p > 1e-6 ? (p < 1 - 1e-9 ? p : 1 - 1e-9) : 1e-6;
        odds[i] = p;
        now[i] = detmath_exp(mean[i] / p * detmath_log(1 - p));
        below[i] = now[i];
    }
    for (int x = 0; x < COUNT_LIMIT; x++) {
        double product = 1;
        for (size_t i = 0; i < count; i++) {
            product *= below[i] < 1 ? below[i] : 1;
            double p = odds[i], left = mean[i] / p - x;
            now[i] *= left > 0 ? left / (x + 1) * p / (1 - p) : 0;
            below[i] += now[i];
        }
        expected += 1 - product;
        if (1 - product < 1e-7) {
            break;
        }
    }
    free(below);
    return expected;
}

double moe_law_expected_max(const double *mean, const double *variance, size_t count)
{
    double largest = 0, spread = 0;
    for (size_t i = 0; i < count; i++) {
        largest = mean[i] > largest ? mean[i] : largest;
        spread = variance[i] > spread ? variance[i] : spread;
    }
    /* Counts without chance need no sum, and would have none of these trials. */
    if (spread <= 1e-9 * largest) {
        return largest;
    }
    double most = largest <= COUNTED_MAX ? max_counted(mean, variance, count)
                                         : max_smooth(mean, variance, count);
    return most > largest ? most : largest;
}

/* ---- tables --------------------------------------------------------------------------------- */

static int64_t fixed(double value)
{
    return (int64_t)(value * UNIT + 0.5);
}

/* Mean and variance of a GPU's pairs, visits and distinct copies per step; scratch of a law. */
struct counts {
    double *mean, *variance; /* [ranks] */
    double total;            /* Σ mean */
};

/* Sampling without replacement spreads n shares p with variance p(1 − p)·n/(n − 1) before the
 * constraint that they add up to top_k. */
static double spread_of(double share, size_t experts)
{
    double n = (double)experts;
    return share * (1 - share) * (experts > 1 ? n / (n - 1) : 1);
}

static void count_pairs(const struct moe_load *l, double tokens, struct counts *c)
{
    size_t each = l->slots / l->ranks;
    c->total = 0;
    for (size_t g = 0; g < l->ranks; g++) {
        c->mean[g] = c->variance[g] = 0;
        for (size_t s = g * each; s < (g + 1) * each; s++) {
            c->mean[g] += tokens * l->share[s];
            c->variance[g] += tokens * spread_of(l->share[s], l->experts);
        }
        c->variance[g] = c->variance[g] < c->mean[g] ? c->variance[g] : c->mean[g];
        c->total += c->mean[g];
    }
}

/* A token meets the same GPU again only if it goes to several experts. */
static void count_visits(const struct moe_load *l, double top_k, double tokens, struct counts *c)
{
    size_t each = l->slots / l->ranks;
    if (top_k < 1.5) {
        count_pairs(l, tokens, c);
        return;
    }
    c->total = 0;
    for (size_t g = 0; g < l->ranks; g++) {
        double missed = 1;
        for (size_t s = g * each; s < (g + 1) * each; s++) {
            missed *= 1 - l->share[s];
        }
        c->mean[g] = tokens * (1 - missed);
        c->variance[g] = tokens * (1 - missed) * missed;
        c->total += c->mean[g];
    }
}

/* log_miss: [slots], log(1 − share). */
static void count_distinct(const struct moe_load *l, const double *log_miss, double tokens,
                           struct counts *c)
{
    size_t each = l->slots / l->ranks;
    c->total = 0;
    for (size_t g = 0; g < l->ranks; g++) {
        c->mean[g] = c->variance[g] = 0;
        for (size_t s = g * each; s < (g + 1) * each; s++) {
            double missed = detmath_exp(tokens * log_miss[s]);
            c->mean[g] += 1 - missed;
            c->variance[g] += (1 - missed) * missed;
        }
        c->total += c->mean[g];
    }
}

/* max / mean · base: what a balanced GPU would have. Counts are whole: the largest is at least the
 * mean rounded up. */
static double busiest(const struct counts *c, size_t ranks, double base)
{
    double most = moe_law_expected_max(c->mean, c->variance, ranks);
    double least = ceil(c->total / (double)ranks - 1e-9);
    most = most > least ? most : least;
    double ratio = most * (double)ranks / c->total;
    ratio = ratio < (double)ranks ? ratio : (double)ranks;
    return ratio * base;
}

void moe_law_init(struct moe_law *law, const struct moe_load *load, int64_t max_tokens)
{
    check(load->slots % load->ranks == 0);
    size_t ranks = load->ranks, each = load->slots / ranks;
    double *work = memory_alloc((2 * ranks + load->slots) * sizeof *work);
    double *log_miss = work + 2 * ranks;
    struct counts c = {.mean = work, .variance = work + ranks};
    for (size_t s = 0; s < load->slots; s++) {
        double miss = 1 - load->share[s];
        log_miss[s] = detmath_log(miss > 1e-12 ? miss : 1e-12);
    }
    *law = (struct moe_law){.points = MOE_LAW_POINTS};
    for (size_t i = 0; i < law->points; i++) {
        double tokens = (double)grid_tokens(i);
        count_pairs(load, tokens, &c);
        double top_k = c.total / tokens;
        law->pairs[i] = fixed(busiest(&c, ranks, tokens));
        count_visits(load, top_k, tokens, &c);
        law->visits[i] = fixed(busiest(&c, ranks, tokens));
        count_distinct(load, log_miss, tokens, &c);
        double most = busiest(&c, ranks, c.total), all = (double)(each * ranks);
        law->distinct[i] = fixed(most < all ? most : all);
        if (i > 0) { /* a step with more tokens never has less to do */
            law->pairs[i] = law->pairs[i] > law->pairs[i - 1] ? law->pairs[i] : law->pairs[i - 1];
            law->visits[i] =
                law->visits[i] > law->visits[i - 1] ? law->visits[i] : law->visits[i - 1];
            law->distinct[i] =
                law->distinct[i] > law->distinct[i - 1] ? law->distinct[i] : law->distinct[i - 1];
        }
        if (grid_tokens(i) >= max_tokens) {
            law->points = i + 1;
        }
    }
    free(work);
}

void moe_law_add(struct moe_law *sum, const struct moe_law *law, double weight)
{
    sum->points = law->points;
    for (size_t i = 0; i < law->points; i++) {
        sum->pairs[i] += (int64_t)((double)law->pairs[i] * weight + 0.5);
        sum->visits[i] += (int64_t)((double)law->visits[i] * weight + 0.5);
        sum->distinct[i] += (int64_t)((double)law->distinct[i] * weight + 0.5);
    }
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

void moe_law_max(struct moe_law *law, const struct moe_law *other)
{
    law->points = other->points;
    for (size_t i = 0; i < law->points; i++) {
        law->pairs[i] = larger(law->pairs[i], other->pairs[i]);
        law->visits[i] = larger(law->visits[i], other->visits[i]);
        law->distinct[i] = larger(law->distinct[i], other->distinct[i]);
    }
}

/* ---- reading -------------------------------------------------------------------------------- */

/* The last grid point at or below tokens ≥ 1, at most the last but one of the table. */
static size_t grid_point(int64_t tokens, size_t points)
{
    size_t point = 0;
    if (tokens >= 2) {
        size_t log2 = 63 - (size_t)__builtin_clzll((uint64_t)tokens);
        point = 2 * log2 - 1;
        point += tokens >= INT64_C(3) << (log2 - 1);
    }
    return point < points - 1 ? point : points - 2;
}

static double between(const int64_t *value, size_t point, int64_t tokens)
{
    int64_t from = grid_tokens(point), to = grid_tokens(point + 1);
    int128 rise = (int128)(value[point + 1] - value[point]) * (tokens - from);
    return (double)(value[point] + (int64_t)(rise / (to - from))) / UNIT;
}

struct moe_busiest moe_law_at(const struct moe_law *law, int64_t tokens)
{
    if (tokens < 1) {
        return (struct moe_busiest){0, 0, 0};
    }
    size_t last = law->points - 1;
    int64_t end = grid_tokens(last);
    if (tokens >= end || law->points < 2) {
        double ratio = (double)tokens / (double)end;
        return (struct moe_busiest){(double)law->pairs[last] / UNIT * ratio,
                                    (double)law->visits[last] / UNIT * ratio,
                                    (double)law->distinct[last] / UNIT};
    }
    size_t point = grid_point(tokens, law->points);
    return (struct moe_busiest){between(law->pairs, point, tokens),
                                between(law->visits, point, tokens),
                                between(law->distinct, point, tokens)};
}

double moe_law_factor(const struct moe_law *law, int64_t tokens)
{
    return tokens < 1 ? 1 : moe_law_at(law, tokens).pairs / (double)tokens;
}
