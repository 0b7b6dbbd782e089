/* The scenario as a struct: the root field table joins the tables of the layers below, and
 * everything after loading works on these structs. */
#ifndef FLEETSIM_SIM_RUN_CONFIG_H
#define FLEETSIM_SIM_RUN_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "models/llm.h"
#include "models/parallel.h"
#include "sim/base/errors.h"
#include "sim/base/field.h"
#include "sim/engine/engine.h"
#include "sim/fleet/cold_start.h"
#include "sim/workload/workload.h"

struct slo_config {
    int64_t ttft_ps, tpot_ps, e2e_ps; /* FIELD_INT_UNSET: no limit */
    double attainment;                /* NaN: no share stated */
};

/* One entry of `workload:`. */
struct class_config {
    struct traffic_config traffic;
    struct slo_config slo;
    struct field_list pools; /* const char *: names; empty: all pools */
};

struct price_config {
    double usd_per_gpu_hour, low, high; /* NaN where unset */
    int64_t billing_increment_ps, billing_minimum_ps;
};

/* One entry of `fleet.pools:`. */
struct pool_config {
    const char *name;
    int role;
    const char *model, *gpu;    /* NULL: none */
    struct precision precision; /* -1: the model's usual */
    struct parallel parallel;
    struct engine_config engine;
    struct variant_value step_time;
    double target_utilization;
    int64_t max_queue;
    int scale_down_victim;    /* enum fleet_victim */
    int64_t initial_replicas; /* FIELD_INT_UNSET: the need at hour 0 */
    double capacity;          /* requests/s of one replica; NaN: from the step-time model */
    struct variant_value autoscaler;
    struct cold_start_config cold_start;
    struct price_config price;
};

struct fleet_section {
    struct variant_value router;
    struct field_list pools; /* struct pool_config */
};

struct output_config {
    int64_t trace_interval_ps, gauge_interval_ps;
    bool requests;
};

struct run_config {
    const char *name, *description;
    int64_t seed, replication;
    int64_t start_unix_s; /* FIELD_INT_UNSET: the first trace row, or 2026-01-01T00:00:00Z */
    int64_t horizon_ps;   /* FIELD_INT_UNSET: the last trace arrival + 1 ps */
    int64_t warmup_ps;
    bool drain;
    struct field_list workload; /* struct class_config */
    struct fleet_section fleet;
    struct output_config output;
};

extern const struct field config_fields[];

static inline const struct class_config *config_class(const struct run_config *config, size_t i)
{
    return (const struct class_config *)config->workload.items + i;
}
static inline const struct pool_config *config_pool(const struct run_config *config, size_t i)
{
    return (const struct pool_config *)config->fleet.pools.items + i;
}
/* Whether requests of the class may go to the pool. */
bool config_class_goes_to(const struct class_config *class, const char *pool);
/* GPUs of one replica: tensor × attention_data × pipeline. */
uint32_t config_gpus_per_replica(const struct pool_config *pool);

/* What no single field can tell: values that contradict each other, names that must be unique or
 * exist, things of the design that are not built yet. Errors point into the scenario. Returns
 * whether there was none. */
bool config_validate(const struct run_config *config, const struct locator *where,
                     struct errors *errors);
/* The same for what depends on the horizon in force, which a trace may have supplied. */
bool config_validate_horizon(const struct run_config *config, int64_t horizon_ps,
                             const struct locator *where, struct errors *errors);

#endif
