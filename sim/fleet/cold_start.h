/* What a new replica goes through before it takes requests. */
#ifndef FLEETSIM_SIM_FLEET_COLD_START_H
#define FLEETSIM_SIM_FLEET_COLD_START_H

#include <stdint.h>

#include "sim/base/field.h"

/* The pool's `cold_start:` mapping. Provisioning = provision + image_pull; loading = the rest. */
struct cold_start_config {
    int64_t provision_ps, image_pull_ps, weights_ps, engine_init_ps, warm_up_ps;
};
extern const struct field cold_start_fields[];

static inline int64_t cold_start_provisioning(const struct cold_start_config *c)
{
    return c->provision_ps + c->image_pull_ps;
}
static inline int64_t cold_start_loading(const struct cold_start_config *c)
{
    return c->weights_ps + c->engine_init_ps + c->warm_up_ps;
}

#endif
