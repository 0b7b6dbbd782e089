#include "sim/run/hf_config.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

enum { HF_GROUPS_MAX = 16, HF_LAYERS_MAX = 10000, HF_VALUE_MAX = 1000000000 };

struct reader {
    const char *path;
    const json_t *config; /* the text model's object */
    struct errors *errors;
    struct arena *arena;
    bool gated; /* the family's attention has an output gate unless the file says otherwise */
};

static void complain(struct reader *r, const char *key, const char *what)
{
    struct source_pos pos = {.file = r->path};
    errors_add(r->errors, SEVERITY_ERROR, &pos, "config.json: '%s' %s", key, what);
}

/* A whole number under one of two spellings; fallback < 0: required. */
static int64_t number(struct reader *r, const char *key, const char *other, int64_t fallback)
{
    const json_t *value = json_object_get(r->config, key);
    if (other && (!value || json_is_null(value)))
        value = json_object_get(r->config, other);
    if (!value || json_is_null(value)) {
        if (fallback < 0)
            complain(r, key, "is missing");
        return fallback < 0 ? 1 : fallback;
    }
    if (!json_is_integer(value)) {
        complain(r, key, "must be a whole number");
        return 1;
    }
    int64_t n = json_integer_value(value);
    if (n < 0 || n > HF_VALUE_MAX) {
        complain(r, key, "is out of range (0 to 1e9)");
        return 1;
    }
    return n;
}

static bool has(const struct reader *r, const char *key)
{
    const json_t *value = json_object_get(r->config, key);
    return value && !json_is_null(value);
}

static bool truth(const struct reader *r, const char *key, bool fallback)
{
    const json_t *value = json_object_get(r->config, key);
    return json_is_boolean(value) ? json_is_true(value) : fallback;
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* Keys of architectures whose attention this reader does not know: guessing would be worse. */
static const char *const unknown_kinds[] = {
    "hybrid_override_pattern", "ssm_state_size",  "mamba_d_state", "mamba_num_heads",
    "attn_layer_period",       "compress_ratios", "rwkv_version",  NULL};

/* ---- attention ------------------------------------------------------------------------------ */

enum layer_type { LAYER_FULL, LAYER_SLIDING, LAYER_CHUNKED, LAYER_LINEAR, LAYER_TYPES };

/* How many layers of each type, from layer_types, an interval, or one window for all. */
static void count_layer_types(struct reader *r, int64_t layers, int64_t count[LAYER_TYPES])
{
    static const char *const names[LAYER_TYPES] = {"full_attention", "sliding_attention",
                                                   "chunked_attention", "linear_attention"};
    const json_t *types = json_object_get(r->config, "layer_types");
    if (json_is_array(types)) {
        if ((int64_t)json_array_size(types) != layers)
            complain(r, "layer_types", "does not have num_hidden_layers entries");
        for (size_t i = 0; i < json_array_size(types); i++) {
            const char *name = json_string_value(json_array_get(types, i));
            int type = 0;
            if (name && strcmp(name, "deepseek_sparse_attention") == 0)
                name = names[LAYER_FULL]; /* with an indexer, read from index_* */
            while (type < LAYER_TYPES && !(name && strcmp(name, names[type]) == 0))
                type++;
            if (type == LAYER_TYPES) {
                complain(r, "layer_types",
                         "has an entry that is not full_attention, "
                         "sliding_attention, chunked_attention or "
                         "linear_attention");
                return;
            }
            count[type]++;
        }
        return;
    }
    int64_t interval = number(r, "full_attention_interval", NULL, 0);
    const json_t *linear = json_object_get(r->config, "linear_attn_config");
    if (interval > 0) {
        count[LAYER_FULL] = layers / interval;
        count[LAYER_LINEAR] = layers - count[LAYER_FULL];
    } else if (json_is_object(linear)) {
        count[LAYER_FULL] = (int64_t)json_array_size(json_object_get(linear, "full_attn_layers"));
        count[LAYER_LINEAR] = layers - count[LAYER_FULL];
    } else if (has(r, "sliding_window") && truth(r, "use_sliding_window", true)) {
        /* Every so many layers one is full; without a pattern none. */
        int64_t pattern = number(r, "sliding_window_pattern", NULL, 0);
        count[LAYER_FULL] = pattern > 0 ? layers / pattern : 0;
        count[LAYER_SLIDING] = layers - count[LAYER_FULL];
    } else {
        count[LAYER_FULL] = layers;
    }
}

static struct attention_group *group_add(struct reader *r, struct llm_spec *llm, int64_t layers,
                                         enum attention_kind kind)
{
    struct attention_group *groups = llm->attention.items;
    if (!groups)
        llm->attention.items = groups =
            arena_alloc(r->arena, HF_GROUPS_MAX * sizeof(struct attention_group));
    struct attention_group *g = &groups[llm->attention.count++];
    *g = (struct attention_group){.layers = layers,
                                  .kind = (int)kind,
                                  .compress = 1,
                                  .conv = 4,
                                  .state_bits = 16,
                                  .params_per_layer = NAN};
    return g;
}

static void full_group(struct reader *r, struct llm_spec *llm, int64_t layers, int64_t window)
{
    int64_t heads = number(r, "num_attention_heads", NULL, -1);
    if (!has(r, "kv_lora_rank")) {
        struct attention_group *g = group_add(r, llm, layers, ATTENTION_GQA);
        g->heads = heads;
        g->kv_heads = number(r, "num_key_value_heads", NULL, heads);
        g->head_dim = number(r, "head_dim", NULL, heads > 0 ? llm->hidden / heads : 0);
        g->value_dim = number(r, "v_head_dim", NULL, 0);
        g->window = window;
        g->gated = truth(r, "attn_output_gate", r->gated);
        return;
    }
    struct attention_group *g = group_add(r, llm, layers, ATTENTION_MLA);
    g->heads = heads;
    g->q_rank = number(r, "q_lora_rank", NULL, 0);
    g->kv_rank = number(r, "kv_lora_rank", NULL, -1);
    g->nope_dim = number(r, "qk_nope_head_dim", NULL, -1);
    g->rope_dim = number(r, "qk_rope_head_dim", NULL, -1);
    g->value_dim = number(r, "v_head_dim", NULL, -1);
    g->gated = truth(r, "attn_output_gate", false);
    if (has(r, "index_topk")) {
        g->top_k = number(r, "index_topk", NULL, -1);
        g->indexer_heads = number(r, "index_n_heads", NULL, -1);
        g->indexer_dim = number(r, "index_head_dim", NULL, -1);
        g->indexer_layers = layers;
        g->indexer_bytes = g->indexer_dim + 4; /* FP8 keys and one FP32 scale */
    }
}

static void linear_group(struct reader *r, struct llm_spec *llm, int64_t layers)
{
    struct attention_group *g = group_add(r, llm, layers, ATTENTION_LINEAR);
    g->gated = true;
    const json_t *nested = json_object_get(r->config, "linear_attn_config");
    if (json_is_object(nested)) {
        struct reader inner = *r;
        inner.config = nested;
        g->key_heads = g->value_heads = number(&inner, "num_heads", NULL, -1);
        g->key_dim = g->value_dim = number(&inner, "head_dim", NULL, -1);
        g->conv = number(&inner, "short_conv_kernel_size", NULL, 4);
        return;
    }
    g->key_heads = number(r, "linear_num_key_heads", NULL, -1);
    g->value_heads = number(r, "linear_num_value_heads", NULL, -1);
    g->key_dim = number(r, "linear_key_head_dim", NULL, -1);
    g->value_dim = number(r, "linear_value_head_dim", NULL, -1);
    g->conv = number(r, "linear_conv_kernel_dim", NULL, 4);
}

static void read_attention(struct reader *r, struct llm_spec *llm)
{
    int64_t count[LAYER_TYPES] = {0};
    count_layer_types(r, llm->layers, count);
    if (count[LAYER_FULL] > 0)
        full_group(r, llm, count[LAYER_FULL], 0);
    if (count[LAYER_SLIDING] > 0)
        full_group(r, llm, count[LAYER_SLIDING], number(r, "sliding_window", NULL, -1));
    if (count[LAYER_CHUNKED] > 0)
        full_group(r, llm, count[LAYER_CHUNKED], number(r, "attention_chunk_size", NULL, -1));
    if (count[LAYER_LINEAR] > 0)
        linear_group(r, llm, count[LAYER_LINEAR]);
}

/* ---- experts -------------------------------------------------------------------------------- */

/* Layers with an ordinary FFN: the first k, those listed, or all but every n-th. */
static int64_t dense_layers(struct reader *r, int64_t layers)
{
    const json_t *kinds = json_object_get(r->config, "mlp_layer_types");
    if (json_is_array(kinds)) {
        int64_t dense = 0;
        for (size_t i = 0; i < json_array_size(kinds); i++) {
            const char *kind = json_string_value(json_array_get(kinds, i));
            dense += kind && strcmp(kind, "dense") == 0;
        }
        return dense < layers ? dense : layers;
    }
    int64_t dense = number(r, "first_k_dense_replace", NULL, 0);
    const json_t *listed = json_object_get(r->config, "mlp_only_layers");
    if (dense == 0 && json_is_array(listed))
        dense = (int64_t)json_array_size(listed);
    int64_t step = number(r, "decoder_sparse_step", "interleave_moe_layer_step", 1);
    if (step > 1)
        dense += (layers - dense) - (layers - dense) / step;
    return dense < layers ? dense : layers;
}

static void read_ffn(struct reader *r, struct llm_spec *llm)
{
    struct moe_shape *moe = &llm->moe;
    const char *experts_key = has(r, "n_routed_experts")    ? "n_routed_experts"
                              : has(r, "num_local_experts") ? "num_local_experts"
                                                            : "num_experts";
    moe->experts = number(r, experts_key, NULL, 0);
    if (moe->experts <= 1) {
        *moe = (struct moe_shape){.matrices = 3, .groups = 1, .top_groups = 1};
        llm->dense_layers = llm->layers;
        llm->dense_hidden = number(r, "intermediate_size", NULL, -1);
        return;
    }
    llm->dense_layers = dense_layers(r, llm->layers);
    if (llm->dense_layers > 0)
        llm->dense_hidden = number(r, "intermediate_size_mlp", "intermediate_size", -1);
    moe->layers = llm->layers - llm->dense_layers;
    moe->top_k = number(r, "num_experts_per_tok", "num_experts_per_token", -1);
    moe->hidden = number(r, "moe_intermediate_size", "intermediate_size", -1);
    moe->latent = number(r, "moe_latent_size", "routed_expert_hidden_size", 0);
    moe->shared = number(r, "n_shared_experts", "num_shared_experts", 0);
    moe->shared_hidden = number(r, "shared_expert_intermediate_size", NULL, 0);
    if (moe->shared == 0 && moe->shared_hidden > 0)
        moe->shared = 1;
    moe->groups = number(r, "n_group", NULL, 1);
    moe->top_groups = number(r, "topk_group", NULL, 1);
    if (moe->groups < 1)
        moe->groups = moe->top_groups = 1;
}

/* ---- precision ------------------------------------------------------------------------------ */

static void read_precision(const json_t *root, struct llm_spec *llm)
{
    const json_t *quant = json_object_get(root, "quantization_config");
    const char *method = text_of(quant, "quant_method");
    int weights = STORAGE_BF16, experts = -1;
    if (strcmp(method, "fp8") == 0)
        weights = STORAGE_FP8;
    else if (strcmp(method, "mxfp4") == 0)
        experts = STORAGE_MXFP4;
    else if (strcmp(method, "modelopt") == 0 && strcmp(text_of(quant, "quant_algo"), "NVFP4") == 0)
        experts = STORAGE_NVFP4;
    else if (strcmp(method, "awq") == 0 || strcmp(method, "gptq") == 0)
        weights = STORAGE_INT4_G128;
    llm->precision = (struct precision){.weights = weights, .experts = experts, .kv = STORAGE_BF16};
}

bool hf_config_load(const char *path, struct llm_spec *llm, struct arena *arena,
                    struct errors *errors)
{
    size_t before = errors->error_count;
    json_error_t error;
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (!root || !json_is_object(root)) {
        struct source_pos pos = {.file = path,
                                 .line = error.line > 0 && !root ? (uint32_t)error.line : 0,
                                 .column = error.column > 0 && !root ? (uint32_t)error.column : 0};
        errors_add(errors, SEVERITY_ERROR, &pos, "config.json: %s",
                   root ? "is not an object" : error.text);
        json_decref(root);
        return false;
    }
    const json_t *inner = json_object_get(root, "text_config");
    struct reader r = {.path = path,
                       .config = json_is_object(inner) ? inner : root,
                       .errors = errors,
                       .arena = arena};
    field_defaults(llm_fields, llm, arena);
    const char *type = text_of(root, "model_type");
    r.gated = strncmp(type, "qwen3_next", 10) == 0 || strncmp(type, "qwen3_5", 7) == 0;
    for (size_t i = 0; unknown_kinds[i]; i++)
        if (has(&r, unknown_kinds[i]))
            complain(
                &r, unknown_kinds[i],
                "belongs to a kind of layer this reader does not know; write the model as YAML");
    llm->name = arena_copy(arena, *type ? type : path);
    llm->layers = number(&r, "num_hidden_layers", NULL, -1);
    llm->hidden = number(&r, "hidden_size", NULL, -1);
    llm->vocab = number(&r, "vocab_size", NULL, -1);
    llm->tied_embeddings = truth(&r, "tie_word_embeddings", false);
    if (llm->layers < 1 || llm->layers > HF_LAYERS_MAX)
        complain(&r, "num_hidden_layers", "is out of range (1 to 10,000)");
    read_attention(&r, llm);
    read_ffn(&r, llm);
    read_precision(root, llm);
    json_decref(root);
    return errors->error_count == before;
}
