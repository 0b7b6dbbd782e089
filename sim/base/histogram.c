#include "sim/base/histogram.h"

#include <math.h>
#include <string.h>

enum { SUB_BUCKETS = 1 << HISTOGRAM_SUB_BITS };

void histogram_init(struct histogram *h)
{
    memset(h, 0, sizeof(*h));
    histogram_init_zeroed(h);
}

void histogram_clear(struct histogram *h)
{
    if (h->count > 0) {
        uint32_t first = histogram_bucket((uint64_t)h->min);
        uint32_t last = histogram_bucket((uint64_t)h->max);
        memset(&h->buckets[first], 0, (last - first + 1) * sizeof h->buckets[0]);
    }
    h->count = h->overflow = 0;
    h->sum = 0;
    histogram_init_zeroed(h);
}

int64_t histogram_bucket_low(uint32_t bucket)
{
    check(bucket < HISTOGRAM_BUCKETS);
    if (bucket < 2 * SUB_BUCKETS) {
        return bucket;
    }
    uint32_t power = (bucket - 2 * SUB_BUCKETS) >> HISTOGRAM_SUB_BITS; /* 0: values 256 … 511 */
    int64_t sub = (bucket & (SUB_BUCKETS - 1)) + SUB_BUCKETS;
    return sub << (power + 1);
}

/* The largest value of the bucket that holds value. */
static int64_t bucket_high(int64_t value)
{
    if (value < 2 * SUB_BUCKETS) {
        return value;
    }
    uint32_t top = 63u - (uint32_t)__builtin_clzll((uint64_t)value);
    return value | ((INT64_C(1) << (top - HISTOGRAM_SUB_BITS)) - 1);
}

int64_t histogram_bucket_mid(uint32_t bucket)
{
    int64_t low = histogram_bucket_low(bucket);
    return low + (bucket_high(low) - low) / 2;
}

void histogram_add_ramp(struct histogram *h, int64_t first, int64_t slope, uint64_t n,
                        uint64_t weight)
{
    if (n == 0 || weight == 0) {
        return;
    }
    check(n <= INT64_MAX && weight <= INT64_MAX);
    int64_t rise, last;
    bool overflow = __builtin_mul_overflow(slope, (int64_t)(n - 1), &rise);
    overflow |= __builtin_add_overflow(first, rise, &last);
    check(!overflow && (first | last) >= 0);
    int64_t low = slope < 0 ? last : first, high = slope < 0 ? first : last;
    if (low < h->min) {
        h->min = low;
    }
    if (high > h->max) {
        h->max = high;
    }
    h->count += n * weight;
    /* Mean of the ends times n, exactly: n · (first + last) is even when halved. */
    h->sum += (int128)((unsigned __int128)((uint64_t)low + (uint64_t)high) * n / 2 * weight);

    uint64_t step = slope < 0 ? -(uint64_t)slope : (uint64_t)slope, left = n;
    for (;;) {
        int64_t edge = bucket_high(low);
        if (high <= edge) {
            break; /* the rest lies in one bucket: the usual case, without a division */
        }
        uint64_t inside = (uint64_t)(edge - low) / step + 1;
        h->buckets[histogram_bucket((uint64_t)low)] += inside * weight;
        left -= inside;
        low += (int64_t)(inside * step); /* ≤ high */
    }
    h->buckets[histogram_bucket((uint64_t)low)] += left * weight;
}

void histogram_merge(struct histogram *into, const struct histogram *from)
{
    into->count += from->count;
    into->overflow += from->overflow;
    into->sum += from->sum;
    into->min = from->min < into->min ? from->min : into->min;
    into->max = from->max > into->max ? from->max : into->max;
    if (from->count > 0) {
        uint32_t end = histogram_bucket((uint64_t)from->max) + 1;
        for (uint32_t i = histogram_bucket((uint64_t)from->min); i < end; i++) {
            into->buckets[i] += from->buckets[i];
        }
    }
}

/* ceil(q · n) with q taken as the decimal it was written as, to nine places: 0.07 · 100 is 7.000…01
 * in doubles and would give the eighth value. */
static uint64_t quantile_rank(double q, uint64_t n)
{
    const int128 places = 1000000000;
    int128 share = llround(q * 1e9);
    int128 rank = (share * (int128)n + places - 1) / places;
    return rank < 1 ? 1 : (uint64_t)rank;
}

void histogram_quantiles(const struct histogram *h, const double *shares, size_t count,
                         int64_t *values)
{
    uint64_t seen = 0;
    uint32_t next = histogram_bucket(h->count > 0 ? (uint64_t)h->min : 0); /* the next to be seen */
    for (size_t i = 0; i < count; i++) {
        check(shares[i] > 0 && shares[i] <= 1 && (i == 0 || shares[i] >= shares[i - 1]));
        if (h->count == 0) {
            values[i] = TIME_NONE;
            continue;
        }
        uint64_t rank = quantile_rank(shares[i], h->count);
        while (seen < rank) {
            check(next < HISTOGRAM_BUCKETS);
            seen += h->buckets[next++];
        }
        int64_t value = histogram_bucket_mid(next - 1);
        value = value < h->min ? h->min : value;
        values[i] = value > h->max ? h->max : value;
    }
}

int64_t histogram_quantile(const struct histogram *h, double q)
{
    int64_t value;
    histogram_quantiles(h, &q, 1, &value);
    return value;
}

double histogram_share_at_most(const struct histogram *h, int64_t limit)
{
    if (h->count == 0) {
        return NAN;
    }
    if (limit < h->min) {
        return 0;
    }
    uint64_t within = 0;
    uint32_t end = histogram_bucket((uint64_t)limit) + 1;
    for (uint32_t i = histogram_bucket((uint64_t)h->min); i < end; i++) {
        within += h->buckets[i];
    }
    return (double)within / (double)h->count;
}

double histogram_mean(const struct histogram *h)
{
    return h->count > 0 ? (double)h->sum / (double)h->count : NAN;
}
