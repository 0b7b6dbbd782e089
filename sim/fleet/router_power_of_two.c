/* The less loaded of two ready replicas drawn by the request's number (M. Mitzenmacher, "The power
 * of two choices in randomized load balancing", 2001): nearly as even as looking at all, and a herd
 * that acts on the same old loads does not all run to one replica. Equal loads: the first drawn. */
#include <stddef.h>
#include <stdlib.h>

#include "sim/base/arena.h"
#include "sim/base/rng.h"
#include "sim/fleet/ready_sets.h"
#include "sim/fleet/router.h"

struct power_of_two_config {
    struct router_signal_config signals;
};

static const struct field fields[] = {
    {.name = "signals",
     .kind = FIELD_STRUCT,
     .offset = offsetof(struct power_of_two_config, signals),
     .fields = router_signal_fields,
     .doc = ROUTER_SIGNALS_DOC},
    {0},
};

struct power_of_two {
    uint64_t key;
    uint32_t pool_count, slots;
    struct ready_set *ready; /* owned; [pool_count] */
    uint32_t *load;          /* owned; [slots] */
};

static void *create(const void *config, const struct router_env *env)
{
    (void)config;
    struct power_of_two *r = memory_zero(1, sizeof *r);
    r->key = rng_key(env->seed, env->replication, RNG_ROUTER, 0);
    r->pool_count = env->pool_count;
    r->slots = env->slots;
    r->ready = ready_sets_create(env->pool_count);
    r->load = memory_zero(env->slots, sizeof *r->load);
    return r;
}

static void destroy(void *state)
{
    struct power_of_two *r = state;
    ready_sets_free(r->ready, r->pool_count);
    free(r->load);
    free(r);
}

static void resize(void *state, uint32_t slots)
{
    struct power_of_two *r = state;
    r->load = memory_grow(r->load, slots * sizeof *r->load);
    for (; r->slots < slots; r->slots++) {
        r->load[r->slots] = 0;
    }
}

static void ready(void *state, uint32_t pool, uint32_t slot, bool is_ready)
{
    struct power_of_two *r = state;
    r->load[slot] = 0;
    ready_sets_put(&r->ready[pool], slot, is_ready);
}

static void load(void *state, uint32_t pool, uint32_t slot, uint32_t in_flight)
{
    (void)pool;
    ((struct power_of_two *)state)->load[slot] = in_flight;
}

static uint32_t pick(void *state, const struct request *request, const uint32_t *pools,
                     uint32_t pool_count)
{
    const struct power_of_two *r = state;
    uint64_t total = ready_sets_count(r->ready, pools, pool_count);
    if (total == 0) {
        return ROUTER_NONE;
    }
    struct rng_pair bits = rng_draw(r->key, request->id, 0);
    uint64_t first = (uint64_t)((unsigned __int128)bits.a * total >> 64);
    uint32_t a = ready_sets_at(r->ready, pools, first);
    if (total == 1) {
        return a;
    }
    /* Among the others. */
    uint64_t second = (uint64_t)((unsigned __int128)bits.b * (total - 1) >> 64);
    uint32_t b = ready_sets_at(r->ready, pools, second < first ? second : second + 1);
    return r->load[b] < r->load[a] ? b : a;
}

static const struct router_signal_config *signals(const void *config)
{
    return &((const struct power_of_two_config *)config)->signals;
}

static const struct router_type power_of_two = {
    .create = create,
    .destroy = destroy,
    .resize = resize,
    .ready = ready,
    .load = load,
    .pick = pick,
    .signals = signals,
};

const struct variant router_power_of_two_variant = {
    .name = "power_of_two",
    .doc = "The less loaded of two ready replicas drawn at random",
    .fields = fields,
    .size = sizeof(struct power_of_two_config),
    .ops = &power_of_two,
};
