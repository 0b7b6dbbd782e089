/* Every iteration takes the same time: for theory and for hand-computed cases. */
#include "models/step_time.h"

struct constant_config {
    int64_t step_ps;
};

static const struct field constant_fields[] = {
    {.name = "step",
     .kind = FIELD_TIME,
     .flags = FIELD_REQUIRED | FIELD_MIN_OPEN,
     .offset = offsetof(struct constant_config, step_ps),
     .max = 86400,
     .doc = "Duration of every iteration"},
    {0},
};

static void *constant_build(const void *config_, struct arena *arena, struct errors *errors,
                            const struct source_pos *where)
{
    (void)errors, (void)where;
    struct constant_config *model = arena_alloc(arena, sizeof *model);
    *model = *(const struct constant_config *)config_;
    return model;
}

static void constant_law(const void *model_, const struct step_batch *batch, struct step_law *law)
{
    (void)batch;
    const struct constant_config *model = model_;
    law->base_ps = model->step_ps;
    law->slope_ps = 0;
    law->valid_n = UINT32_MAX;
}

static const struct step_model_type constant_type = {.build = constant_build, .law = constant_law};

const struct variant step_constant_variant = {
    .name = "constant",
    .doc = "Every iteration takes the same time",
    .fields = constant_fields,
    .size = sizeof(struct constant_config),
    .ops = &constant_type,
};
