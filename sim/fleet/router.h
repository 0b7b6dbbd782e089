/* Routers: which replica gets an arriving request. A policy is a const struct of callbacks in its
 * own file, registered by one line in router.c. It sees loads through the calls below, never the
 * engines. pick, load and cached take O(log replicas), ready and reading may look at all. */
#ifndef FLEETSIM_SIM_FLEET_ROUTER_H
#define FLEETSIM_SIM_FLEET_ROUTER_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/field.h"
#include "sim/base/request.h"

enum { ROUTER_NONE = UINT32_MAX, ROUTER_POOLS_MAX = 64 };

/* How old the loads are that a policy acts on: the `signals:` mapping of a router. */
struct router_signal_config {
    int64_t interval_ps; /* between readings of all replicas; 0: loads are always those of now */
    int64_t delay_ps;    /* from a reading until the policy has it */
    bool count_own;      /* its own dispatches since the reading count at once */
};
extern const struct field router_signal_fields[];
/* The same for policies that cannot do without readings: the interval is not 0. */
extern const struct field router_reading_fields[];
/* Limits: the shortest interval, and the most readings under way (delay over interval). */
#define ROUTER_INTERVAL_MIN_PS (PS_PER_SECOND / 1000)
enum { ROUTER_READINGS_MAX = 1000 };
#define ROUTER_SIGNALS_DOC "How old the loads are that the router acts on"

/* One replica at a reading. */
struct router_reading {
    uint32_t in_flight;    /* requests running or waiting */
    uint32_t waiting;      /* of them */
    int64_t kv_millionths; /* of its KV blocks in use; 0 when they are unlimited */
};

/* What a policy may know of a pool. */
struct router_pool {
    uint32_t block_size; /* tokens */
    uint32_t max_num_seqs;
};

/* What a policy is created with. */
struct router_env {
    uint32_t pool_count;
    const struct router_pool *pools; /* [pool_count], borrowed while the router lives */
    uint32_t slots;                  /* replica slots, all pools together; grows by resize */
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
    /* A request was the last of its session. NULL: the policy does not care. */
    void (*over)(void *state, const struct request *request);
    /* How old its loads may be; NULL: it has no such setting. */
    const struct router_signal_config *(*signals)(const void *config);
    /* A reading of a ready replica that the policy now has; its load is told right after it. NULL:
     * the policy needs load only. */
    void (*reading)(void *state, uint32_t pool, uint32_t slot,
                    const struct router_reading *reading);
    /* A replica has that many blocks of one node of the tree of prompts cached (prefix_chain.h
     * names nodes by keys); 0: none any more. Between two picks it is told of all that has changed:
     * whoever has any of a node then has all before it. NULL: the policy does not care. */
    void (*cached)(void *state, uint32_t slot, uint64_t key, uint32_t blocks);
};

/* One file each. */
extern const struct variant router_round_robin_variant;
extern const struct variant router_random_variant;
extern const struct variant router_least_loaded_variant;
extern const struct variant router_power_of_two_variant;
extern const struct variant router_session_sticky_variant;
extern const struct variant router_prefix_aware_variant;
extern const struct variant router_weighted_variant;
extern const struct variant router_central_queue_variant;

/* The registry behind fleet.router.policy. */
extern const struct variant *const router_variants[];

#endif
