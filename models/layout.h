/* Splitting a model over GPUs: the per-layer estimate that a layout is chosen by. Textbook on
 * purpose: line rates, one efficiency, no overhead; models/roofline.h has the fitted version. */
#ifndef FLEETSIM_MODELS_LAYOUT_H
#define FLEETSIM_MODELS_LAYOUT_H

#include <stdbool.h>

#include "models/collective.h"
#include "models/memory.h"
#include "models/parallel.h"

struct layout_query {
    const struct llm_spec *llm;
    const struct gpu_spec *gpu;
    struct parallel parallel;
    double tokens;      /* of one step: a prefill chunk, or a decode batch */
    double flops_per_s; /* of one GPU, achieved */
    enum dedup dedup;
    double dispatch_element; /* bytes */
    double combine_element;
    double hidden_element;   /* bytes of a hidden state's element at a stage boundary */
    double collective_low_s; /* assumed latency of one all-to-all at decode sizes */
    double collective_high_s;
};

struct layout_step {
    double layer_flops; /* 2 · active · tokens / layers */
    double compute_s;   /* per layer, its stage's GPUs together */
    double tokens_per_gpu;
    double bytes_per_token; /* of expert all-to-all, no fraction taken off */
    double link_bytes;      /* per GPU and layer, both ways */
    double network_bytes;
    double link_s, network_s; /* at line rate, in parallel */
    double exchange_s;        /* the slower of them */
    double ratio;             /* exchange_s / compute_s */
    double collectives;       /* all-to-alls per token: 2 per MoE layer */
    double collectives_low_s; /* collectives × assumed latency */
    double collectives_high_s;
    double boundary_bytes; /* hidden states between stages, per step; 0: one stage */
    double boundary_s;
    double busiest; /* expected max/mean of expert load, uniform routing */
};
struct layout_step layout_step(const struct layout_query *query);

/* Why a model is split at all. */
enum layout_reason { LAYOUT_WEIGHTS, LAYOUT_KV, LAYOUT_LATENCY, LAYOUT_NONE };
extern const char *const layout_reason_names[4];
/* weights: one GPU cannot hold them; KV: it can, but not with `kv_bytes` of cache; latency: it can
 * hold both, but a decode step that streams them takes longer than tpot_s; none. */
enum layout_reason layout_reason(const struct memory_query *one_gpu, double kv_bytes,
                                 double tpot_s);

#endif
