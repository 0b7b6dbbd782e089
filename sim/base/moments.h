/* Running mean, variance and extremes (Welford), with exact-count merge (Chan), and Student
 * intervals over replications (GSL). */
#ifndef FLEETSIM_SIM_BASE_MOMENTS_H
#define FLEETSIM_SIM_BASE_MOMENTS_H

#include <stdint.h>

struct moments {
    uint64_t count;
    double mean, m2, min, max;
};

struct moments_interval {
    double low, mid, high; /* NaN where undefined (fewer than two values) */
};

void moments_init(struct moments *m);
void moments_add(struct moments *m, double value);
void moments_merge(struct moments *into, const struct moments *from);
/* Unbiased; NaN below two values. */
double moments_variance(const struct moments *m);
/* Student interval of the mean at the stated confidence (say 0.99). */
struct moments_interval moments_interval(const struct moments *m, double confidence);

#endif
