#include "sim/run/interval.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <gsl/gsl_cdf.h>

#include "sim/base/arena.h"

enum { BATCHES_MIN = 10, BATCHES_MAX = 20, EXACT_MAX = 1000000 };

static const double TAIL = 0.025, CORRELATED = 1.645;

static double student(double degrees)
{
    return gsl_cdf_tdist_Pinv(1 - TAIL, degrees);
}

static double mean_of(const double *values, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += values[i];
    return sum / (double)n;
}

/* Of one value, unbiased. */
static double variance_of(const double *values, size_t n, double mean)
{
    double squares = 0;
    for (size_t i = 0; i < n; i++)
        squares += (values[i] - mean) * (values[i] - mean);
    return squares / (double)(n - 1);
}

struct interval interval_of(const double *values, size_t n)
{
    struct interval result = {.mean = NAN, .half = NAN};
    if (n == 0)
        return result;
    result.mean = mean_of(values, n);
    if (n >= 2)
        result.half =
            student((double)n - 1) * sqrt(variance_of(values, n, result.mean) / (double)n);
    return result;
}

/* ---- order statistics --------------------------------------------------------------------------
 */

/* The smallest k with P(B ≤ k) ≥ share, B binomial (n, q). */
static uint64_t binomial_quantile(uint64_t n, double q, double share)
{
    uint64_t low = 0, high = n;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (gsl_cdf_binomial_P((unsigned)middle, q, (unsigned)n) >= share)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* The rank-low value is at or below the quantile unless fewer than low of the n are: B ≤ low − 1;
 * the rank-high value is at or above it unless high or more are below. */
bool interval_ranks(uint64_t n, double q, uint64_t *low, uint64_t *high)
{
    if (n == 0)
        return false;
    if (n > EXACT_MAX) {
        double mean = (double)n * q, wide = gsl_cdf_ugaussian_Pinv(1 - TAIL) * sqrt(mean * (1 - q));
        if (mean - wide < 1 || mean + wide + 1 > (double)n)
            return false;
        *low = (uint64_t)floor(mean - wide);
        *high = (uint64_t)ceil(mean + wide) + 1;
        return *high <= n;
    }
    /* The largest low with P(B ≤ low − 1) ≤ tail, and the smallest high with P(B ≥ high) ≤ tail. */
    uint64_t first = binomial_quantile(n, q, TAIL);
    bool at_tail = gsl_cdf_binomial_P((unsigned)first, q, (unsigned)n) <= TAIL;
    *low = at_tail ? first + 1 : first;
    *high = binomial_quantile(n, q, 1 - TAIL) + 1;
    return *low >= 1 && *high <= n;
}

static int by_value(const void *a_, const void *b_)
{
    double a = *(const double *)a_, b = *(const double *)b_;
    return (a > b) - (a < b);
}

struct interval_range interval_median(const double *values, size_t n)
{
    struct interval_range range = {NAN, NAN, NAN};
    uint64_t low, high;
    if (n == 0 || isnan(mean_of(values, n)))
        return range;
    double *sorted = memory_alloc(n * sizeof *sorted);
    memcpy(sorted, values, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_value);
    range.mid = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
    if (interval_ranks(n, 0.5, &low, &high)) {
        range.low = sorted[low - 1];
        range.high = sorted[high - 1];
    }
    free(sorted);
    return range;
}

/* ---- pairs -------------------------------------------------------------------------------------
 */

/* Welch's interval with the degrees of freedom of Satterthwaite. */
static double welch(const double *a, const double *b, size_t n)
{
    double ea = variance_of(a, n, mean_of(a, n)) / (double)n;
    double eb = variance_of(b, n, mean_of(b, n)) / (double)n;
    if (!(ea + eb > 0))
        return ea + eb;
    double degrees = (ea + eb) * (ea + eb) * (double)(n - 1) / (ea * ea + eb * eb);
    return student(degrees) * sqrt(ea + eb);
}

struct interval_pair interval_paired(const double *a, const double *b, size_t n)
{
    struct interval_pair pair = {NAN, NAN, NAN};
    if (n == 0)
        return pair;
    double *difference = memory_alloc(n * sizeof *difference);
    for (size_t i = 0; i < n; i++)
        difference[i] = b[i] - a[i];
    struct interval paired = interval_of(difference, n);
    free(difference);
    pair.mean = paired.mean;
    pair.half = paired.half;
    if (n >= 2)
        pair.unpaired = welch(a, b, n);
    return pair;
}

double interval_pair_gain(const struct interval_pair *pair)
{
    return pair->half > 0 ? pair->unpaired / pair->half : NAN;
}

/* ---- batches -----------------------------------------------------------------------------------
 */

/* Correlation of successive values; 0 where all are equal. */
static double lag_one(const double *values, size_t n, double mean)
{
    double product = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        squares += (values[i] - mean) * (values[i] - mean);
        if (i > 0)
            product += (values[i] - mean) * (values[i - 1] - mean);
    }
    return squares > 0 ? product / squares : 0;
}

struct interval interval_batches(const double *values, size_t n)
{
    double means[BATCHES_MAX];
    size_t length = n < BATCHES_MAX ? 1 : n / BATCHES_MAX;
    size_t count = n / length < BATCHES_MAX ? n / length : BATCHES_MAX;
    if (n < BATCHES_MIN)
        return (struct interval){.mean = n > 0 ? mean_of(values, n) : NAN, .half = NAN};
    const double *from = values + (n - count * length);
    for (size_t b = 0; b < count; b++)
        means[b] = mean_of(from + b * length, length);
    struct interval result = interval_of(means, count);
    if (lag_one(means, count, result.mean) > CORRELATED / sqrt((double)count))
        result.half = NAN;
    return result;
}
