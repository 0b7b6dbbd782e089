/* The field tables of a model's shape. */
#include "models/llm.h"

const char *const llm_storage_names[STORAGE_COUNT + 1] = {"bf16",  "fp8",  "int8",      "nvfp4",
                                                          "mxfp4", "int4", "int4_g128", NULL};
static const char *const kv_names[] = {"bf16", "fp8", NULL};
static const char *const kind_names[] = {"gqa", "mla", "linear", NULL};

#define COUNT(type, key, member, fallback_text, low, high, text)                                   \
    {                                                                                              \
        .name = key, .kind = FIELD_INT, .fallback = fallback_text,                                 \
        .flags = (fallback_text) ? 0 : FIELD_REQUIRED, .offset = offsetof(type, member),           \
        .min = low, .max = high, .doc = text                                                       \
    }
#define NEEDED ((const char *)0)
#define GROUP(key, member, fallback_text, low, high, text)                                         \
    COUNT(struct attention_group, key, member, fallback_text, low, high, text)

static const struct field attention_fields[] = {
    GROUP("layers", layers, NEEDED, 1, 10000, "Layers of this kind"),
    {.name = "kind",
     .kind = FIELD_CHOICE,
     .fallback = "gqa",
     .choices = kind_names,
     .offset = offsetof(struct attention_group, kind),
     .doc = "gqa: cached keys and values; mla: one cached latent; linear: constant state"},
    GROUP("heads", heads, "0", 0, 65536, "Query heads"),
    GROUP("kv_heads", kv_heads, "0", 0, 65536, "gqa: heads of the cache"),
    GROUP("head_dim", head_dim, "0", 0, 65536, "gqa: query-key width of a head"),
    GROUP("value_dim", value_dim, "0", 0, 65536, "Value width of a head; 0: as head_dim"),
    GROUP("window", window, "0", 0, 1e9, "Tokens a query sees; 0: all"),
    {.name = "shared_kv",
     .kind = FIELD_BOOL,
     .fallback = "false",
     .offset = offsetof(struct attention_group, shared_kv),
     .doc = "One projection makes both keys and values"},
    {.name = "gated",
     .kind = FIELD_BOOL,
     .fallback = "false",
     .offset = offsetof(struct attention_group, gated),
     .doc = "An output gate of the output's width"},
    GROUP("q_rank", q_rank, "0", 0, 65536, "mla: low-rank query; 0: full"),
    GROUP("kv_rank", kv_rank, "0", 0, 65536, "mla: width of the cached latent"),
    GROUP("nope_dim", nope_dim, "0", 0, 65536, "mla: query-key width without position"),
    GROUP("rope_dim", rope_dim, "0", 0, 65536, "mla: cached width with position"),
    GROUP("compress", compress, "1", 1, 1e6, "History kept once per so many tokens"),
    GROUP("top_k", top_k, "0", 0, 1e9, "Sparse: tokens a query reads; 0: all"),
    GROUP("indexer_heads", indexer_heads, "0", 0, 65536, "Sparse: heads of the indexer"),
    GROUP("indexer_dim", indexer_dim, "0", 0, 65536, "Sparse: width of an indexer head"),
    GROUP("indexer_layers", indexer_layers, "0", 0, 10000, "Layers with an indexer of their own"),
    GROUP("indexer_bytes", indexer_bytes, "0", 0, 65536,
          "Bytes the indexer caches per token and layer"),
    GROUP("fp8_cache_bytes", fp8_cache_bytes, "0", 0, 65536,
          "Bytes cached per token and layer under FP8; 0: one per element"),
    GROUP("key_heads", key_heads, "0", 0, 65536, "linear: key heads (Mamba-2: groups)"),
    GROUP("value_heads", value_heads, "0", 0, 65536, "linear: value heads"),
    GROUP("key_dim", key_dim, "0", 0, 65536, "linear: width of a key (Mamba-2: state size)"),
    GROUP("conv", conv, "4", 0, 1024, "linear: kernel of the short convolution"),
    GROUP("state_bits", state_bits, "16", 8, 64, "linear: bits of a state element"),
    {.name = "params_per_layer",
     .kind = FIELD_REAL,
     .flags = FIELD_OPTIONAL,
     .min = 0,
     .max = 1e13,
     .offset = offsetof(struct attention_group, params_per_layer),
     .doc = "Parameters of one layer where no formula applies"},
    {.name = "extra_params",
     .kind = FIELD_REAL,
     .fallback = "0",
     .min = 0,
     .max = 1e13,
     .offset = offsetof(struct attention_group, extra_params),
     .doc = "Parameters of one layer beside the formula's"},
    {0}};

static const struct field attention_item = {
    .name = "group", .kind = FIELD_STRUCT, .fields = attention_fields, .doc = "One group"};

#define MOE(key, member, fallback_text, low, high, text)                                           \
    COUNT(struct moe_shape, key, member, fallback_text, low, high, text)
static const struct field moe_experts_fields[] = {
    MOE("layers", layers, "0", 0, 10000, "Layers with experts"),
    MOE("experts", experts, "0", 0, 65536, "Routed experts per layer; 0: a dense model"),
    MOE("top_k", top_k, "0", 0, 65536, "Routed experts per token"),
    MOE("hidden", hidden, "0", 0, 1e7, "Hidden size of one expert"),
    MOE("latent", latent, "0", 0, 1e7, "Input width of routed experts; 0: the model's hidden size"),
    MOE("shared", shared, "0", 0, 1024, "Shared experts per layer"),
    MOE("shared_hidden", shared_hidden, "0", 0, 1e7,
        "Hidden size of a shared expert; 0: as hidden"),
    MOE("matrices", matrices, "3", 2, 3, "3: gated; 2: plain"),
    MOE("groups", groups, "1", 1, 65536, "Groups of experts for node-limited routing"),
    MOE("top_groups", top_groups, "1", 1, 65536, "Groups a token may use"),
    {0}};

#define STORAGE(type, key, member, names, text)                                                    \
    {                                                                                              \
        .name = key, .kind = FIELD_CHOICE, .flags = FIELD_OPTIONAL, .choices = names,              \
        .offset = offsetof(type, member), .doc = text                                              \
    }
const struct field llm_precision_fields[] = {
    STORAGE(struct precision, "weights", weights, llm_storage_names,
            "Format of the weights; default: the model's usual one"),
    STORAGE(struct precision, "experts", experts, llm_storage_names,
            "Format of routed experts; default: as weights when those are given"),
    STORAGE(struct precision, "kv", kv, kv_names, "Format of the KV cache"),
    {0}};

#define PUBLISHED(key, member, unit_kind, text)                                                    \
    {                                                                                              \
        .name = key, .kind = FIELD_REAL, .unit = unit_kind, .flags = FIELD_OPTIONAL, .min = 0,     \
        .max = 1e16, .offset = offsetof(struct llm_published, member), .doc = text                 \
    }
static const struct field published_fields[] = {
    PUBLISHED("total_params", total_params, UNIT_NONE, "Total as the developer states it"),
    PUBLISHED("active_params", active_params, UNIT_NONE, "Active per token as stated"),
    PUBLISHED("checkpoint", checkpoint_bytes, UNIT_BYTES, "Size of the published checkpoint"),
    {0}};

#define SPEC(key, member, fallback_text, low, high, text)                                          \
    COUNT(struct llm_spec, key, member, fallback_text, low, high, text)
const struct field llm_fields[] = {
    {.name = "name",
     .kind = FIELD_TEXT,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct llm_spec, name),
     .doc = "Name as printed"},
    {.name = "developer",
     .kind = FIELD_TEXT,
     .flags = FIELD_OPTIONAL,
     .offset = offsetof(struct llm_spec, developer),
     .doc = "Who trained it"},
    SPEC("layers", layers, NEEDED, 1, 10000, "Blocks in sequence"),
    SPEC("hidden", hidden, NEEDED, 1, 1e6, "Width of the residual stream"),
    SPEC("vocab", vocab, NEEDED, 1, 1e8, "Vocabulary"),
    {.name = "tied_embeddings",
     .kind = FIELD_BOOL,
     .fallback = "false",
     .offset = offsetof(struct llm_spec, tied_embeddings),
     .doc = "Input and output embeddings are one matrix"},
    {.name = "attention",
     .kind = FIELD_LIST,
     .offset = offsetof(struct llm_spec, attention),
     .item = &attention_item,
     .item_size = sizeof(struct attention_group),
     .min = 1,
     .max = 16,
     .doc = "Groups of attention layers"},
    SPEC("dense_layers", dense_layers, "0", 0, 10000, "Layers with an ordinary FFN"),
    SPEC("dense_hidden", dense_hidden, "0", 0, 1e7, "Hidden size of the ordinary FFN"),
    {.name = "moe",
     .kind = FIELD_STRUCT,
     .offset = offsetof(struct llm_spec, moe),
     .fields = moe_experts_fields,
     .doc = "Layers with experts"},
    {.name = "other_params",
     .kind = FIELD_REAL,
     .fallback = "0",
     .min = 0,
     .max = 1e13,
     .offset = offsetof(struct llm_spec, other_params),
     .doc = "Resident parameters that text tokens never use (a vision tower)"},
    {.name = "precision",
     .kind = FIELD_STRUCT,
     .offset = offsetof(struct llm_spec, precision),
     .fields = llm_precision_fields,
     .doc = "Usual serving precision"},
    {.name = "published",
     .kind = FIELD_STRUCT,
     .offset = offsetof(struct llm_spec, published),
     .fields = published_fields,
     .doc = "What the developer states, to compare with"},
    {.name = "sources",
     .kind = FIELD_LIST,
     .offset = offsetof(struct llm_spec, sources),
     .item = &hardware_source_item,
     .item_size = sizeof(struct source_note),
     .min = 0,
     .max = 100,
     .doc = "Where the values come from"},
    {0}};
