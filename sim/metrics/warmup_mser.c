#include "sim/metrics/warmup_mser.h"

#include <math.h>

/* A rest of fewer batches says nothing of its own error. */
enum { REST_MIN = 5 };

static const double STANDARD_ERRORS = 4, LAG_MAX = 0.95, TREND = 0.8;

static double batch_mean(const double *values, size_t batch, size_t length)
{
    double sum = 0;
    for (size_t i = 0; i < length; i++)
        sum += values[batch * length + i];
    return sum / (double)length;
}

/* Correlation of successive batches from first on, at least 0; mean and squares are theirs. */
static double lag_one(const double *values, size_t length, size_t first, size_t k, double mean,
                      double squares)
{
    double product = 0;
    for (size_t b = first + 1; b < k; b++)
        product +=
            (batch_mean(values, b, length) - mean) * (batch_mean(values, b - 1, length) - mean);
    double lag = squares > 0 ? product / squares : 0;
    return lag < 0 ? 0 : lag > LAG_MAX ? LAG_MAX : lag;
}

/* Whether the first batches of k have another mean than the rest: standard errors are those of a
 * first-order autoregression. */
static bool start_differs(const double *values, size_t length, size_t first, size_t k)
{
    double start = 0, mean = 0, squares = 0, rest = (double)(k - first);
    if (first == 0)
        return false;
    for (size_t b = 0; b < first; b++)
        start += batch_mean(values, b, length) / (double)first;
    for (size_t b = first; b < k; b++)
        mean += batch_mean(values, b, length) / rest;
    for (size_t b = first; b < k; b++) {
        double distance = batch_mean(values, b, length) - mean;
        squares += distance * distance;
    }
    double lag = lag_one(values, length, first, k, mean, squares);
    double variance = squares / (rest - 1) * (1 + lag) / (1 - lag);
    double error = sqrt(variance * (1 / (double)first + 1 / rest));
    return fabs(start - mean) > STANDARD_ERRORS * error;
}

/* Correlation of the k batches with their place. */
static double trend(const double *values, size_t length, size_t k)
{
    double middle = ((double)k - 1) / 2, mean = 0, squares = 0, product = 0, places = 0;
    for (size_t b = 0; b < k; b++)
        mean += batch_mean(values, b, length) / (double)k;
    for (size_t b = 0; b < k; b++) {
        double distance = batch_mean(values, b, length) - mean, place = (double)b - middle;
        squares += distance * distance;
        product += distance * place;
        places += place * place;
    }
    return squares > 0 ? product / sqrt(squares * places) : 0;
}

struct warmup_mser warmup_mser_find(const double *values, size_t n)
{
    struct warmup_mser w = {.batch = 1};
    if (n >= (size_t)WARMUP_MSER_BATCH * WARMUP_MSER_BATCHES_MIN)
        w.batch = WARMUP_MSER_BATCH;
    size_t k = n / w.batch;
    w.known = k >= WARMUP_MSER_BATCHES_MIN;
    if (!w.known)
        return w;
    /* From the end: mean and sum of squares of batches d … k − 1 (Welford). */
    double mean = 0, squares = 0, least = INFINITY;
    size_t best = 0;
    for (size_t d = k; d-- > 0;) {
        size_t rest = k - d;
        double value = batch_mean(values, d, w.batch), step = value - mean;
        mean += step / (double)rest;
        squares += step * (value - mean);
        double error = squares / ((double)rest * (double)rest);
        if (rest >= REST_MIN && error <= least) { /* of equal ones the shortest drop */
            least = error;
            best = d;
        }
    }
    w.drop = best * w.batch;
    w.settled = best <= k / 2;
    /* A short rest was chosen for its small variance, which then judges nothing. */
    w.differs = w.settled ? start_differs(values, w.batch, best, k)
                          : fabs(trend(values, w.batch, k)) >= TREND;
    return w;
}
