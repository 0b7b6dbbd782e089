#include "sim/fleet/router_ranked.h"

#include <stdlib.h>

#include "sim/base/arena.h"

/* Load in the high bits, then the least recently dispatched first: that is how ties rotate. 2^40
 * dispatches and 2^24 requests in flight at one replica are out of reach. */
static uint64_t rank(const struct router_ranked *r, uint32_t slot)
{
    uint64_t load = r->by_load ? r->load[slot] : 0;
    return load << 40 | r->dispatched[slot];
}

struct router_ranked *router_ranked_create(const struct router_env *env, bool by_load)
{
    struct router_ranked *r = memory_zero(1, sizeof *r);
    r->pool_count = env->pool_count;
    r->by_load = by_load;
    r->slots = env->slots;
    r->trees = memory_zero(env->pool_count, sizeof *r->trees);
    for (uint32_t i = 0; i < env->pool_count; i++) {
        tournament_init(&r->trees[i], env->slots);
    }
    r->dispatched = memory_zero(env->slots, sizeof *r->dispatched);
    r->load = memory_zero(env->slots, sizeof *r->load);
    return r;
}

void router_ranked_destroy(void *state)
{
    struct router_ranked *r = state;
    for (uint32_t i = 0; i < r->pool_count; i++) {
        tournament_free(&r->trees[i]);
    }
    free(r->trees);
    free(r->dispatched);
    free(r->load);
    free(r);
}

void router_ranked_resize(void *state, uint32_t slots)
{
    struct router_ranked *r = state;
    for (uint32_t i = 0; i < r->pool_count; i++) {
        tournament_resize(&r->trees[i], slots);
    }
    r->dispatched = memory_grow(r->dispatched, slots * sizeof *r->dispatched);
    r->load = memory_grow(r->load, slots * sizeof *r->load);
    for (uint32_t i = r->slots; i < slots; i++) {
        r->dispatched[i] = 0;
        r->load[i] = 0;
    }
    r->slots = slots;
}

void router_ranked_ready(void *state, uint32_t pool, uint32_t slot, bool ready)
{
    struct router_ranked *r = state;
    r->dispatched[slot] = 0; /* a new replica is first in turn */
    r->load[slot] = 0;
    tournament_set(&r->trees[pool], slot, ready ? rank(r, slot) : TOURNAMENT_IDLE);
}

void router_ranked_load(void *state, uint32_t pool, uint32_t slot, uint32_t in_flight)
{
    struct router_ranked *r = state;
    r->load[slot] = in_flight;
    tournament_set(&r->trees[pool], slot, rank(r, slot));
}

/* The pool with the best rank, UINT32_MAX: none has a ready replica. Ties go to the pool named
 * first. */
static uint32_t best_pool(const struct router_ranked *r, const uint32_t *pools, uint32_t pool_count)
{
    uint64_t best_rank = TOURNAMENT_IDLE;
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < pool_count; i++) {
        uint64_t key = tournament_key(&r->trees[pools[i]]);
        if (key < best_rank) {
            best_rank = key;
            best = pools[i];
        }
    }
    return best;
}

uint32_t router_ranked_first(const struct router_ranked *r, const uint32_t *pools,
                             uint32_t pool_count)
{
    uint32_t pool = best_pool(r, pools, pool_count);
    return pool == UINT32_MAX ? ROUTER_NONE : tournament_winner(&r->trees[pool]);
}

void router_ranked_sent(struct router_ranked *r, uint32_t pool, uint32_t slot)
{
    r->dispatched[slot] = ++r->dispatches;
    if (!r->by_load) { /* else the fleet tells the new load next */
        tournament_set(&r->trees[pool], slot, rank(r, slot));
    }
}

uint32_t router_ranked_pick(void *state, const struct request *request, const uint32_t *pools,
                            uint32_t pool_count)
{
    (void)request;
    struct router_ranked *r = state;
    uint32_t pool = best_pool(r, pools, pool_count);
    if (pool == UINT32_MAX) {
        return ROUTER_NONE;
    }
    uint32_t slot = tournament_winner(&r->trees[pool]);
    router_ranked_sent(r, pool, slot);
    return slot;
}
