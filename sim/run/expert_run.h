/* The experts of a run's pools while it goes on: popularity epochs, rebalancing, and who computed
 * how many tokens, by interval. */
#ifndef FLEETSIM_SIM_RUN_EXPERT_RUN_H
#define FLEETSIM_SIM_RUN_EXPERT_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/base/column.h"
#include "sim/base/errors.h"
#include "sim/base/obs.h"

struct run;
struct fleet;
struct expert_run;

/* Makes run->experts, NULL where no pool states a popularity, and hands the first epoch's laws to
 * the pools' models. False after adding errors. Needs run->workload. */
bool expert_run_make(struct run *run, const struct locator *where, struct errors *errors);
void expert_run_free(struct expert_run *experts);

struct obs_sink expert_run_sink(struct expert_run *experts);
/* The next epoch of any pool, TIME_NEVER: none before the horizon. */
int64_t expert_run_next(const struct expert_run *experts);
/* A timer at expert_run_next: the pools whose epoch ends go on to the next. Every replica of such
 * a pool has the law of an iteration's epoch by when it started, in spans and in single steps. */
void expert_run_epoch(struct expert_run *experts, struct fleet *fleet, int64_t t);
/* Before the first event, and after metrics_roll and metrics_finish: makes the rows of the interval
 * that metrics closed. What a warm-up sees is not counted, as in the rows of metrics. NULL is fine.
 */
void expert_run_edge(struct expert_run *experts);

/* One GPU (rank) of an expert-parallel group, one group of layers, one interval. */
struct expert_gpu_row {
    int64_t start_ps, end_ps;
    int64_t pool, layer_group, rank;
    int64_t tokens; /* token-expert pairs of one layer */
    double load;    /* over the mean of the ranks; NaN: no tokens */
};
/* One group of layers, one interval. */
struct expert_layer_row {
    int64_t start_ps, end_ps;
    int64_t pool, layer_group, layers;
    int64_t tokens, pairs;
    double max_over_mean, mean_over_max;
    double step_max_over_mean;
    double expert_max_over_mean;
    int64_t hottest_rank, hottest_expert, hottest_tokens;
    int64_t placements, moved_copies;
    double stall_s;
};
/* One of the most popular experts of a group of layers in an interval. */
struct expert_hot_row {
    int64_t start_ps;
    int64_t pool, layer_group, place;
    int64_t expert, tokens, copies;
    double load; /* over the mean of the experts */
};
extern const struct column expert_columns_gpu[];
extern const struct column expert_columns_layer[];
extern const struct column expert_columns_hot[];

/* Rows so far: time × series, series-major inside an interval, and the series' names. */
struct expert_rows {
    const struct expert_gpu_row *gpus;
    size_t gpu_series;
    const char *const *gpu_labels;
    const struct expert_layer_row *layers;
    size_t layer_series;
    const char *const *layer_labels;
    size_t intervals;
    const struct expert_hot_row *hot;
    size_t hot_count;
};
struct expert_rows expert_run_rows(const struct expert_run *experts);

#endif
