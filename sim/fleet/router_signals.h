/* What stands between replicas and a router whose loads are read now and then instead of being
 * known: readings wait here for their delay, and what was sent since is added. */
#ifndef FLEETSIM_SIM_FLEET_ROUTER_SIGNALS_H
#define FLEETSIM_SIM_FLEET_ROUTER_SIGNALS_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/fleet/router.h"

/* One slot in a reading; life: how often it had become ready. */
struct router_read {
    struct router_reading reading;
    uint32_t pool, slot, life;
    uint64_t sent;
};

/* A reading of all slots. */
struct router_readings {
    struct router_read *slots; /* owned; [slots of router_signals] */
    uint32_t count;
};

struct router_slot {
    uint32_t known; /* the load that the policy has */
    uint32_t life;
    uint64_t sent; /* dispatches to it since it became ready */
    bool ready;
};

struct router_signals {
    struct router_signal_config config;
    const struct router_type *type; /* borrowed */
    void *state;                    /* borrowed: the policy's */
    uint32_t slot_count;
    struct router_slot *slots;     /* owned; [slot_count] */
    struct router_readings *queue; /* owned; a ring of [capacity], oldest at first */
    uint32_t capacity, first, count;
    uint64_t decisions, stale;
};

/* config NULL, or its interval 0: loads are always those of now. */
void router_signals_init(struct router_signals *s, const struct router_signal_config *config,
                         const struct router_type *type, void *state);
void router_signals_free(struct router_signals *s);
void router_signals_resize(struct router_signals *s, uint32_t slots);
static inline bool router_signals_polled(const struct router_signals *s)
{
    return s->config.interval_ps > 0;
}
/* A replica begins or ceases to take requests; tells the policy. */
void router_signals_ready(struct router_signals *s, uint32_t pool, uint32_t slot, bool ready);
/* The load of a ready replica is this now: after a request was sent to it, after one that it had no
 * room for, or for another reason. Tells the policy as much as it may know. */
void router_signals_sent(struct router_signals *s, uint32_t pool, uint32_t slot,
                         uint32_t in_flight);
void router_signals_refused(struct router_signals *s, uint32_t pool, uint32_t slot,
                            uint32_t in_flight);
void router_signals_load(struct router_signals *s, uint32_t pool, uint32_t slot,
                         uint32_t in_flight);
/* A request is about to be sent to a replica whose load is this. */
void router_signals_decided(struct router_signals *s, uint32_t slot, uint32_t in_flight);

/* For a reading: begins one, takes each ready slot in turn, and, delay later, hands the oldest on
 * to the policy. */
void router_signals_begin(struct router_signals *s);
void router_signals_read(struct router_signals *s, uint32_t pool, uint32_t slot,
                         const struct router_reading *reading);
void router_signals_deliver(struct router_signals *s);

#endif
