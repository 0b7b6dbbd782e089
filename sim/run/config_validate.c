#include <math.h>
#include <stdio.h>
#include <string.h>

#include "models/step_time.h"
#include "sim/fleet/autoscaler.h"
#include "sim/fleet/autoscaler_target.h"
#include "sim/fleet/router.h"
#include "sim/metrics/metrics.h"
#include "sim/run/config.h"

struct check {
    const struct locator *where;
    struct errors *errors;
    bool ok;
};

/* An error at a scenario value. */
#define REFUSE(c, path, ...)                                                                       \
    do {                                                                                           \
        struct source_pos pos_;                                                                    \
        (c)->where->find((c)->where->self, path, &pos_);                                           \
        errors_add((c)->errors, SEVERITY_ERROR, &pos_, __VA_ARGS__);                               \
        (c)->ok = false;                                                                           \
    } while (0)

enum { PATH_MAX_TEXT = 128, REPLICA_GPUS_MAX = 65536 };

static const char *pool_path(char *buffer, size_t pool, const char *key)
{
    snprintf(buffer, PATH_MAX_TEXT, "fleet.pools[%zu]%s%s", pool, key[0] ? "." : "", key);
    return buffer;
}

static void check_engine(struct check *c, const struct pool_config *pool, size_t i)
{
    char path[PATH_MAX_TEXT];
    const struct engine_config *e = &pool->engine;
    if (e->max_num_batched_tokens < e->max_num_seqs) {
        REFUSE(c, pool_path(path, i, "engine.max_num_batched_tokens"),
               "max_num_batched_tokens (%lld) must be at least max_num_seqs (%lld), or a decoding "
               "sequence could starve",
               (long long)e->max_num_batched_tokens, (long long)e->max_num_seqs);
    }
}

static void check_parallel(struct check *c, const struct pool_config *pool, size_t i)
{
    char path[PATH_MAX_TEXT];
    const struct parallel *p = &pool->parallel;
    if (p->tensor * p->attention_data % p->expert != 0) {
        REFUSE(c, pool_path(path, i, "parallel.expert"),
               "expert (%lld) must divide tensor × attention_data (%lld)", (long long)p->expert,
               (long long)(p->tensor * p->attention_data));
    }
    if (parallel_gpus(p) > REPLICA_GPUS_MAX) {
        REFUSE(c, pool_path(path, i, "parallel"),
               "tensor × attention_data × pipeline makes %lld GPUs of one replica, more than %d",
               (long long)parallel_gpus(p), REPLICA_GPUS_MAX);
    }
}

/* Whether a policy goes by work, which it can have no other way of knowing. */
static bool goes_by_work(const struct pool_config *pool)
{
    const struct variant_value *policy = &pool->autoscaler;
    size_t offset;
    if (policy->type == &autoscaler_predictive_variant) {
        field_find(policy->type->fields, "capacity", &offset);
        return isnan(*(const double *)((const char *)policy->config + offset));
    }
    bool tracks =
        policy->type == &autoscaler_target_variant || policy->type == &autoscaler_warm_pool_variant;
    return tracks &&
           ((const struct autoscaler_target_config *)policy->config)->metric == TARGET_UTILIZATION;
}

/* Where a model does not tell work from time, a replica with one request is as busy as a full one,
 * and utilisation says that it runs, not how much it could take. */
static void check_signal(struct check *c, const struct pool_config *pool, size_t i)
{
    char path[PATH_MAX_TEXT];
    struct source_pos pos;
    const struct step_model_type *step = pool->step_time.type->ops;
    if (step->work != NULL || pool->engine.max_num_seqs == 1 || !goes_by_work(pool)) {
        return;
    }
    bool forecasts = pool->autoscaler.type == &autoscaler_predictive_variant;
    c->where->find(c->where->self, pool_path(path, i, "autoscaler"), &pos);
    errors_add(
        c->errors, SEVERITY_WARNING, &pos,
        "autoscaler %s goes by utilization, and with step_time %s a replica with one request "
        "is as busy as one with many: it asks for more replicas than the traffic needs. %s",
        pool->autoscaler.type->name, pool->step_time.type->name,
        forecasts ? "State its capacity" : "Use metric: concurrency, or kv");
}

static void check_scaling(struct check *c, const struct pool_config *pool, size_t i)
{
    char path[PATH_MAX_TEXT];
    const struct autoscaler_type *type = pool->autoscaler.type->ops;
    const char *why = type->refuse != NULL ? type->refuse(pool->autoscaler.config) : NULL;
    if (why != NULL) {
        REFUSE(c, pool_path(path, i, "autoscaler"), "autoscaler %s: %s",
               pool->autoscaler.type->name, why);
    }
    uint32_t min, max, initial;
    type->limits(pool->autoscaler.config, &min, &max, &initial);
    if (min > max) {
        REFUSE(c, pool_path(path, i, "autoscaler.min_replicas"),
               "min_replicas (%u) is above max_replicas (%u)", min, max);
    }
    if (pool->initial_replicas != FIELD_INT_UNSET && initial != UINT32_MAX &&
        pool->initial_replicas != initial) {
        REFUSE(c, pool_path(path, i, "initial_replicas"),
               "initial_replicas (%lld) contradicts the static policy's replicas (%u)",
               (long long)pool->initial_replicas, initial);
    }
    if (pool->initial_replicas != FIELD_INT_UNSET && initial == UINT32_MAX &&
        (pool->initial_replicas < min || pool->initial_replicas > max)) {
        REFUSE(c, pool_path(path, i, "initial_replicas"),
               "initial_replicas (%lld) is outside min_replicas (%u) to max_replicas (%u)",
               (long long)pool->initial_replicas, min, max);
    }
}

static void check_price(struct check *c, const struct pool_config *pool, size_t i)
{
    char path[PATH_MAX_TEXT];
    const struct price_config *p = &pool->price;
    if (p->low > p->high) {
        REFUSE(c, pool_path(path, i, "price.low"), "low (%g $/h) is above high (%g $/h)", p->low,
               p->high);
    }
    if (p->usd_per_gpu_hour < p->low || p->usd_per_gpu_hour > p->high) {
        REFUSE(c, pool_path(path, i, "price.usd_per_gpu_hour"),
               "usd_per_gpu_hour (%g) is outside low to high", p->usd_per_gpu_hour);
    }
}

static void check_pools(struct check *c, const struct run_config *config)
{
    char path[PATH_MAX_TEXT];
    for (size_t i = 0; i < config->fleet.pools.count; i++) {
        const struct pool_config *pool = config_pool(config, i);
        for (size_t j = 0; j < i; j++) {
            if (strcmp(pool->name, config_pool(config, j)->name) == 0) {
                REFUSE(c, pool_path(path, i, "name"), "two pools are called '%s'", pool->name);
            }
        }
        if (!workload_name_is_plain(pool->name) || strcmp(pool->name, "all") == 0) {
            REFUSE(
                c, pool_path(path, i, "name"),
                "a pool cannot be called '%s': a name is not empty, not 'all', and has no commas, "
                "quotes or control characters",
                pool->name);
        }
        check_engine(c, pool, i);
        check_parallel(c, pool, i);
        check_scaling(c, pool, i);
        check_signal(c, pool, i);
        check_price(c, pool, i);
    }
}

static void check_class_pools(struct check *c, const struct run_config *config, size_t i)
{
    const struct class_config *class = config_class(config, i);
    const char *names[ROUTER_POOLS_MAX + 1] = {0};
    for (size_t j = 0; j < config->fleet.pools.count; j++) {
        names[j] = config_pool(config, j)->name;
    }
    for (size_t k = 0; k < class->pools.count; k++) {
        const char *wanted = ((const char *const *)class->pools.items)[k];
        bool found = false;
        for (size_t j = 0; j < config->fleet.pools.count; j++) {
            found |= strcmp(names[j], wanted) == 0;
        }
        if (!found) {
            char path[PATH_MAX_TEXT];
            const char *near = errors_nearest(wanted, names);
            snprintf(path, sizeof path, "workload[%zu].pools[%zu]", i, k);
            REFUSE(c, path, "there is no pool '%s'%s%s%s", wanted, near ? ", did you mean '" : "",
                   near ? near : "", near ? "'?" : "");
        }
    }
}

static void check_classes(struct check *c, const struct run_config *config)
{
    char path[PATH_MAX_TEXT];
    for (size_t i = 0; i < config->workload.count; i++) {
        const struct class_config *class = config_class(config, i);
        for (size_t j = 0; j < i; j++) {
            if (strcmp(class->traffic.name, config_class(config, j)->traffic.name) == 0) {
                snprintf(path, sizeof path, "workload[%zu].name", i);
                REFUSE(c, path, "two classes are called '%s'", class->traffic.name);
            }
        }
        if (!isnan(class->slo.attainment) && class->slo.ttft_ps == FIELD_INT_UNSET &&
            class->slo.tpot_ps == FIELD_INT_UNSET && class->slo.e2e_ps == FIELD_INT_UNSET) {
            snprintf(path, sizeof path, "workload[%zu].slo.attainment", i);
            REFUSE(c, path, "attainment of what? state ttft, tpot or e2e beside it");
        }
        check_class_pools(c, config, i);
    }
}

static void check_router(struct check *c, const struct run_config *config)
{
    const struct variant_value *router = &config->fleet.router;
    const struct router_type *type = router->type->ops;
    if (type->signals == NULL) {
        return;
    }
    const struct router_signal_config *signals = type->signals(router->config);
    if (signals->interval_ps > 0 && signals->interval_ps < ROUTER_INTERVAL_MIN_PS) {
        REFUSE(c, "fleet.router.signals.interval", "the interval must be 0 or at least 1 ms");
    } else if (signals->delay_ps > 0 && signals->interval_ps == 0) {
        REFUSE(c, "fleet.router.signals.delay",
               "loads that are always known (interval: 0) cannot be late: state an interval");
    } else if (signals->delay_ps > 0 &&
               signals->delay_ps / signals->interval_ps > ROUTER_READINGS_MAX) {
        REFUSE(c, "fleet.router.signals.delay", "the delay must be at most %d intervals",
               ROUTER_READINGS_MAX);
    }
}

bool config_validate_horizon(const struct run_config *config, int64_t horizon_ps,
                             const struct locator *where, struct errors *errors)
{
    struct check c = {.where = where, .errors = errors, .ok = true};
    char text[TIME_TEXT_MAX];
    time_text(horizon_ps, text);
    if (config->warmup_ps >= horizon_ps) {
        REFUSE(&c, "warmup", "warmup must be shorter than the horizon, which is %s s", text);
    }
    if (horizon_ps / config->output.trace_interval_ps >= METRICS_INTERVALS_MAX) {
        REFUSE(&c, "output.trace_interval", "more than %d intervals up to the horizon, %s s",
               METRICS_INTERVALS_MAX, text);
    }
    return c.ok;
}

bool config_validate(const struct run_config *config, const struct locator *where,
                     struct errors *errors)
{
    struct check c = {.where = where, .errors = errors, .ok = true};
    check_pools(&c, config);
    check_classes(&c, config);
    check_router(&c, config);
    if (config->name[0] == '\0' || strpbrk(config->name, "/\\\n") != NULL) {
        REFUSE(&c, "name", "'%s' cannot name an output file", config->name);
    }
    return c.ok;
}
