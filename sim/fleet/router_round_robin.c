/* Every ready replica in turn; one that becomes ready joins behind the others. A refusal is a turn.
 */
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
    uint32_t slot = router_levels_first(state, pools, pool_count, &pool);
    if (slot != ROUTER_NONE) {
        router_levels_load(state, pool, slot, 0); /* everybody is at 0: to the end of the line */
    }
    return slot;
}

static const struct router_type round_robin = {
    .create = create,
    .destroy = router_levels_destroy,
    .resize = router_levels_resize,
    .ready = router_levels_ready,
    .pick = pick,
};

const struct variant router_round_robin_variant = {
    .name = "round_robin",
    .doc = "Every ready replica in turn",
    .ops = &round_robin,
};
