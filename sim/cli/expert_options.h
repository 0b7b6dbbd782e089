/* Expert popularity and placement as options of a command: --popularity lognormal:1.15. */
#ifndef FLEETSIM_SIM_CLI_EXPERT_OPTIONS_H
#define FLEETSIM_SIM_CLI_EXPERT_OPTIONS_H

#include <stdbool.h>

#include "models/roofline.h"
#include "sim/base/errors.h"

struct expert_options {
    bool given;
    struct moe_config config;
    double redundant;
    const char *popularity; /* as given, for printing */
};

/* popularity: DIST or DIST:NUMBER, NULL: none; the texts may be NULL. Config and its values live in
 * the arena. False after adding errors. */
bool expert_options_read(const char *popularity, const char *placement, const char *redundant,
                         const struct llm_spec *llm, struct expert_options *options,
                         struct arena *arena, struct errors *errors);
/* The experts of one layout, whose law config->law becomes; NULL when they cannot be spread so (or
 * none are asked for). The caller frees them. */
struct moe_experts *expert_options_apply(const struct expert_options *options,
                                         struct roofline_config *config, int64_t max_tokens);

#endif
