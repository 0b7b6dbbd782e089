/* What round_robin and least_loaded share: the ready replicas of each pool, listed by load, and at
 * each load by how long they have been there. Everything is O(1): a load changes by one request at
 * a time, so the lowest level in use is never far. */
#ifndef FLEETSIM_SIM_FLEET_ROUTER_LEVELS_H
#define FLEETSIM_SIM_FLEET_ROUTER_LEVELS_H

#include "sim/fleet/router.h"

/* A list of slots, longest there first. */
struct router_level {
    uint32_t head, tail;
};

/* A slot's place. */
struct router_place {
    uint64_t since; /* number of its last move: smaller is longer ago */
    uint32_t previous, next, load;
};

struct router_pool {
    struct router_level *levels; /* owned; [level_count]: by load */
    uint32_t level_count;
    uint32_t lowest; /* no level below it has a slot; level_count when all are empty */
};

struct router_levels {
    uint32_t pool_count, slots;
    struct router_pool *pools;   /* owned; [pool_count] */
    struct router_place *places; /* owned; [slots] */
    uint64_t moves;
};

struct router_levels *router_levels_create(const struct router_env *env);
/* Callbacks of router_type. A replica that becomes ready joins at load 0, behind those that are
 * there. */
void router_levels_destroy(void *state);
void router_levels_resize(void *state, uint32_t slots);
void router_levels_ready(void *state, uint32_t pool, uint32_t slot, bool ready);
/* Moves a ready slot behind those with that load, even if it is its own. */
void router_levels_load(void *state, uint32_t pool, uint32_t slot, uint32_t load);
/* The slot with the smallest load in any of the pools, of these the one that has had it longest;
 * its pool goes to *pool. ROUTER_NONE when nothing is ready. */
uint32_t router_levels_first(const struct router_levels *r, const uint32_t *pools,
                             uint32_t pool_count, uint32_t *pool);

#endif
