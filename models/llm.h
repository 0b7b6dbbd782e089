/* The shape of a language model and what follows from it alone: parameters, KV bytes, constant
 * state, FLOPs. Filled from models/catalog/llm/NAME.yaml, a user's file or a Hugging Face
 * config.json through llm_fields.
 *
 * Layers are described in groups, attention and FFN apart, because models mix them: 61 MLA layers
 * with 3 dense and 58 expert FFNs; 24 MLA and 69 linear layers; 12 full and 12 windowed. */
#ifndef FLEETSIM_MODELS_LLM_H
#define FLEETSIM_MODELS_LLM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "models/hardware.h"
#include "sim/base/errors.h"
#include "sim/base/field.h"

enum attention_kind {
    ATTENTION_GQA,    /* cached keys and values of kv_heads heads (MHA, GQA, MQA) */
    ATTENTION_MLA,    /* one cached latent shared by all heads */
    ATTENTION_LINEAR, /* a constant state per sequence (KDA, Gated DeltaNet, Mamba-2) */
};

struct attention_group {
    int64_t layers;
    int kind;          /* enum attention_kind */
    int64_t heads;     /* query heads */
    int64_t kv_heads;  /* GQA */
    int64_t head_dim;  /* query-key width of a head; GQA */
    int64_t value_dim; /* of a head; 0: as head_dim */
    int64_t window;    /* tokens a query sees; 0: all. With compress > 1 beside the history */
    bool shared_kv;    /* K and V are the same projection (still two cached copies) */
    bool gated;        /* an output gate of the output's width */
    int64_t q_rank;    /* MLA: low-rank query; 0: full */
    int64_t kv_rank;   /* MLA: cached latent */
    int64_t nope_dim;  /* MLA: query-key width without position */
    int64_t rope_dim;  /* MLA: cached shared position key */
    int64_t compress;  /* history kept once per so many tokens; 1: every token */
    int64_t top_k;     /* sparse: tokens (after compression) a query reads; 0: all */
    int64_t indexer_heads;
    int64_t indexer_dim;
    int64_t indexer_layers;  /* layers with an indexer of their own (others share) */
    int64_t indexer_bytes;   /* cached per (compressed) token and such layer */
    int64_t fp8_cache_bytes; /* MLA: cached per token and layer under FP8; 0: one per element */
    int64_t key_heads;       /* LINEAR */
    int64_t value_heads;
    int64_t key_dim;
    int64_t conv;            /* LINEAR: kernel of the short convolution */
    int64_t state_bits;      /* LINEAR: 16 or 32 */
    double params_per_layer; /* NaN: by the formulas */
    double extra_params;     /* per layer, beside the formulas */
};

struct moe_shape {
    int64_t layers;
    int64_t experts; /* routed, per layer; 0: no MoE */
    int64_t top_k;
    int64_t hidden;        /* of one expert */
    int64_t latent;        /* width of the routed experts' input; 0: the model's hidden size */
    int64_t shared;        /* shared experts per layer, at the full hidden size */
    int64_t shared_hidden; /* of one shared expert; 0: as hidden */
    int64_t matrices;      /* 3: gated; 2: plain */
    int64_t groups;        /* of experts, for node-limited routing; 1: none */
    int64_t top_groups;    /* groups a token may use */
};

/* How weights are stored. */
enum storage {
    STORAGE_BF16,
    STORAGE_FP8,
    STORAGE_INT8,
    STORAGE_NVFP4, /* 4 + 8/16 bits */
    STORAGE_MXFP4, /* 4 + 8/32 bits */
    STORAGE_INT4,  /* groups of 32 with a 16-bit scale: 4.5 bits */
    STORAGE_INT4_G128,
    STORAGE_COUNT
};
extern const char *const llm_storage_names[STORAGE_COUNT + 1];

struct precision {
    int weights; /* enum storage, of everything but routed experts; -1: the model's usual one */
    int experts; /* enum storage of routed experts; -1: as weights, or the model's usual one */
    int kv;      /* STORAGE_BF16 or STORAGE_FP8; -1: the model's usual one */
};
extern const struct field llm_precision_fields[];

struct llm_published {
    double total_params;     /* NaN: not stated */
    double active_params;    /* NaN: not stated */
    double checkpoint_bytes; /* NaN: not stated */
};

struct llm_spec {
    const char *name;
    const char *developer;
    int64_t layers; /* blocks in sequence: what per-layer overhead counts */
    int64_t hidden;
    int64_t vocab;
    bool tied_embeddings;
    struct field_list attention; /* struct attention_group */
    int64_t dense_layers;        /* with an ordinary FFN */
    int64_t dense_hidden;
    struct moe_shape moe;
    double other_params;        /* resident, never used per token (vision tower) */
    struct precision precision; /* usual serving precision */
    struct llm_published published;
    struct field_list sources; /* struct source_note */
};

extern const struct field llm_fields[];

/* What the field table cannot say: heads that do not divide, layers that do not add up, experts
 * fewer than top_k. */
bool llm_check(const struct llm_spec *llm, struct errors *errors, const struct source_pos *where);

/* Parameters by part. Biases and norms are left out (below 0.01 %). */
struct llm_params {
    double attention; /* all layers, indexers and gates included */
    double dense_ffn; /* all dense layers */
    double routed;    /* every routed expert of every layer */
    double expert;    /* one routed expert */
    double shared;    /* shared experts, all layers */
    double router;    /* all layers */
    double latent;    /* projections into and out of the experts' width, all layers */
    double embedding; /* input */
    double head;      /* output; = embedding when tied, counted once in total */
    double other;
    double rest;   /* all but routed experts, embeddings once when tied: what is stored */
    double total;  /* rest + routed */
    double active; /* per token: no input embedding, with the head */
};
struct llm_params llm_params(const struct llm_spec *llm);

/* Bits per weight, scales included. */
double llm_storage_bits(enum storage storage);
/* The math a format is computed with where the hardware has it. Activations follow the weights
 * for FP8, NVFP4 and MXFP4; INT4 weights are widened to BF16. */
enum math llm_storage_math(enum storage storage);
/* Fills the -1 entries of a user's choice from the model's usual precision. */
struct precision llm_precision(const struct llm_spec *llm, const struct precision *chosen);

/* KV cache of one sequence of `tokens` tokens, whole model, bytes. */
struct llm_kv {
    double per_token;         /* slope where nothing is windowed: main cache */
    double indexer_per_token; /* of sparse attention */
    double window;            /* windowed layers, once full */
    double state;             /* linear layers: constant per sequence */
};
struct llm_kv llm_kv(const struct llm_spec *llm, enum storage kv);
double llm_kv_bytes(const struct llm_spec *llm, enum storage kv, double tokens);
/* Bytes one layer of a group caches per (uncompressed) token, indexer apart. */
double llm_group_kv_bytes(const struct attention_group *group, enum storage kv);
/* Constant bytes one layer of a linear group keeps per sequence. */
double llm_group_state_bytes(const struct attention_group *group);
/* The number of KV heads a group's cache can be split over: 1 for MLA. */
int64_t llm_group_kv_split(const struct attention_group *group);

/* FLOPs. Matrix work per token: 2 · active, the head only for sampled tokens. Attention: per query
 * and key in reach; prefill of MLA is not absorbed, decode is. Linear: per query, constant. */
double llm_group_flops_per_pair(const struct attention_group *group, bool prefill);
double llm_group_flops_per_query(const struct attention_group *group);
/* All attention FLOPs of one decode at a context of `context` tokens, or of a prefill of `tokens`
 * on `cached` stored ones. */
double llm_attention_decode_flops(const struct llm_spec *llm, double context);
double llm_attention_prefill_flops(const struct llm_spec *llm, double tokens, double cached);

/* Expected number of distinct routed experts that `tokens` tokens touch in one layer, routing
 * uniform and independent: E(1 − (1 − k/E)^tokens). Basic operations only. */
double llm_distinct_experts(const struct llm_spec *llm, double tokens);

static inline const struct attention_group *llm_group(const struct llm_spec *llm, size_t index)
{
    return (const struct attention_group *)llm->attention.items + index;
}

#endif
