/* The replica least recently sent to: every ready replica in turn, a new one first. */
#include "sim/fleet/router_ranked.h"

static void *create(const void *config, const struct router_env *env)
{
    (void)config;
    return router_ranked_create(env, false);
}

static const struct router_type round_robin = {
    .create = create,
    .destroy = router_ranked_destroy,
    .resize = router_ranked_resize,
    .ready = router_ranked_ready,
    .pick = router_ranked_pick,
};

const struct variant router_round_robin_variant = {
    .name = "round_robin",
    .doc = "Every ready replica in turn",
    .ops = &round_robin,
};
