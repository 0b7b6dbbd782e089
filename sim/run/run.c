#include "sim/run/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "sim/run/cold_start_preset.h"
#include "sim/run/expert_run.h"
#include "sim/run/run_internal.h"
#include "sim/run/run_models.h"

/* Where time 0 is when neither the scenario nor a trace says: 2026-01-01T00:00:00Z. */
enum { DEFAULT_START_UNIX_S = 1767225600 };

size_t run_class_count(const struct run *run)
{
    return run->config.workload.count;
}

size_t run_pool_count(const struct run *run)
{
    return run->config.fleet.pools.count;
}

static void classes_resolve(struct run *run)
{
    size_t classes = run_class_count(run), pools = run_pool_count(run);
    run->class_pools = arena_alloc(&run->arena, classes * sizeof *run->class_pools);
    run->class_pool_count = arena_alloc(&run->arena, classes * sizeof *run->class_pool_count);
    const struct traffic_config **traffic =
        arena_alloc(&run->arena, classes * sizeof(struct traffic_config *));
    for (size_t c = 0; c < classes; c++) {
        const struct class_config *class = config_class(&run->config, c);
        uint32_t *list = arena_alloc(&run->arena, pools * sizeof *list);
        uint32_t count = 0;
        for (size_t p = 0; p < pools; p++) {
            if (config_class_goes_to(class, config_pool(&run->config, p)->name)) {
                list[count++] = (uint32_t)p;
            }
        }
        run->class_pools[c] = list;
        run->class_pool_count[c] = count;
        traffic[c] = &class->traffic;
    }
    run->workload_config = (struct workload_config){
        .classes = traffic,
        .class_count = classes,
        .seed = (uint64_t)run->config.seed,
        .replication = (uint32_t)run->config.replication,
        .start_unix_s = run->config.start_unix_s,
        .horizon_ps =
            run->config.horizon_ps == FIELD_INT_UNSET ? TIME_NONE : run->config.horizon_ps,
        .want_contents = run_wants_contents(run),
    };
}

static bool models_build(struct run *run, struct errors *errors)
{
    size_t pools = run_pool_count(run);
    bool ok = true;
    run->models = arena_alloc(&run->arena, pools * sizeof *run->models);
    for (size_t p = 0; p < pools; p++) {
        struct pool_config *pool = (struct pool_config *)run->config.fleet.pools.items + p;
        ok &= run_models_build(pool, p, run->scenario, &run->models[p], &run->arena, errors);
    }
    return ok;
}

/* A trace's hash_ids name whole blocks of the caches they meet. */
static bool hash_blocks_check(const struct run *run, const struct locator *where,
                              struct errors *errors)
{
    bool ok = true;
    for (size_t c = 0; c < run_class_count(run); c++) {
        uint32_t tokens = workload_hash_block(run->workload, c);
        for (uint32_t i = 0; i < run->class_pool_count[c] && tokens > 0; i++) {
            const struct pool_config *pool = config_pool(&run->config, run->class_pools[c][i]);
            if (!pool->engine.enable_prefix_caching || tokens % pool->engine.block_size == 0) {
                continue;
            }
            char path[64];
            struct source_pos pos;
            snprintf(path, sizeof path, "workload[%zu].arrivals", c);
            where->find(where->self, path, &pos);
            errors_add(errors, SEVERITY_ERROR, &pos,
                       "a hash_id stands for %u tokens, which the block_size %lld of pool '%s' "
                       "does not divide: its prefix cache cannot tell those blocks apart",
                       tokens, (long long)pool->engine.block_size, pool->name);
            ok = false;
        }
    }
    return ok;
}

/* Everything that can be wrong is looked for before the first of it stops us. */
static bool build(struct run *run, const struct capacity_ask *ask, struct errors *errors)
{
    struct locator where = scenario_locator(run->scenario);
    bool ok = true;
    if (run->of == NULL) {
        ok &= cold_start_preset_apply(&run->config, run->scenario, &where, &run->arena, errors);
        ok &= config_validate(&run->config, &where, errors);
    }
    classes_resolve(run);
    ok &= models_build(run, errors);
    run->workload = workload_open(&run->workload_config, &where, errors);
    /* A trace may have supplied the horizon. */
    if (run->workload != NULL) {
        ok &=
            config_validate_horizon(&run->config, workload_horizon(run->workload), &where, errors);
        ok &= hash_blocks_check(run, &where, errors);
    } else if (run->config.horizon_ps != FIELD_INT_UNSET) {
        ok &= config_validate_horizon(&run->config, run->config.horizon_ps, &where, errors);
    }
    return ok && run->workload != NULL && expert_run_make(run, &where, errors) &&
           run_plan_make(run, ask, &where, errors);
}

struct run *run_derive(const struct run *of, const struct run_config *config, struct errors *errors)
{
    struct run *run = memory_zero(1, sizeof *run);
    arena_init(&run->arena);
    run->of = of;
    run->scenario = of->scenario;
    run->config = *config;
    if (!build(run, NULL, errors)) {
        run_free(run);
        return NULL;
    }
    return run;
}

struct run *run_open(const struct run_request *request, struct errors *errors)
{
    struct run *run = memory_zero(1, sizeof *run);
    arena_init(&run->arena);
    struct scenario_request load = {
        .name = request->scenario,
        .folders = request->folders,
        .sets = request->sets,
        .set_count = request->set_count,
        .root = config_fields,
        .target = &run->config,
    };
    run->scenario = scenario_load(&load, &run->arena, errors);
    if (run->scenario == NULL || !build(run, request->capacity, errors)) {
        run_free(run);
        return NULL;
    }
    /* The echo shows what is in force, so what a trace supplied is filled in. */
    run->config.horizon_ps = workload_horizon(run->workload);
    bool midnight =
        run->config.start_unix_s == FIELD_INT_UNSET && workload_start(run->workload) == 0;
    run->config.start_unix_s = midnight ? DEFAULT_START_UNIX_S : workload_start(run->workload);
    run->resolved = field_yaml(config_fields, &run->config, &run->arena);
    return run;
}

void run_free(struct run *run)
{
    if (run == NULL) {
        return;
    }
    if (run->stream != NULL) {
        trace_stream_abort(run->stream);
    }
    if (run->fleet != NULL) {
        fleet_free(run->fleet);
        event_queue_free(&run->queue);
    }
    if (run->metrics != NULL) {
        metrics_free(run->metrics);
    }
    expert_run_free(run->experts);
    if (run->workload != NULL) {
        workload_close(run->workload);
    }
    if (run->scenario != NULL && run->of == NULL) {
        scenario_free(run->scenario);
    }
    arena_free(&run->arena);
    free(run);
}

const struct run_config *run_config(const struct run *run)
{
    return &run->config;
}

const struct metrics *run_metrics(const struct run *run)
{
    return run->metrics;
}

const struct workload *run_workload(const struct run *run)
{
    return run->workload;
}

const char *run_resolved(const struct run *run)
{
    return run->resolved;
}

int64_t run_start(const struct run *run)
{
    return run->config.start_unix_s;
}

int64_t run_horizon(const struct run *run)
{
    return run->config.horizon_ps;
}

double run_capacity(const struct run *run, size_t pool)
{
    return run->plans[pool].capacity;
}

const struct capacity *run_capacity_measured(const struct run *run, size_t pool)
{
    return run->plans[pool].measured.trials > 0 ? &run->plans[pool].measured : NULL;
}

uint32_t run_initial_replicas(const struct run *run, size_t pool)
{
    return run->plans[pool].initial_replicas;
}

static bool is_file(const char *path, const struct stat *file)
{
    struct stat status;
    return path != NULL && stat(path, &status) == 0 && status.st_dev == file->st_dev &&
           status.st_ino == file->st_ino;
}

bool run_reads(const struct run *run, const char *path)
{
    struct stat file;
    if (stat(path, &file) != 0) {
        return false;
    }
    bool reads = scenario_reads(run->scenario, file.st_dev, file.st_ino);
    for (size_t c = 0; c < run_class_count(run); c++) {
        const struct variant_value *arrivals = &config_class(&run->config, c)->traffic.arrivals;
        size_t offset = 0;
        const struct field *named = field_find(arrivals->type->fields, "file", &offset);
        reads |= named != NULL && named->kind == FIELD_PATH &&
                 is_file(*(const char *const *)((const char *)arrivals->config + offset), &file);
    }
    for (size_t p = 0; p < run_pool_count(run); p++) {
        const struct pool_config *pool = config_pool(&run->config, p);
        reads |= is_file(pool->model, &file) || is_file(pool->gpu, &file);
    }
    return reads;
}
