/* Observations: everything the engine and the fleet let the world see. Metrics, the request log,
 * and tests are sinks of these; the simulation never reads them back. Emitted in the run's total
 * order, except that steps of a span are reported when the span is settled. */
#ifndef FLEETSIM_SIM_BASE_OBS_H
#define FLEETSIM_SIM_BASE_OBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/base/check.h"
#include "sim/base/request.h"
#include "sim/base/time.h"

enum obs_kind {
    OBS_ARRIVAL, /* u.request: a request arrived, before any decision on it; pool and replica unset
                  */
    OBS_ADMIT, /* u.record: first admission (admitted_ps is set). Not repeated after a preemption */
    OBS_FIRST_TOKEN, /* u.record: first_token_ps is set */
    OBS_GAP,         /* u.gap: one inter-token gap that spans a preemption (regular gaps come with
                        OBS_STEPS) */
    OBS_PREEMPT,     /* u.record: as it stands */
    OBS_END,         /* u.record: final, whatever the outcome */
    OBS_STEPS,       /* u.steps: one or more equal-composition iterations are complete */
    OBS_REPLICA,     /* u.state: a replica changed state */
    OBS_SCALE,       /* u.scale: an autoscaler decided a change */
    OBS_GAUGE,       /* u.gauge: a sample of one pool, taken every gauge interval */
    OBS_PREFIX, /* u.prefix: a sequence was looked up in its replica's prefix cache and admitted;
                   after the ADMIT of a first admission. Only with enable_prefix_caching */
    OBS_KIND_COUNT
};

/* Iterations 0 … count-1 of one composition. Iteration i starts at start_ps + Σ_{j<i} step(j),
 * takes step(i) = base_ps + slope_ps·i, and emits `decodes` gaps of exactly step(i) each (plus what
 * FIRST_TOKEN and GAP report). */
struct obs_steps {
    int64_t start_ps;
    int64_t end_ps; /* = start_ps + Σ step(i) */
    int64_t base_ps, slope_ps;
    uint32_t count;   /* ≥ 1, ≤ 65,536 */
    uint32_t decodes; /* sequences that decoded one token in each iteration with a regular gap */
    uint32_t decode_tokens;  /* tokens computed by decodes in each iteration (decodes + those
                                resuming from a preemption) */
    uint32_t prefill_tokens; /* prompt-chunk tokens computed in each iteration, recomputed ones
                                included */
    uint32_t running;        /* sequences in the batch */
    int64_t decode_ps; /* of (end − start): what the decodes alone would have taken, summed; the
                          rest is prefill's */
    int64_t work_ps; /* the work at full utilisation, summed, for utilisation (rate: decodes/rate +
                        prefill/rate; others: the busy time) */
};

/* What a replica can be doing. held = provisioning … draining; ready = serving + idle. */
enum replica_state {
    REPLICA_RELEASED,     /* not held, not billed */
    REPLICA_PROVISIONING, /* node and image */
    REPLICA_LOADING,      /* weights, engine init, warm-up */
    REPLICA_SERVING,      /* ready, a step is running */
    REPLICA_IDLE,         /* ready, nothing to do */
    REPLICA_DRAINING,     /* takes no new request, finishes what it has */
    REPLICA_STATE_COUNT
};

struct obs_state {
    enum replica_state from, to;
    int64_t since_ps;    /* when `from` began: [since, time) was spent in it */
    int64_t launched_ps; /* billing start of this launch */
};

struct obs_scale {
    uint32_t ready, starting, draining; /* before the decision is carried out */
    uint32_t wished;                    /* what the policy wanted, before limits */
    uint32_t target;                    /* what it became: ready + starting after */
    double metric;                      /* the signal it saw, NaN where none */
    const char *reason;                 /* static text */
};

/* One pool at one instant, iterations in flight included: their KV blocks are allocated. */
struct obs_gauge {
    uint64_t running;        /* sequences in batches */
    uint64_t waiting;        /* requests queued at replicas or in the pool's central queue */
    int64_t kv_blocks;       /* KV blocks in use, summed over held replicas */
    int64_t kv_blocks_total; /* of them in all, summed; INT64_MAX when unlimited */
    int64_t kv_blocks_max;   /* in use at the fullest replica */
    uint64_t ready;          /* replicas that take requests */
    uint64_t load, load_max; /* requests at those: in all, and at the one with most */
};

/* One admission's look into the prefix cache. */
struct obs_prefix {
    const struct request_record *record; /* borrowed; with this hit counted */
    bool first;                          /* first admission; else after a preemption */
    uint32_t hit_tokens;                 /* found: in whole blocks, < lookup_tokens */
    uint32_t cached_tokens; /* of them, prompt tokens that it had never stored before: summed over
                               its admissions, record.cached_tokens */
    uint32_t lookup_tokens; /* looked up: the prompt; after a preemption with the outputs so far */
    uint32_t block_size;    /* tokens */
};

struct obs {
    enum obs_kind kind;
    uint32_t pool;    /* index in fleet.pools; UINT32_MAX before routing */
    uint32_t replica; /* launch number in the pool, from 0; UINT32_MAX before routing */
    int64_t time_ps;  /* when it happened; STEPS: = end_ps */
    union {
        const struct request *request;
        const struct request_record *record;
        const struct obs_steps *steps;
        const struct obs_state *state;
        const struct obs_scale *scale;
        const struct obs_gauge *gauge;
        const struct obs_prefix *prefix;
        int64_t gap_ps;
    } u; /* borrowed for the call */
};

/* A receiver. */
typedef void obs_take(void *self, const struct obs *obs);
struct obs_sink {
    obs_take *take;
    void *self;
    uint32_t kinds;           /* bit 1 << obs_kind: what it wants to see; 0: everything */
    obs_take *const *by_kind; /* [OBS_KIND_COUNT]; not NULL: what take comes to for each kind */
};

static inline void obs_emit(const struct obs_sink *sink, const struct obs *obs)
{
    sink->take(sink->self, obs);
}

/* Receivers sorted by what they want, so that emitting asks nobody. */
enum { OBS_SINKS_MAX = 15 };
struct obs_outlet {
    obs_take *take;
    void *self;
};
struct obs_fan {
    /* In the order given; behind the last one a take of NULL. */
    struct obs_outlet outlets[OBS_KIND_COUNT][OBS_SINKS_MAX + 1];
};

/* One more receiver, behind the others. */
static inline void obs_fan_add(struct obs_fan *fan, const struct obs_sink *sink)
{
    for (int kind = 0; kind < OBS_KIND_COUNT; kind++) {
        if (sink->kinds == 0 || (sink->kinds >> kind & 1) != 0) {
            struct obs_outlet *end = fan->outlets[kind];
            while (end->take != NULL) {
                end++;
            }
            check(end < &fan->outlets[kind][OBS_SINKS_MAX]);
            obs_take *take = sink->by_kind != NULL ? sink->by_kind[kind] : sink->take;
            *end = (struct obs_outlet){take, sink->self};
            end[1] = (struct obs_outlet){.take = NULL};
        }
    }
}

static inline void obs_fan_init(struct obs_fan *fan, const struct obs_sink *sinks, size_t count)
{
    for (int kind = 0; kind < OBS_KIND_COUNT; kind++) {
        fan->outlets[kind][0] = (struct obs_outlet){.take = NULL};
    }
    for (size_t i = 0; i < count; i++) {
        obs_fan_add(fan, &sinks[i]);
    }
}

/* To every receiver that wants it, in order. */
static inline void obs_fan_emit(const struct obs_fan *fan, const struct obs *obs)
{
    for (const struct obs_outlet *o = fan->outlets[obs->kind]; o->take != NULL; o++) {
        o->take(o->self, obs);
    }
}

#endif
