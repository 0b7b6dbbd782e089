#include "sim/fleet/router_ranked.h"

#include <stdlib.h>

#include "sim/base/arena.h"
#include "sim/base/check.h"

/* Slots have bits of their own beside a rank. With 256 orders for each slot they are numbered anew
 * only once in a while, and what is left are 38 bits of load with 512 slots, 22 with 100,000. */
enum { ORDER_SPARE_BITS = 8 };

/* Load in the high bits, then the least recently dispatched first: that is how ties rotate. */
static uint64_t rank(const struct router_ranked *r, uint32_t slot)
{
    uint64_t load = r->by_load ? r->load[slot] : 0;
    check_limit(load < r->load_end, "a router cannot rank %u requests at one of %u replicas",
                r->load[slot], r->slots);
    return load << r->order_bits | r->dispatched[slot];
}

static bool is_ready(const struct router_ranked *r, uint32_t pool, uint32_t slot)
{
    return rank_tree_key_at(&r->trees[pool], slot) != rank_tree_idle(&r->trees[pool]);
}

static void trees_init(struct router_ranked *r, uint32_t slots)
{
    for (uint32_t i = 0; i < r->pool_count; i++) {
        rank_tree_init(&r->trees[i], slots);
    }
    r->order_bits = r->trees[0].slot_bits + ORDER_SPARE_BITS;
    check_limit(2 * r->order_bits < 64, "a router cannot rank %u replicas", slots);
    r->load_end = rank_tree_idle(&r->trees[0]) >> r->order_bits;
    r->slots = slots;
}

struct router_ranked *router_ranked_create(const struct router_env *env, bool by_load)
{
    struct router_ranked *r = memory_zero(1, sizeof *r);
    r->pool_count = env->pool_count;
    r->by_load = by_load;
    r->trees = memory_zero(env->pool_count, sizeof *r->trees);
    trees_init(r, env->slots);
    r->dispatched = memory_zero(env->slots, sizeof *r->dispatched);
    r->load = memory_zero(env->slots, sizeof *r->load);
    return r;
}

void router_ranked_destroy(void *state)
{
    struct router_ranked *r = state;
    for (uint32_t i = 0; i < r->pool_count; i++) {
        rank_tree_free(&r->trees[i]);
    }
    free(r->trees);
    free(r->dispatched);
    free(r->load);
    free(r);
}

void router_ranked_resize(void *state, uint32_t slots)
{
    struct router_ranked *r = state;
    uint32_t old_slots = r->slots;
    struct rank_tree *old = r->trees;
    r->dispatched = memory_grow(r->dispatched, slots * sizeof *r->dispatched);
    r->load = memory_grow(r->load, slots * sizeof *r->load);
    for (uint32_t i = old_slots; i < slots; i++) {
        r->dispatched[i] = 0;
        r->load[i] = 0;
    }
    r->trees = memory_zero(r->pool_count, sizeof *r->trees);
    trees_init(r, slots);
    for (uint32_t i = 0; i < r->pool_count; i++) {
        for (uint32_t slot = 0; slot < old_slots; slot++) {
            if (rank_tree_key_at(&old[i], slot) != rank_tree_idle(&old[i])) {
                rank_tree_set(&r->trees[i], slot, rank(r, slot));
            }
        }
        rank_tree_free(&old[i]);
    }
    free(old);
}

void router_ranked_ready(void *state, uint32_t pool, uint32_t slot, bool ready)
{
    struct router_ranked *r = state;
    r->dispatched[slot] = 0; /* a new replica is first in turn */
    r->load[slot] = 0;
    rank_tree_set(&r->trees[pool], slot, ready ? rank(r, slot) : rank_tree_idle(&r->trees[pool]));
}

void router_ranked_load(void *state, uint32_t pool, uint32_t slot, uint32_t in_flight)
{
    struct router_ranked *r = state;
    r->load[slot] = in_flight;
    rank_tree_set(&r->trees[pool], slot, rank(r, slot));
}

struct order_entry {
    uint64_t order;
    uint32_t slot;
};

static int by_order(const void *a_, const void *b_)
{
    const struct order_entry *a = a_, *b = b_;
    return (a->order > b->order) - (a->order < b->order);
}

/* Orders are used up: the same sequence of slots from 1 on. Allocates, and takes O(slots · log
 * slots) once in more than 200 dispatches for each slot. Kept out of router_ranked_sent, which then
 * has nothing to save on the stack. */
static __attribute__((noinline)) void orders_renew(struct router_ranked *r)
{
    struct order_entry *entries = memory_alloc(r->slots * sizeof *entries);
    uint32_t count = 0;
    for (uint32_t slot = 0; slot < r->slots; slot++) {
        if (r->dispatched[slot] > 0) {
            entries[count++] = (struct order_entry){r->dispatched[slot], slot};
        }
    }
    qsort(entries, count, sizeof *entries, by_order);
    for (uint32_t i = 0; i < count; i++) {
        r->dispatched[entries[i].slot] = i + 1;
    }
    r->newest = count;
    free(entries);
    for (uint32_t i = 0; i < r->pool_count; i++) {
        for (uint32_t slot = 0; slot < r->slots; slot++) {
            if (is_ready(r, i, slot)) {
                rank_tree_set(&r->trees[i], slot, rank(r, slot));
            }
        }
    }
}

/* The pool with the best rank, UINT32_MAX: none has a ready replica. Ties go to the pool named
 * first. */
static uint32_t best_pool(const struct router_ranked *r, const uint32_t *pools, uint32_t pool_count)
{
    if (pool_count == 1) { /* as mostly */
        const struct rank_tree *tree = &r->trees[pools[0]];
        return rank_tree_key(tree) < rank_tree_idle(tree) ? pools[0] : UINT32_MAX;
    }
    uint64_t best_rank = rank_tree_idle(&r->trees[0]);
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < pool_count; i++) {
        uint64_t key = rank_tree_key(&r->trees[pools[i]]);
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
    return pool == UINT32_MAX ? ROUTER_NONE : rank_tree_winner(&r->trees[pool]);
}

void router_ranked_sent(struct router_ranked *r, uint32_t pool, uint32_t slot)
{
    if (r->newest + 1 == UINT64_C(1) << r->order_bits) {
        orders_renew(r);
    }
    r->dispatched[slot] = ++r->newest;
    if (!r->by_load) { /* else the fleet tells the new load next */
        rank_tree_set(&r->trees[pool], slot, rank(r, slot));
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
    uint32_t slot = rank_tree_winner(&r->trees[pool]);
    router_ranked_sent(r, pool, slot);
    return slot;
}
