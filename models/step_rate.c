/* The textbook model: step = max(min_step, decodes / decode_rate) + prefill tokens / prefill_rate.
 * Rates are of one replica. It has no KV term, so a span's steps are all equal. Source: the
 * capacity chain "decode tok/s ÷ tok/s per GPU + prefill tok/s ÷ tok/s per GPU". */
#include "models/step_time.h"

struct rate_config {
    double prefill_tokens_per_s;
    double decode_tokens_per_s;
    int64_t min_step_ps;
};

struct rate_model {
    int64_t prefill_token_ps, decode_token_ps, min_step_ps;
};

static const struct field rate_fields[] = {
    {.name = "prefill_tokens_per_s",
     .kind = FIELD_REAL,
     .unit = UNIT_TOKENS_PER_S,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct rate_config, prefill_tokens_per_s),
     .min = 1, /* a step of 2^20 tokens must fit the clock */
     .max = 1e11,
     .doc = "Prompt tokens one replica computes per second"},
    {.name = "decode_tokens_per_s",
     .kind = FIELD_REAL,
     .unit = UNIT_TOKENS_PER_S,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct rate_config, decode_tokens_per_s),
     .min = 1,
     .max = 1e11,
     .doc = "Output tokens one replica generates per second at a full batch"},
    {.name = "min_step",
     .kind = FIELD_TIME,
     .offset = offsetof(struct rate_config, min_step_ps),
     .fallback = "0 s",
     .max = 3600,
     .doc =
         "Floor of the decode part of an iteration, whatever the batch: the least time per token"},
    {0},
};

static void *rate_build(const void *config_, struct arena *arena, struct errors *errors,
                        const struct source_pos *where)
{
    (void)errors, (void)where; /* the table's ranges rule out everything that could go wrong */
    const struct rate_config *config = config_;
    struct rate_model *model = arena_alloc(arena, sizeof *model);
    model->prefill_token_ps = time_from_seconds(1.0 / config->prefill_tokens_per_s);
    model->decode_token_ps = time_from_seconds(1.0 / config->decode_tokens_per_s);
    model->min_step_ps = config->min_step_ps;
    return model;
}

static void rate_law(const void *model_, const struct step_batch *batch, struct step_law *law)
{
    const struct rate_model *model = model_;
    int64_t decode_ps = model->decode_token_ps * batch->decodes;
    if (decode_ps < model->min_step_ps) {
        decode_ps = model->min_step_ps;
    }
    law->base_ps = decode_ps + model->prefill_token_ps * batch->prefill_tokens;
    law->slope_ps = 0;
    law->valid_n = UINT32_MAX;
}

static int64_t rate_work(const void *model_, const struct step_batch *batch)
{
    const struct rate_model *model = model_;
    return model->decode_token_ps * batch->decodes +
           model->prefill_token_ps * batch->prefill_tokens;
}

static double rate_capacity(const void *model_, double mean_prompt, double mean_output)
{
    const struct rate_model *model = model_;
    return 1.0 / (mean_prompt * time_seconds(model->prefill_token_ps) +
                  mean_output * time_seconds(model->decode_token_ps));
}

static const struct step_model_type rate_type = {
    .build = rate_build,
    .law = rate_law,
    .work = rate_work,
    .capacity = rate_capacity,
};

const struct variant step_rate_variant = {
    .name = "rate",
    .doc = "max(min_step, decodes / decode rate) + prefill tokens / prefill rate",
    .fields = rate_fields,
    .size = sizeof(struct rate_config),
    .ops = &rate_type,
};
