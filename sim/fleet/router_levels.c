#include "sim/fleet/router_levels.h"

#include <stdlib.h>

#include "sim/base/arena.h"

struct router_levels *router_levels_create(const struct router_env *env)
{
    struct router_levels *r = memory_zero(1, sizeof *r);
    r->pool_count = env->pool_count;
    r->pools = memory_zero(env->pool_count, sizeof *r->pools);
    r->slots = env->slots;
    r->places = memory_zero(env->slots, sizeof *r->places);
    return r;
}

void router_levels_destroy(void *state)
{
    struct router_levels *r = state;
    for (uint32_t i = 0; i < r->pool_count; i++) {
        free(r->pools[i].levels);
    }
    free(r->pools);
    free(r->places);
    free(r);
}

void router_levels_resize(void *state, uint32_t slots)
{
    struct router_levels *r = state;
    r->places = memory_grow(r->places, slots * sizeof *r->places);
    r->slots = slots;
}

/* Levels up to load: the one place where a longer queue costs the router memory. */
static void levels_reserve(struct router_pool *p, uint32_t load)
{
    if (load < p->level_count) {
        return;
    }
    uint32_t count = p->level_count == 0 ? 64 : p->level_count;
    while (count <= load) {
        count *= 2;
    }
    p->levels = memory_grow(p->levels, count * sizeof *p->levels);
    for (uint32_t i = p->level_count; i < count; i++) {
        p->levels[i] = (struct router_level){ROUTER_NONE, ROUTER_NONE};
    }
    p->lowest = p->lowest == p->level_count ? count : p->lowest;
    p->level_count = count;
}

static void insert(struct router_levels *r, struct router_pool *p, uint32_t slot, uint32_t load)
{
    levels_reserve(p, load);
    struct router_level *level = &p->levels[load];
    struct router_place *place = &r->places[slot];
    *place = (struct router_place){
        .since = ++r->moves, .previous = level->tail, .next = ROUTER_NONE, .load = load};
    if (level->tail == ROUTER_NONE) {
        level->head = slot;
    } else {
        r->places[level->tail].next = slot;
    }
    level->tail = slot;
    p->lowest = load < p->lowest ? load : p->lowest;
}

static void take_out(struct router_levels *r, struct router_pool *p, uint32_t slot)
{
    const struct router_place *place = &r->places[slot];
    struct router_level *level = &p->levels[place->load];
    if (place->previous == ROUTER_NONE) {
        level->head = place->next;
    } else {
        r->places[place->previous].next = place->next;
    }
    if (place->next == ROUTER_NONE) {
        level->tail = place->previous;
    } else {
        r->places[place->next].previous = place->previous;
    }
}

/* After a slot left the lowest level for good. */
static void lowest_raise(struct router_pool *p)
{
    while (p->lowest < p->level_count && p->levels[p->lowest].head == ROUTER_NONE) {
        p->lowest++;
    }
}

void router_levels_ready(void *state, uint32_t pool, uint32_t slot, bool ready)
{
    struct router_levels *r = state;
    if (ready) {
        insert(r, &r->pools[pool], slot, 0);
    } else {
        take_out(r, &r->pools[pool], slot);
        lowest_raise(&r->pools[pool]);
    }
}

void router_levels_load(void *state, uint32_t pool, uint32_t slot, uint32_t load)
{
    struct router_levels *r = state;
    take_out(r, &r->pools[pool], slot);
    insert(r, &r->pools[pool], slot, load);
    lowest_raise(&r->pools[pool]);
}

uint32_t router_levels_first(const struct router_levels *r, const uint32_t *pools,
                             uint32_t pool_count, uint32_t *pool)
{
    uint32_t best = ROUTER_NONE;
    for (uint32_t i = 0; i < pool_count; i++) {
        const struct router_pool *p = &r->pools[pools[i]];
        if (p->lowest == p->level_count) {
            continue;
        }
        uint32_t slot = p->levels[p->lowest].head;
        const struct router_place *a = &r->places[slot];
        if (best == ROUTER_NONE || a->load < r->places[best].load ||
            (a->load == r->places[best].load && a->since < r->places[best].since)) {
            best = slot;
            *pool = pools[i];
        }
    }
    return best;
}
