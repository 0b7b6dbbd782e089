/* The settings of one serving engine (vLLM's names), and what the replicas of a pool share. */
#ifndef FLEETSIM_SIM_ENGINE_ENGINE_H
#define FLEETSIM_SIM_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "models/step_time.h"
#include "sim/base/field.h"
#include "sim/base/obs.h"
#include "sim/base/request.h"
#include "sim/engine/prefix_cache.h"
#include "sim/engine/sequence.h"

/* The scenario's `engine:` mapping. */
struct engine_config {
    int64_t max_num_seqs;
    int64_t max_num_batched_tokens;
    int64_t block_size;
    int64_t num_gpu_blocks; /* FIELD_INT_UNLIMITED: no limit */
    int64_t max_model_len;  /* FIELD_INT_UNLIMITED: no limit */
    double gpu_memory_utilization;
    bool enable_chunked_prefill;
    bool enable_prefix_caching;
    int scheduling_policy; /* enum engine_policy */
};

enum engine_policy {
    ENGINE_FCFS,     /* waiting in order of arrival; the last admitted is preempted */
    ENGINE_PRIORITY, /* waiting by (priority, arrival); the last of that order is preempted */
};
extern const struct field engine_fields[];

/* The longest span: cuts are free, and the sums of a span stay far from overflow. */
enum { ENGINE_SPAN_MAX = 65536 };

/* What the replicas of a pool have done, summed. */
struct engine_tally {
    uint64_t spans, iterations, ended; /* ended: requests */
    int128 work_ps;                    /* obs_steps.work_ps */
};

/* What all replicas of a pool share: constant while a run lasts, except what the pointers lead to.
 */
struct engine {
    uint32_t max_num_seqs;
    uint32_t max_num_batched_tokens; /* ≥ max_num_seqs */
    uint32_t block_size;
    int64_t num_gpu_blocks; /* INT64_MAX: unlimited */
    int64_t kv_tokens;      /* that all blocks hold; INT64_MAX: unlimited */
    int64_t max_model_len;  /* INT64_MAX: unlimited */
    int64_t max_queue;      /* waiting requests per replica; INT64_MAX: unlimited */
    bool chunked_prefill;
    bool prefix_caching;
    bool by_priority;  /* scheduling_policy: priority */
    uint32_t window;   /* of the step-time model; 0: none */
    uint32_t span_max; /* iterations per step event: ENGINE_SPAN_MAX, or 1 for --step-by-step */
    uint32_t pool;     /* index in fleet.pools, for observations */
    struct step_model model;
    struct sequence_table *sequences; /* borrowed: shared by the whole fleet */
    struct sequence_list
        *central; /* borrowed: the pool's own queue, served after the replica's; may be NULL */
    struct engine_tally *tally; /* borrowed */
    const struct obs_fan *fan;  /* borrowed: who sees what happens */
    const struct prefix_listener *
        listener; /* borrowed: who learns what replicas made from now on have cached; may be NULL */
};

static inline void engine_emit(const struct engine *engine, const struct obs *obs)
{
    obs_fan_emit(engine->fan, obs);
}

/* Fills engine from its config. max_queue as in the pool's key. */
void engine_init(struct engine *engine, const struct engine_config *config,
                 const struct step_model *model, int64_t max_queue);

/* Whether a request can ever be served: its KV at the last token (prompt + outputs − 1, the last
 * output is never stored) fits in an empty pool, prompt + outputs within max_model_len, and,
 * without chunked prefill, a recomputation at that length within one iteration's budget. */
bool engine_can_serve(const struct engine *engine, const struct request *request);

#endif
