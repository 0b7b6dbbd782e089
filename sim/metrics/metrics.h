/* What a run did, in numbers: a sink of observations that keeps exact integer sums and log-bucket
 * histograms, and turns them into rows: per interval and pool (metrics_hour), per scaling decision,
 * per class, and for the whole run (metrics_summary). Every column's definition, unit and
 * population is in the tables at the end, which also drive HDF5, CSV and docs/output.md.
 *
 * Time line. Intervals are [k·interval, (k+1)·interval), the last cut at the horizon; one more row
 * is the drain [horizon, end], never billed. Nothing before `warmup` is filed. A stamp decides the
 * interval, never the order of the edge's timer: events stamped exactly at an edge belong to the
 * later interval even when they are seen before metrics_roll(edge).
 *
 * Use: create, then for every observation in order the sink, and at every time that
 * metrics_next_edge names, last of all that happens at that instant and with all spans settled,
 * metrics_roll; at the end metrics_finish; then read rows.
 *
 *     push a timer at metrics_next_edge(m); in it: settle all spans; metrics_roll(m, now); push
 *     the next one unless it is TIME_NEVER.
 */
#ifndef FLEETSIM_SIM_METRICS_METRICS_H
#define FLEETSIM_SIM_METRICS_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/base/column.h"
#include "sim/base/obs.h"
#include "sim/base/time.h"

/* Rows are kept in memory until the end: 100 days of minutes are 144,000. The caller validates
 * horizon / interval against this (metrics_create checks). */
enum { METRICS_INTERVALS_MAX = 200000 };

struct metrics_pool {
    const char *name;
    uint32_t gpus_per_replica;    /* ≥ 1 */
    double usd_per_gpu_hour;      /* NaN: no price, all dollars undefined */
    double usd_low, usd_high;     /* NaN where unset */
    int64_t billing_increment_ps; /* a launch is billed in whole increments; ≤ 1: to the tick */
    int64_t billing_minimum_ps;   /* and at least this; 0: none */
};

struct metrics_class {
    const char *name;
    int64_t slo_ttft_ps, slo_tpot_ps, slo_e2e_ps; /* TIME_NONE where unset; ≤ holds */
    double slo_attainment;                        /* share that must attain; NaN where unset */
};

struct metrics_config {
    const struct metrics_pool *pools; /* ≥ 1; copied, names included */
    size_t pool_count;
    const struct metrics_class *classes; /* ≥ 1; copied, names included */
    size_t class_count;
    int64_t warmup_ps;   /* 0 ≤ warmup < horizon */
    int64_t horizon_ps;  /* > 0 */
    int64_t interval_ps; /* > 0; output.trace_interval */
};

/* Statistics of one population of durations. Quantiles: nearest rank, relative error ≤ 1/256
 * (sim/base/histogram.h); mean rounded to the tick; max exact. All TIME_NONE when count is 0. */
struct metrics_latency {
    uint64_t count;
    int64_t mean_ps, p50_ps, p90_ps, p95_ps, p99_ps, max_ps;
};

/* Request outcomes, tokens and SLO counts: the same members in every kind of row. */
struct metrics_requests {
    uint64_t arrived, admitted, completed, refused, unservable, cancelled;
    uint64_t in_flight;   /* unfinished at the end of the interval (or at the cut) */
    uint64_t zero_output; /* completed without any output token: no TTFT, no TPOT */
    uint64_t preemptions;
};
struct metrics_tokens {
    uint64_t prompt, cached, computed, recomputed, output;
    uint64_t prefill_executed, decode_executed;
};
/* What prefix caches found, counted requests. Lookups are first admissions: a request counts once.
 */
struct metrics_prefix {
    uint64_t lookup_tokens, hit_tokens; /* prompt tokens looked up, and found */
    uint64_t lookup_blocks, hit_blocks; /* full blocks of the prompts, and found ones */
    uint64_t rehit_tokens; /* found at admissions after a preemption, stored before or not */
    double token_hit_rate, block_hit_rate; /* NaN when nothing was looked up */
};
struct metrics_slo {
    uint64_t attained, missed, undecided;
    double attainment, attainment_upper; /* NaN when nothing arrived */
    double goodput;                      /* attained per second; NaN over no time */
};
/* Replica time × GPUs per replica, in GPU hours. */
struct metrics_gpu_hours {
    double provisioning, loading, serving, idle, draining;
    double starting, ready, held; /* sums of the above */
    double billed;
};
struct metrics_usd {
    double total, low, high;                                /* $; NaN where no price is set */
    double input, output;                                   /* the two parts of total */
    double per_mtok_total, per_mtok_input, per_mtok_output; /* NaN without tokens */
};

/* The bill by what it paid for: work + headroom + cold_start + drain + rounding = usd.total. */
struct metrics_cost_split {
    double work;       /* what was computed, at full utilisation */
    double headroom;   /* the rest of ready time */
    double cold_start; /* starting time */
    double drain;      /* the rest of draining time */
    double rounding;   /* billed beyond held */
    double refused;    /* beside the sum: what the requests turned away would have cost as work, at
                          the mean of those admitted; NaN when none was */
};

/* One interval of one pool (or of all pools together). */
struct metrics_hour {
    int64_t start_ps, end_ps; /* of the interval */
    int64_t covered_ps;       /* the part of it in [warmup, ∞): what means and rates divide by */
    const char *pool;         /* name; "all" for the fleet */
    uint32_t is_drain;        /* 1 for the row after the horizon */
    struct metrics_requests requests;
    struct metrics_tokens tokens;
    struct metrics_prefix prefix;
    struct metrics_latency ttft, tpot, itl, e2e, queue;
    struct metrics_slo slo;
    double in_flight_mean, in_flight_per_ready_gpu;
    uint64_t gauge_samples;
    double running_mean, waiting_mean, kv_occupancy_mean;
    double load_max_over_mean; /* of ready replicas; NaN without a sample, and for several pools */
    int64_t kv_blocks_max;     /* COLUMN_INT_NONE without a sample */
    double gpus_provisioning_mean, gpus_loading_mean, gpus_serving_mean, gpus_idle_mean,
        gpus_draining_mean, gpus_ready_mean, gpus_held_mean;
    uint64_t replicas_held_max, replicas_ready_max;
    struct metrics_gpu_hours gpu_hours;
    double utilization, busy_share;
    uint64_t iterations;
    double batch_mean; /* sequences per iteration */
    struct metrics_usd usd;
    double expected_rate; /* 1/s; from metrics_set_need */
    double need_gpus;
};

struct metrics_scale_event {
    int64_t time_ps;
    const char *pool;
    uint32_t pool_index;
    uint32_t ready, starting, draining, wished, target; /* replicas */
    double metric;
    const char *reason; /* borrowed static text */
};

/* The whole run: requests that arrived in [warmup, horizon) followed to their end; GPU time, money
 * and utilisation over [warmup, horizon). */
struct metrics_summary {
    const char *pool; /* name; "all" */
    struct metrics_requests requests;
    struct metrics_tokens tokens;
    struct metrics_prefix prefix;
    struct metrics_latency ttft, tpot, itl, e2e, queue;
    struct metrics_slo slo;
    int32_t slo_met; /* 1, 0; -1 when no class states a share or nothing arrived. Pools: -1 */
    int64_t kv_peak_blocks;
    double in_flight_mean, in_flight_per_ready_gpu;
    double load_max_over_mean;
    uint64_t replicas_held_max, replicas_ready_max;
    struct metrics_gpu_hours gpu_hours;
    double gpu_hours_floor, gpu_hours_ideal, gpu_hours_peak; /* from metrics_set_references */
    double utilization, busy_share;
    uint64_t iterations;
    double batch_mean;
    struct metrics_usd usd;
    double usd_ideal, usd_peak;
    struct metrics_cost_split split;
    double forecast_error; /* from metrics_set_forecast_error; all pools: NaN unless there is one */
    int64_t router_decisions,
        router_stale; /* from metrics_set_routing; COLUMN_INT_NONE for pools */
};

struct metrics_class_summary {
    const char *name;
    struct metrics_requests requests;
    struct metrics_tokens tokens; /* executed ones are 0: iterations have no class */
    struct metrics_prefix prefix;
    struct metrics_latency ttft, tpot, e2e;
    struct metrics_slo slo;
    int64_t slo_ttft_ps, slo_tpot_ps, slo_e2e_ps; /* the limits, as configured */
    double slo_attainment;                        /* the share, as configured */
    int32_t slo_met;                              /* 1, 0; -1 when no share is stated or 0/0 */
    double usd; /* its share of the bill: of each pool's usd_input by tokens prefilled, of
                   usd_output by outputs; NaN where no price is set or nothing ran */
    double usd_per_mtok_total;
};

/* One interval of one class, all pools together. */
struct metrics_class_hour {
    int64_t start_ps, end_ps, covered_ps;
    const char *name;
    uint64_t arrived, admitted, completed;
    uint64_t prompt_tokens, cached_tokens;
    struct metrics_prefix prefix;
    struct metrics_slo slo;
};

struct metrics_check {
    const char *name;
    int32_t ok;         /* 1: it holds; else 0 */
    const char *detail; /* one line with the numbers */
};

/* A bin of a latency histogram of the whole run, all pools together. */
struct metrics_bin {
    uint32_t quantity; /* 0 ttft, 1 tpot, 2 itl, 3 e2e, 4 queue */
    int64_t low_ps, high_ps;
    uint64_t count;
};

struct metrics;

/* Ends the program when memory is short (memory_alloc). The config is copied. */
struct metrics *metrics_create(const struct metrics_config *config);
void metrics_free(struct metrics *m);

/* The receiver of observations. Valid while m lives. Allocation-free but for a new launch number
 * and OBS_SCALE (amortised growth). */
struct obs_sink metrics_sink(struct metrics *m);
/* A request's pool was chosen (at its arrival's instant). Needed only with two pools or more, and
 * only when OBS_ARRIVAL's obs.pool was unset; with one pool everything belongs to it. The request's
 * final record must then name the same pool. */
void metrics_route(struct metrics *m, uint32_t pool, const struct request *request);

/* The next time metrics_roll must be called at: interval edges up to the horizon, and warmup.
 * TIME_NEVER after the horizon. */
int64_t metrics_next_edge(const struct metrics *m);
/* edge_ps = metrics_next_edge(m). Everything stamped before edge_ps has been emitted, and so have
 * all iterations that ended before it (an iteration in flight is emitted later: filed by its end;
 * its busy time is split at the edge). Closes the interval's row. */
void metrics_roll(struct metrics *m, int64_t edge_ps);
/* Rolls what is left, closes the drain row at end_ps (≥ horizon) and fills the summaries. Every
 * request has had its OBS_END (IN_FLIGHT when cut) and replicas stay in their last state. */
void metrics_finish(struct metrics *m, int64_t end_ps);

/* References and needs, from whoever knows capacities; before metrics_finish (rows: any time
 * before the next metrics_refresh). NaN where unknown. Replicas and GPU hours are of one pool. */
void metrics_set_references(struct metrics *m, uint32_t pool, double gpu_hours_floor,
                            double gpu_hours_ideal, double gpu_hours_peak);
/* expected_rate in requests/s, need in GPUs, at the row's start. row < metrics_interval_count. */
void metrics_set_need(struct metrics *m, uint32_t pool, size_t row, double expected_rate,
                      double need_gpus);
/* The exact peak of KV blocks in use at one replica of the pool, from the engine; without it the
 * summary shows the largest sampled one. */
void metrics_set_kv_peak(struct metrics *m, uint32_t pool, int64_t blocks);

/* Mean absolute error of the forecasts of a pool's autoscaler, as a share; NaN: none were made. */
void metrics_set_forecast_error(struct metrics *m, uint32_t pool, double error);

/* Of a router whose loads are read now and then: its decisions, and those for a replica whose load
 * was another than it thought. */
void metrics_set_routing(struct metrics *m, uint64_t decisions, uint64_t stale);

/* Intervals before the horizon (the drain row not included), and their start. */
size_t metrics_interval_count(const struct metrics *m);
int64_t metrics_interval_start(const struct metrics *m, size_t row);
/* Rows finished so far; after metrics_finish: metrics_interval_count + 1. */
size_t metrics_hour_count(const struct metrics *m);
/* Recomputes what may still change in finished rows (attainment is filed under arrival; the busy
 * time of an iteration in flight at an edge). metrics_finish does it; call it before reading rows
 * of a run that goes on. O(rows). */
void metrics_refresh(struct metrics *m);
/* Row k of pool p is at [k · pool_count + p]: time × pool. Owned by m, valid until metrics_free. */
const struct metrics_hour *metrics_hours(const struct metrics *m);
/* Row k of all pools together, requests that never got a pool included, at [k]. */
const struct metrics_hour *metrics_hours_all(const struct metrics *m);
const struct metrics_scale_event *metrics_scale_events(const struct metrics *m, size_t *count);
/* After metrics_finish. [0] is the whole fleet, [1 + p] pool p: 1 + pool_count rows. */
const struct metrics_summary *metrics_summaries(const struct metrics *m);
/* After metrics_finish. One row per class. */
const struct metrics_class_summary *metrics_class_summaries(const struct metrics *m);
/* Row k of class c at [k · class_count + c], as many as metrics_hour_count; NULL with one class,
 * whose rows are those of all pools. Refreshed like the others. */
const struct metrics_class_hour *metrics_class_hours(const struct metrics *m);
/* After metrics_finish. Fills bins (NULL: only counts them), by quantity and rising, and returns
 * how many there are. */
size_t metrics_bins(const struct metrics *m, struct metrics_bin *bins);

/* A quantile q of count values can be defended when at least one value lies above it on average:
 * count · (1 − q) ≥ 1; p99 needs 100 values. Tables mark the others. */
static inline bool metrics_quantile_defended(uint64_t count, int per_mille)
{
    return count * (uint64_t)(1000 - per_mille) >= 1000;
}

/* Adds a check of another module to the audit (KV blocks, digests …). Texts are copied. */
void metrics_audit_add(struct metrics *m, const char *name, bool ok, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* After metrics_finish: runs the checks of this module (once), and returns all of them, own first.
 * ok: whether all hold. drained: the run was not cut, so nothing may be in flight. */
const struct metrics_check *metrics_audit(struct metrics *m, bool drained, size_t *count, bool *ok);

/* Column tables. Hour rows: the key columns (time, end, pool) come apart, because in HDF5 they are
 * coordinates; CSV prints them first. */
extern const struct column metrics_hour_key_columns[];
extern const struct column metrics_hour_columns[];
extern const struct column metrics_scaling_columns[];
extern const struct column metrics_summary_columns[];
extern const struct column metrics_class_columns[];
extern const struct column metrics_class_hour_columns[];
extern const struct column metrics_bin_columns[];
extern const struct column metrics_check_columns[];
/* Of struct request_record (sim/base/request.h): class and pool as indices. */
extern const struct column metrics_request_columns[];

#endif
