/* A Hugging Face config.json as a model's shape: dense, GQA, MLA, MoE with shared experts and dense
 * first layers, sliding windows, linear-attention layers. Keys that do not matter here (there are
 * many) are passed over; a key that matters and is missing or of the wrong type is an error, and an
 * attention kind this reader does not know is refused rather than guessed. */
#ifndef FLEETSIM_SIM_RUN_HF_CONFIG_H
#define FLEETSIM_SIM_RUN_HF_CONFIG_H

#include <stdbool.h>

#include "models/llm.h"
#include "sim/base/arena.h"
#include "sim/base/errors.h"

/* Fills *llm (its defaults included); false with errors otherwise. Run llm_check afterwards. */
bool hf_config_load(const char *path, struct llm_spec *llm, struct arena *arena,
                    struct errors *errors);

#endif
