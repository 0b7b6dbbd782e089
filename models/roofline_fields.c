/* The field table of the roofline model. */
#include "models/roofline.h"

#define FACTOR(key, member, text)                                                                  \
    {                                                                                              \
        .name = key, .kind = FIELD_REAL, .unit = UNIT_FRACTION, .flags = FIELD_OPTIONAL,           \
        .min = 0.001, .max = 1, .offset = offsetof(struct roofline_config, factors.member),        \
        .doc = text                                                                                \
    }
#define OVERHEAD(key, member, text)                                                                \
    {                                                                                              \
        .name = key, .kind = FIELD_TIME, .flags = FIELD_OPTIONAL, .min = 0, .max = 1,              \
        .offset = offsetof(struct roofline_config, factors.member), .doc = text                    \
    }

const struct field roofline_fields[] = {
    FACTOR("bandwidth_efficiency", bandwidth,
           "Share of memory bandwidth that streaming reaches; default: fitted"),
    FACTOR("compute_efficiency", compute,
           "Share of the dense peak that matrix products reach; default: fitted"),
    FACTOR("attention_efficiency", attention,
           "Share of the BF16 peak that attention reaches; default: 0.6"),
    {.name = "expert_rows",
     .kind = FIELD_REAL,
     .flags = FIELD_OPTIONAL,
     .min = 0,
     .max = 65536,
     .offset = offsetof(struct roofline_config, factors.expert_rows),
     .doc = "Rows every touched expert computes beside its tokens; default: fitted"},
    OVERHEAD("layer_overhead", layer_overhead_ps,
             "Fixed time per layer and iteration; default: fitted"),
    OVERHEAD("sequence_overhead", sequence_overhead_ps,
             "Fixed time per decoding sequence of a GPU; default: fitted"),
    OVERHEAD("prefill_overhead", prefill_overhead_ps,
             "Fixed time per layer of an iteration with prompt tokens; default: fitted"),
    OVERHEAD("first_token_overhead", first_token_ps,
             "Time outside the engine before the first token (front end, tokeniser); only closed "
             "forms use it; default: fitted"),
    {.name = "overlap",
     .kind = FIELD_REAL,
     .unit = UNIT_FRACTION,
     .fallback = "0.2",
     .min = 0,
     .max = 1,
     .offset = offsetof(struct roofline_config, overlap),
     .doc = "Share of the shorter of computing and expert all-to-all that the longer hides"},
    {.name = "dedup",
     .kind = FIELD_CHOICE,
     .fallback = "node",
     .choices = collective_dedup_names,
     .offset = offsetof(struct roofline_config, dedup),
     .doc = "How often a token is sent when its experts sit together: once per expert (none), per "
            "gpu, or per node over the network"},
    {.name = "measured_all_to_all",
     .kind = FIELD_BOOL,
     .fallback = "true",
     .offset = offsetof(struct roofline_config, measured),
     .doc = "Take small all-to-alls from the GPU's measured table"},
    {.name = "expert_imbalance",
     .kind = FIELD_REAL,
     .fallback = "1",
     .min = 1,
     .max = 1000,
     .offset = offsetof(struct roofline_config, expert_imbalance),
     .doc =
         "Expert work of the busiest GPU over the mean, at every load; or let `experts` tell it"},
    {.name = "redundant_experts",
     .kind = FIELD_INT,
     .fallback = "0",
     .min = 0,
     .max = 65536,
     .offset = offsetof(struct roofline_config, redundant_experts),
     .doc =
         "Extra copies of experts per layer, to even out the load; their memory is taken from KV"},
    {.name = "experts",
     .kind = FIELD_STRUCT,
     .offset = offsetof(struct roofline_config, experts),
     .fields = moe_experts_fields,
     .doc = "Popularity and placement of a MoE model's experts: what the busiest GPU costs"},
    {.name = "length_cv",
     .kind = FIELD_REAL,
     .fallback = "0",
     .min = 0,
     .max = 10,
     .offset = offsetof(struct roofline_config, length_cv),
     .doc = "Coefficient of variation of contexts, for the slowest attention copy"},
    {.name = "random_assignment",
     .kind = FIELD_BOOL,
     .fallback = "false",
     .offset = offsetof(struct roofline_config, random_assignment),
     .doc = "Sequences go to attention copies at random rather than in equal numbers"},
    {0}};
