/* What a replica does with its prefix cache: looking a request up, taking what is there, and
 * telling the cache what the batch has filled. All of it only with enable_prefix_caching
 * (r->prefix). */
#ifndef FLEETSIM_SIM_ENGINE_REPLICA_PREFIX_H
#define FLEETSIM_SIM_ENGINE_REPLICA_PREFIX_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/engine/prefix_cache.h"

struct replica;

/* Whether the head of a queue fits now, with `budget` tokens left, and what of it is cached. When
 * it does not, r->head_may_grow says whether the batch may publish its next block. */
bool replica_prefix_fits(struct replica *r, uint32_t sequence, uint32_t budget,
                         struct prefix_match *match);
/* It is admitted at t with a chunk behind what was found: takes the blocks of both and publishes
 * those that the chunk fills. */
void replica_prefix_admit(struct replica *r, uint32_t sequence, const struct prefix_match *match,
                          uint32_t chunk, int64_t t);
/* A running sequence was given `tokens` more, and their blocks: publishes, if its turn matters. */
void replica_prefix_turn(struct replica *r, uint32_t sequence, uint32_t tokens);
/* A sequence that has stored s->stored tokens leaves the batch with `total` blocks, in_flight
 * tokens of which the iteration that goes on without it computes; ended: it does not come back.
 * Returns how many of the blocks are free now. */
int64_t replica_prefix_leave(struct replica *r, uint32_t sequence, int64_t total,
                             uint32_t in_flight, bool ended);
/* A prefill has stored its target, and its first token comes out: the listener may know of what it
 * has stored. */
void replica_prefix_first_token(struct replica *r, uint32_t sequence);
/* A visible boundary, or a cancel: the listener learns what has changed. */
void replica_prefix_report(struct replica *r);

#endif
