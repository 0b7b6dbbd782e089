/* How often a prefix cache would hit, from a trace alone: requests one at a time, in file order,
 * through one LRU cache of blocks, for every capacity at once.
 *
 * A request looks its full blocks up from the first one until one is absent, never the block that
 * would leave no token to compute, and never a partial one. Then all its full blocks are in use;
 * the tail of a chain is evicted before its head. Under these rules a cache of C blocks holds the C
 * blocks used last, so a block hits at capacity C if and only if it and all before it in its prompt
 * lie within C of the top of one stack (R. L. Mattson et al., "Evaluation techniques for storage
 * hierarchies", 1970). Depths are counted with a binary indexed tree: O(log blocks) each. */
#ifndef FLEETSIM_SIM_WORKLOAD_PREFIX_STUDY_H
#define FLEETSIM_SIM_WORKLOAD_PREFIX_STUDY_H

#include <stddef.h>
#include <stdint.h>

struct prefix_study;

/* block_size: tokens that one id stands for, ≥ 1. */
struct prefix_study *prefix_study_create(int64_t block_size);
void prefix_study_free(struct prefix_study *study);
/* ids[i] names block i of the prompt together with all before it; more than its full blocks are not
 * looked at. */
void prefix_study_add(struct prefix_study *study, const uint64_t *ids, size_t count,
                      uint32_t prompt_tokens);
/* Different full blocks so far: a cache of that many never evicts. */
uint64_t prefix_study_blocks(const struct prefix_study *study);
/* Block hits of a cache of that many blocks over all requests so far; UINT64_MAX: unlimited. */
uint64_t prefix_study_hits(const struct prefix_study *study, uint64_t capacity);

#endif
