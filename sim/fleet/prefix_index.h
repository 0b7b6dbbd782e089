/* Which replicas have how much of which prompt cached, as far as they have told: a map from the
 * nodes of the tree of prompts (prefix_chain.h) to the replicas that hold them. A replica tells
 * when a step of its has ended with something to report, as engines publish cache events, so a
 * router never sees what is still being computed. Whoever holds any of a node holds all of those
 * before it, as far as they lie before it. */
#ifndef FLEETSIM_SIM_FLEET_PREFIX_INDEX_H
#define FLEETSIM_SIM_FLEET_PREFIX_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A replica that holds the first `blocks` ≥ 1 blocks of a node. */
struct prefix_holder {
    uint32_t slot, blocks;
    uint32_t life; /* of the slot when it told: how often it had become ready */
};

struct prefix_index;

struct prefix_index *prefix_index_create(uint32_t slots);
void prefix_index_free(struct prefix_index *index);
void prefix_index_resize(struct prefix_index *index, uint32_t slots);
/* Another replica is at the slot now, or none: what it held is gone. O(1). */
void prefix_index_forget(struct prefix_index *index, uint32_t slot);
/* The replica at slot has that many blocks of the node cached; 0: none. O(log holders) and a move.
 */
void prefix_index_put(struct prefix_index *index, uint32_t slot, uint64_t node, uint32_t blocks);
/* The holders of a node, by slot; *count 0: none. Valid until the next call that changes anything;
 * those for which prefix_index_holds is false are gone. */
const struct prefix_holder *prefix_index_holders(const struct prefix_index *index, uint64_t node,
                                                 size_t *count);
bool prefix_index_holds(const struct prefix_index *index, const struct prefix_holder *holder);
/* Blocks of the node that the replica at slot holds; 0: none. */
uint32_t prefix_index_blocks(const struct prefix_index *index, uint64_t node, uint32_t slot);

#endif
