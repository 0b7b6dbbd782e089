/* What a plan on paper says of the run: capacities, the need by hour, and the references floor,
 * ideal and peak (docs/output.md has the definitions). */
#include <math.h>
#include <stdio.h>

#include "sim/base/check.h"
#include "sim/fleet/autoscaler.h"
#include "sim/run/need.h"
#include "sim/run/run_internal.h"

static bool class_uses_only(const struct run *run, size_t class, size_t pool)
{
    return run->class_pool_count[class] == 1 && run->class_pools[class][0] == pool;
}

static bool class_may_use(const struct run *run, size_t class, size_t pool)
{
    for (uint32_t i = 0; i < run->class_pool_count[class]; i++) {
        if (run->class_pools[class][i] == pool) {
            return true;
        }
    }
    return false;
}

double run_plan_rate(const struct run *run, size_t pool, int64_t time_ps)
{
    double rate = 0;
    for (size_t c = 0; c < run_class_count(run); c++) {
        if (class_uses_only(run, c, pool)) {
            rate += workload_rate(run->workload, c, time_ps);
        }
    }
    return run->plans[pool].classes_known ? rate : NAN;
}

double run_plan_need(const struct run *run, size_t pool, double rate)
{
    double capacity =
        run->plans[pool].capacity * config_pool(&run->config, pool)->target_utilization;
    return need_plain(rate, capacity);
}

double run_plan_need_at(const void *self, int64_t hour_ps)
{
    const struct run_plan *plan = self;
    return run_plan_need(plan->run, plan->pool, run_plan_rate(plan->run, plan->pool, hour_ps));
}

/* Expected arrivals of the pool in [from, to). */
static double expected(const struct run *run, size_t pool, int64_t from_ps, int64_t to_ps)
{
    double sum = 0;
    for (size_t c = 0; c < run_class_count(run); c++) {
        if (class_uses_only(run, c, pool)) {
            sum += workload_expected(run->workload, c, from_ps, to_ps);
        }
    }
    return sum;
}

/* Requests/s of one replica at the pool's mean lengths, weighted by expected requests. */
static double capacity_of(const struct run *run, size_t pool)
{
    const struct pool_config *config = config_pool(&run->config, pool);
    const struct step_model *model = &run->models[pool];
    if (!isnan(config->capacity)) {
        return config->capacity;
    }
    double requests = 0, prompt = 0, output = 0;
    for (size_t c = 0; c < run_class_count(run); c++) {
        if (class_uses_only(run, c, pool)) {
            double n = workload_expected(run->workload, c, 0, workload_horizon(run->workload));
            requests += n;
            prompt += n * workload_mean_prompt(run->workload, c);
            output += n * workload_mean_output(run->workload, c);
        }
    }
    if (model->type->capacity == NULL || !(requests > 0)) {
        return NAN;
    }
    return model->type->capacity(model->model, prompt / requests, output / requests);
}

static void refuse_at(const struct locator *where, size_t pool, const char *key,
                      struct errors *errors, const char *text)
{
    char path[64];
    struct source_pos pos;
    snprintf(path, sizeof path, "fleet.pools[%zu]%s", pool, key);
    where->find(where->self, path, &pos);
    errors_add(errors, SEVERITY_ERROR, &pos, "%s", text);
}

/* A policy that goes by the plan needs one. why: it could not be measured; NULL: nobody tried. */
static bool plan_known(struct run *run, size_t pool, const char *why, const struct locator *where,
                       struct errors *errors)
{
    const struct pool_config *config = config_pool(&run->config, pool);
    if (!isnan(run_plan_need(run, pool, run_plan_rate(run, pool, 0)))) {
        return true;
    }
    const char *more = "";
    if (!run->plans[pool].classes_known) {
        more = ", and give each class that uses it no other pool";
    } else if (why != NULL) {
        more = arena_printf(&run->arena, " (it cannot be measured: %s)", why);
    }
    refuse_at(where, pool, ".autoscaler", errors,
              arena_printf(&run->arena,
                           "autoscaler %s: the need by hour is not known: state the pool's "
                           "capacity%s",
                           config->autoscaler.type->name, more));
    return false;
}

/* Measures the capacity of a pool that is to have one. What cannot be measured stays unknown: why,
 * in the arena; else NULL. From then on it counts as stated, also in the echo. */
static const char *plan_measure(struct run *run, size_t pool, const struct capacity_ask *ask)
{
    struct run_plan *plan = &run->plans[pool];
    struct capacity measured;
    const char *why = capacity_measure(run, pool, ask, &measured, &run->arena);
    if (why == NULL) {
        struct pool_config *config = (struct pool_config *)run->config.fleet.pools.items + pool;
        plan->measured = measured;
        plan->capacity = config->capacity = measured.requests_per_s;
    }
    return why;
}

static bool plan_pool(struct run *run, size_t pool, const struct capacity_ask *ask,
                      const struct locator *where, struct errors *errors)
{
    const struct pool_config *config = config_pool(&run->config, pool);
    struct run_plan *plan = &run->plans[pool];
    plan->run = run;
    plan->pool = pool;
    plan->classes_known = true;
    for (size_t c = 0; c < run_class_count(run); c++) {
        plan->classes_known &= class_uses_only(run, c, pool) || !class_may_use(run, c, pool);
    }
    plan->capacity = plan->classes_known ? capacity_of(run, pool) : config->capacity;
    const struct autoscaler_type *type = config->autoscaler.type->ops;
    uint32_t min, max, initial;
    type->limits(config->autoscaler.config, &min, &max, &initial);
    if (config->initial_replicas != FIELD_INT_UNSET) {
        initial = (uint32_t)config->initial_replicas;
    }
    const char *why = NULL;
    if ((type->plans || initial == UINT32_MAX || (ask != NULL && ask->wanted)) &&
        plan->classes_known && isnan(plan->capacity)) {
        why = plan_measure(run, pool, ask);
    }
    if (initial == UINT32_MAX) {
        double need = run_plan_need(run, pool, run_plan_rate(run, pool, 0));
        if (isnan(need)) {
            refuse_at(
                where, pool, "", errors,
                arena_printf(&run->arena,
                             "pool '%s': state initial_replicas or capacity: the need at "
                             "hour 0 does not follow from this step_time and these classes%s%s%s",
                             config->name, why ? " (it cannot be measured: " : "", why ? why : "",
                             why ? ")" : ""));
            return false;
        }
        initial = (uint32_t)fmin(fmax(need, min), max);
    }
    plan->initial_replicas = initial;
    return !type->plans || plan_known(run, pool, why, where, errors);
}

bool run_plan_make(struct run *run, const struct capacity_ask *ask, const struct locator *where,
                   struct errors *errors)
{
    size_t pools = run_pool_count(run);
    bool ok = true;
    run->plans = arena_alloc(&run->arena, pools * sizeof *run->plans);
    for (size_t p = 0; p < pools; p++) {
        ok &= plan_pool(run, p, ask, where, errors);
    }
    return ok;
}

double run_peak_replicas(const struct run *run, size_t pool)
{
    double peak = 0;
    int64_t hour = time_hour(run->config.warmup_ps);
    for (; hour * PS_PER_HOUR < run->config.horizon_ps; hour++) {
        double rate = run_plan_rate(run, pool, hour * PS_PER_HOUR);
        double need = run_plan_need(run, pool, rate);
        peak = need > peak || isnan(need) ? need : peak;
    }
    return peak;
}

/* References cover [warmup, horizon): an hour that is partly in it counts in part. */
static void publish_references(struct run *run, size_t pool)
{
    int64_t from_ps = run->config.warmup_ps, to_ps = run->config.horizon_ps;
    double gpus = config_gpus_per_replica(config_pool(&run->config, pool));
    double ideal = 0, peak = 0;
    for (int64_t hour = time_hour(from_ps); hour * PS_PER_HOUR < to_ps; hour++) {
        int64_t begin = hour * PS_PER_HOUR, end = begin + PS_PER_HOUR;
        double need = run_plan_need(run, pool, run_plan_rate(run, pool, begin));
        begin = begin < from_ps ? from_ps : begin;
        end = end > to_ps ? to_ps : end;
        ideal += need * (double)(end - begin) / (double)PS_PER_HOUR;
        peak = need > peak || isnan(need) ? need : peak;
    }
    double hours = (double)(to_ps - from_ps) / (double)PS_PER_HOUR;
    double capacity = run->plans[pool].capacity;
    double floor_hours = run->plans[pool].classes_known
                             ? expected(run, pool, from_ps, to_ps) / capacity / 3600
                             : NAN;
    metrics_set_references(run->metrics, (uint32_t)pool, floor_hours * gpus, ideal * gpus,
                           peak * hours * gpus);
}

void run_plan_publish(struct run *run)
{
    size_t rows = metrics_interval_count(run->metrics);
    for (size_t p = 0; p < run_pool_count(run); p++) {
        double gpus = config_gpus_per_replica(config_pool(&run->config, p));
        publish_references(run, p);
        for (size_t row = 0; row < rows; row++) {
            double rate = run_plan_rate(run, p, metrics_interval_start(run->metrics, row));
            metrics_set_need(run->metrics, (uint32_t)p, row, rate,
                             run_plan_need(run, p, rate) * gpus);
        }
    }
}
