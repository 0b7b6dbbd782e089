/* A pool's step-time model changes while the run goes on. */
#ifndef FLEETSIM_SIM_FLEET_FLEET_REFRESH_H
#define FLEETSIM_SIM_FLEET_FLEET_REFRESH_H

#include "sim/fleet/fleet.h"

/* Tells every replica of the pool, at t and from within a timer (so after the steps at t), before
 * the model changes: iterations that start later have the new law; the one in flight takes stall_ps
 * longer. */
void fleet_refresh(struct fleet *fleet, uint32_t pool, int64_t t, int64_t stall_ps);

#endif
