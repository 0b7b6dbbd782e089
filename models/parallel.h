/* How one replica's model is spread over GPUs: tensor × attention_data GPUs form a pipeline stage,
 * `pipeline` stages a replica. Inside a stage attention runs attention_data copies of tensor GPUs
 * each, every copy on its own sequences; experts are spread over all of the stage: `expert` groups
 * of whole experts, each expert cut into tensor × attention_data / expert pieces. */
#ifndef FLEETSIM_MODELS_PARALLEL_H
#define FLEETSIM_MODELS_PARALLEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "models/hardware.h"
#include "models/llm.h"
#include "sim/base/arena.h"
#include "sim/base/errors.h"
#include "sim/base/field.h"

struct parallel {
    int64_t tensor;
    int64_t pipeline;
    int64_t expert;
    int64_t attention_data;
};
extern const struct field parallel_fields[];

static inline int64_t parallel_stage_gpus(const struct parallel *p)
{
    return p->tensor * p->attention_data;
}

static inline int64_t parallel_gpus(const struct parallel *p)
{
    return parallel_stage_gpus(p) * p->pipeline;
}

/* Layers of the longest stage: ceil(layers / pipeline). */
int64_t parallel_stage_layers(const struct parallel *p, int64_t layers);
/* GPUs of a group of `ranks` consecutive ones that share one scale-up domain. */
int64_t parallel_domain_ranks(int64_t ranks, const struct gpu_spec *gpu);

/* Whether the layout divides this model: heads by tensor, experts (with redundant copies) by
 * expert, the stage by expert, no more stages than layers. Says every reason; errors may be NULL to
 * only ask. */
bool parallel_check(const struct parallel *p, const struct llm_spec *llm, int64_t redundant,
                    struct errors *errors, const struct source_pos *where);

struct parallel_list {
    struct parallel *items; /* arena */
    size_t count;
};
/* Every valid layout of exactly `gpus` GPUs, ordered by pipeline, tensor, attention_data, expert.
 * attention_data > 1 is listed for models with experts only (a dense model would rather run more
 * replicas). */
struct parallel_list parallel_enumerate(const struct llm_spec *llm, int64_t gpus,
                                        struct arena *arena);

/* "TP8", "TP1 DP8 EP8 PP2": only what is not 1. Returns buffer (PARALLEL_TEXT_MAX bytes). */
enum { PARALLEL_TEXT_MAX = 96 };
char *parallel_text(const struct parallel *p, char *buffer);

#endif
