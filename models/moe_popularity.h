/* How popular each expert is, per group of layers and class of traffic, and how that drifts.
 * Behind every (class, group, expert) is a standard normal score z; a distribution turns scores
 * into weights: exp(σ z) for lognormal, else a fixed set of weights handed out by the rank of z.
 * Scores follow a stationary AR(1) whose correlation after one drift time is 1/e, so that the
 * distribution of the weights stays what it is while its owners change. */
#ifndef FLEETSIM_MODELS_MOE_POPULARITY_H
#define FLEETSIM_MODELS_MOE_POPULARITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/base/field.h"

/* The variants behind `popularity:`. */
extern const struct variant *const moe_popularity_variants[];

enum moe_popularity_kind {
    MOE_BALANCED,  /* every GPU has the mean: neither skew nor chance */
    MOE_UNIFORM,   /* experts alike; tokens fall on them by chance */
    MOE_LOGNORMAL, /* exp(σ z) */
    MOE_ZIPF,      /* rank^−s */
    MOE_DIRICHLET, /* Gamma(α) weights */
    MOE_TABLE,     /* given */
};

struct moe_popularity_config {
    enum moe_popularity_kind kind;
    double parameter;         /* σ, s or α */
    const double *table;      /* TABLE: [experts] or [groups][experts], borrowed */
    size_t table_count;       /* experts or groups · experts */
    size_t experts, groups;   /* groups of layers */
    size_t classes;           /* of traffic; 1 where they are alike */
    double class_correlation; /* of two classes' scores */
    double step_correlation;  /* of scores one step later: 1: no drift */
    uint64_t seed;
    uint32_t replication;
};
/* kind and parameter from the value of `popularity:`; a NULL type is balanced. */
void moe_popularity_read(const struct variant_value *value, struct moe_popularity_config *config);

struct moe_popularity {
    struct moe_popularity_config config;
    uint64_t step, key;
    double *score;  /* owned: [1 + classes][groups][experts]: what classes share, then their own */
    double *values; /* owned: [groups][experts], falling; of kinds that go by rank */
    double *weight; /* owned: [classes][groups][experts], the present popularity; sums are 1 */
};

void moe_popularity_init(struct moe_popularity *p, const struct moe_popularity_config *config);
void moe_popularity_free(struct moe_popularity *p);
/* The scores one step later. */
void moe_popularity_step(struct moe_popularity *p);
static inline const double *moe_popularity_of(const struct moe_popularity *p, size_t class,
                                              size_t group)
{
    return p->weight + (class * p->config.groups + group) * p->config.experts;
}

#endif
