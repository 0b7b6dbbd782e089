#include "models/layout.h"

#include "models/moe_load.h"

const char *const layout_reason_names[4] = {
    "weights do not fit on one GPU", "weights fit on one GPU, the KV cache beside them does not",
    "everything fits on one GPU, but a step that streams it is too slow",
    "nothing: one GPU is enough"};

struct layout_step layout_step(const struct layout_query *q)
{
    const struct llm_spec *llm = q->llm;
    struct layout_step s = {0};
    double stage = (double)parallel_stage_gpus(&q->parallel), layers = (double)llm->layers;
    s.layer_flops = 2 * llm_params(llm).active * q->tokens / layers;
    s.compute_s = s.layer_flops / (stage * q->flops_per_s);
    s.tokens_per_gpu = q->tokens / stage;
    s.busiest = 1;
    if (llm->moe.experts > 0) {
        struct exchange_shape shape = {.ranks = parallel_stage_gpus(&q->parallel),
                                       .dispatch_element = q->dispatch_element,
                                       .combine_element = q->combine_element,
                                       .dedup = q->dedup};
        struct exchange x = collective_exchange(q->gpu, llm, &shape);
        struct exchange_bytes bytes = collective_exchange_bytes(&x, s.tokens_per_gpu);
        s.bytes_per_token = collective_moe_bytes(llm, q->dispatch_element, q->combine_element);
        s.link_bytes = bytes.link;
        s.network_bytes = bytes.network;
        s.link_s = bytes.link / q->gpu->link_bytes_per_s;
        s.network_s = bytes.network / q->gpu->nic_bytes_per_s;
        s.exchange_s = s.link_s > s.network_s ? s.link_s : s.network_s;
        s.collectives = 2 * (double)llm->moe.layers;
        s.busiest = moe_load_uniform(stage, q->tokens * (double)llm->moe.top_k);
    }
    s.ratio = s.exchange_s / s.compute_s;
    s.collectives_low_s = s.collectives * q->collective_low_s;
    s.collectives_high_s = s.collectives * q->collective_high_s;
    if (q->parallel.pipeline > 1) {
        bool network = parallel_gpus(&q->parallel) > q->gpu->domain;
        s.boundary_bytes = q->tokens * (double)llm->hidden * q->hidden_element;
        s.boundary_s = s.boundary_bytes /
                       (stage * (network ? q->gpu->nic_bytes_per_s : q->gpu->link_bytes_per_s));
    }
    return s;
}

enum layout_reason layout_reason(const struct memory_query *one_gpu, double kv_bytes, double tpot_s)
{
    struct memory_plan plan = memory_plan(one_gpu);
    if (!plan.fits)
        return LAYOUT_WEIGHTS;
    if (plan.kv_pool < kv_bytes)
        return LAYOUT_KV;
    double bytes = plan.weight_rest + plan.weight_expert + kv_bytes;
    return bytes / one_gpu->gpu->hbm_bytes_per_s > tpot_s ? LAYOUT_LATENCY : LAYOUT_NONE;
}
