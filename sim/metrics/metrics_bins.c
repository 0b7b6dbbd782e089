/* The whole run's latency histograms as rows: what a distribution is drawn from. */
#include <stddef.h>

#include "sim/metrics/metrics_internal.h"

#define BIN(type, member, name, unit, long_name, doc)                                              \
    {                                                                                              \
        name, COLUMN_##type, offsetof(struct metrics_bin, member), unit, long_name, doc            \
    }

const struct column metrics_bin_columns[] = {
    BIN(UINT32, quantity, "quantity", "1", "which duration",
        "0 TTFT, 1 TPOT, 2 ITL, 3 E2E, 4 queue: the populations of ttft_count, tpot_count, "
        "itl_count, e2e_count and queue_count in summary, all pools together."),
    BIN(TIME, low_ps, "low", "s", "lower edge of the bin", "The smallest value the bin can hold."),
    BIN(TIME, high_ps, "high", "s", "upper edge of the bin",
        "What the bin's values lie below: at most low × (1 + 1/128) from 256 ps on."),
    BIN(UINT64, count, "count", "1", "values in the bin", "Never 0: empty bins have no row."),
    {0},
};

/* The five histograms of the fleet, in the order of `quantity`. */
enum { QUANTITIES = 5 };
static const struct histogram *histogram_of(const struct metrics *m, int quantity)
{
    const struct metrics_set *set = &m->totals[m->pool_count];
    const struct histogram *const all[QUANTITIES] = {&set->ttft, &set->tpot, &set->itl, &set->e2e,
                                                     &set->queue};
    return all[quantity];
}

size_t metrics_bins(const struct metrics *m, struct metrics_bin *bins)
{
    size_t count = 0;
    for (int q = 0; q < QUANTITIES; q++) {
        const struct histogram *h = histogram_of(m, q);
        uint32_t end = h->count > 0 ? histogram_bucket((uint64_t)h->max) + 1 : 0;
        for (uint32_t b = end > 0 ? histogram_bucket((uint64_t)h->min) : 0; b < end; b++) {
            if (h->buckets[b] == 0) {
                continue;
            }
            if (bins) {
                bins[count] = (struct metrics_bin){
                    .quantity = (uint32_t)q,
                    .low_ps = histogram_bucket_low(b),
                    .high_ps = b + 1 < HISTOGRAM_BUCKETS ? histogram_bucket_low(b + 1) : INT64_MAX,
                    .count = h->buckets[b],
                };
            }
            count++;
        }
    }
    return count;
}
