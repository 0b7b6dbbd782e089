/* step = base + per_token · tokens + per_kv_token · stored KV tokens. Tokens: decodes and
 * prompt-chunk tokens of the iteration; stored KV tokens: the contexts, before the iteration, of
 * every sequence in it. */
#include "models/step_time.h"

struct affine_config {
    int64_t base_ps, per_token_ps, per_kv_token_ps;
};

static const struct field affine_fields[] = {
    {.name = "base",
     .kind = FIELD_TIME,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct affine_config, base_ps),
     .max = 3600,
     .doc = "Fixed part of an iteration"},
    {.name = "per_token",
     .kind = FIELD_TIME,
     .offset = offsetof(struct affine_config, per_token_ps),
     .fallback = "0 s",
     .max = 1,
     .doc = "Added for each token computed in the iteration, decodes and prompt chunks alike"},
    {.name = "per_kv_token",
     .kind = FIELD_TIME,
     .offset = offsetof(struct affine_config, per_kv_token_ps),
     .fallback = "0 s",
     .max = 1e-4,
     .doc = "Added for each KV token stored before the iteration by the sequences in it"},
    {0},
};

static void *affine_build(const void *config_, struct arena *arena, struct errors *errors,
                          const struct source_pos *where)
{
    const struct affine_config *config = config_;
    if (config->base_ps == 0 && config->per_token_ps == 0) {
        errors_add(errors, SEVERITY_ERROR, where,
                   "step_time affine: base and per_token are both zero, so an iteration could take "
                   "no time");
        return NULL;
    }
    struct affine_config *model = arena_alloc(arena, sizeof *model);
    *model = *config;
    return model;
}

static void affine_law(const void *model_, const struct step_batch *batch, struct step_law *law)
{
    const struct affine_config *model = model_;
    int64_t tokens = (int64_t)batch->decodes + batch->prefill_tokens;
    law->base_ps = model->base_ps + model->per_token_ps * tokens +
                   model->per_kv_token_ps * (batch->decode_kv + batch->prefill_kv);
    /* Each decode's context grows by one, each chunk's by itself. */
    law->slope_ps = model->per_kv_token_ps * tokens;
    law->valid_n = UINT32_MAX;
}

static const struct step_model_type affine_type = {.build = affine_build, .law = affine_law};

const struct variant step_affine_variant = {
    .name = "affine",
    .doc = "base + per_token · tokens + per_kv_token · stored KV tokens",
    .fields = affine_fields,
    .size = sizeof(struct affine_config),
    .ops = &affine_type,
};
