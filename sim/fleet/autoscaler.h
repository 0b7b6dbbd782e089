/* Autoscalers: how many replicas a pool should have. A policy is a const struct of callbacks in its
 * own file, registered by one line in autoscaler.c. State is per pool. */
#ifndef FLEETSIM_SIM_FLEET_AUTOSCALER_H
#define FLEETSIM_SIM_FLEET_AUTOSCALER_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/field.h"
#include "sim/base/time.h"

/* What a policy sees at a decision. */
struct autoscaler_signal {
    int64_t now_ps;
    uint32_t ready, starting, draining; /* replicas; ready ones take requests */
    uint64_t in_flight;                 /* requests running or waiting anywhere in the pool */
    int64_t window_ps;                  /* since the previous decision; 0 at the first */
    int128 work_ps; /* work executed in the window (obs_steps.work_ps), summed over replicas */
};

struct autoscaler_decision {
    uint32_t wished;    /* by the signal, before windows and limits */
    uint32_t target;    /* replicas to have, ready + starting */
    double metric;      /* the signal per ready replica; NaN where there is none */
    const char *reason; /* static text */
};

struct autoscaler_type {
    /* Per-pool state from the filled config; NULL where none is needed. */
    void *(*create)(const void *config);
    void (*destroy)(void *state);
    /* What is wrong with a filled config that its table cannot tell, as text; NULL: nothing. The
     * function itself may be NULL. */
    const char *(*refuse)(const void *config);
    /* Between decisions; the first is at time 0, after the arrivals of that instant. TIME_NEVER:
     * none is ever taken. */
    int64_t (*interval)(const void *config);
    /* Fewest and most replicas; initial: what initial_replicas defaults to, or UINT32_MAX when the
     * need at hour 0 decides. */
    void (*limits)(const void *config, uint32_t *min, uint32_t *max, uint32_t *initial);
    void (*decide)(void *state, const struct autoscaler_signal *signal,
                   struct autoscaler_decision *decision);
};

/* One file each. */
extern const struct variant autoscaler_static_variant;
extern const struct variant autoscaler_target_variant;

/* The registry behind autoscaler.policy, and the names that later work brings. */
extern const struct variant *const autoscaler_variants[];
extern const char *const autoscaler_later[];

#endif
