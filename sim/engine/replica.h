/* One serving engine: batch scheduler, KV and clock of a replica, after the rules of vLLM's v1
 * scheduler (docs/engine.md). It does not know the router or the fleet: it is told about requests
 * and events, answers when its next step event is due, and reports what happens as observations.
 *
 * Between two visible events the batch's composition is constant, so its iterations form a span
 * that is settled in closed form. With engine.span_max = 1 every iteration is an event; results are
 * the same to the bit. */
#ifndef FLEETSIM_SIM_ENGINE_REPLICA_H
#define FLEETSIM_SIM_ENGINE_REPLICA_H

#include <stdbool.h>
#include <stdint.h>

#include "models/step_time.h"
#include "sim/engine/engine.h"
#include "sim/engine/finish.h"
#include "sim/engine/kv.h"
#include "sim/engine/prefix_cache.h"
#include "sim/engine/sequence.h"

struct replica {
    const struct engine *engine; /* borrowed */
    uint32_t slot;               /* its index in the fleet: what sequences refer to */
    uint32_t launch;             /* launch number in its pool, for observations */
    bool running;                /* an iteration is in flight */
    bool draining;   /* takes nothing from the pool's queue; the fleet sends it nothing */
    int64_t next_ps; /* its step event; TIME_NEVER: none */
    /* While it is new: iterations that start before slow_until_ps take slow_factor ≥ 1 times as
     * long (lazily loaded kernels, caches of all kinds). */
    int64_t slow_until_ps;
    int64_t slow_factor;

    /* The span in flight. Iteration 0 started at origin_ps; the step event is at its end. */
    int64_t origin_ps;
    uint64_t iteration;         /* iterations completed before the origin, ever */
    uint32_t span;              /* iterations planned, ≥ 1 */
    struct step_law law;        /* of the batch */
    struct step_law decode_law; /* of its decodes alone (only with both kinds): splits the cost */
    int64_t work_ps;            /* per iteration, see obs_steps.work_ps; -1: the step itself */
    struct step_batch batch;    /* composition at the origin */
    struct step_batch decode_batch; /* of its decodes alone (only with both kinds) */

    /* Running sequences in order of admission: decodes first, then those still prefilling. */
    struct sequence_list run;
    struct sequence_list wait;
    uint32_t prefill_head; /* first prefilling sequence of run */
    uint32_t last_chunk;   /* tokens per iteration of the last prefilling sequence; the others
                              reach their target in this iteration */
    uint32_t decodes;      /* alive decodes: batch.decodes, less those cancelled since */
    int64_t decode_kv;     /* tokens they have stored at the origin */
    uint32_t growing;      /* alive decodes with less than the model's window stored */
    int64_t window_kv;     /* Σ min(stored, window) over the alive decodes, at the origin */
    struct finish *finish; /* owned; heap of the alive decodes, [seats] */
    uint32_t *outcomes;    /* owned scratch of one boundary, [seats]: who has something to report */
    struct finish *saturate; /* owned; heap of the growing decodes by the iteration that fills their
                                window, [seats]; only with a window */
    uint32_t seats;          /* grows with the largest batch */
    struct kv kv;
    struct prefix_cache *prefix; /* owned; NULL: no prefix caching */
    bool head_may_grow;          /* the batch may publish what the head of the queue lacks */
};

void replica_init(struct replica *r, const struct engine *engine, uint32_t slot, uint32_t launch);
void replica_free(struct replica *r);
/* It is released: the listener forgets what it had cached. */
void replica_forget(const struct replica *r);

/* Requests in its batch and in its own queue. */
static inline uint32_t replica_in_flight(const struct replica *r)
{
    return r->run.count + r->wait.count;
}
/* Whether one more request may be sent: running + waiting < max_num_seqs + max_queue. */
bool replica_has_room(const struct replica *r);

/* A waiting sequence joins the tail of its queue at t. All calls below may change next_ps; the
 * caller passes it on to the event queue. */
void replica_enqueue(struct replica *r, uint32_t sequence, int64_t t);
/* A request waits in the pool's own queue since t: the span in flight must end at its first
 * boundary at or after t if a seat, budget and KV are open. */
void replica_offer(struct replica *r, uint32_t sequence, int64_t t);
/* The step event at next_ps = t: completes the span, reports outcomes, forms the next batch. */
void replica_step(struct replica *r, int64_t t);
/* Accounts every iteration that is complete at t (t before its next step event): for gauges and
 * interval edges. Changes no outcome. */
void replica_settle(struct replica *r, int64_t t);
/* The same at an interval's edge, where the iteration in flight is split by time: with decodes and
 * prefills in it, whose shares change from one iteration to the next, it becomes a span by itself.
 */
void replica_settle_edge(struct replica *r, int64_t t);
/* KV blocks in use at t (before its next step event), those of the iteration in flight included:
 * kv.used as it would be after a settle. */
int64_t replica_kv_used(const struct replica *r, int64_t t);
/* The client of a waiting or running sequence of this replica leaves at t. */
void replica_cancel(struct replica *r, uint32_t sequence, int64_t t);
/* For form.c: a sequence that has stored its target begins to decode, from the next start on; a
 * decode ceases to (the finish heap apart). in_flight: tokens it is storing in an iteration that
 * goes on without it. */
void replica_decode_join(struct replica *r, uint32_t sequence);
void replica_decode_leave(struct replica *r, uint32_t sequence, uint32_t in_flight);

/* Brings the record of one of its sequences up to date as of the last settle (emitted_tokens lags
 * while it decodes). */
void replica_sync(const struct replica *r, uint32_t sequence);

/* Cached blocks that other requests may hit (those like nobody else's are left out), iteration in
 * flight included, as of the last settle. 0 without prefix caching. */
uint32_t replica_cached_blocks(const struct replica *r);

#endif
