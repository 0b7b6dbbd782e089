#include "sim/run/hf_config.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

enum { HF_GROUPS_MAX = 16, HF_LAYERS_MAX = 10000, HF_VALUE_MAX = 1000000000 };

/* What a family's files leave to the code of the model, and this reader knows. */
struct family {
    const char *type;   /* model_type */
    int64_t pattern;    /* of so many layers the last has no window; 0: all have one */
    bool tied;          /* the head is the embedding unless the file says otherwise */
    bool windows_asked; /* a window counts only with use_sliding_window: true */
    bool gated;         /* attention has an output gate */
    int64_t shared;     /* shared experts */
};

static const struct family families[] = {
    {.type = "llama"},
    {.type = "llama4", .shared = 1},
    {.type = "llama4_text", .shared = 1},
    {.type = "mistral"},
    {.type = "ministral"},
    {.type = "mixtral"},
    {.type = "phi3"},
    {.type = "granite"},
    {.type = "granitemoe"},
    {.type = "olmo2"},
    {.type = "olmoe"},
    {.type = "seed_oss"},
    {.type = "smollm3", .tied = true},
    {.type = "cohere", .tied = true},
    {.type = "cohere2", .tied = true, .pattern = 4},
    {.type = "gemma", .tied = true},
    {.type = "gemma2", .tied = true, .pattern = 2},
    {.type = "gemma3", .tied = true, .pattern = 6},
    {.type = "gemma3_text", .tied = true, .pattern = 6},
    {.type = "qwen2", .windows_asked = true},
    {.type = "qwen2_moe", .windows_asked = true},
    {.type = "qwen2_5_vl", .windows_asked = true},
    {.type = "qwen3", .windows_asked = true},
    {.type = "qwen3_moe", .windows_asked = true},
    {.type = "qwen3_vl", .windows_asked = true},
    {.type = "qwen3_vl_moe", .windows_asked = true},
    {.type = "qwen3_next", .windows_asked = true, .gated = true},
    {.type = "qwen3_5", .windows_asked = true, .gated = true},
    {.type = "qwen3_5_text", .windows_asked = true, .gated = true},
    {.type = "qwen3_5_moe", .windows_asked = true, .gated = true},
    {.type = "qwen3_5_moe_text", .windows_asked = true, .gated = true},
    {.type = "deepseek_v2"},
    {.type = "deepseek_v3"},
    {.type = "deepseek_v32"},
    {.type = "kimi_k2"},
    {.type = "kimi_k25"},
    {.type = "kimi_linear"},
    {.type = "glm4"},
    {.type = "glm4_moe"},
    {.type = "glm_moe_dsa"},
    {.type = "gpt_oss", .pattern = 2},
    {.type = "minimax_m2"},
    {.type = NULL},
};

struct reader {
    const char *path;
    const json_t *root;
    const json_t *config; /* the text model's object; root where there is none inside */
    struct errors *errors;
    struct arena *arena;
    const struct family *family;
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

static void warn(struct reader *r, const char *format, const char *what)
{
    struct source_pos pos = {.file = r->path};
    errors_add(r->errors, SEVERITY_WARNING, &pos, format, what);
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
static const char *const unknown_kinds[] = {"hybrid_override_pattern",
                                            "ssm_state_size",
                                            "mamba_d_state",
                                            "mamba_num_heads",
                                            "attn_layer_period",
                                            "compress_ratios",
                                            "rwkv_version",
                                            "hybrid_layer_pattern",
                                            "layers_block_type",
                                            NULL};

/* ---- attention ------------------------------------------------------------------------------ */

enum layer_type { LAYER_FULL, LAYER_SLIDING, LAYER_CHUNKED, LAYER_LINEAR, LAYER_TYPES };

/* Layers without a window: the first max_window_layers, or every so many. */
static int64_t full_beside_windows(struct reader *r, int64_t layers)
{
    if (has(r, "max_window_layers")) {
        int64_t first = number(r, "max_window_layers", NULL, 0);
        return first < layers ? first : layers;
    }
    int64_t pattern =
        number(r, "sliding_window_pattern", "_sliding_window_pattern", r->family->pattern);
    return pattern > 0 ? layers / pattern : 0;
}

/* Layers that see everything: those without rotary positions, listed as 0, or every fourth. */
static int64_t full_beside_chunks(struct reader *r, int64_t layers)
{
    const json_t *rotary = json_object_get(r->config, "no_rope_layers");
    if (json_array_size(rotary) == 0) {
        int64_t interval = number(r, "no_rope_layer_interval", NULL, 4);
        return interval > 0 ? layers / interval : 0;
    }
    if ((int64_t)json_array_size(rotary) != layers)
        complain(r, "no_rope_layers", "does not have num_hidden_layers entries");
    int64_t full = 0;
    for (size_t i = 0; i < json_array_size(rotary); i++)
        full += json_integer_value(json_array_get(rotary, i)) == 0;
    return full < layers ? full : layers;
}

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
    } else if (number(r, "sliding_window", NULL, 0) > 0 &&
               truth(r, "use_sliding_window", !r->family->windows_asked)) {
        count[LAYER_FULL] = full_beside_windows(r, layers);
        count[LAYER_SLIDING] = layers - count[LAYER_FULL];
    } else if (number(r, "attention_chunk_size", NULL, 0) > 0) {
        count[LAYER_FULL] = full_beside_chunks(r, layers);
        count[LAYER_CHUNKED] = layers - count[LAYER_FULL];
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
    if (!has(r, "head_dim") && !has(r, "kv_lora_rank") && heads > 0 && llm->hidden % heads != 0)
        complain(r, "hidden_size",
                 "is not a multiple of num_attention_heads, and head_dim is "
                 "missing");
    if (!has(r, "kv_lora_rank")) {
        struct attention_group *g = group_add(r, llm, layers, ATTENTION_GQA);
        g->heads = heads;
        g->kv_heads = number(r, "num_key_value_heads", NULL, heads);
        g->head_dim = number(r, "head_dim", NULL, heads > 0 ? llm->hidden / heads : 0);
        g->value_dim = number(r, "v_head_dim", NULL, 0);
        g->window = window;
        g->gated = truth(r, "attn_output_gate", r->family->gated);
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

/* "dense" or "sparse", 0 or 1. */
static bool layer_is_dense(struct reader *r, const char *key, const json_t *kind)
{
    const char *word = json_string_value(kind);
    if (!json_is_integer(kind) && !(word && (!strcmp(word, "dense") || !strcmp(word, "sparse"))))
        complain(r, key, "has an entry that is not dense or sparse, 0 or 1");
    return word ? strcmp(word, "dense") == 0 : json_integer_value(kind) == 0;
}

/* Layers with an ordinary FFN: the first k, those listed, or all but every n-th. */
static int64_t dense_layers(struct reader *r, int64_t layers)
{
    static const char *const lists[] = {"mlp_layer_types", "moe_layer_freq"};
    for (size_t k = 0; k < 2; k++) {
        const json_t *kinds = json_object_get(r->config, lists[k]);
        if (!json_is_array(kinds))
            continue;
        if ((int64_t)json_array_size(kinds) != layers)
            complain(r, lists[k], "does not have num_hidden_layers entries");
        int64_t dense = 0;
        for (size_t i = 0; i < json_array_size(kinds); i++)
            dense += layer_is_dense(r, lists[k], json_array_get(kinds, i));
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
    if (moe->layers == 0)
        complain(r, experts_key, "is given, and no layer is left for experts");
    moe->top_k = number(r, "num_experts_per_tok", "num_experts_per_token", -1);
    moe->hidden = number(r, "moe_intermediate_size", "intermediate_size", -1);
    moe->latent = number(r, "moe_latent_size", "routed_expert_hidden_size", 0);
    moe->shared = number(r, "n_shared_experts", "num_shared_experts", r->family->shared);
    moe->shared_hidden = number(r, "shared_expert_intermediate_size", NULL, 0);
    if (moe->shared == 0 && moe->shared_hidden > 0)
        moe->shared = 1;
    moe->groups = number(r, "n_group", NULL, 1);
    moe->top_groups = number(r, "topk_group", NULL, 1);
    if (moe->groups < 1)
        moe->groups = moe->top_groups = 1;
}

/* ---- precision ------------------------------------------------------------------------------ */

/* Storage of `bits` bits in groups that share a scale; STORAGE_COUNT: none known. */
static enum storage storage_of(int64_t bits, bool is_float, int64_t group)
{
    if (bits == 8)
        return is_float ? STORAGE_FP8 : STORAGE_INT8;
    if (bits != 4)
        return STORAGE_COUNT;
    if (is_float)
        return group == 16 ? STORAGE_NVFP4 : STORAGE_MXFP4;
    return group > 0 && group <= 64 ? STORAGE_INT4 : STORAGE_INT4_G128;
}

/* compressed-tensors: the weights of its first group of modules. */
static enum storage storage_of_groups(const json_t *quant)
{
    const json_t *groups = json_object_get(quant, "config_groups");
    void *first = json_object_iter((json_t *)groups);
    const json_t *weights = json_object_get(json_object_iter_value(first), "weights");
    return storage_of(json_integer_value(json_object_get(weights, "num_bits")),
                      strcmp(text_of(weights, "type"), "float") == 0,
                      json_integer_value(json_object_get(weights, "group_size")));
}

static enum storage storage_of_method(const json_t *quant, const char *method)
{
    const char *algorithm = text_of(quant, "quant_algo");
    if (strcmp(method, "fp8") == 0 || strcmp(method, "fbgemm_fp8") == 0 ||
        (strcmp(method, "modelopt") == 0 && strcmp(algorithm, "FP8") == 0))
        return STORAGE_FP8;
    if (strcmp(method, "mxfp4") == 0)
        return STORAGE_MXFP4;
    if (strcmp(method, "modelopt_fp4") == 0 ||
        (strcmp(method, "modelopt") == 0 && strcmp(algorithm, "NVFP4") == 0))
        return STORAGE_NVFP4;
    if (strcmp(method, "awq") == 0 || strcmp(method, "gptq") == 0) {
        const json_t *bits = json_object_get(quant, "bits");
        return storage_of(json_is_integer(bits) ? json_integer_value(bits) : 4, false,
                          json_integer_value(json_object_get(quant, "group_size")));
    }
    if (strcmp(method, "compressed-tensors") == 0)
        return storage_of_groups(quant);
    if (strcmp(method, "bitsandbytes") == 0)
        return json_is_true(json_object_get(quant, "load_in_8bit")) ? STORAGE_INT8 : STORAGE_INT4;
    return STORAGE_COUNT;
}

/* Whether modules of attention are listed as not quantised. */
static bool attention_left_out(const json_t *quant)
{
    static const char *const keys[] = {"ignore", "exclude_modules", "modules_to_not_convert"};
    for (size_t k = 0; k < 3; k++) {
        const json_t *list = json_object_get(quant, keys[k]);
        for (size_t i = 0; i < json_array_size(list); i++) {
            const char *module = json_string_value(json_array_get(list, i));
            if (module && strstr(module, "attn"))
                return true;
        }
    }
    return false;
}

static void read_precision(struct reader *r, struct llm_spec *llm)
{
    const json_t *quant = json_object_get(r->root, "quantization_config");
    if (!quant)
        quant = json_object_get(r->config, "quantization_config");
    llm->precision = (struct precision){STORAGE_BF16, -1, STORAGE_BF16};
    if (!quant || json_is_null(quant))
        return;
    if (!json_is_object(quant)) {
        complain(r, "quantization_config", "must be an object");
        return;
    }
    const char *method = text_of(quant, "quant_method");
    enum storage storage = storage_of_method(quant, method);
    if (storage == STORAGE_COUNT) {
        warn(r,
             "config.json: quantization_config: a format of '%s' is not known here: weights are "
             "counted as BF16; state the precision",
             method);
        return;
    }
    if (llm->moe.experts > 0 && (storage == STORAGE_MXFP4 || attention_left_out(quant)))
        llm->precision.experts = (int)storage;
    else
        llm->precision.weights = (int)storage;
    const json_t *cache = json_object_get(quant, "kv_cache_scheme");
    if (strcmp(text_of(quant, "kv_cache_quant_algo"), "FP8") == 0 ||
        json_integer_value(json_object_get(cache, "num_bits")) == 8)
        llm->precision.kv = STORAGE_FP8;
}

/* The file's word for the model, fit to print; its path when it has none. */
static void read_name(struct reader *r, struct llm_spec *llm)
{
    enum { NAME_MAX_BYTES = 64 };
    const char *type = text_of(r->root, "model_type"), *inner = text_of(r->config, "model_type");
    if (!*type)
        type = inner;
    size_t length = strnlen(type, NAME_MAX_BYTES);
    while (length > 0 && ((unsigned char)type[length] & 0xC0) == 0x80)
        length--; /* not within a character */
    char *name = arena_copyn(r->arena, type, length);
    for (char *c = name; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            *c = '?';
    llm->name = *name ? name : r->path;
    const struct family *f = families;
    while (f->type && strcmp(f->type, type) != 0 && strcmp(f->type, inner) != 0)
        f++;
    r->family = f;
    if (!f->type)
        warn(r,
             "config.json: model_type '%s' is not known here: it is read as a decoder with gated "
             "FFNs whose keys mean the usual; check its size (`fleetsim layout`)",
             name);
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
                       .root = root,
                       .config = json_is_object(inner) ? inner : root,
                       .errors = errors,
                       .arena = arena};
    field_defaults(llm_fields, llm, arena);
    read_name(&r, llm);
    for (size_t i = 0; unknown_kinds[i]; i++)
        if (has(&r, unknown_kinds[i]))
            complain(
                &r, unknown_kinds[i],
                "belongs to a kind of layer this reader does not know; write the model as YAML");
    llm->layers = number(&r, "num_hidden_layers", NULL, -1);
    llm->hidden = number(&r, "hidden_size", NULL, -1);
    llm->vocab = number(&r, "vocab_size", NULL, -1);
    const json_t *tied = json_object_get(root, "tie_word_embeddings");
    llm->tied_embeddings = truth(&r, "tie_word_embeddings",
                                 json_is_boolean(tied) ? json_is_true(tied) : r.family->tied);
    if (llm->layers < 1 || llm->layers > HF_LAYERS_MAX)
        complain(&r, "num_hidden_layers", "is out of range (1 to 10,000)");
    read_attention(&r, llm);
    read_ffn(&r, llm);
    read_precision(&r, llm);
    json_decref(root);
    return errors->error_count == before;
}
