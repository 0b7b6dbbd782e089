#include "sim/fleet/fleet_refresh.h"

#include "sim/engine/replica_refresh.h"
#include "sim/fleet/fleet_pool.h"

void fleet_refresh(struct fleet *f, uint32_t pool, int64_t t, int64_t stall_ps)
{
    for (uint32_t i = 0; i < f->slot_count; i++) {
        if (f->slots[i].state >= REPLICA_SERVING && f->slots[i].pool == pool) {
            replica_refresh(&f->slots[i].replica, t, stall_ps);
            fleet_slot_changed(f, i, t);
        }
    }
}
