#include "models/parallel.h"

#include <stdio.h>

#include "sim/base/check.h"

#define DEGREE(key, member, text)                                                                  \
    {                                                                                              \
        .name = key, .kind = FIELD_INT, .fallback = "1", .min = 1, .max = 65536,                   \
        .offset = offsetof(struct parallel, member), .doc = text                                   \
    }
const struct field parallel_fields[] = {
    DEGREE("tensor", tensor, "GPUs that share every attention layer and dense FFN"),
    DEGREE("pipeline", pipeline, "Stages of consecutive layers"),
    DEGREE("expert", expert, "Groups of whole experts; divides tensor x attention_data"),
    DEGREE("attention_data", attention_data,
           "Copies of the attention layers, each on its own sequences"),
    {0}};

enum { PARALLEL_LIST_MAX = 4096 };

int64_t parallel_stage_layers(const struct parallel *p, int64_t layers)
{
    return (layers + p->pipeline - 1) / p->pipeline;
}

int64_t parallel_domain_ranks(int64_t ranks, const struct gpu_spec *gpu)
{
    return ranks < gpu->domain ? ranks : gpu->domain;
}

static bool complain(struct errors *errors, const struct source_pos *where, const char *what,
                     int64_t a, int64_t b)
{
    char message[160];
    snprintf(message, sizeof message, what, (long long)a, (long long)b);
    if (errors)
        errors_add(errors, SEVERITY_ERROR, where, "layout: %s", message);
    return false;
}

bool parallel_check(const struct parallel *p, const struct llm_spec *llm, int64_t redundant,
                    struct errors *errors, const struct source_pos *where)
{
    bool ok = true;
    for (size_t i = 0; i < llm->attention.count; i++) {
        const struct attention_group *g = llm_group(llm, i);
        int64_t heads = g->kind == ATTENTION_LINEAR ? g->value_heads : g->heads;
        if (heads % p->tensor != 0)
            ok = complain(errors, where, "tensor %lld does not divide %lld attention heads",
                          p->tensor, heads);
        if (g->kind == ATTENTION_GQA && g->kv_heads % p->tensor != 0 &&
            p->tensor % g->kv_heads != 0)
            ok = complain(errors, where, "tensor %lld neither divides nor repeats %lld KV heads",
                          p->tensor, g->kv_heads);
    }
    if (p->pipeline > llm->layers)
        ok = complain(errors, where, "%lld pipeline stages for %lld layers", p->pipeline,
                      llm->layers);
    if (parallel_stage_gpus(p) % p->expert != 0)
        ok = complain(errors, where, "expert %lld does not divide tensor x attention_data = %lld",
                      p->expert, parallel_stage_gpus(p));
    if (llm->moe.experts == 0 && p->expert > 1)
        ok = complain(errors, where, "expert %lld, but the model has %lld experts", p->expert, 0);
    if (llm->moe.experts == 0 && redundant > 0)
        ok = complain(errors, where, "%lld redundant experts, but the model has %lld experts",
                      redundant, 0);
    int64_t slots = llm->moe.experts + redundant;
    if (llm->moe.experts > 0 && slots % p->expert != 0)
        ok = complain(errors, where, "expert %lld does not divide %lld expert slots", p->expert,
                      slots);
    int64_t pieces = parallel_stage_gpus(p) / p->expert;
    if (llm->moe.experts > 0 && pieces > 0 && llm->moe.hidden % pieces != 0)
        ok = complain(errors, where, "%lld pieces do not divide an expert's hidden size of %lld",
                      pieces, llm->moe.hidden);
    return ok;
}

struct parallel_list parallel_enumerate(const struct llm_spec *llm, int64_t gpus,
                                        struct arena *arena)
{
    struct parallel_list list = {arena_alloc(arena, PARALLEL_LIST_MAX * sizeof(struct parallel)),
                                 0};
    bool moe = llm->moe.experts > 0;
    for (int64_t pipeline = 1; pipeline <= gpus; pipeline++) {
        int64_t stage = gpus % pipeline == 0 ? gpus / pipeline : 0;
        for (int64_t tensor = 1; tensor <= stage; tensor++) {
            if (stage % tensor != 0 || (!moe && tensor != stage))
                continue;
            for (int64_t expert = 1; expert <= (moe ? stage : 1); expert++) {
                struct parallel p = {tensor, pipeline, expert, stage / tensor};
                if (stage % expert != 0 || !parallel_check(&p, llm, 0, NULL, NULL))
                    continue;
                check(list.count < PARALLEL_LIST_MAX);
                list.items[list.count++] = p;
            }
        }
    }
    return list;
}

char *parallel_text(const struct parallel *p, char *buffer)
{
    int used = snprintf(buffer, PARALLEL_TEXT_MAX, "TP%lld", (long long)p->tensor);
    if (p->attention_data > 1)
        used += snprintf(buffer + used, (size_t)(PARALLEL_TEXT_MAX - used), " DP%lld",
                         (long long)p->attention_data);
    if (p->expert > 1)
        used += snprintf(buffer + used, (size_t)(PARALLEL_TEXT_MAX - used), " EP%lld",
                         (long long)p->expert);
    if (p->pipeline > 1)
        snprintf(buffer + used, (size_t)(PARALLEL_TEXT_MAX - used), " PP%lld",
                 (long long)p->pipeline);
    return buffer;
}
