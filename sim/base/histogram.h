/* Log-bucket histogram of non-negative int64_t values (picoseconds). Values below 256 have a bucket
 * each; above, every power of two is cut into 128 equal buckets, so a bucket's midpoint is within
 * 1/256 = 0.39 % of every value in it. Covers the whole of int64_t: nothing reads as "the top
 * bucket". Merging is exact (counts add). Quantiles follow the nearest-rank rule: the smallest
 * value with at least ceil(q·n) values at or below it, here the midpoint of its bucket, clamped to
 * the exact minimum and maximum. */
#ifndef FLEETSIM_SIM_BASE_HISTOGRAM_H
#define FLEETSIM_SIM_BASE_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "sim/base/time.h"

enum { HISTOGRAM_SUB_BITS = 7, HISTOGRAM_BUCKETS = 256 + (63 - 8) * 128 };
#define HISTOGRAM_RELATIVE_ERROR (1.0 / 256)

struct histogram {
    uint64_t count;
    uint64_t overflow; /* values < 0 or beyond int64_t: a fault, counted, never hidden */
    int64_t min, max;  /* exact; min > max when empty */
    int128 sum;        /* exact */
    uint64_t buckets[HISTOGRAM_BUCKETS];
};

static inline uint32_t histogram_bucket(uint64_t value)
{
    /* The leading 8 bits, 128 … 255, behind 128 buckets per power of two from 256 on; below 256
     * the value itself. */
    uint32_t shift = 56u - (uint32_t)__builtin_clzll(value | 255);
    return (shift << HISTOGRAM_SUB_BITS) + (uint32_t)(value >> shift);
}

void histogram_init(struct histogram *h);
/* The same for memory that is zero already: 58 KB are not touched before there is need. */
static inline void histogram_init_zeroed(struct histogram *h)
{
    h->min = INT64_MAX;
    h->max = INT64_MIN;
}
/* Empty again; costs no more than the buckets between the least value and the greatest. */
void histogram_clear(struct histogram *h);
/* Adds the value n times. */
static inline void histogram_add_n(struct histogram *h, int64_t value, uint64_t n)
{
    if (n == 0) {
        return; /* min and max belong to values that are there */
    }
    if (value < 0) {
        h->overflow += n;
        return;
    }
    h->buckets[histogram_bucket((uint64_t)value)] += n;
    h->count += n;
    h->sum += (int128)value * (int64_t)n;
    if (value < h->min) {
        h->min = value;
    }
    if (value > h->max) {
        h->max = value;
    }
}
static inline void histogram_add(struct histogram *h, int64_t value)
{
    histogram_add_n(h, value, 1);
}
/* Adds, for i = 0 … n-1, the value first + slope·i, weight times each: a span's ramp of steps.
 * Cost: the number of buckets crossed. first ≥ 0 and the last value ≥ 0; slope may be negative. */
void histogram_add_ramp(struct histogram *h, int64_t first, int64_t slope, uint64_t n,
                        uint64_t weight);
/* into += from. */
void histogram_merge(struct histogram *into, const struct histogram *from);
/* Nearest rank of each of `count` shares, 0 < share ≤ 1, that do not fall; TIME_NONE when empty.
 * One pass over the buckets for all of them. */
void histogram_quantiles(const struct histogram *h, const double *shares, size_t count,
                         int64_t *values);
int64_t histogram_quantile(const struct histogram *h, double q);
/* Share of values ≤ limit, by whole buckets up to the one that holds limit (error: that bucket).
 * NaN when empty. */
double histogram_share_at_most(const struct histogram *h, int64_t limit);
/* NaN when empty. */
double histogram_mean(const struct histogram *h);
/* The lower edge and midpoint of a bucket. */
int64_t histogram_bucket_low(uint32_t bucket);
int64_t histogram_bucket_mid(uint32_t bucket);

#endif
