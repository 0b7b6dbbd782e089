/* Inside sim/fleet: the state behind struct fleet, and what happens to pools and their slots. */
#ifndef FLEETSIM_SIM_FLEET_FLEET_POOL_H
#define FLEETSIM_SIM_FLEET_FLEET_POOL_H

#include "sim/fleet/fleet.h"
#include "sim/fleet/router_signals.h"
#include "sim/fleet/signals.h"

/* One place for a replica. A released slot is used again: the lowest free one first. */
struct fleet_slot {
    struct replica replica; /* valid from SERVING on */
    uint32_t pool, launch;
    enum replica_state state;
    int64_t since_ps, launched_ps;
    event_handle phase_timer; /* while starting */
    struct cold_start_course course;
    bool fetching;     /* loading weights from the pool's shared store */
    int128 fetched_at; /* the store's progress at which it has them */
    int64_t event_ps;  /* the step event in the queue */
    uint32_t load;     /* the load the router knows */
};

/* A store of weights that all replicas of a pool that load at once share evenly. Its progress is
 * what each of those has been given since the start, in 2^-10 bytes × ps per s, so that it is a
 * whole number at every instant. */
struct fleet_store {
    bool shared;
    double bandwidth, own_limit; /* bytes/s */
    int128 size;                 /* the weights, in units of progress */
    uint32_t loading;
    int128 progress;
    int64_t rate; /* of progress per ps */
    int64_t settled_ps;
};

struct fleet_pool {
    struct engine engine;
    const struct autoscaler_type *autoscaler; /* with its config and owned state */
    const void *autoscaler_config;
    void *autoscaler_state;
    const struct cold_start_config *cold_start;
    uint32_t initial_replicas;
    enum fleet_victim victim;
    uint32_t launches;
    uint64_t cold_start_key; /* of its chance */
    bool was_ready;          /* a replica of it ever was */
    struct fleet_store store;
    uint32_t ready, starting, draining; /* replicas */
    uint64_t arrived;
    uint64_t met_cold_start;    /* of them, while a replica was starting, or starting one */
    struct engine_tally tally;  /* ended: requests that ended without a replica too */
    struct signals signals;     /* what the autoscaler sees of all this */
    uint32_t min_replicas;      /* of the autoscaler; 0: the first to arrive starts a replica */
    struct sequence_list queue; /* central queue; else requests that wait for a ready replica */
    int64_t kv_peak;            /* of replicas released since */
};

struct fleet {
    struct event_queue *queue; /* borrowed */
    const struct router_type *router;
    void *router_state;                   /* owned; NULL for a central queue */
    struct router_pool *router_pools;     /* owned; what the router may know of the pools */
    struct router_signals router_signals; /* between the replicas and the router */
    struct prefix_listener listener;      /* the router, where it asks for what is cached */
    struct obs_fan fan;
    int64_t horizon_ps;
    uint32_t pool_count, slot_count;
    uint32_t taken_slots;     /* no slot below this one is free */
    struct fleet_pool *pools; /* owned */
    struct fleet_slot *slots; /* owned; moves when a launch needs a new slot */
    struct sequence_table sequences;
    struct fleet_totals totals;
    bool cut;
};

static inline uint64_t fleet_pool_in_flight(const struct fleet_pool *pool)
{
    return pool->arrived - pool->tally.ended;
}

void fleet_pool_init(struct fleet *f, uint32_t pool, const struct fleet_config *config);
void fleet_pool_free(struct fleet_pool *pool);
/* Room for `count` replicas at once. */
void fleet_slots_reserve(struct fleet *f, uint32_t count);
/* Makes the initial replicas ready and pushes the first decision. */
void fleet_pool_start(struct fleet *f, uint32_t pool);
/* Whether the pool's own queue may take one more request: running + waiting below the sum over its
 * ready replicas of max_num_seqs + max_queue; while all of them are starting, fewer than max_queue
 * waiting; with none at all, only if the first to arrive starts one. */
bool fleet_pool_has_room(const struct fleet *f, uint32_t pool);
/* A request joins the pool's own queue at t, and starts a replica where there is none. */
void fleet_pool_wait(struct fleet *f, uint32_t pool, uint32_t sequence, int64_t t);
/* The queue has a new head since t, by the step of the replica at slot `by` (ROUTER_NONE: by an
 * event before the steps at t): every other replica that could take it must look at its next
 * boundary. */
void fleet_pool_offer(struct fleet *f, uint32_t pool, uint32_t by, int64_t t);
/* Sends a request to a replica. */
void fleet_dispatch(struct fleet *f, uint32_t slot, uint32_t sequence, int64_t t);
/* A replica was picked and had no room: for the router that was a dispatch all the same. */
void fleet_slot_refused(struct fleet *f, uint32_t slot);

/* Makes the router, and frees it. */
void fleet_router_begin(struct fleet *f, const struct fleet_config *config);
void fleet_router_end(struct fleet *f);
/* Its pick among these pools for a request; ROUTER_NONE: no replica is ready. */
uint32_t fleet_router_pick(struct fleet *f, const struct request *request, const uint32_t *pools,
                           uint32_t pool_count);
/* Reads the loads of all replicas for it. */
void fleet_router_read(struct fleet *f, int64_t t);
/* For fleet_slot_changed: a replica began or ceased to run, or is draining. */
void fleet_slot_moved(struct fleet *f, uint32_t slot, int64_t t);
/* After anything that may have changed a replica: its step event, its state, its load at the
 * router. */
static inline void fleet_slot_changed(struct fleet *f, uint32_t slot, int64_t t)
{
    struct fleet_slot *s = &f->slots[slot];
    const struct replica *r = &s->replica;
    if (r->next_ps != s->event_ps) {
        s->event_ps = r->next_ps;
        event_queue_step(f->queue, slot, r->next_ps);
    }
    if (s->state != (r->running ? REPLICA_SERVING : REPLICA_IDLE)) {
        fleet_slot_moved(f, slot, t);
    }
    uint32_t load = replica_in_flight(r);
    if (load != s->load && (s->state == REPLICA_SERVING || s->state == REPLICA_IDLE)) {
        s->load = load;
        router_signals_load(&f->router_signals, s->pool, slot, load);
    }
}

#endif
