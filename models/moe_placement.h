/* Which GPU of an expert-parallel group holds which experts. Every GPU has the same number of
 * slots; beside one copy of each expert there may be redundant copies of some, never two on one
 * GPU, for they would share that GPU's work. */
#ifndef FLEETSIM_MODELS_MOE_PLACEMENT_H
#define FLEETSIM_MODELS_MOE_PLACEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum moe_placement_kind {
    MOE_PLACEMENT_CONTIGUOUS,  /* experts in order, so many per GPU; copies of the first ones */
    MOE_PLACEMENT_ROUND_ROBIN, /* expert e on GPU e mod G; copies of the first ones, on the next */
    MOE_PLACEMENT_EPLB,        /* by load: hot experts copied, copies packed; nodes first where
                                  expert groups divide evenly over them */
    MOE_PLACEMENT_EPLB_GLOBAL, /* the same over all GPUs at once */
    MOE_PLACEMENT_COUNT
};
extern const char *const moe_placement_names[MOE_PLACEMENT_COUNT + 1];

struct moe_placement_shape {
    size_t experts;
    size_t redundant; /* extra copies */
    size_t ranks;     /* GPUs of the group; divides experts + redundant */
    size_t nodes;     /* servers they are on; 1, or divides ranks */
    size_t groups;    /* of experts, for the node-first kind; 1: none */
};

struct moe_placement {
    size_t experts, slots, ranks;
    int32_t *expert; /* owned: [slots], in order of ranks */
    int32_t *copies; /* owned: [experts] */
};

/* Why such copies cannot be spread (text), or NULL: slots that do not divide, more copies of an
 * expert than GPUs. */
const char *moe_placement_refuse(const struct moe_placement_shape *shape);

void moe_placement_init(struct moe_placement *placement, const struct moe_placement_shape *shape);
void moe_placement_free(struct moe_placement *placement);
/* Fills it. load: [experts], expected or measured tokens of each; only eplb looks at it.
 * EPLB (the published description of DeepSeek's balancer): (1) an extra copy goes, one by one, to
 * the expert with the most load per copy; (2) copies in falling order of load go to the least
 * loaded GPU that has room and no copy of the same; node-first: expert groups are packed to nodes
 * by (2), then both steps inside each node. */
void moe_placement_fill(struct moe_placement *placement, enum moe_placement_kind kind,
                        const struct moe_placement_shape *shape, const double *load);
/* share of each expert → of each slot: copies share evenly. */
void moe_placement_shares(const struct moe_placement *placement, const double *expert_share,
                          double *slot_share);
/* Copies that a GPU of `to` lacks under `from`: the most on any GPU, and all. */
struct moe_placement_moves {
    size_t most, all;
};
struct moe_placement_moves moe_placement_moves(const struct moe_placement *from,
                                               const struct moe_placement *to);

#endif
