#include "models/memory.h"

#include <math.h>
#include <stdio.h>

#include "sim/base/check.h"

enum { GPUS_TRIED_MAX = 4096 };

static double bytes_of(double params, int storage)
{
    return params * llm_storage_bits((enum storage)storage) / 8;
}

/* Embeddings stay in BF16 in every published quantised checkpoint. */
static double embedding_bytes(double params, int storage)
{
    double bytes = bytes_of(params, storage), wide = bytes_of(params, STORAGE_BF16);
    return bytes > wide ? bytes : wide;
}

struct memory_weights memory_weights(const struct llm_spec *llm, const struct precision *precision)
{
    struct llm_params p = llm_params(llm);
    double tables = p.head + (llm->tied_embeddings ? 0 : p.embedding);
    struct memory_weights w = {
        .experts = bytes_of(p.routed, precision->experts),
        .rest = bytes_of(p.rest - tables, precision->weights) +
                embedding_bytes(tables, precision->weights),
    };
    w.total = w.experts + w.rest;
    return w;
}

struct memory_query memory_query(const struct llm_spec *llm, const struct gpu_spec *gpu,
                                 const struct parallel *parallel)
{
    struct precision usual = {-1, -1, -1};
    return (struct memory_query){.llm = llm,
                                 .gpu = gpu,
                                 .parallel = *parallel,
                                 .precision = llm_precision(llm, &usual),
                                 .utilization = 0.9,
                                 .batched_tokens = 8192,
                                 .reserve_bytes = 2e9};
}

/* Weights of the fullest stage, per GPU. */
static void plan_weights(const struct memory_query *q, struct memory_plan *plan)
{
    const struct llm_spec *llm = q->llm;
    const struct parallel *par = &q->parallel;
    struct llm_params p = llm_params(llm);
    double layers = (double)llm->layers;
    double share = (double)parallel_stage_layers(par, llm->layers) / layers;
    double tables = p.head + (llm->tied_embeddings ? 0 : p.embedding);
    double body = bytes_of(p.rest - tables, q->precision.weights) * share;
    double table_share = par->pipeline > 1 ? p.head : tables; /* one at either end */
    plan->weight_rest =
        (body + embedding_bytes(table_share, q->precision.weights)) / (double)par->tensor;
    if (llm->moe.experts == 0)
        return;
    double moe_layers = (double)llm->moe.layers;
    double moe_share = (double)parallel_stage_layers(par, llm->moe.layers) / moe_layers;
    double copies = (double)(llm->moe.experts + q->redundant_experts) / (double)llm->moe.experts;
    plan->weight_expert = bytes_of(p.routed, q->precision.experts) * moe_share * copies /
                          (double)parallel_stage_gpus(par);
}

/* Working memory of one step: a few residual streams and the widest FFN activation in BF16. */
static double plan_activations(const struct memory_query *q)
{
    const struct llm_spec *llm = q->llm;
    double ffn = 2 * (double)llm->dense_hidden / (double)q->parallel.tensor;
    double experts = 2 * (double)(llm->moe.top_k * llm->moe.hidden) /
                     (double)parallel_stage_gpus(&q->parallel) * (double)q->parallel.attention_data;
    double width = 4 * (double)llm->hidden + (ffn > experts ? ffn : experts);
    return q->reserve_bytes + q->batched_tokens * width * 2;
}

static void plan_cache(const struct memory_query *q, struct memory_plan *plan)
{
    const struct llm_spec *llm = q->llm;
    enum storage kv = (enum storage)q->precision.kv;
    for (size_t i = 0; i < llm->attention.count; i++) {
        const struct attention_group *g = llm_group(llm, i);
        double split = (double)llm_group_kv_split(g), tensor = (double)q->parallel.tensor;
        double layers = (double)parallel_stage_layers(&q->parallel, g->layers);
        double parts = tensor < split ? tensor : split;
        double bytes = layers * llm_group_kv_bytes(g, kv) / parts;
        if (g->window == 0 || g->compress > 1)
            plan->kv_per_token += bytes / (double)g->compress;
        plan->kv_per_token += (double)parallel_stage_layers(&q->parallel, g->indexer_layers) *
                              (double)g->indexer_bytes / (double)g->compress;
        plan->constant += bytes * (double)g->window + layers * llm_group_state_bytes(g) / parts;
    }
}

struct memory_plan memory_plan(const struct memory_query *q)
{
    check(q->precision.weights >= 0 && q->precision.experts >= 0 && q->precision.kv >= 0);
    struct memory_plan plan = {.hbm = hardware_hbm(q->gpu, !q->sheet)};
    plan.usable = plan.hbm * q->utilization;
    plan_weights(q, &plan);
    plan.activations = plan_activations(q);
    plan.kv_pool = plan.usable - plan.weight_rest - plan.weight_expert - plan.activations;
    plan.fits = plan.kv_pool > 0;
    plan_cache(q, &plan);
    if (plan.fits)
        plan.kv_tokens = plan.kv_per_token > 0
                             ? plan.kv_pool / plan.kv_per_token * (double)q->parallel.attention_data
                             : INFINITY;
    return plan;
}

double memory_sequences(const struct memory_plan *plan, const struct parallel *parallel,
                        double tokens)
{
    double one = plan->constant + plan->kv_per_token * tokens;
    if (!plan->fits)
        return 0;
    return one > 0 ? floor(plan->kv_pool / one) * (double)parallel->attention_data : INFINITY;
}

/* The smallest tensor (dense) or expert-spread (MoE) layout that fits, in GPUs; 0: none tried. */
static int64_t smallest_fit(const struct memory_query *query)
{
    struct memory_query q = *query;
    for (int64_t gpus = 1; gpus <= GPUS_TRIED_MAX; gpus *= 2) {
        int64_t stage = gpus < q.gpu->domain ? gpus : q.gpu->domain;
        q.parallel = (struct parallel){stage, gpus / stage, 1, 1};
        if (parallel_check(&q.parallel, q.llm, 0, NULL, NULL) && memory_plan(&q).fits)
            return gpus;
    }
    return 0;
}

bool memory_check(const struct memory_query *q, const struct memory_plan *plan,
                  struct errors *errors, const struct source_pos *where)
{
    if (plan->fits)
        return true;
    char layout[PARALLEL_TEXT_MAX], advice[64] = "";
    int64_t gpus = smallest_fit(q);
    if (gpus > 0)
        snprintf(advice, sizeof advice, "; %lld GPUs would hold it", (long long)gpus);
    errors_add(errors, SEVERITY_ERROR, where,
               "model '%s' does not fit on %lld x %s as %s: %.1f GB of weights and %.1f GB of "
               "activations per GPU exceed %.0f %% of %.1f GB by %.1f GB%s",
               q->llm->name, (long long)parallel_gpus(&q->parallel), q->gpu->name,
               parallel_text(&q->parallel, layout), (plan->weight_rest + plan->weight_expert) / 1e9,
               plan->activations / 1e9, q->utilization * 100, plan->hbm / 1e9, -plan->kv_pool / 1e9,
               advice);
    return false;
}

enum math memory_math(const struct gpu_spec *gpu, enum storage storage)
{
    enum math math = llm_storage_math(storage);
    return isnan(gpu->peak_flops[math]) ? MATH_BF16 : math;
}

void memory_warn_math(const struct llm_spec *llm, const struct gpu_spec *gpu,
                      const struct precision *p, struct errors *errors,
                      const struct source_pos *where)
{
    int formats[2] = {p->weights, llm->moe.experts > 0 ? p->experts : p->weights};
    for (int i = 0; i < 2; i++) {
        enum storage storage = (enum storage)formats[i];
        enum math wanted = llm_storage_math(storage), got = memory_math(gpu, storage);
        if (wanted == got || (i == 1 && formats[1] == formats[0]))
            continue;
        errors_add(errors, SEVERITY_WARNING, where,
                   "%s has no %s math: %s weights of '%s' save memory and bandwidth but are "
                   "computed at the %s rate of %.0f TFLOPS",
                   gpu->name, hardware_math_names[wanted], llm_storage_names[storage], llm->name,
                   hardware_math_names[got], gpu->peak_flops[got] / 1e12);
    }
}
