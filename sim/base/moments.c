#include "sim/base/moments.h"

#include <gsl/gsl_cdf.h>
#include <math.h>

#include "sim/base/check.h"

void moments_init(struct moments *m)
{
    *m = (struct moments){.min = INFINITY, .max = -INFINITY};
}

/* Welford 1962: no cancellation of large squares. */
void moments_add(struct moments *m, double value)
{
    m->count++;
    double off = value - m->mean;
    m->mean += off / (double)m->count;
    m->m2 += off * (value - m->mean);
    m->min = value < m->min ? value : m->min;
    m->max = value > m->max ? value : m->max;
}

/* Chan, Golub, LeVeque 1979. */
void moments_merge(struct moments *into, const struct moments *from)
{
    if (from->count == 0) {
        return;
    }
    double n = (double)into->count, k = (double)from->count;
    double off = from->mean - into->mean;
    into->count += from->count;
    into->mean += off * (k / (n + k));
    into->m2 += from->m2 + off * off * (n * k / (n + k));
    into->min = from->min < into->min ? from->min : into->min;
    into->max = from->max > into->max ? from->max : into->max;
}

double moments_variance(const struct moments *m)
{
    return m->count >= 2 ? m->m2 / (double)(m->count - 1) : NAN;
}

struct moments_interval moments_interval(const struct moments *m, double confidence)
{
    check(confidence > 0 && confidence < 1);
    struct moments_interval interval = {NAN, m->count > 0 ? m->mean : NAN, NAN};
    if (m->count >= 2) {
        double t = gsl_cdf_tdist_Qinv((1 - confidence) / 2, (double)(m->count - 1));
        double half = t * sqrt(moments_variance(m) / (double)m->count);
        interval.low = m->mean - half;
        interval.high = m->mean + half;
    }
    return interval;
}
