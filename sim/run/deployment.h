/* A model on GPUs in one layout, and the search for the layout that sells most: what the commands
 * that take --model and --gpu share. */
#ifndef FLEETSIM_SIM_RUN_DEPLOYMENT_H
#define FLEETSIM_SIM_RUN_DEPLOYMENT_H

#include <stdbool.h>

#include "models/memory.h"
#include "models/roofline.h"
#include "models/serving.h"
#include "sim/run/catalog.h"

struct deployment {
    const struct llm_spec *llm; /* arena */
    const struct gpu_spec *gpu; /* arena */
    struct parallel parallel;
    struct precision precision; /* resolved */
    struct memory_plan memory;
};

/* A roofline config with the defaults of its field table, filled. In the arena. */
struct roofline_config *deployment_roofline(const struct deployment *deployment,
                                            struct arena *arena);
/* The layout of at most one scale-up domain that sells most output tokens/s per GPU under a time
 * per token. */
struct deployment_choice {
    bool found;
    struct deployment deployment;
    struct serving_estimate estimate;
    const char *why_not; /* when not found: what stands in the way */
};
struct deployment_choice deployment_choose(const struct llm_spec *llm, const struct gpu_spec *gpu,
                                           const struct precision *precision,
                                           const struct serving_load *load, double tpot_limit_s,
                                           struct arena *arena);

#endif
