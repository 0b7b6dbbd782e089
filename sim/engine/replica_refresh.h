/* The step-time model of a replica is about to change: the laws of the iterations to come may
 * differ from that of the span in flight. */
#ifndef FLEETSIM_SIM_ENGINE_REPLICA_REFRESH_H
#define FLEETSIM_SIM_ENGINE_REPLICA_REFRESH_H

#include "sim/engine/replica.h"

/* At t, after the steps at t: the iteration in flight (started at or before t) keeps its law and
 * takes stall_ps longer, for it waits for something; the span ends with it, so that every later
 * iteration asks the model anew. Whether an iteration started before or after t is the same in
 * spans and in single steps, so both modes agree. An idle replica does not wait. Changes next_ps.
 */
void replica_refresh(struct replica *r, int64_t t, int64_t stall_ps);

#endif
