/* What round_robin and least_loaded share: one winner tree per pool over the replica slots, the
 * smallest key first. */
#ifndef FLEETSIM_SIM_FLEET_ROUTER_RANKED_H
#define FLEETSIM_SIM_FLEET_ROUTER_RANKED_H

#include "sim/base/rank_tree.h"
#include "sim/fleet/router.h"

struct router_ranked {
    uint32_t pool_count, slots;
    struct rank_tree *trees; /* owned; [pool_count] */
    uint64_t *dispatched;    /* owned; [slots]: rises with the last dispatch to it, 0: none yet */
    uint32_t *load;          /* owned; [slots]: requests in flight */
    uint64_t newest;         /* the greatest one of dispatched */
    uint32_t order_bits;     /* of a rank, that hold dispatched */
    uint64_t load_end;       /* loads below this can be ranked */
    bool by_load;            /* rank by load first; else by the last dispatch alone */
};

struct router_ranked *router_ranked_create(const struct router_env *env, bool by_load);
/* The callbacks of router_type. */
void router_ranked_destroy(void *state);
void router_ranked_resize(void *state, uint32_t slots);
void router_ranked_ready(void *state, uint32_t pool, uint32_t slot, bool ready);
void router_ranked_load(void *state, uint32_t pool, uint32_t slot, uint32_t in_flight);
uint32_t router_ranked_pick(void *state, const struct request *request, const uint32_t *pools,
                            uint32_t pool_count);

/* For policies that rank only where nothing else decides. The slot that pick would return, and a
 * dispatch to a ready slot that it did not choose. */
uint32_t router_ranked_first(const struct router_ranked *r, const uint32_t *pools,
                             uint32_t pool_count);
void router_ranked_sent(struct router_ranked *r, uint32_t pool, uint32_t slot);

#endif
