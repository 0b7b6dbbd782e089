/* The step model `roofline`: models/roofline.h behind the engine's interface. */
#include "models/memory.h"
#include "models/roofline.h"

static void *roofline_build(const void *config_, struct arena *arena, struct errors *errors,
                            const struct source_pos *where)
{
    const struct roofline_config *config = config_;
    if (!config->llm || !config->gpu) {
        errors_add(errors, SEVERITY_ERROR, where,
                   "step_time roofline needs the pool's model and gpu");
        return NULL;
    }
    memory_warn_math(config->llm, config->gpu, &config->precision, errors, where);
    if (config->parallel.tensor > config->gpu->domain)
        errors_add(errors, SEVERITY_WARNING, where,
                   "tensor %lld crosses the scale-up domain of %lld %s: two all-reduces per layer "
                   "go over the network",
                   (long long)config->parallel.tensor, (long long)config->gpu->domain,
                   config->gpu->name);
    struct roofline *r = arena_alloc(arena, sizeof *r);
    return roofline_init(r, config, errors, where) ? r : NULL;
}

static void step_law(const void *model, const struct step_batch *batch, struct step_law *law)
{
    roofline_law(model, batch, law);
}

static const struct step_model_type roofline_type = {.build = roofline_build, .law = step_law};

const struct variant step_roofline_variant = {
    .name = "roofline",
    .doc = "From the model's shape and the GPU's data sheet: weights and KV streamed, compute, "
           "collectives and overhead",
    .fields = roofline_fields,
    .size = sizeof(struct roofline_config),
    .ops = &roofline_type,
};
