/* A ready replica drawn uniformly, by the request's number alone: another policy or another load
 * does not shift the draws. */
#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/rng.h"
#include "sim/fleet/router.h"

struct slot_set {
    uint32_t *slots; /* owned; ascending */
    uint32_t count, capacity;
};

struct random_router {
    uint64_t key;
    uint32_t pool_count;
    struct slot_set *ready; /* owned; [pool_count] */
};

static void *create(const void *config, const struct router_env *env)
{
    (void)config;
    struct random_router *r = memory_zero(1, sizeof *r);
    r->key = rng_key(env->seed, env->replication, RNG_ROUTER, 0);
    r->pool_count = env->pool_count;
    r->ready = memory_zero(env->pool_count, sizeof *r->ready);
    return r;
}

static void destroy(void *state)
{
    struct random_router *r = state;
    for (uint32_t i = 0; i < r->pool_count; i++) {
        free(r->ready[i].slots);
    }
    free(r->ready);
    free(r);
}

static void resize(void *state, uint32_t slots)
{
    (void)state, (void)slots;
}

static void ready(void *state, uint32_t pool, uint32_t slot, bool is_ready)
{
    struct slot_set *set = &((struct random_router *)state)->ready[pool];
    uint32_t at = 0;
    while (at < set->count && set->slots[at] < slot) {
        at++;
    }
    if (is_ready) {
        if (set->count == set->capacity) {
            set->capacity = set->capacity == 0 ? 16 : 2 * set->capacity;
            set->slots = memory_grow(set->slots, set->capacity * sizeof *set->slots);
        }
        memmove(&set->slots[at + 1], &set->slots[at], (set->count - at) * sizeof *set->slots);
        set->slots[at] = slot;
        set->count++;
    } else {
        set->count--;
        memmove(&set->slots[at], &set->slots[at + 1], (set->count - at) * sizeof *set->slots);
    }
}

static uint32_t pick(void *state, const struct request *request, const uint32_t *pools,
                     uint32_t pool_count)
{
    const struct random_router *r = state;
    uint64_t total = 0;
    for (uint32_t i = 0; i < pool_count; i++) {
        total += r->ready[pools[i]].count;
    }
    if (total == 0) {
        return ROUTER_NONE;
    }
    uint64_t bits = rng_draw(r->key, request->id, 0).a;
    uint64_t index = (uint64_t)((unsigned __int128)bits * total >> 64);
    for (uint32_t i = 0;; i++) {
        const struct slot_set *set = &r->ready[pools[i]];
        if (index < set->count) {
            return set->slots[index];
        }
        index -= set->count;
    }
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
