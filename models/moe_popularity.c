#include "models/moe_popularity.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/check.h"
#include "sim/base/detmath.h"
#include "sim/base/rng.h"

/* ---- variants ------------------------------------------------------------------------------- */

struct parameter {
    double value;
};

#define PARAMETER(key, low, high, text)                                                            \
    {                                                                                              \
        .name = key, .kind = FIELD_REAL, .flags = FIELD_REQUIRED, .min = low, .max = high,         \
        .offset = offsetof(struct parameter, value), .doc = text                                   \
    }
static const struct field lognormal_fields[] = {
    PARAMETER("sigma", 0, 5, "Standard deviation of the logarithm of an expert's popularity"), {0}};
static const struct field zipf_fields[] = {
    PARAMETER("exponent", 0, 5, "s of rank^-s; ranks are dealt to the experts at random"), {0}};
static const struct field dirichlet_fields[] = {
    PARAMETER("concentration", 0.05, 1e6, "Alpha: 1 is as uneven as exponential weights"), {0}};

struct table_config {
    struct field_list values; /* double */
};
static const struct field value_item = {
    .kind = FIELD_REAL, .min = 0, .max = 1e15, .doc = "Weight of an expert, in any unit"};
static const struct field table_fields[] = {
    {.name = "values",
     .kind = FIELD_LIST,
     .flags = FIELD_REQUIRED,
     .offset = offsetof(struct table_config, values),
     .item = &value_item,
     .item_size = sizeof(double),
     .min = 1,
     .max = 1048576,
     .doc = "One weight per expert, the same in every layer; or so for each layer group in turn"},
    {0}};

static const struct variant balanced = {
    .name = "balanced", .doc = "Every GPU has the mean load: neither skew nor chance"};
static const struct variant uniform = {.name = "uniform",
                                       .doc = "Experts are alike; tokens fall on them by chance"};
static const struct variant lognormal = {.name = "lognormal",
                                         .doc = "Log-normal weights",
                                         .fields = lognormal_fields,
                                         .size = sizeof(struct parameter)};
static const struct variant zipf = {.name = "zipf",
                                    .doc = "Weights rank^-s",
                                    .fields = zipf_fields,
                                    .size = sizeof(struct parameter)};
static const struct variant dirichlet = {.name = "dirichlet",
                                         .doc = "Weights of a symmetric Dirichlet distribution",
                                         .fields = dirichlet_fields,
                                         .size = sizeof(struct parameter)};
static const struct variant table = {.name = "table",
                                     .doc = "Measured weights",
                                     .fields = table_fields,
                                     .size = sizeof(struct table_config)};
const struct variant *const moe_popularity_variants[] = {&balanced,  &uniform, &lognormal, &zipf,
                                                         &dirichlet, &table,   NULL};

void moe_popularity_read(const struct variant_value *value, struct moe_popularity_config *config)
{
    config->kind = MOE_BALANCED;
    for (int i = 0; moe_popularity_variants[i] != NULL; i++) {
        if (moe_popularity_variants[i] == value->type) {
            config->kind = (enum moe_popularity_kind)i;
        }
    }
    if (config->kind == MOE_TABLE) {
        const struct table_config *given = value->config;
        config->table = given->values.items;
        config->table_count = given->values.count;
    } else if (config->kind > MOE_UNIFORM) {
        config->parameter = ((const struct parameter *)value->config)->value;
    }
}

/* ---- chance --------------------------------------------------------------------------------- */

/* Who draws: scores of the classes' common part (lane 0) and their own, gamma weights. */
enum { LANE_GAMMA = 0xFFFF };

static uint64_t entity(size_t lane, size_t group, size_t expert)
{
    return (uint64_t)lane << 48 | (uint64_t)group << 24 | (uint64_t)expert;
}

static double normal(const struct moe_popularity *p, size_t lane, size_t group, size_t expert)
{
    struct rng_pair bits = rng_draw(p->key, entity(lane, group, expert), p->step);
    return detmath_normal_quantile(rng_unit_open(bits.a));
}

/* Gamma(α) by Marsaglia and Tsang (2000); below 1 by Gamma(α + 1)·U^(1/α). */
static double gamma_draw(const struct moe_popularity *p, size_t group, size_t expert)
{
    double alpha = p->config.parameter, boost = 1;
    uint64_t who = entity(LANE_GAMMA, group, expert), draw = 0;
    if (alpha < 1) {
        double u = rng_unit_open(rng_draw(p->key, who, draw++).a);
        boost = detmath_exp(detmath_log(u) / alpha);
        alpha += 1;
    }
    double d = alpha - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (;;) {
        struct rng_pair bits = rng_draw(p->key, who, draw++);
        double x = detmath_normal_quantile(rng_unit_open(bits.a)), v = 1 + c * x;
        v = v * v * v;
        if (v > 0 &&
            detmath_log(rng_unit_open(bits.b)) < 0.5 * x * x + d * (1 - v + detmath_log(v))) {
            return boost * d * v;
        }
    }
}

/* ---- weights -------------------------------------------------------------------------------- */

struct ranked {
    double value;
    size_t index;
};

static int falling(const void *a_, const void *b_)
{
    const struct ranked *a = a_, *b = b_;
    if (a->value != b->value) {
        return a->value < b->value ? 1 : -1;
    }
    return (a->index > b->index) - (a->index < b->index);
}

static void rank(const double *values, size_t count, struct ranked *order)
{
    for (size_t i = 0; i < count; i++) {
        order[i] = (struct ranked){values[i], i};
    }
    qsort(order, count, sizeof *order, falling);
}

static const double *table_of(const struct moe_popularity_config *c, size_t group)
{
    return c->table_count > c->experts ? c->table + group * c->experts : c->table;
}

/* The weights that ranks own, falling. */
static void values_fill(struct moe_popularity *p)
{
    const struct moe_popularity_config *c = &p->config;
    struct ranked *order = memory_alloc(c->experts * sizeof *order);
    for (size_t g = 0; g < c->groups; g++) {
        double *values = p->values + g * c->experts;
        for (size_t e = 0; e < c->experts; e++) {
            values[e] = c->kind == MOE_ZIPF
                            ? detmath_exp(-c->parameter * detmath_log((double)e + 1))
                        : c->kind == MOE_DIRICHLET ? gamma_draw(p, g, e)
                        : c->kind == MOE_TABLE     ? table_of(c, g)[e]
                                                   : 1;
        }
        rank(values, c->experts, order);
        for (size_t e = 0; e < c->experts; e++) {
            values[e] = order[e].value;
        }
    }
    free(order);
}

/* A table's owners are those it names: scores are dealt in its order. */
static void scores_by_table(struct moe_popularity *p)
{
    const struct moe_popularity_config *c = &p->config;
    struct ranked *owners = memory_alloc(2 * c->experts * sizeof *owners);
    struct ranked *scores = owners + c->experts;
    for (size_t g = 0; g < c->groups; g++) {
        double *score = p->score + g * c->experts;
        rank(table_of(c, g), c->experts, owners);
        rank(score, c->experts, scores);
        for (size_t e = 0; e < c->experts; e++) {
            score[owners[e].index] = scores[e].value;
        }
    }
    free(owners);
}

/* An expert that nobody ever picks would divide by zero somewhere; a billionth of the mean does no
 * harm. */
static void weights_scale(double *weight, size_t experts)
{
    double all = 0, sum = 0;
    for (size_t e = 0; e < experts; e++) {
        all += weight[e];
    }
    for (size_t e = 0; e < experts; e++) {
        double floor = 1e-9 * all / (double)experts;
        weight[e] = weight[e] > floor ? weight[e] : floor;
        sum += weight[e];
    }
    for (size_t e = 0; e < experts; e++) {
        weight[e] /= sum;
    }
}

static void weights_fill(struct moe_popularity *p)
{
    const struct moe_popularity_config *c = &p->config;
    size_t layer = c->groups * c->experts;
    double common = sqrt(c->class_correlation), own = sqrt(1 - c->class_correlation);
    struct ranked *order = memory_alloc(c->experts * sizeof *order);
    double *z = memory_alloc(c->experts * sizeof *z);
    for (size_t i = 0; i < c->classes * c->groups; i++) {
        size_t class = i / c->groups, g = i % c->groups;
        double *weight = p->weight + i * c->experts;
        for (size_t e = 0; e < c->experts; e++) {
            z[e] = p->score[g * c->experts + e];
            if (own > 0) {
                z[e] = common * z[e] + own * p->score[(class + 1) * layer + g * c->experts + e];
            }
            weight[e] = detmath_exp(c->parameter * z[e]);
        }
        if (c->kind != MOE_LOGNORMAL) {
            rank(z, c->experts, order);
            for (size_t e = 0; e < c->experts; e++) {
                weight[order[e].index] = p->values[g * c->experts + e];
            }
        }
        weights_scale(weight, c->experts);
    }
    free(z);
    free(order);
}

void moe_popularity_init(struct moe_popularity *p, const struct moe_popularity_config *config)
{
    check(config->classes >= 1 && config->groups >= 1 && config->classes < LANE_GAMMA);
    *p = (struct moe_popularity){.config = *config};
    /* One lane for all pools: two pools that serve the same model see the same popularity. */
    p->key = rng_key(config->seed, config->replication, RNG_EXPERT, 0);
    size_t layer = config->groups * config->experts;
    p->score = memory_alloc((config->classes + 1) * layer * sizeof *p->score);
    p->values = memory_alloc(layer * sizeof *p->values);
    p->weight = memory_alloc(config->classes * layer * sizeof *p->weight);
    for (size_t i = 0; i < (config->classes + 1) * layer; i++) {
        p->score[i] =
            normal(p, i / layer, i % layer / config->experts, i % layer % config->experts);
    }
    values_fill(p);
    if (config->kind == MOE_TABLE) {
        scores_by_table(p);
    }
    weights_fill(p);
}

void moe_popularity_free(struct moe_popularity *p)
{
    free(p->score);
    free(p->values);
    free(p->weight);
}

void moe_popularity_step(struct moe_popularity *p)
{
    const struct moe_popularity_config *c = &p->config;
    size_t layer = c->groups * c->experts;
    double keep = c->step_correlation, fresh = sqrt(1 - keep * keep);
    p->step++;
    if (keep >= 1) {
        return;
    }
    for (size_t i = 0; i < (c->classes + 1) * layer; i++) {
        p->score[i] = keep * p->score[i] +
                      fresh * normal(p, i / layer, i % layer / c->experts, i % layer % c->experts);
    }
    weights_fill(p);
}
