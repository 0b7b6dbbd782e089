/* What an iteration costs from a model's shape and a GPU's data sheet, without a profile: weights
 * streamed, KV streamed, compute, collectives and overhead (docs/models.md has every equation with
 * its source). Used by the step model `roofline`, by `layout` and `plan`. */
#ifndef FLEETSIM_MODELS_ROOFLINE_H
#define FLEETSIM_MODELS_ROOFLINE_H

#include <stdint.h>

#include "models/collective.h"
#include "models/hardware.h"
#include "models/llm.h"
#include "models/moe_experts.h"
#include "models/parallel.h"
#include "models/step_time.h"

/* Efficiencies and overheads. One set for dense models and one for MoE, fitted to public
 * measurements (docs/validation.md); NaN and FIELD_INT_UNSET mean "of that set". */
struct roofline_factors {
    double bandwidth;   /* share of HBM bandwidth that streams reach */
    double compute;     /* share of the dense peak that GEMMs reach */
    double attention;   /* share of the BF16 peak that attention reaches */
    double expert_rows; /* rows that every expert touched computes beside its tokens: grouped GEMMs
                           are inefficient until each expert has many */
    int64_t layer_overhead_ps;    /* per layer and iteration: launches, norms, routing */
    int64_t sequence_overhead_ps; /* per decoding sequence of a rank: sampling, scheduling */
    int64_t prefill_overhead_ps;  /* per layer of an iteration with prompt tokens: no CUDA graph */
    int64_t first_token_ps; /* outside the engine, once per request: front end, tokeniser, first
                               response; not part of an iteration */
};

struct roofline_config {
    /* Filled by the caller, not by the field table. */
    const struct llm_spec *llm;
    const struct gpu_spec *gpu;
    struct parallel parallel;
    struct precision precision; /* resolved: no -1 */
    const struct moe_law *law;  /* borrowed: the busiest GPU's share of the experts' work, which may
                                   change between two steps; NULL: every GPU has the mean */
    /* Filled by roofline_fields. */
    struct roofline_factors factors;
    double overlap;            /* η: C + X − η·min(C, X) for expert all-to-all */
    int dedup;                 /* enum dedup */
    bool measured;             /* use the GPU's table of small all-to-alls */
    double expert_imbalance;   /* busiest GPU / mean, of expert work and all-to-all */
    double length_cv;          /* of the contexts: slowest attention copy */
    int64_t redundant_experts; /* copies of experts per layer beside one of each */
    struct moe_config experts; /* popularity and placement: whoever makes the law reads it */
    bool random_assignment;    /* of sequences to attention copies */
};
extern const struct field roofline_fields[];
/* For the registry of models/step_time.c. */
extern const struct variant step_roofline_variant;

/* The fitted sets. */
struct roofline_factors roofline_default_factors(const struct llm_spec *llm);
/* Fills what a user left open from the model's set: roofline_init does it, and whoever shows the
 * values in force. */
void roofline_fill_factors(struct roofline_factors *factors, const struct llm_spec *llm);

/* A term of attention: coefficient × min(stored tokens, cap × sequences). */
struct roofline_term {
    double decode_s; /* per stored token of a decode; reading or computing, the slower */
    double read_s;   /* per stored token of a prefilling sequence */
    double pair_s;   /* per query-key pair of a chunk */
    int64_t cap;     /* tokens a query sees; 0: all */
};
enum { ROOFLINE_TERMS_MAX = 48 };

/* A prepared model: per GPU of the slowest pipeline stage. */
struct roofline {
    struct roofline_config config;
    double body_stream_s; /* streaming everything but experts and head once */
    double body_token_s;  /* computing one token of it */
    double head_stream_s;
    double head_token_s;
    double expert_stream_s; /* streaming one expert of every MoE layer */
    double expert_token_s;  /* computing one token-expert pair in every MoE layer */
    double expert_rows;     /* padding of every touched expert, in tokens */
    double sequence_s;      /* linear state in and out, per decode */
    double query_s;         /* linear attention, per token */
    double layer_s;         /* overhead of the stage's layers */
    double prefill_layer_s;
    double stage_layers;
    double moe_layers;   /* of the stage */
    double reduces;      /* tensor all-reduces per iteration of the stage */
    double wide_reduces; /* over the whole stage (experts cut over attention copies) */
    double token_bytes;  /* hidden state of one token */
    struct all_reduce_plan reduce, wide_reduce;
    struct exchange exchange;
    bool exchanges;   /* experts are reached by all-to-all */
    bool hop_network; /* stages are joined by the network */
    struct roofline_term terms[ROOFLINE_TERMS_MAX];
    size_t term_count;
    double distinct[1025]; /* distinct experts by tokens; beyond: by formula */
};

/* Prepares; reports what does not divide. NULL-free: false on error. */
bool roofline_init(struct roofline *r, const struct roofline_config *config, struct errors *errors,
                   const struct source_pos *where);

/* Seconds of one iteration of this batch, by part; the parts of C and X add up before overlap. */
struct roofline_parts {
    double weights_s; /* body and head: streaming or computing, the slower */
    double experts_s;
    double attention_s; /* KV and state read, or scores computed */
    double overhead_s;
    double reduce_s;   /* tensor-parallel all-reduces */
    double exchange_s; /* expert all-to-all: X */
    double hop_s;      /* between pipeline stages */
    double total_s;    /* after overlap */
};
struct roofline_parts roofline_parts(const struct roofline *r, const struct step_batch *batch);

/* The integer law of the same batch. */
void roofline_law(const struct roofline *r, const struct step_batch *batch, struct step_law *law);

#endif
