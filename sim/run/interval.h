/* How sure a number is: intervals at 95 % of what independent replications, the batches of one
 * run, or independent values say. docs/statistics.md says when each may be used. */
#ifndef FLEETSIM_SIM_RUN_INTERVAL_H
#define FLEETSIM_SIM_RUN_INTERVAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct interval {
    double mean; /* NaN with n = 0 */
    double half; /* half the width of the 95 % interval, by Student's t; NaN with n < 2 */
};
/* Of the mean of n independent values with about a normal distribution, or of enough of them. A
 * value that is NaN makes both NaN. */
struct interval interval_of(const double *values, size_t n);

/* One that need not be symmetric. All NaN where undefined; low and high alone: too few values. */
struct interval_range {
    double mid, low, high;
};
/* The median of n independent values and its interval by order statistics, whatever their
 * distribution: n ≥ 6, or low and high are NaN. A value that is NaN makes all NaN. */
struct interval_range interval_median(const double *values, size_t n);
/* Ranks, from 1, of the two of n independent values in rising order that hold the quantile q
 * between them with 95 % at least: the binomial distribution, beyond a million values its normal
 * limit. False where n is too small for it. 0 < q < 1. */
bool interval_ranks(uint64_t n, double q, uint64_t *low, uint64_t *high);

/* Two systems under the same chance: value i of both is from replication i. */
struct interval_pair {
    double mean;     /* of b − a */
    double half;     /* of the differences, by Student's t */
    double unpaired; /* half the width that would be right if a and b were independent (Welch) */
};
struct interval_pair interval_paired(const double *a, const double *b, size_t n);
/* How many times wider the unpaired interval is; NaN where undefined or half is 0. */
double interval_pair_gain(const struct interval_pair *pair);

/* Of the mean of one stationary series, by batch means: the n values are joined to 10 to 20
 * batches of equal length (the first values that do not fill one are left out). half is NaN with
 * n < 10, and where successive batches are still correlated (lag 1 above 1.645 / √batches): batches
 * are too short then, and the interval would be too narrow. */
struct interval interval_batches(const double *values, size_t n);

#endif
