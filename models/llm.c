#include "models/llm.h"

#include <math.h>

static double at_least(int64_t value, int64_t fallback)
{
    return (double)(value ? value : fallback);
}

static double min_of(double a, double b)
{
    return a < b ? a : b;
}

/* ---- checks --------------------------------------------------------------------------------- */

static bool group_check(const struct llm_spec *llm, size_t index, struct errors *errors,
                        const struct source_pos *where)
{
    const struct attention_group *g = llm_group(llm, index);
    const char *why = NULL;
    switch ((enum attention_kind)g->kind) {
    case ATTENTION_GQA:
        if (g->heads < 1 || g->kv_heads < 1 || g->head_dim < 1)
            why = "gqa needs heads, kv_heads and head_dim";
        else if (g->heads % g->kv_heads != 0)
            why = "heads is not a multiple of kv_heads";
        break;
    case ATTENTION_MLA:
        if (g->heads < 1 || g->kv_rank < 1 || g->value_dim < 1 || g->nope_dim + g->rope_dim < 1)
            why = "mla needs heads, kv_rank, nope_dim, rope_dim and value_dim";
        break;
    case ATTENTION_LINEAR:
        if (g->key_heads < 1 || g->value_heads < 1 || g->key_dim < 1 || g->value_dim < 1)
            why = "linear needs key_heads, value_heads, key_dim and value_dim";
        break;
    }
    if (why)
        errors_add(errors, SEVERITY_ERROR, where, "model '%s': attention[%zu]: %s", llm->name,
                   index, why);
    return !why;
}

bool llm_check(const struct llm_spec *llm, struct errors *errors, const struct source_pos *where)
{
    size_t before = errors->error_count;
    int64_t attention_layers = 0;
    for (size_t i = 0; i < llm->attention.count; i++) {
        group_check(llm, i, errors, where);
        attention_layers += llm_group(llm, i)->layers;
    }
    const struct moe_shape *moe = &llm->moe;
    if (attention_layers > llm->layers)
        errors_add(errors, SEVERITY_ERROR, where,
                   "model '%s': its attention groups have %lld layers, the model %lld", llm->name,
                   (long long)attention_layers, (long long)llm->layers);
    if (llm->dense_layers + moe->layers > llm->layers)
        errors_add(errors, SEVERITY_ERROR, where,
                   "model '%s': dense_layers and moe.layers are %lld together, layers is %lld",
                   llm->name, (long long)(llm->dense_layers + moe->layers), (long long)llm->layers);
    /* Every layer attends and has an FFN, or (Mamba hybrids) every layer does one of both. */
    int64_t ffn_layers = llm->dense_layers + moe->layers;
    bool both = attention_layers == llm->layers && ffn_layers == llm->layers;
    if (attention_layers <= llm->layers && ffn_layers <= llm->layers && !both &&
        attention_layers + ffn_layers != llm->layers)
        errors_add(errors, SEVERITY_ERROR, where,
                   "model '%s': of %lld layers %lld attend and %lld have an FFN: neither all of "
                   "them nor one or the other",
                   llm->name, (long long)llm->layers, (long long)attention_layers,
                   (long long)ffn_layers);
    if (llm->dense_layers > 0 && llm->dense_hidden < 1)
        errors_add(errors, SEVERITY_ERROR, where, "model '%s': dense_layers without dense_hidden",
                   llm->name);
    if ((moe->layers > 0) != (moe->experts > 0))
        errors_add(errors, SEVERITY_ERROR, where,
                   "model '%s': moe.layers and moe.experts belong together", llm->name);
    if (moe->experts > 0 && (moe->top_k < 1 || moe->top_k > moe->experts || moe->hidden < 1))
        errors_add(errors, SEVERITY_ERROR, where,
                   "model '%s': moe needs hidden and 1 <= top_k <= experts", llm->name);
    if (moe->experts > 0 && (moe->experts % moe->groups != 0 || moe->top_groups > moe->groups))
        errors_add(errors, SEVERITY_ERROR, where,
                   "model '%s': moe.groups must divide experts and be at least top_groups",
                   llm->name);
    else if (moe->experts > 0 && moe->experts / moe->groups * moe->top_groups < moe->top_k)
        errors_add(errors, SEVERITY_ERROR, where,
                   "model '%s': a token chooses %lld experts out of %lld groups of %lld: too few",
                   llm->name, (long long)moe->top_k, (long long)moe->top_groups,
                   (long long)(moe->experts / moe->groups));
    if (errors->error_count != before)
        return false;
    double total = llm_params(llm).total, stated = llm->published.total_params;
    if (!isnan(stated) && fabs(total / stated - 1) > 0.1)
        errors_add(errors, SEVERITY_WARNING, where,
                   "model '%s': its shape has %.4g B parameters, published.total_params says %.4g",
                   llm->name, total / 1e9, stated / 1e9);
    return true;
}

/* ---- parameters ----------------------------------------------------------------------------- */

/* One layer's attention, indexer apart. d: hidden size. */
static double group_params(const struct attention_group *g, double d)
{
    double heads = (double)g->heads, value = at_least(g->value_dim, g->head_dim);
    double count = g->extra_params;
    switch ((enum attention_kind)g->kind) {
    case ATTENTION_GQA: {
        double kv = (double)g->kv_heads;
        count += d * heads * (double)g->head_dim + heads * value * d; /* q, o */
        count += d * kv * (double)g->head_dim;                        /* k */
        count += g->shared_kv ? 0 : d * kv * value;                   /* v */
        break;
    }
    case ATTENTION_MLA: {
        double rank = (double)g->kv_rank, nope = (double)g->nope_dim, rope = (double)g->rope_dim;
        double q = (double)g->q_rank;
        count += q > 0 ? d * q + q * heads * (nope + rope) : d * heads * (nope + rope);
        count += d * (rank + rope) + rank * heads * (nope + value);
        count += heads * value * d;
        break;
    }
    case ATTENTION_LINEAR:
        heads = (double)g->value_heads;
        count += 2 * d * (double)g->key_heads * (double)g->key_dim;
        count += 2 * d * heads * value; /* v, o */
        break;
    }
    return count + (g->gated ? d * heads * value : 0);
}

/* One indexer: queries from the low-rank query (or the hidden state), one key, head weights. */
static double indexer_params(const struct attention_group *g, double d)
{
    double from = at_least(g->q_rank, (int64_t)d);
    double heads = (double)g->indexer_heads, dim = (double)g->indexer_dim;
    return from * heads * dim + d * dim + d * heads;
}

struct llm_params llm_params(const struct llm_spec *llm)
{
    struct llm_params p = {0};
    double d = (double)llm->hidden;
    for (size_t i = 0; i < llm->attention.count; i++) {
        const struct attention_group *g = llm_group(llm, i);
        double layer = isnan(g->params_per_layer) ? group_params(g, d) : g->params_per_layer;
        p.attention += (double)g->layers * layer;
        if (g->indexer_heads > 0)
            p.attention += (double)g->indexer_layers * indexer_params(g, d);
    }
    p.dense_ffn = (double)llm->dense_layers * 3 * d * (double)llm->dense_hidden;
    const struct moe_shape *moe = &llm->moe;
    double layers = (double)moe->layers, matrices = (double)moe->matrices;
    double width = at_least(moe->latent, llm->hidden);
    p.expert = matrices * width * (double)moe->hidden;
    p.routed = layers * (double)moe->experts * p.expert;
    p.shared =
        layers * (double)moe->shared * matrices * d * at_least(moe->shared_hidden, moe->hidden);
    p.router = layers * d * (double)moe->experts;
    p.latent = moe->latent ? layers * 2 * d * width : 0;
    p.embedding = (double)llm->vocab * d;
    p.head = p.embedding;
    p.other = llm->other_params;
    double body = p.attention + p.dense_ffn + p.shared + p.router + p.latent;
    p.rest = body + p.head + (llm->tied_embeddings ? 0 : p.embedding) + p.other;
    p.total = p.rest + p.routed;
    p.active = body + p.head + layers * (double)moe->top_k * p.expert;
    return p;
}

/* ---- precision ------------------------------------------------------------------------------ */

double llm_storage_bits(enum storage storage)
{
    static const double bits[STORAGE_COUNT] = {
        [STORAGE_BF16] = 16,
        [STORAGE_FP8] = 8,
        [STORAGE_INT8] = 8,
        [STORAGE_NVFP4] = 4 + 8.0 / 16,
        [STORAGE_MXFP4] = 4 + 8.0 / 32,
        [STORAGE_INT4] = 4 + 16.0 / 32,
        [STORAGE_INT4_G128] = 4 + 16.0 / 128,
    };
    return bits[storage];
}

enum math llm_storage_math(enum storage storage)
{
    switch (storage) {
    case STORAGE_FP8:
    case STORAGE_INT8:
        return MATH_FP8;
    case STORAGE_NVFP4:
    case STORAGE_MXFP4:
        return MATH_FP4;
    default:
        return MATH_BF16;
    }
}

struct precision llm_precision(const struct llm_spec *llm, const struct precision *chosen)
{
    struct precision p = *chosen;
    const struct precision *usual = &llm->precision;
    if (p.experts < 0)
        p.experts = p.weights >= 0        ? p.weights
                    : usual->experts >= 0 ? usual->experts
                                          : usual->weights;
    if (p.weights < 0)
        p.weights = usual->weights;
    if (p.kv < 0)
        p.kv = usual->kv;
    if (p.weights < 0)
        p.weights = STORAGE_BF16;
    if (p.experts < 0)
        p.experts = p.weights;
    if (p.kv < 0)
        p.kv = STORAGE_BF16;
    return p;
}

/* ---- KV cache ------------------------------------------------------------------------------- */

double llm_group_kv_bytes(const struct attention_group *g, enum storage kv)
{
    double element = llm_storage_bits(kv) / 8;
    switch ((enum attention_kind)g->kind) {
    case ATTENTION_GQA:
        return (double)g->kv_heads * ((double)g->head_dim + at_least(g->value_dim, g->head_dim)) *
               element;
    case ATTENTION_MLA:
        if (kv == STORAGE_FP8 && g->fp8_cache_bytes > 0)
            return (double)g->fp8_cache_bytes;
        return (double)(g->kv_rank + g->rope_dim) * element;
    case ATTENTION_LINEAR:
        break;
    }
    return 0;
}

double llm_group_state_bytes(const struct attention_group *g)
{
    if (g->kind != ATTENTION_LINEAR)
        return 0;
    double keys = (double)(g->key_heads * g->key_dim),
           values = (double)(g->value_heads * g->value_dim);
    double elements = values * (double)g->key_dim + (double)g->conv * (2 * keys + values);
    return elements * (double)g->state_bits / 8;
}

int64_t llm_group_kv_split(const struct attention_group *g)
{
    switch ((enum attention_kind)g->kind) {
    case ATTENTION_GQA:
        return g->kv_heads;
    case ATTENTION_LINEAR:
        return g->value_heads;
    case ATTENTION_MLA:
        break;
    }
    return 1;
}

struct llm_kv llm_kv(const struct llm_spec *llm, enum storage kv)
{
    struct llm_kv need = {0};
    for (size_t i = 0; i < llm->attention.count; i++) {
        const struct attention_group *g = llm_group(llm, i);
        double layers = (double)g->layers, bytes = llm_group_kv_bytes(g, kv);
        if (g->window == 0 || g->compress > 1)
            need.per_token += layers * bytes / (double)g->compress;
        need.window += layers * bytes * (double)g->window;
        need.indexer_per_token +=
            (double)g->indexer_layers * (double)g->indexer_bytes / (double)g->compress;
        need.state += layers * llm_group_state_bytes(g);
    }
    return need;
}

double llm_kv_bytes(const struct llm_spec *llm, enum storage kv, double tokens)
{
    struct llm_kv need = llm_kv(llm, kv);
    double bytes = need.state + tokens * (need.per_token + need.indexer_per_token);
    for (size_t i = 0; i < llm->attention.count; i++) {
        const struct attention_group *g = llm_group(llm, i);
        bytes += (double)g->layers * llm_group_kv_bytes(g, kv) * min_of(tokens, (double)g->window);
    }
    return bytes;
}

/* ---- FLOPs ---------------------------------------------------------------------------------- */

double llm_group_flops_per_pair(const struct attention_group *g, bool prefill)
{
    double heads = (double)g->heads;
    switch ((enum attention_kind)g->kind) {
    case ATTENTION_GQA:
        return 2 * heads * ((double)g->head_dim + at_least(g->value_dim, g->head_dim));
    case ATTENTION_MLA:
        if (prefill)
            return 2 * heads * (double)(g->nope_dim + g->rope_dim + g->value_dim);
        return 2 * heads * (double)(2 * g->kv_rank + g->rope_dim);
    case ATTENTION_LINEAR:
        break;
    }
    return 0;
}

double llm_group_flops_per_query(const struct attention_group *g)
{
    if (g->kind != ATTENTION_LINEAR)
        return 0;
    return 4 * (double)g->value_heads * (double)g->key_dim * (double)g->value_dim;
}

/* Mean number of keys in reach of a query with `context` keys before it. */
static double keys_in_reach(const struct attention_group *g, double context)
{
    double history = context / (double)g->compress;
    if (g->top_k > 0)
        history = min_of(history, (double)g->top_k);
    if (g->compress > 1)
        return history + min_of(context, (double)g->window);
    return g->window > 0 ? min_of(history, (double)g->window) : history;
}

static double indexer_flops(const struct attention_group *g, double context)
{
    return 2 * (double)g->indexer_layers * (double)g->indexer_heads * (double)g->indexer_dim *
           context / (double)g->compress;
}

double llm_attention_decode_flops(const struct llm_spec *llm, double context)
{
    double flops = 0;
    for (size_t i = 0; i < llm->attention.count; i++) {
        const struct attention_group *g = llm_group(llm, i);
        flops +=
            (double)g->layers * (llm_group_flops_per_pair(g, false) * keys_in_reach(g, context) +
                                 llm_group_flops_per_query(g));
        flops += indexer_flops(g, context);
    }
    return flops;
}

double llm_attention_prefill_flops(const struct llm_spec *llm, double tokens, double cached)
{
    double flops = 0, mean = cached + tokens / 2;
    for (size_t i = 0; i < llm->attention.count; i++) {
        const struct attention_group *g = llm_group(llm, i);
        double layer = llm_group_flops_per_pair(g, true) * keys_in_reach(g, mean) +
                       llm_group_flops_per_query(g);
        flops += tokens * ((double)g->layers * layer + indexer_flops(g, mean));
    }
    return flops;
}

double llm_distinct_experts(const struct llm_spec *llm, double tokens)
{
    const struct moe_shape *moe = &llm->moe;
    if (moe->experts == 0 || tokens <= 0)
        return 0;
    double experts = (double)moe->experts;
    double miss = 1 - (double)moe->top_k / experts;
    /* (1 − k/E)^tokens by squaring, the fractional part by a chord: no libm, so that the value is
     * the same on every machine. */
    uint64_t whole = tokens < 1e9 ? (uint64_t)tokens : UINT64_C(1000000000);
    double left = 1, square = miss;
    for (uint64_t n = whole; n > 0; n >>= 1, square *= square)
        if (n & 1)
            left *= square;
    double part = tokens - (double)whole;
    if (part > 0 && part < 1)
        left *= 1 - part * (1 - miss);
    return experts * (1 - left);
}
