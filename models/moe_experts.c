#include "models/moe_experts.h"

#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/check.h"
#include "sim/base/detmath.h"
#include "sim/base/time.h"

const struct field moe_experts_fields[] = {
    {.name = "popularity",
     .kind = FIELD_VARIANT,
     .fallback = "balanced",
     .offset = offsetof(struct moe_config, popularity),
     .variants = moe_popularity_variants,
     .tag = "dist",
     .doc = "How often tokens choose each expert; balanced: no load is modelled"},
    {.name = "layer_groups",
     .kind = FIELD_INT,
     .fallback = "8",
     .min = 1,
     .max = 256,
     .offset = offsetof(struct moe_config, layer_groups),
     .doc = "Groups of consecutive MoE layers; each has a popularity of its own"},
    {.name = "drift_time",
     .kind = FIELD_TIME,
     .flags = FIELD_OPTIONAL | FIELD_MIN_OPEN,
     .max = 8640000,
     .offset = offsetof(struct moe_config, drift_ps),
     .doc = "Time after which popularity scores correlate with what they were by 1/e; unset: they "
            "stay"},
    {.name = "epoch",
     .kind = FIELD_TIME,
     .fallback = "1 h",
     .min = 1,
     .max = 8640000,
     .offset = offsetof(struct moe_config, epoch_ps),
     .doc = "Time between two evaluations of popularity and class mix"},
    {.name = "class_correlation",
     .kind = FIELD_REAL,
     .unit = UNIT_FRACTION,
     .fallback = "100 %",
     .min = 0,
     .max = 1,
     .offset = offsetof(struct moe_config, class_correlation),
     .doc = "Correlation of two traffic classes' popularity scores; 100 %: they are alike"},
    {.name = "placement",
     .kind = FIELD_CHOICE,
     .fallback = "contiguous",
     .choices = moe_placement_names,
     .offset = offsetof(struct moe_config, placement),
     .doc =
         "Which GPU holds which experts: in order, in turn, or by load (eplb: node by node where "
         "expert groups divide over them; eplb_global: over all GPUs at once)"},
    {.name = "rebalance",
     .kind = FIELD_TIME,
     .flags = FIELD_OPTIONAL,
     .min = 1,
     .max = 8640000,
     .offset = offsetof(struct moe_config, rebalance_ps),
     .doc =
         "Time between two placements by load, each by the load since the one before; a multiple "
         "of epoch; unset: placed once, by the popularity at time 0"},
    {0}};

bool moe_experts_balanced(const struct moe_config *config)
{
    return config->popularity.type == NULL ||
           config->popularity.type == moe_popularity_variants[MOE_BALANCED];
}

/* ---- making --------------------------------------------------------------------------------- */

static size_t node_count(const struct parallel *p, const struct gpu_spec *gpu)
{
    int64_t stage = parallel_stage_gpus(p);
    int64_t nodes = (stage + gpu->domain - 1) / gpu->domain;
    return p->expert % nodes == 0 ? (size_t)nodes : 1;
}

static bool refuse(struct errors *errors, const struct source_pos *where, const char *why,
                   size_t slots, size_t ranks)
{
    errors_add(errors, SEVERITY_ERROR, where, "experts: %s: %zu slots on %zu GPUs, %.4g each", why,
               slots, ranks, (double)slots / (double)ranks);
    return false;
}

/* A table has as many weights as there are experts, or so for each group; every group has a weight
 * that is not 0. */
static bool table_check(const struct moe_popularity_config *p, struct errors *errors,
                        const struct source_pos *where)
{
    size_t given = p->table_count, experts = p->experts;
    if (given != experts && given != experts * p->groups) {
        errors_add(errors, SEVERITY_ERROR, where,
                   "experts: popularity: %zu values for %zu experts; with %zu layer groups give "
                   "%zu or %zu",
                   given, experts, p->groups, experts, experts * p->groups);
        return false;
    }
    for (size_t first = 0; first < given; first += experts) {
        size_t e = 0;
        while (e < experts && p->table[first + e] <= 0) {
            e++;
        }
        if (e == experts) {
            errors_add(errors, SEVERITY_ERROR, where,
                       "experts: popularity: values %zu to %zu are all 0", first,
                       first + experts - 1);
            return false;
        }
    }
    return true;
}

static bool config_check(const struct moe_experts_config *c,
                         const struct moe_popularity_config *popularity,
                         const struct moe_placement_shape *shape, struct errors *errors,
                         const struct source_pos *where)
{
    const char *why = moe_placement_refuse(shape);
    if (why != NULL) {
        return refuse(errors, where, why, shape->experts + shape->redundant, shape->ranks);
    }
    if (popularity->kind == MOE_TABLE && !table_check(popularity, errors, where)) {
        return false;
    }
    if (c->llm->moe.top_k > MOE_ROUTING_TOP_K_MAX) {
        errors_add(errors, SEVERITY_ERROR, where,
                   "experts: popularity: %lld experts per token; a popularity is modelled for up "
                   "to %d",
                   (long long)c->llm->moe.top_k, MOE_ROUTING_TOP_K_MAX);
        return false;
    }
    const struct moe_config *user = c->user;
    if (user->rebalance_ps != FIELD_INT_UNSET && user->rebalance_ps % user->epoch_ps != 0) {
        errors_add(errors, SEVERITY_ERROR, where, "experts: rebalance must be a multiple of epoch");
        return false;
    }
    return true;
}

static struct moe_popularity_config popularity_of(const struct moe_experts_config *c)
{
    const struct moe_shape *moe = &c->llm->moe;
    int64_t groups = c->user->layer_groups < moe->layers ? c->user->layer_groups : moe->layers;
    struct moe_popularity_config p = {.experts = (size_t)moe->experts,
                                      .groups = (size_t)groups,
                                      .classes = c->user->class_correlation < 1 ? c->classes : 1,
                                      .class_correlation = c->user->class_correlation,
                                      .step_correlation = 1,
                                      .seed = c->seed,
                                      .replication = c->replication};
    if (c->user->drift_ps != FIELD_INT_UNSET) {
        p.step_correlation = detmath_exp(-(double)c->user->epoch_ps / (double)c->user->drift_ps);
    }
    moe_popularity_read(&c->user->popularity, &p);
    return p;
}

/* The group of MoE layer l, and the stage that holds it: both in blocks of consecutive layers. */
static size_t group_of(const struct moe_experts *x, int64_t layer)
{
    return (size_t)(layer * (int64_t)x->group_count / x->moe_layers);
}

static int64_t stage_of(const struct moe_experts *x, int64_t layer)
{
    return layer / parallel_stage_layers(&x->parallel, x->moe_layers);
}

static void groups_init(struct moe_experts *x)
{
    size_t experts = x->shape.experts, slots = experts + x->shape.redundant;
    x->groups = memory_zero(x->group_count, sizeof *x->groups);
    for (size_t g = 0; g < x->group_count; g++) {
        struct moe_group *group = &x->groups[g];
        group->share = memory_zero(experts, sizeof *group->share);
        group->measured = memory_zero(experts, sizeof *group->measured);
        group->slot_share = memory_zero(slots, sizeof *group->slot_share);
        moe_placement_init(&group->placement, &x->shape);
    }
    for (int64_t l = 0; l < x->moe_layers; l++) {
        x->groups[group_of(x, l)].layers++;
    }
}

/* ---- an epoch ------------------------------------------------------------------------------- */

/* Tokens of the classes mix: so do their shares. */
static void shares_mix(struct moe_experts *x, const double *class_share)
{
    const struct moe_popularity_config *p = &x->popularity.config;
    double *share = memory_alloc(p->experts * sizeof *share);
    for (size_t g = 0; g < x->group_count; g++) {
        struct moe_group *group = &x->groups[g];
        memset(group->share, 0, p->experts * sizeof *group->share);
        for (size_t c = 0; c < p->classes; c++) {
            double part = p->classes > 1 ? class_share[c] : 1;
            if (part > 0) {
                moe_routing_shares(&x->routing, moe_popularity_of(&x->popularity, c, g), share);
                for (size_t e = 0; e < p->experts; e++) {
                    group->share[e] += part * share[e];
                }
            }
        }
    }
    free(share);
}

/* A step pays every MoE layer of the slowest stage. */
static void law_combine(struct moe_experts *x)
{
    x->law = (struct moe_law){.points = 0};
    int64_t stage_layers = parallel_stage_layers(&x->parallel, x->moe_layers);
    for (int64_t first = 0; first < x->moe_layers; first += stage_layers) {
        struct moe_law mean = {.points = 0};
        int64_t end = first + stage_layers < x->moe_layers ? first + stage_layers : x->moe_layers;
        for (size_t g = 0; g < x->group_count; g++) {
            int64_t layers = 0;
            for (int64_t l = first; l < end; l++) {
                layers += group_of(x, l) == g && stage_of(x, l) == stage_of(x, first);
            }
            if (layers > 0) {
                moe_law_add(&mean, &x->groups[g].law, (double)layers / (double)(end - first));
            }
        }
        moe_law_max(&x->law, &mean);
    }
}

static void laws_fill(struct moe_experts *x)
{
    for (size_t g = 0; g < x->group_count; g++) {
        struct moe_group *group = &x->groups[g];
        moe_placement_shares(&group->placement, group->share, group->slot_share);
        struct moe_load load = {.share = group->slot_share,
                                .slots = group->placement.slots,
                                .ranks = group->placement.ranks,
                                .experts = group->placement.experts};
        moe_law_init(&group->law, &load, x->max_tokens);
    }
    law_combine(x);
}

static void place(struct moe_experts *x, struct moe_group *group, const double *load)
{
    moe_placement_fill(&group->placement, x->kind, &x->shape, load);
    memset(group->measured, 0, x->shape.experts * sizeof *group->measured);
}

static double move_rate(const struct moe_experts_config *c)
{
    bool network = parallel_stage_gpus(&c->parallel) > c->gpu->domain;
    return network ? c->gpu->nic_bytes_per_s : c->gpu->link_bytes_per_s;
}

struct moe_experts *moe_experts_create(const struct moe_experts_config *c,
                                       const double *class_share, struct errors *errors,
                                       const struct source_pos *where)
{
    const struct moe_shape *moe = &c->llm->moe;
    check(moe->experts > 0 && !moe_experts_balanced(c->user));
    struct moe_popularity_config popularity = popularity_of(c);
    struct moe_placement_shape shape = {.experts = (size_t)moe->experts,
                                        .redundant = (size_t)c->redundant,
                                        .ranks = (size_t)c->parallel.expert,
                                        .nodes = node_count(&c->parallel, c->gpu),
                                        .groups = (size_t)moe->groups};
    if (!config_check(c, &popularity, &shape, errors, where)) {
        return NULL;
    }
    struct moe_experts *x = memory_zero(1, sizeof *x);
    moe_popularity_init(&x->popularity, &popularity);
    x->routing = (struct moe_routing){moe->experts, moe->top_k, moe->groups, moe->top_groups};
    x->shape = shape;
    x->kind = (enum moe_placement_kind)c->user->placement;
    x->parallel = c->parallel;
    x->moe_layers = moe->layers;
    x->max_tokens = c->max_tokens;
    x->group_count = popularity.groups;
    x->move_bytes_per_s = move_rate(c);
    x->expert_bytes =
        c->expert_bytes * (double)c->parallel.expert / (double)parallel_stage_gpus(&c->parallel);
    groups_init(x);
    shares_mix(x, class_share);
    for (size_t g = 0; g < x->group_count; g++) {
        place(x, &x->groups[g], x->groups[g].share);
    }
    laws_fill(x);
    return x;
}

void moe_experts_free(struct moe_experts *x)
{
    if (x == NULL) {
        return;
    }
    for (size_t g = 0; g < x->group_count; g++) {
        free(x->groups[g].share);
        free(x->groups[g].measured);
        free(x->groups[g].slot_share);
        moe_placement_free(&x->groups[g].placement);
    }
    moe_popularity_free(&x->popularity);
    free(x->groups);
    free(x);
}

bool moe_experts_changes(const struct moe_experts *x)
{
    return x->popularity.config.step_correlation < 1 || x->popularity.config.classes > 1;
}

/* Copies a group's layers must move, as a share of what the slowest GPU of a stage receives. */
static double rebalance_group(struct moe_experts *x, struct moe_group *group)
{
    struct moe_placement before = group->placement;
    moe_placement_init(&group->placement, &x->shape);
    place(x, group, group->measured);
    struct moe_placement_moves moves = moe_placement_moves(&before, &group->placement);
    moe_placement_free(&before);
    group->moved = moves.all;
    return (double)moves.most * (double)group->layers;
}

double moe_experts_advance(struct moe_experts *x, const double *class_share, bool rebalance)
{
    double copies = 0;
    for (size_t g = 0; g < x->group_count; g++) {
        for (size_t e = 0; e < x->shape.experts; e++) {
            x->groups[g].measured[e] += x->groups[g].share[e];
        }
        copies += rebalance ? rebalance_group(x, &x->groups[g]) : 0;
    }
    moe_popularity_step(&x->popularity);
    shares_mix(x, class_share);
    laws_fill(x);
    return copies * x->expert_bytes / x->move_bytes_per_s / (double)x->parallel.pipeline;
}

double moe_experts_skew(const struct moe_experts *x, size_t group)
{
    const struct moe_group *g = &x->groups[group];
    size_t each = g->placement.slots / g->placement.ranks;
    double most = 0, all = 0;
    for (size_t r = 0; r < g->placement.ranks; r++) {
        double load = 0;
        for (size_t s = r * each; s < (r + 1) * each; s++) {
            load += g->slot_share[s];
        }
        most = load > most ? load : most;
        all += load;
    }
    return most * (double)g->placement.ranks / all;
}
