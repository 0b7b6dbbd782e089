/* From a pool's model, gpu, precision and parallel to what the engine needs: a step-time model and
 * a KV pool. */
#ifndef FLEETSIM_SIM_RUN_RUN_MODELS_H
#define FLEETSIM_SIM_RUN_RUN_MODELS_H

#include <stdbool.h>

#include "models/step_time.h"
#include "sim/base/arena.h"
#include "sim/base/errors.h"
#include "sim/run/config.h"
#include "sim/scenario/scenario.h"

/* Builds the step-time model of pool number `index`. With model and gpu stated it fills the pool's
 * KV blocks unless the scenario states them, and reports a layout that does not divide or does not
 * fit, by how much. Returns whether it could. Everything made lives in the arena. */
bool run_models_build(struct pool_config *pool, size_t index, struct scenario *scenario,
                      struct step_model *model, struct arena *arena, struct errors *errors);

#endif
