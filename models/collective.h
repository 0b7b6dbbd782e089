/* Time of the messages between GPUs, in seconds (double: the step model rounds once). Sources of
 * the formulas and of the constants of each GPU: docs/models.md. Basic arithmetic only, so that the
 * values are the same on every machine. */
#ifndef FLEETSIM_MODELS_COLLECTIVE_H
#define FLEETSIM_MODELS_COLLECTIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "models/hardware.h"
#include "models/llm.h"

enum all_reduce {
    ALL_REDUCE_NONE, /* one rank */
    ALL_REDUCE_ONE_SHOT,
    ALL_REDUCE_TWO_SHOT,
    ALL_REDUCE_RING,
    ALL_REDUCE_NVLS,
    ALL_REDUCE_HIERARCHICAL, /* reduce-scatter in the domain, ring between, all-gather */
    ALL_REDUCE_COUNT
};
extern const char *const collective_all_reduce_names[ALL_REDUCE_COUNT];

/* The cheapest all-reduce of `bytes` on each of `ranks` GPUs:
 *   one-shot a + (n−1)·S/B    two-shot a + 2(n−1)/n·S/B    ring 2(n−1)·a + 2(n−1)/n·S/B
 *   NVLS a + S/B, beyond one scale-up domain hierarchical. algorithm may be NULL. */
double collective_all_reduce_s(const struct gpu_spec *gpu, int64_t ranks, double bytes,
                               enum all_reduce *algorithm);

/* The same, prepared: latency and seconds per byte of every algorithm that the GPU has. */
struct all_reduce_plan {
    double latency_s[ALL_REDUCE_COUNT], byte_s[ALL_REDUCE_COUNT];
    enum all_reduce algorithms[ALL_REDUCE_COUNT];
    size_t count;
    double network_latency_s, network_byte_s; /* added to the cheapest */
    bool network;
};
struct all_reduce_plan collective_all_reduce_plan(const struct gpu_spec *gpu, int64_t ranks);
double collective_all_reduce_plan_s(const struct all_reduce_plan *plan, double bytes,
                                    enum all_reduce *algorithm);

/* One hand-over of hidden states between pipeline stages of `stage_gpus` GPUs each, `bytes` in
 * all, spread over their ports; `network`: between scale-up domains. */
double collective_hop_s(const struct gpu_spec *gpu, int64_t stage_gpus, double bytes, bool network);

/* How often a token's vector is sent when several of its experts sit together. */
enum dedup {
    DEDUP_NONE, /* once per expert: an upper bound */
    DEDUP_GPU,  /* once per GPU */
    DEDUP_NODE, /* once per GPU inside the domain, once per remote domain over the network */
    DEDUP_COUNT
};
extern const char *const collective_dedup_names[DEDUP_COUNT + 1];

/* Expected number of distinct groups, of `groups` equal ones, that k experts chosen of `experts`
 * without replacement fall in: G(1 − C(E−E/G, k)/C(E, k)). */
double collective_distinct_groups(double experts, double k, double groups);

/* An expert all-to-all of one MoE layer, prepared. */
struct exchange {
    const struct gpu_spec *gpu;
    int64_t ranks;
    double dispatch_bytes; /* of one copy of one token */
    double combine_bytes;
    double link_copies;    /* per token that leave the GPU over the scale-up links */
    double network_copies; /* … over the network */
    double network_dispatch_latency_s;
    double network_combine_latency_s;
    double table_scale;  /* this shape's k · bytes over the table's 8 · 7,168 elements' */
    int64_t table_ranks; /* column of gpu->exchange to use; 0: none */
    double table_skip;   /* tokens of a row to leave out (validation); 0: none */
};

struct exchange_shape {
    int64_t ranks;
    double dispatch_element; /* bytes; 1 for plain FP8, 2 for BF16 */
    double combine_element;
    enum dedup dedup;
    bool measured; /* use the GPU's table of small messages where it has one */
};
/* FP8 with its scales out, BF16 back, once per domain and GPU, measured tables. */
struct exchange_shape collective_exchange_shape(int64_t ranks);
struct exchange collective_exchange(const struct gpu_spec *gpu, const struct llm_spec *llm,
                                    const struct exchange_shape *shape);

struct exchange_time {
    double dispatch_s;
    double combine_s;
};
/* With `tokens` tokens on each rank: within the table's sizes the low-latency kernel, linear
 * between rows; beyond them the cheaper of it, along its last slope, and the bandwidth kernel,
 * latency + the slower of link and network, but never less than the last row. Grows with `tokens`.
 */
struct exchange_time collective_exchange_s(const struct exchange *x, double tokens);
/* Bytes each rank sends, both ways: over links and over the network. */
struct exchange_bytes {
    double link;
    double network;
};
struct exchange_bytes collective_exchange_bytes(const struct exchange *x, double tokens);
/* Bytes per token and MoE layer whatever the layout: k · width · (dispatch + combine). */
double collective_moe_bytes(const struct llm_spec *llm, double dispatch_element,
                            double combine_element);
/* Bytes each rank sends at which latency and transfer of one dispatch are equal: the message size
 * where the all-to-all turns from latency-bound to bandwidth-bound. */
double collective_exchange_crossover(const struct exchange *x);

#endif
