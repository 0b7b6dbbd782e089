/* A ready replica drawn uniformly, by the request's number alone: another policy or another load
 * does not shift the draws. */
#include <stdlib.h>

#include "sim/base/arena.h"
#include "sim/base/rng.h"
#include "sim/fleet/ready_sets.h"
#include "sim/fleet/router.h"

struct random_router {
    uint64_t key;
    uint32_t pool_count;
    struct ready_set *ready; /* owned; [pool_count] */
};

static void *create(const void *config, const struct router_env *env)
{
    (void)config;
    struct random_router *r = memory_zero(1, sizeof *r);
    r->key = rng_key(env->seed, env->replication, RNG_ROUTER, 0);
    r->pool_count = env->pool_count;
    r->ready = ready_sets_create(env->pool_count);
    return r;
}

static void destroy(void *state)
{
    struct random_router *r = state;
    ready_sets_free(r->ready, r->pool_count);
    free(r);
}

static void resize(void *state, uint32_t slots)
{
    (void)state, (void)slots;
}

static void ready(void *state, uint32_t pool, uint32_t slot, bool is_ready)
{
    ready_sets_put(&((struct random_router *)state)->ready[pool], slot, is_ready);
}

static uint32_t pick(void *state, const struct request *request, const uint32_t *pools,
                     uint32_t pool_count)
{
    const struct random_router *r = state;
    uint64_t total = ready_sets_count(r->ready, pools, pool_count);
    if (total == 0) {
        return ROUTER_NONE;
    }
    uint64_t bits = rng_draw(r->key, request->id, 0).a;
    return ready_sets_at(r->ready, pools, (uint64_t)((unsigned __int128)bits * total >> 64));
}

static const struct router_type random_type = {
    .create = create,
    .destroy = destroy,
    .resize = resize,
    .ready = ready,
    .pick = pick,
};

const struct variant router_random_variant = {
    .name = "random",
    .doc = "A ready replica drawn uniformly",
    .ops = &random_type,
};
