/* The fleet: pools of replicas behind one router, each pool with its autoscaler and cold start. It
 * turns events into calls on replicas and keeps who is held, ready and draining; it owns no clock:
 * sim/run pops events and calls in. */
#ifndef FLEETSIM_SIM_FLEET_FLEET_H
#define FLEETSIM_SIM_FLEET_FLEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/base/event_queue.h"
#include "sim/base/field.h"
#include "sim/base/obs.h"
#include "sim/engine/engine.h"
#include "sim/engine/replica.h"
#include "sim/fleet/autoscaler.h"
#include "sim/fleet/cold_start.h"
#include "sim/fleet/router.h"

/* Whom a scale-down takes of those that are ready; ties go to the newest. */
enum fleet_victim {
    FLEET_VICTIM_LEAST_LOADED, /* fewest requests running or waiting */
    FLEET_VICTIM_NEWEST,
    FLEET_VICTIM_LEAST_CACHED, /* fewest KV blocks that other requests could hit */
};

struct fleet_pool_config {
    const char *name;
    const struct engine_config *engine;
    struct step_model model;
    int64_t max_queue;         /* waiting requests per replica; FIELD_INT_UNLIMITED */
    uint32_t initial_replicas; /* ready and billed from time 0 */
    enum fleet_victim victim;
    const struct variant_value *autoscaler;
    const struct cold_start_config *cold_start;
    struct autoscaler_env env;
};

struct fleet_config {
    const struct fleet_pool_config *pools; /* all borrowed while the fleet lives */
    uint32_t pool_count;                   /* ≤ ROUTER_POOLS_MAX */
    const struct variant_value *router;
    uint64_t seed;
    uint32_t replication;
    int64_t horizon_ps;           /* decisions stop here */
    uint32_t span_max;            /* ENGINE_SPAN_MAX, or 1 */
    const struct obs_sink *sinks; /* every observation goes to each, in order */
    size_t sink_count;
};

/* Kinds of EVENT_TIMER that belong to the fleet; others pass theirs from FLEET_TIMER_COUNT on. */
enum fleet_timer {
    FLEET_TIMER_DECIDE, /* payload: pool */
    FLEET_TIMER_PHASE,  /* payload: slot; a cold-start phase ends */
    FLEET_TIMER_SCRAPE, /* payload: pool */
    FLEET_TIMER_READ,   /* the router's loads are read */
    FLEET_TIMER_TELL,   /* the router gets what was read a delay ago */
    FLEET_TIMER_COUNT
};

/* Totals for the audit. */
struct fleet_totals {
    uint64_t arrived, ended; /* requests */
    uint64_t spans, iterations;
    int64_t kv_blocks_leaked; /* blocks still used by replicas that hold nothing: 0 */
    /* Of a router whose loads are read now and then: its decisions, and those for a replica whose
     * load was another than the router thought. */
    uint64_t routed, routed_stale;
};

struct fleet;

/* The initial replicas are ready when this returns (observed at time 0); the first decisions are
 * pushed to queue, which is borrowed. */
struct fleet *fleet_create(const struct fleet_config *config, struct event_queue *queue);
void fleet_free(struct fleet *fleet);

/* A request arrives at request->arrival_ps; it may go to any of pools. Its hashes are the fleet's
 * from here on: they are given back when it has ended. Returns its sequence while it is in flight,
 * SEQUENCE_NONE if it ended at once (refused, unservable). */
uint32_t fleet_arrive(struct fleet *fleet, const struct request *request, const uint32_t *pools,
                      uint32_t pool_count);
/* This was the last request of its session. */
void fleet_session_over(struct fleet *fleet, const struct request *request);
/* The client of a sequence in flight leaves at t. */
void fleet_cancel(struct fleet *fleet, uint32_t sequence, int64_t t);
/* Step event of a replica slot. */
void fleet_step(struct fleet *fleet, uint32_t slot, int64_t t);
/* A FLEET_TIMER event. */
void fleet_timer(struct fleet *fleet, enum fleet_timer kind, uint64_t payload, int64_t t);
/* Takes one ready replica out of service, as a scale-down does: it gets nothing new, finishes what
 * it has, and is released. */
void fleet_drain(struct fleet *fleet, uint32_t slot, int64_t t);
/* Settles every replica to t, after the steps at t: before gauges and interval edges. */
void fleet_settle(struct fleet *fleet, int64_t t);
/* The same for an output interval that ends at t. */
void fleet_edge(struct fleet *fleet, int64_t t);
/* Settles, then emits one OBS_GAUGE per pool. */
void fleet_gauge(struct fleet *fleet, int64_t t);
/* Ends every request in flight as OUTCOME_IN_FLIGHT at t, in order of id. */
void fleet_cut(struct fleet *fleet, int64_t t);

/* Requests in flight, and requests held because no replica was ready. */
uint64_t fleet_in_flight(const struct fleet *fleet);
/* Largest KV use of any replica of the pool, ever. */
int64_t fleet_kv_peak(const struct fleet *fleet, uint32_t pool);
/* Requests that arrived while a replica of their pool was starting, or started one. */
uint64_t fleet_met_cold_start(const struct fleet *fleet);
/* Mean absolute error of the pool's autoscaler's own forecasts, as a share; NaN: it made none. */
double fleet_forecast_error(const struct fleet *fleet, uint32_t pool);
struct fleet_totals fleet_totals(const struct fleet *fleet);

#endif
