#include "sim/run/deployment.h"

struct roofline_config *deployment_roofline(const struct deployment *d, struct arena *arena)
{
    struct roofline_config *config = arena_alloc(arena, sizeof *config);
    field_defaults(roofline_fields, config, arena);
    config->llm = d->llm;
    config->gpu = d->gpu;
    config->parallel = d->parallel;
    config->precision = d->precision;
    return config;
}

/* Whether a layout is worth trying: all of tensor, or attention copies with whole experts. */
static bool usual(const struct parallel *p, bool moe)
{
    if (p->pipeline > 1)
        return false;
    if (p->attention_data == 1)
        return p->expert == 1;
    return moe && p->tensor == 1 && p->expert == p->attention_data;
}

struct deployment_choice deployment_choose(const struct llm_spec *llm, const struct gpu_spec *gpu,
                                           const struct precision *precision,
                                           const struct serving_load *load, double tpot_limit_s,
                                           struct arena *arena)
{
    struct deployment_choice best = {.why_not = "no layout of one scale-up domain divides it"};
    struct roofline *r = arena_alloc(arena, sizeof *r);
    int64_t most = gpu->domain < 72 ? gpu->domain : 72;
    double best_rate = 0;
    for (int64_t gpus = 1; gpus <= most; gpus *= 2) {
        struct parallel_list list = parallel_enumerate(llm, gpus, arena);
        for (size_t i = 0; i < list.count; i++) {
            if (!usual(&list.items[i], llm->moe.experts > 0))
                continue;
            struct deployment d = {.llm = llm, .gpu = gpu, .parallel = list.items[i]};
            d.precision = llm_precision(llm, precision);
            struct memory_query query = memory_query(llm, gpu, &d.parallel);
            query.precision = d.precision;
            query.batched_tokens = load->chunk;
            d.memory = memory_plan(&query);
            if (!d.memory.fits) {
                best.why_not = "does not fit in one scale-up domain's memory";
                continue;
            }
            struct serving_estimate e;
            bool ok = roofline_init(r, deployment_roofline(&d, arena), NULL, NULL) &&
                      serving_at_tpot(r, &d.memory, load, tpot_limit_s, &e);
            if (!ok)
                best.why_not = "slower than the limit even with one request";
            else if (e.output_tokens_per_s / (double)gpus > best_rate) {
                best_rate = e.output_tokens_per_s / (double)gpus;
                best.found = true;
                best.deployment = d;
                best.estimate = e;
            }
        }
    }
    return best;
}
