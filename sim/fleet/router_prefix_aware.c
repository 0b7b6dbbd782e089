/* The replica that has most of the prompt cached, as long as that pays and the loads are even:
 * after the cache-aware policy of SGLang's router, whose names the settings have. If the loads have
 * drifted apart (the largest above the smallest by more than balance_abs_threshold and by more than
 * the factor balance_rel_threshold) the least loaded gets it. Else the longest match does, ties by
 * load, if it is at least cache_threshold of the prompt; else the least loaded.
 *
 * Only holders of the deepest node that anyone holds can match longest, so they alone are looked
 * at. When more than PREFIX_LOOKED_AT hold it (a prompt that everyone shares) the least loaded of
 * all is taken if it is one of them, and else as many are looked at as that, from a place drawn by
 * the request's number. */
#include <stddef.h>
#include <stdlib.h>

#include "sim/base/arena.h"
#include "sim/base/rng.h"
#include "sim/base/tournament.h"
#include "sim/fleet/prefix_path.h"
#include "sim/fleet/router.h"
#include "sim/fleet/router_ranked.h"

enum { PREFIX_LOOKED_AT = 64, NO_POOL = UINT32_MAX };

struct prefix_aware_config {
    double cache_threshold;
    int64_t balance_abs_threshold;
    double balance_rel_threshold;
    struct router_signal_config signals;
};

static const struct field fields[] = {
    {.name = "cache_threshold",
     .kind = FIELD_REAL,
     .unit = UNIT_FRACTION,
     .offset = offsetof(struct prefix_aware_config, cache_threshold),
     .fallback = "30 %",
     .max = 1,
     .doc = "The share of the prompt that the longest match must have to decide"},
    {.name = "balance_abs_threshold",
     .kind = FIELD_INT,
     .offset = offsetof(struct prefix_aware_config, balance_abs_threshold),
     .fallback = "32",
     .max = 1e6,
     .doc = "Loads are uneven when the largest is above the smallest by more requests than this …"},
    {.name = "balance_rel_threshold",
     .kind = FIELD_REAL,
     .offset = offsetof(struct prefix_aware_config, balance_rel_threshold),
     .fallback = "1.5",
     .min = 1,
     .max = 1e6,
     .doc = "… and by more than this factor; then the least loaded gets the request"},
    {.name = "signals",
     .kind = FIELD_STRUCT,
     .offset = offsetof(struct prefix_aware_config, signals),
     .fields = router_signal_fields,
     .doc = ROUTER_SIGNALS_DOC},
    {0},
};

struct prefix_aware {
    const struct prefix_aware_config *config; /* borrowed */
    const struct router_pool *pools;          /* borrowed */
    uint64_t key;
    struct router_ranked *ranked; /* owned; the least loaded */
    struct tournament *heaviest;  /* owned; [pool_count] by falling load */
    uint32_t pool_count, slots;
    uint32_t *slot_pool;        /* owned; [slots] NO_POOL: takes no requests */
    struct prefix_index *index; /* owned */
    struct prefix_path path;
};

static void *create(const void *config, const struct router_env *env)
{
    struct prefix_aware *r = memory_zero(1, sizeof *r);
    r->config = config;
    r->pools = env->pools;
    r->key = rng_key(env->seed, env->replication, RNG_ROUTER, 0);
    r->ranked = router_ranked_create(env, true);
    r->pool_count = env->pool_count;
    r->heaviest = memory_zero(env->pool_count, sizeof *r->heaviest);
    for (uint32_t i = 0; i < env->pool_count; i++) {
        tournament_init(&r->heaviest[i], env->slots);
    }
    r->slots = env->slots;
    r->slot_pool = memory_alloc(env->slots * sizeof *r->slot_pool);
    for (uint32_t i = 0; i < env->slots; i++) {
        r->slot_pool[i] = NO_POOL;
    }
    r->index = prefix_index_create(env->slots);
    return r;
}

static void destroy(void *state)
{
    struct prefix_aware *r = state;
    for (uint32_t i = 0; i < r->pool_count; i++) {
        tournament_free(&r->heaviest[i]);
    }
    free(r->heaviest);
    router_ranked_destroy(r->ranked);
    prefix_index_free(r->index);
    prefix_path_free(&r->path);
    free(r->slot_pool);
    free(r);
}

static void resize(void *state, uint32_t slots)
{
    struct prefix_aware *r = state;
    router_ranked_resize(r->ranked, slots);
    for (uint32_t i = 0; i < r->pool_count; i++) {
        tournament_resize(&r->heaviest[i], slots);
    }
    prefix_index_resize(r->index, slots);
    r->slot_pool = memory_grow(r->slot_pool, slots * sizeof *r->slot_pool);
    for (; r->slots < slots; r->slots++) {
        r->slot_pool[r->slots] = NO_POOL;
    }
}

static uint64_t by_falling_load(uint32_t load)
{
    return UINT32_MAX - load;
}

static void ready(void *state, uint32_t pool, uint32_t slot, bool is_ready)
{
    struct prefix_aware *r = state;
    router_ranked_ready(r->ranked, pool, slot, is_ready);
    tournament_set(&r->heaviest[pool], slot, is_ready ? by_falling_load(0) : TOURNAMENT_IDLE);
    r->slot_pool[slot] = is_ready ? pool : NO_POOL;
    prefix_index_forget(r->index, slot);
}

static void load(void *state, uint32_t pool, uint32_t slot, uint32_t in_flight)
{
    struct prefix_aware *r = state;
    router_ranked_load(r->ranked, pool, slot, in_flight);
    tournament_set(&r->heaviest[pool], slot, by_falling_load(in_flight));
}

static void cached(void *state, uint32_t slot, uint64_t key, uint32_t blocks)
{
    struct prefix_aware *r = state;
    if (r->slot_pool[slot] != NO_POOL) {
        prefix_index_put(r->index, slot, key, blocks);
    }
}

static bool uneven(const struct prefix_aware *r, uint32_t least_loaded, const uint32_t *pools,
                   uint32_t pool_count)
{
    uint32_t least = r->ranked->load[least_loaded], most = least;
    for (uint32_t i = 0; i < pool_count; i++) {
        uint64_t key = tournament_key(&r->heaviest[pools[i]]);
        if (key != TOURNAMENT_IDLE && UINT32_MAX - (uint32_t)key > most) {
            most = UINT32_MAX - (uint32_t)key;
        }
    }
    return most - least > r->config->balance_abs_threshold &&
           most > r->config->balance_rel_threshold * least;
}

/* A replica and how much it has of the prompt. */
struct match {
    uint32_t slot;
    uint32_t pool;
    uint64_t tokens;
};

/* Longer, or as long with less load, or the same sent to less recently. */
static bool better(const struct prefix_aware *r, const struct match *a, const struct match *b)
{
    const struct router_ranked *ranked = r->ranked;
    if (b->slot == ROUTER_NONE || a->tokens != b->tokens) {
        return b->slot == ROUTER_NONE || a->tokens > b->tokens;
    }
    if (ranked->load[a->slot] != ranked->load[b->slot]) {
        return ranked->load[a->slot] < ranked->load[b->slot];
    }
    return ranked->dispatched[a->slot] < ranked->dispatched[b->slot];
}

/* A replica of the pool that holds `held` blocks of a step's node, against the best so far. */
static bool consider(const struct prefix_aware *r, uint32_t pool, const struct prefix_step *step,
                     uint32_t slot, uint32_t held, struct match *best)
{
    if (held == 0 || r->slot_pool[slot] != pool) {
        return false;
    }
    struct match m = {.slot = slot, .pool = pool};
    m.tokens = prefix_path_match(step, held) * r->pools[pool].block_size;
    if (better(r, &m, best)) {
        *best = m;
    }
    return true;
}

/* The best match in one pool against the best so far. */
static void match_in_pool(struct prefix_aware *r, const struct request *request, uint32_t pool,
                          struct match *best)
{
    prefix_path_fill(&r->path, request, r->pools[pool].block_size);
    bool found = false;
    for (size_t depth = prefix_path_known(&r->path, r->index); depth > 0 && !found; depth--) {
        const struct prefix_step *step = &r->path.steps[depth - 1];
        size_t count;
        const struct prefix_holder *held = prefix_index_holders(r->index, step->node, &count);
        size_t looked_at = count;
        size_t from = 0;
        if (count > PREFIX_LOOKED_AT) {
            looked_at = PREFIX_LOOKED_AT;
            from = rng_draw(r->key, request->id, 1).a % count;
            uint32_t least = router_ranked_first(r->ranked, &pool, 1);
            if (least != ROUTER_NONE) {
                (void)consider(r, pool, step, least,
                               prefix_index_blocks(r->index, step->node, least), best);
            }
        }
        for (size_t i = from; looked_at > 0; looked_at--) {
            const struct prefix_holder *holder = &held[i];
            uint32_t blocks = prefix_index_holds(r->index, holder) ? holder->blocks : 0;
            found |= consider(r, pool, step, holder->slot, blocks, best);
            i = i + 1 == count ? 0 : i + 1;
        }
    }
}

static uint32_t pick(void *state, const struct request *request, const uint32_t *pools,
                     uint32_t pool_count)
{
    struct prefix_aware *r = state;
    uint32_t least_loaded = router_ranked_first(r->ranked, pools, pool_count);
    if (least_loaded == ROUTER_NONE) {
        return ROUTER_NONE;
    }
    struct match chosen = {.slot = ROUTER_NONE};
    if (!uneven(r, least_loaded, pools, pool_count)) {
        for (uint32_t i = 0; i < pool_count; i++) {
            match_in_pool(r, request, pools[i], &chosen);
        }
    }
    if (chosen.slot == ROUTER_NONE ||
        (double)chosen.tokens < r->config->cache_threshold * request->prompt_tokens) {
        chosen = (struct match){.slot = least_loaded, .pool = r->slot_pool[least_loaded]};
    }
    router_ranked_sent(r->ranked, chosen.pool, chosen.slot);
    return chosen.slot;
}

static const struct router_signal_config *signals(const void *config)
{
    return &((const struct prefix_aware_config *)config)->signals;
}

static const struct router_type prefix_aware = {
    .create = create,
    .destroy = destroy,
    .resize = resize,
    .ready = ready,
    .load = load,
    .pick = pick,
    .signals = signals,
    .cached = cached,
};

const struct variant router_prefix_aware_variant = {
    .name = "prefix_aware",
    .doc = "The longest cached match, as long as loads are even; else the least loaded",
    .fields = fields,
    .size = sizeof(struct prefix_aware_config),
    .ops = &prefix_aware,
};
