/* Routers: which replica gets an arriving request. A policy is a const struct of callbacks in its
 * own file, registered by one line in router.c. It sees loads through the calls below, never the
 * engines. All callbacks are O(log replicas) or better. */
#ifndef FLEETSIM_SIM_FLEET_ROUTER_H
#define FLEETSIM_SIM_FLEET_ROUTER_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/field.h"
#include "sim/base/request.h"

enum { ROUTER_NONE = UINT32_MAX, ROUTER_POOLS_MAX = 64 };

/* What a policy is created with. */
struct router_env {
    uint32_t pool_count;
    uint32_t slots; /* replica slots, all pools together; grows by resize */
    uint64_t seed;
    uint32_t replication;
};

struct router_type {
    /* central: requests wait in their pool's own queue and are pulled by free seats; pick is not
     * called. */
    bool central;
    void *(*create)(const void *config, const struct router_env *env);
    void (*destroy)(void *state);
    void (*resize)(void *state, uint32_t slots);
    /* A replica begins (ready) or ceases to take requests. */
    void (*ready)(void *state, uint32_t pool, uint32_t slot, bool ready);
    /* A ready replica has this many requests running or waiting. NULL: the policy does not care. */
    void (*load)(void *state, uint32_t pool, uint32_t slot, uint32_t in_flight);
    /* The slot for a request that may go to any of these pools; ROUTER_NONE when none has a ready
     * replica. Its own dispatch counts at once: the fleet calls load next. */
    uint32_t (*pick)(void *state, const struct request *request, const uint32_t *pools,
                     uint32_t pool_count);
};

/* One file each. */
extern const struct variant router_round_robin_variant;
extern const struct variant router_random_variant;
extern const struct variant router_least_loaded_variant;
extern const struct variant router_central_queue_variant;

/* The registry behind fleet.router.policy, and the names that later work brings. */
extern const struct variant *const router_variants[];
extern const char *const router_later[];

#endif
