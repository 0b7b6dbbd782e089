/* What a replica needs in memory, per GPU of its layout:
 *
 *     weights + activations + KV pool = gpu_memory_utilization × HBM
 *
 * Sharding rules. Attention, dense FFN, shared experts, router and embeddings are cut by `tensor`
 * and copied by attention_data; routed experts are spread over the whole stage. A GQA cache is cut
 * by tensor down to one KV head per GPU and repeated beyond; an MLA cache is repeated on every GPU
 * of a tensor group; linear state is cut by heads; attention_data cuts by sequences. The fullest
 * stage counts: ceil(layers / stages), with the embedding or the head. */
#ifndef FLEETSIM_MODELS_MEMORY_H
#define FLEETSIM_MODELS_MEMORY_H

#include <stdbool.h>

#include "models/hardware.h"
#include "models/llm.h"
#include "models/parallel.h"
#include "sim/base/errors.h"

struct memory_weights {
    double experts; /* routed, bytes */
    double rest;    /* everything else; embeddings and head are never below BF16 */
    double total;
};
/* Of the whole model, once. */
struct memory_weights memory_weights(const struct llm_spec *llm, const struct precision *precision);

struct memory_query {
    const struct llm_spec *llm;
    const struct gpu_spec *gpu;
    struct parallel parallel;
    struct precision precision; /* resolved: no -1 */
    double utilization;         /* gpu_memory_utilization, (0, 1] */
    bool sheet;                 /* HBM as on the data sheet, not as the driver reports */
    int64_t redundant_experts;  /* extra expert copies per layer */
    double batched_tokens;      /* of one step, per attention_data copy: sizes the activations */
    double reserve_bytes;       /* runtime, graphs, communication buffers */
};
/* Defaults for everything but llm, gpu and parallel: utilisation 0.9, real bytes, 8,192 tokens,
 * 2 GB reserve, the model's usual precision. */
struct memory_query memory_query(const struct llm_spec *llm, const struct gpu_spec *gpu,
                                 const struct parallel *parallel);

struct memory_plan {
    double hbm;         /* of one GPU, bytes, by the chosen convention */
    double usable;      /* × utilisation */
    double weight_rest; /* per GPU of the fullest stage */
    double weight_expert;
    double activations;  /* with the reserve */
    double kv_pool;      /* what is left; negative when it does not fit */
    double kv_per_token; /* bytes one token takes on each GPU that holds it */
    double constant;     /* bytes one sequence takes there whatever its length (state, windows) */
    double kv_tokens;    /* tokens the replica can hold, all attention_data copies, no sequences'
                            constants taken off; infinity when a token takes nothing; 0: no room */
    bool fits;           /* kv_pool > 0 */
};
struct memory_plan memory_plan(const struct memory_query *query);

/* Sequences of `tokens` tokens that the replica can hold at once. */
double memory_sequences(const struct memory_plan *plan, const struct parallel *parallel,
                        double tokens);

/* Reports a layout that does not fit: by how much, and the smallest number of GPUs that would do at
 * the same kind of layout. Returns plan->fits. */
bool memory_check(const struct memory_query *query, const struct memory_plan *plan,
                  struct errors *errors, const struct source_pos *where);

/* Reports (as a warning) formats that this GPU computes in a wider one, and what happens instead.
 * FP4 on Hopper: weights take 4.25 bits but are widened, so the math runs at the next rate. */
void memory_warn_math(const struct llm_spec *llm, const struct gpu_spec *gpu,
                      const struct precision *precision, struct errors *errors,
                      const struct source_pos *where);
/* The math a format runs at on this GPU: 4-bit weights without FP4 units are widened to BF16
 * (W4A16), 8-bit without FP8 units too. */
enum math memory_math(const struct gpu_spec *gpu, enum storage storage);

#endif
