#include "sim/engine/replica_refresh.h"

void replica_refresh(struct replica *r, int64_t t, int64_t stall_ps)
{
    if (!r->running) {
        return;
    }
    replica_settle(r, t);
    r->law.base_ps = time_add(r->law.base_ps, stall_ps);
    if (r->batch.decodes > 0 && r->batch.prefills > 0) { /* both kinds wait */
        r->decode_law.base_ps = time_add(r->decode_law.base_ps, stall_ps);
    }
    r->span = 1;
    r->next_ps = time_add(r->origin_ps, r->law.base_ps);
}
