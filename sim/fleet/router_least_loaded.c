/* The replica with the fewest requests running or waiting; of equals the one that has had that load
 * longest, so ties rotate. Own dispatches count at once. */
#include "sim/fleet/router_levels.h"

static void *create(const void *config, const struct router_env *env)
{
    (void)config;
    return router_levels_create(env);
}

static uint32_t pick(void *state, const struct request *request, const uint32_t *pools,
                     uint32_t pool_count)
{
    (void)request;
    uint32_t pool;
    return router_levels_first(state, pools, pool_count, &pool);
}

static const struct router_type least_loaded = {
    .create = create,
    .destroy = router_levels_destroy,
    .resize = router_levels_resize,
    .ready = router_levels_ready,
    .load = router_levels_load,
    .pick = pick,
};

const struct variant router_least_loaded_variant = {
    .name = "least_loaded",
    .doc = "Fewest requests running or waiting; of equals the one that has had that load longest",
    .ops = &least_loaded,
};
