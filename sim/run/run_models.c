#include "sim/run/run_models.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "models/memory.h"
#include "models/roofline.h"
#include "sim/run/catalog.h"

struct build {
    struct pool_config *pool;
    size_t index;
    struct scenario *scenario;
    struct arena *arena;
    struct errors *errors;
    const struct llm_spec *llm;
    const struct gpu_spec *gpu;
};

static struct source_pos place(const struct build *b, const char *key)
{
    char path[96];
    struct source_pos pos;
    struct locator where = scenario_locator(b->scenario);
    snprintf(path, sizeof path, "fleet.pools[%zu]%s%s", b->index, key[0] ? "." : "", key);
    where.find(where.self, path, &pos);
    return pos;
}

/* A path is relative to the scenario that names it; where there is no such file, to the working
 * directory (a path from --set). A name without a slash is left to the catalogue. */
static const char *reference(const struct build *b, const char *name)
{
    const char *file = scenario_path(b->scenario);
    const char *slash = file != NULL ? strrchr(file, '/') : NULL;
    if (strchr(name, '/') == NULL || name[0] == '/' || slash == NULL) {
        return name;
    }
    const char *beside = arena_printf(b->arena, "%.*s/%s", (int)(slash - file), file, name);
    return access(beside, R_OK) == 0 ? beside : name;
}

/* Looks both up; false when a name that was given is not there. */
static bool specs_find(struct build *b)
{
    bool ok = true;
    if (b->pool->model != NULL) {
        struct source_pos pos = place(b, "model");
        b->llm = catalog_llm(reference(b, b->pool->model), b->arena, b->errors, &pos);
        ok &= b->llm != NULL;
    }
    if (b->pool->gpu != NULL) {
        struct source_pos pos = place(b, "gpu");
        b->gpu = catalog_gpu(reference(b, b->pool->gpu), b->arena, b->errors, &pos);
        ok &= b->gpu != NULL;
    }
    if (ok && b->llm != NULL) {
        b->pool->precision = llm_precision(b->llm, &b->pool->precision);
    }
    return ok;
}

/* Sizes the KV pool from memory. State that a sequence holds whatever its length is set aside for
 * max_num_seqs of them: vLLM takes it from the same blocks, so this is the cautious side. */
static bool kv_size(const struct build *b, int64_t redundant)
{
    struct engine_config *engine = &b->pool->engine;
    struct memory_query query = memory_query(b->llm, b->gpu, &b->pool->parallel);
    query.precision = b->pool->precision;
    query.utilization = engine->gpu_memory_utilization;
    query.redundant_experts = redundant;
    query.batched_tokens = (double)engine->max_num_batched_tokens;
    struct memory_plan plan = memory_plan(&query);
    struct source_pos pos = place(b, "model");
    if (!memory_check(&query, &plan, b->errors, &pos)) {
        return false;
    }
    if (engine->num_gpu_blocks != FIELD_INT_UNLIMITED || isinf(plan.kv_tokens)) {
        return true;
    }
    double seats = (double)engine->max_num_seqs / (double)b->pool->parallel.attention_data;
    double set_aside = ceil(seats) * plan.constant / plan.kv_pool;
    double blocks = floor(plan.kv_tokens * (1 - set_aside) / (double)engine->block_size);
    if (!(blocks >= 1)) {
        errors_add(b->errors, SEVERITY_ERROR, &pos,
                   "pool '%s': the constant state of max_num_seqs = %lld sequences takes %.1f of "
                   "the %.1f GB that weights leave on a GPU; lower max_num_seqs",
                   b->pool->name, (long long)engine->max_num_seqs,
                   ceil(seats) * plan.constant / 1e9, plan.kv_pool / 1e9);
        return false;
    }
    engine->num_gpu_blocks = (int64_t)blocks;
    return true;
}

/* What a cold start loads: the whole model, once per replica. */
static bool weights_size(const struct build *b)
{
    double bytes = b->llm != NULL ? memory_weights(b->llm, &b->pool->precision).total : NAN;
    if (cold_start_size(&b->pool->cold_start, bytes)) {
        return true;
    }
    struct source_pos pos = place(b, "cold_start");
    errors_add(b->errors, SEVERITY_ERROR, &pos,
               "pool '%s': state the bytes of cold_start.weights, or the pool's model",
               b->pool->name);
    return false;
}

bool run_models_build(struct pool_config *pool, size_t index, struct scenario *scenario,
                      struct step_model *model, struct arena *arena, struct errors *errors)
{
    struct build b = {
        .pool = pool, .index = index, .scenario = scenario, .arena = arena, .errors = errors};
    bool ok = specs_find(&b);
    int64_t redundant = 0;
    if (ok && pool->step_time.type == &step_roofline_variant) {
        struct roofline_config *roofline = pool->step_time.config;
        roofline->llm = b.llm;
        roofline->gpu = b.gpu;
        roofline->parallel = pool->parallel;
        roofline->precision = pool->precision;
        redundant = roofline->redundant_experts;
        if (b.llm != NULL) {
            roofline_fill_factors(&roofline->factors, b.llm); /* so that the echo shows them */
        }
    }
    if (ok && b.llm != NULL) {
        struct source_pos pos = place(&b, "parallel");
        ok = parallel_check(&pool->parallel, b.llm, redundant, errors, &pos);
    }
    if (ok && b.llm != NULL && b.gpu != NULL) {
        ok = kv_size(&b, redundant);
    }
    ok = ok && weights_size(&b);
    if (!ok) {
        return false;
    }
    struct source_pos pos = place(&b, "step_time");
    model->type = pool->step_time.type->ops;
    model->model = model->type->build(pool->step_time.config, arena, errors, &pos);
    return model->model != NULL;
}
