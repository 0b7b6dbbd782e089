/* The experts of a pool: popularity, placement and what the busiest GPU costs, from one popularity
 * epoch to the next. Replicas of a pool share them. */
#ifndef FLEETSIM_MODELS_MOE_EXPERTS_H
#define FLEETSIM_MODELS_MOE_EXPERTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "models/hardware.h"
#include "models/llm.h"
#include "models/moe_law.h"
#include "models/moe_placement.h"
#include "models/moe_popularity.h"
#include "models/moe_routing.h"
#include "models/parallel.h"
#include "sim/base/errors.h"
#include "sim/base/field.h"

/* The scenario's `experts:` mapping of a roofline. */
struct moe_config {
    struct variant_value popularity; /* type NULL: balanced */
    int64_t layer_groups;
    int64_t drift_ps; /* FIELD_INT_UNSET: no drift */
    int64_t epoch_ps; /* between two evaluations */
    double class_correlation;
    int placement;        /* enum moe_placement_kind */
    int64_t rebalance_ps; /* FIELD_INT_UNSET: placed once */
};
extern const struct field moe_experts_fields[];
bool moe_experts_balanced(const struct moe_config *config);

struct moe_experts_config {
    const struct moe_config *user; /* borrowed for the call */
    const struct llm_spec *llm;    /* borrowed */
    const struct gpu_spec *gpu;    /* borrowed */
    struct parallel parallel;
    int64_t redundant;
    double expert_bytes; /* of one expert of one layer, as stored */
    int64_t max_tokens;  /* largest step */
    size_t classes;      /* of traffic */
    uint64_t seed;
    uint32_t replication;
};

/* One group of MoE layers. */
struct moe_group {
    int64_t layers;                 /* in all */
    double *share;                  /* owned: [experts], P(a token goes to it) now */
    double *measured;               /* owned: [experts], summed since the last placement */
    double *slot_share;             /* owned: [slots] */
    struct moe_placement placement; /* owned */
    struct moe_law law;
    size_t moved; /* copies that the last rebalancing moved, on all GPUs */
};

struct moe_experts {
    struct moe_popularity popularity;
    struct moe_routing routing;
    struct moe_placement_shape shape;
    enum moe_placement_kind kind;
    struct parallel parallel;
    int64_t moe_layers;
    int64_t max_tokens;
    size_t group_count;
    struct moe_group *groups; /* owned */
    struct moe_law law;       /* of the slowest stage, a mean over its MoE layers */
    double expert_bytes;
    double move_bytes_per_s; /* into one GPU */
};

/* Checks (a table's length, copies that cannot be spread) and makes the state of the first epoch.
 * class_share: [classes], each class's share of the tokens. NULL after adding errors. */
struct moe_experts *moe_experts_create(const struct moe_experts_config *config,
                                       const double *class_share, struct errors *errors,
                                       const struct source_pos *where);
void moe_experts_free(struct moe_experts *experts);

/* Whether anything can differ from one epoch to the next. */
bool moe_experts_changes(const struct moe_experts *experts);

/* The next epoch: the popularity drifts, the class mix is the one given, and with rebalance copies
 * are placed anew by what was measured since the last time. Returns the seconds that moving them
 * takes: on the GPU that receives the most copies, its bytes (all layers of its stage) at the rate
 * of its link, or of its network port where the group spans scale-up domains. */
double moe_experts_advance(struct moe_experts *experts, const double *class_share, bool rebalance);

/* max/mean of token-expert pairs of one group's layers, in the limit of many tokens. */
double moe_experts_skew(const struct moe_experts *experts, size_t group);

#endif
