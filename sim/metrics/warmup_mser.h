/* How much of the start of a series looks like a transient: White's marginal standard error rule
 * on batch means, MSER-5 with batches of five (White, Cobb, Spratt, "A comparison of five
 * steady-state truncation heuristics for simulation", WSC 2000). */
#ifndef FLEETSIM_SIM_METRICS_WARMUP_MSER_H
#define FLEETSIM_SIM_METRICS_WARMUP_MSER_H

#include <stdbool.h>
#include <stddef.h>

enum { WARMUP_MSER_BATCH = 5, WARMUP_MSER_BATCHES_MIN = 20 };

struct warmup_mser {
    size_t batch; /* values in a batch: 5 where they make 20 batches, else 1 */
    size_t drop;  /* values to leave out of the start */
    bool known;   /* there are at least 20 batches */
    bool settled; /* drop is in the first half; else the series has not settled, or drifts */
    bool differs; /* not just noise. Settled: the mean of what is dropped is more than four standard
                     errors from the rest's, which allow for the correlation of successive batches.
                     Else: the batches' correlation with time is at least 0.8 */
};

/* values: a series at equal distances, all finite. Chooses the drop that makes the standard error
 * of the mean of the rest least: over d batches left out of k, Σ (batch − mean)² / (k − d)². */
struct warmup_mser warmup_mser_find(const double *values, size_t n);

#endif
