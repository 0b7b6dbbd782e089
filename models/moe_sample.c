#include "models/moe_sample.h"

#include <math.h>

#include "sim/base/check.h"
#include "sim/base/detmath.h"
#include "sim/base/rng.h"

/* log k! − log(√(2π)) − (k + ½) log(k + 1) + (k + 1): Stirling's correction. */
static double stirling(double k)
{
    static const double small[] = {0.08106146679532726, 0.04134069595540929, 0.02767792568499834,
                                   0.02079067210376509, 0.01664469118982119, 0.01387612882307075,
                                   0.01189670994589177, 0.01041126526197209, 0.009255462182712733,
                                   0.008330563433362871};
    if (k < 10) {
        return small[(int)k];
    }
    double r = 1 / (k + 1), s = r * r;
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 * s) * s) * r;
}

static struct rng_pair next(struct moe_stream *s)
{
    return rng_draw(s->key, s->entity, s->draw++);
}

/* n·p below 10: the gaps between successes are geometric. */
static int64_t by_gaps(struct moe_stream *s, int64_t n, double p)
{
    double log_miss = detmath_log(1 - p), at = 0;
    int64_t hits = -1;
    while (at <= (double)n) {
        double u = rng_unit_open(next(s).a);
        at += floor(detmath_log(u) / log_miss) + 1;
        hits++;
    }
    return hits;
}

/* p ≤ 1/2, n·p ≥ 10. */
static int64_t by_rejection(struct moe_stream *s, double n, double p)
{
    double spread = sqrt(n * p * (1 - p)), odds = p / (1 - p);
    double b = 1.15 + 2.53 * spread, a = -0.0873 + 0.0248 * b + 0.01 * p;
    double c = n * p + 0.5, alpha = (2.83 + 5.1 / b) * spread, sure = 0.92 - 4.2 / b;
    double mode = floor((n + 1) * p);
    for (;;) {
        struct rng_pair bits = next(s);
        double u = rng_unit_open(bits.a) - 0.5, v = rng_unit_open(bits.b);
        double us = 0.5 - fabs(u), k = floor((2 * a / us + b) * u + c);
        if (us >= 0.07 && v <= sure) {
            return (int64_t)k;
        }
        if (k < 0 || k > n) {
            continue;
        }
        v = detmath_log(v * alpha / (a / (us * us) + b));
        double most = (mode + 0.5) * detmath_log((mode + 1) / (odds * (n - mode + 1))) +
                      stirling(mode) + stirling(n - mode);
        double here = (n + 1) * detmath_log((n - mode + 1) / (n - k + 1)) +
                      (k + 0.5) * detmath_log(odds * (n - k + 1) / (k + 1)) - stirling(k) -
                      stirling(n - k);
        if (v <= most + here) {
            return (int64_t)k;
        }
    }
}

int64_t moe_sample_binomial(struct moe_stream *s, int64_t n, double p)
{
    check(n >= 0);
    if (n == 0 || p <= 0) {
        return 0;
    }
    if (p >= 1) {
        return n;
    }
    if (p > 0.5) {
        return n - moe_sample_binomial(s, n, 1 - p);
    }
    return (double)n * p < 10 ? by_gaps(s, n, p) : by_rejection(s, (double)n, p);
}

void moe_sample_multinomial(struct moe_stream *s, int64_t n, const double *weight, size_t count,
                            int64_t *drawn)
{
    double left = 0;
    for (size_t i = 0; i < count; i++) {
        left += weight[i];
    }
    for (size_t i = 0; i < count; i++) {
        double p = left > 0 ? weight[i] / left : 1;
        drawn[i] = i + 1 == count ? n : moe_sample_binomial(s, n, p);
        n -= drawn[i];
        left -= weight[i];
    }
}
