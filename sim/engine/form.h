/* Forming a batch: who computes what in the next iteration, and for how many iterations that stays
 * true. */
#ifndef FLEETSIM_SIM_ENGINE_FORM_H
#define FLEETSIM_SIM_ENGINE_FORM_H

#include <stdbool.h>
#include <stdint.h>

struct replica;

/* Forms the batch of the iteration that starts at t: running sequences first (preempting from the
 * tail where blocks are short), then waiting ones while budget, seats and KV allow. Fills r->batch
 * and takes the iteration's blocks. An empty run list afterwards means there is nothing to do.
 * Returns whether somebody was preempted. */
bool form_batch(struct replica *r, int64_t t);

/* How many iterations the batch just formed lasts, ≥ 1: until the next finish, a prefill's last
 * chunk, KV exhaustion, the end of the law's piece, or engine.span_max; one iteration after a
 * preemption, since the next may admit. */
uint32_t form_span(const struct replica *r, bool preempted);

#endif
