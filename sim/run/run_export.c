/* --export-trace: the run's arrivals as a trace, with what their prompts hold in common. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/run/run_internal.h"
#include "sim/workload/workload_export.h"

/* The trace of a workload that follows the fleet, written as the requests arrive. */
struct run_export {
    struct workload_export *file; /* owned until closed */
    const char **names;           /* owned */
    uint32_t *blocks;             /* owned */
};

enum { HASH_BLOCK_MAX = 1 << 20 }; /* of arrivals.hash_block_size */

/* Whether some pool has a prefix cache, so that what prompts hold in common matters. */
static bool pools_cache(const struct run *run)
{
    bool caches = false;
    for (size_t p = 0; p < run_pool_count(run); p++) {
        caches |= config_pool(&run->config, p)->engine.enable_prefix_caching;
    }
    return caches;
}

/* A workload that follows the fleet can only be exported while it runs, and so tells all. */
bool run_wants_contents(const struct run *run)
{
    bool wants = pools_cache(run);
    for (size_t c = 0; c < run_class_count(run); c++) {
        wants |= workload_follows_fleet(&config_class(&run->config, c)->traffic);
    }
    return wants;
}

uint32_t run_export_block(const struct run *run, size_t class)
{
    uint32_t block = workload_hash_block(run->workload, class);
    if (block > 0 || !workload_has_contents(run->workload, class)) {
        return block;
    }
    for (uint32_t i = 0; i < run->class_pool_count[class]; i++) {
        size_t pool = run->class_pools[class][i];
        uint32_t own = (uint32_t)config_pool(&run->config, pool)->engine.block_size;
        if (i > 0 && own != block) {
            return 0;
        }
        block = own;
    }
    return block;
}

static uint64_t greatest_divisor(uint64_t a, uint64_t b)
{
    while (b > 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

uint32_t run_replay_block(const struct run *run, size_t class)
{
    bool named = false;
    for (size_t c = 0; c < run_class_count(run); c++) {
        named |= run_export_block(run, c) > 0;
    }
    uint32_t own = run_export_block(run, class);
    if (!named || own > 0) {
        return own;
    }
    uint64_t block = 1; /* its rows have no ids: any that its pools' caches could have */
    for (uint32_t i = 0; i < run->class_pool_count[class]; i++) {
        const struct pool_config *pool = config_pool(&run->config, run->class_pools[class][i]);
        uint64_t size = pool->engine.enable_prefix_caching ? (uint64_t)pool->engine.block_size : 1;
        block = block / greatest_divisor(block, size) * size;
        if (block > HASH_BLOCK_MAX) {
            return 0;
        }
    }
    return (uint32_t)block;
}

/* Contents that matter must not be lost: where a pool caches, every class that has some needs one
 * size of block for them. */
static bool blocks_find(const struct run *run, uint32_t *blocks, struct errors *errors)
{
    bool ok = true;
    for (size_t c = 0; c < run_class_count(run); c++) {
        blocks[c] = run_export_block(run, c);
        if (blocks[c] == 0 && pools_cache(run) && workload_has_contents(run->workload, c)) {
            errors_add(errors, SEVERITY_ERROR, NULL,
                       "class '%s' cannot be exported with what its prompts hold in common: its "
                       "pools differ in block_size, and a trace has one",
                       config_class(&run->config, c)->traffic.name);
            ok = false;
        }
    }
    return ok;
}

static void export_free(struct run_export *export)
{
    free(export->names);
    free(export->blocks);
    free(export);
}

/* NULL after reporting. */
static struct run_export *export_make(const struct run *run, struct errors *errors)
{
    size_t classes = run_class_count(run);
    struct run_export *export = memory_zero(1, sizeof *export);
    export->names = memory_alloc(classes * sizeof *export->names);
    export->blocks = memory_alloc(classes * sizeof *export->blocks);
    for (size_t c = 0; c < classes; c++) {
        export->names[c] = config_class(&run->config, c)->traffic.name;
    }
    if (blocks_find(run, export->blocks, errors)) {
        return export;
    }
    export_free(export);
    return NULL;
}

static struct workload_export_setup setup_of(const struct run *run, const struct run_export *export)
{
    return (struct workload_export_setup){.class_names = export->names,
                                          .block_tokens = export->blocks,
                                          .class_count = run_class_count(run),
                                          .content_key = workload_content_key(run->workload)};
}

static bool target_check(const char *path, bool force, struct errors *errors)
{
    return trace_target_is_device(path) || trace_target_check(path, force, errors);
}

bool run_export_trace(const struct run *run, const char *path, bool force, struct errors *errors)
{
    if (workload_is_live(run->workload)) {
        errors_add(
            errors, SEVERITY_ERROR, NULL,
            "the arrivals of a closed loop and of sessions follow from the fleet: only a run "
            "can export them (fleetsim run … --export-trace FILE)");
        return false;
    }
    struct run_export *export = target_check(path, force, errors) ? export_make(run, errors) : NULL;
    if (export == NULL) {
        return false;
    }
    struct locator where = scenario_locator(run->scenario);
    struct workload_config config = run->workload_config;
    config.want_contents = true;
    struct workload *again = workload_open(&config, &where, errors);
    int64_t rows = -1;
    if (again != NULL) {
        struct workload_export_setup setup = setup_of(run, export);
        rows = workload_export(again, &setup, path, errors);
        workload_close(again);
    }
    export_free(export);
    return rows >= 0;
}

struct run_export *run_export_open(const struct run *run, const char *path, bool force,
                                   struct errors *errors)
{
    struct run_export *export = target_check(path, force, errors) ? export_make(run, errors) : NULL;
    if (export == NULL) {
        return NULL;
    }
    struct workload_export_setup setup = setup_of(run, export);
    export->file = workload_export_open(path, &setup, errors);
    if (export->file == NULL) {
        export_free(export);
        return NULL;
    }
    return export;
}

static void export_take(void *self, const struct obs *obs)
{
    const struct run_export *export = self;
    workload_export_add(export->file, obs->u.request);
}

struct obs_sink run_export_sink(struct run_export *export)
{
    return (struct obs_sink){.take = export_take, .self = export, .kinds = 1 << OBS_ARRIVAL};
}

void run_export_close(struct run_export *export, bool keep, struct errors *errors)
{
    if (export != NULL) {
        workload_export_close(export->file, keep, errors);
        export_free(export);
    }
}
