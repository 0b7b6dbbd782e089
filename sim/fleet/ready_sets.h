/* The replicas of one pool that take requests, by slot: for policies that draw among them. */
#ifndef FLEETSIM_SIM_FLEET_READY_SETS_H
#define FLEETSIM_SIM_FLEET_READY_SETS_H

#include <stdbool.h>
#include <stdint.h>

struct ready_set {
    uint32_t *slots; /* owned; ascending */
    uint32_t count, capacity;
};

/* [pool_count], empty. */
struct ready_set *ready_sets_create(uint32_t pool_count);
void ready_sets_free(struct ready_set *sets, uint32_t pool_count);
/* A slot that is not in it joins, or one that is leaves. O(log count) and a move. */
void ready_sets_put(struct ready_set *set, uint32_t slot, bool ready);
/* Replicas in the sets of these pools. */
uint64_t ready_sets_count(const struct ready_set *sets, const uint32_t *pools, uint32_t pool_count);
/* The index-th of them, in the order of pools and then of slots; index below their count. */
uint32_t ready_sets_at(const struct ready_set *sets, const uint32_t *pools, uint64_t index);

#endif
