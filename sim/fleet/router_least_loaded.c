/* The replica with the fewest requests running or waiting; ties go to the one least recently sent
 * to, then to the lowest index. Own dispatches count at once. The tie rule matters where many
 * requests have the same length: whoever was just sent one would get the next into the same
 * iteration, and requests that start together finish together and are replaced together. */
#include <stddef.h>

#include "sim/fleet/router_ranked.h"

struct least_loaded_config {
    struct router_signal_config signals;
};

static const struct field fields[] = {
    {.name = "signals",
     .kind = FIELD_STRUCT,
     .offset = offsetof(struct least_loaded_config, signals),
     .fields = router_signal_fields,
     .doc = ROUTER_SIGNALS_DOC},
    {0},
};

static void *create(const void *config, const struct router_env *env)
{
    (void)config;
    return router_ranked_create(env, true);
}

static const struct router_signal_config *signals(const void *config)
{
    return &((const struct least_loaded_config *)config)->signals;
}

static const struct router_type least_loaded = {
    .create = create,
    .destroy = router_ranked_destroy,
    .resize = router_ranked_resize,
    .ready = router_ranked_ready,
    .load = router_ranked_load,
    .pick = router_ranked_pick,
    .signals = signals,
};

const struct variant router_least_loaded_variant = {
    .name = "least_loaded",
    .doc = "Fewest requests running or waiting; ties go to the replica least recently sent one",
    .fields = fields,
    .size = sizeof(struct least_loaded_config),
    .ops = &least_loaded,
};
