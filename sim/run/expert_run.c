#include "sim/run/expert_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/memory.h"
#include "models/moe_experts.h"
#include "models/moe_sample.h"
#include "models/roofline.h"
#include "sim/base/rng.h"
#include "sim/fleet/fleet_refresh.h"
#include "sim/run/run_internal.h"

enum { HOT_SHOWN = 5 };
static const double FACTOR_UNIT = 4294967296.0;

/* What one group of layers saw in the interval that runs. */
struct group_counts {
    int64_t *ranks;            /* owned: [ranks] */
    int64_t *experts;          /* owned: [experts] */
    int32_t *copies;           /* owned: [experts], at the interval's end */
    int64_t moved, moved_next; /* copies */
};

struct expert_pool {
    size_t index; /* of the pool */
    struct roofline *roofline;
    struct moe_experts *experts;
    int64_t epoch_ps;             /* length */
    int64_t rebalance_ps;         /* TIME_NEVER: placed once */
    int64_t next_ps;              /* the next epoch; TIME_NEVER: none */
    uint64_t key, flushes;        /* of the draws of counts */
    uint64_t tokens, tokens_next; /* not yet drawn; of iterations that end at the next edge */
    uint64_t tokens_interval;     /* drawn */
    /* Of the interval's steps, and those that end at the next edge; factors in 2^-32, so that their
     * sum does not depend on how spans were cut. */
    int128 factors, factors_next;
    uint64_t steps, steps_next;
    struct group_counts *groups; /* owned */
    bool copies_taken;           /* of the interval that ends now */
    int64_t placements, placements_next;
    double stall_s, stall_next_s;
    double *class_share;           /* owned scratch: [classes] */
    bool *class_uses;              /* owned scratch: [classes] */
    int64_t *drawn;                /* owned scratch: [slots] */
    size_t first_gpu, first_layer; /* its first series */
};

struct expert_run {
    const struct run *run;     /* borrowed */
    struct expert_pool *pools; /* owned */
    size_t pool_count;
    struct expert_pool **of_pool; /* owned: [pools of the run], NULL where not modelled */
    int64_t horizon_ps, edge_ps;
    struct arena labels;
    const char **gpu_labels, **layer_labels; /* arena */
    size_t gpu_series, layer_series, intervals, hot_count, hot_room, room;
    struct expert_gpu_row *gpus;     /* owned */
    struct expert_layer_row *layers; /* owned */
    struct expert_hot_row *hot;      /* owned */
};

/* ---- making --------------------------------------------------------------------------------- */

/* Each class's share of the pool's tokens in [from, to), as expected; alike where nobody knows. */
static void class_mix(const struct expert_run *e, struct expert_pool *p, int64_t from_ps,
                      int64_t to_ps)
{
    const struct run *run = e->run;
    size_t classes = run_class_count(run);
    double all = 0, users = 0;
    for (size_t c = 0; c < classes; c++) {
        bool uses = false;
        for (uint32_t i = 0; i < run->class_pool_count[c]; i++) {
            uses |= run->class_pools[c][i] == p->index;
        }
        double tokens =
            workload_mean_prompt(run->workload, c) + workload_mean_output(run->workload, c);
        double expected = workload_expected(run->workload, c, from_ps, to_ps) * tokens;
        p->class_share[c] = uses && expected > 0 ? expected : 0;
        all += p->class_share[c];
        p->class_uses[c] = uses;
        users += uses;
    }
    for (size_t c = 0; c < classes; c++) {
        p->class_share[c] = all > 0 ? p->class_share[c] / all : p->class_uses[c] / fmax(users, 1);
    }
}

static bool pool_make(struct expert_run *e, struct expert_pool *p, struct errors *errors,
                      const struct source_pos *where)
{
    const struct run *run = e->run;
    const struct pool_config *pool = config_pool(&run->config, p->index);
    const struct roofline_config *c = &p->roofline->config;
    if (c->llm->moe.experts == 0) {
        errors_add(errors, SEVERITY_ERROR, where,
                   "step_time states experts.popularity, but the model '%s' has no experts",
                   c->llm->name);
        return false;
    }
    if (c->expert_imbalance > 1) {
        errors_add(errors, SEVERITY_ERROR, where,
                   "step_time states both expert_imbalance and experts.popularity: the second "
                   "tells the first");
        return false;
    }
    struct llm_params params = llm_params(c->llm);
    struct moe_experts_config config = {
        .user = &c->experts,
        .llm = c->llm,
        .gpu = c->gpu,
        .parallel = c->parallel,
        .redundant = c->redundant_experts,
        .expert_bytes = params.expert * llm_storage_bits((enum storage)c->precision.experts) / 8,
        .max_tokens = pool->engine.max_num_batched_tokens,
        .classes = run_class_count(run),
        .seed = (uint64_t)run->config.seed,
        .replication = (uint32_t)run->config.replication};
    p->epoch_ps = c->experts.epoch_ps;
    p->class_share = memory_zero(config.classes, sizeof *p->class_share);
    p->class_uses = memory_zero(config.classes, sizeof *p->class_uses);
    class_mix(e, p, 0, p->epoch_ps < e->horizon_ps ? p->epoch_ps : e->horizon_ps);
    p->experts = moe_experts_create(&config, p->class_share, errors, where);
    if (p->experts == NULL) {
        return false;
    }
    /* Whoever builds another roofline from the pool's settings (plan) sees the same. */
    p->roofline->config.law = &p->experts->law;
    ((struct roofline_config *)pool->step_time.config)->law = &p->experts->law;
    p->rebalance_ps =
        c->experts.rebalance_ps == FIELD_INT_UNSET ? TIME_NEVER : c->experts.rebalance_ps;
    p->next_ps =
        moe_experts_changes(p->experts) && p->epoch_ps < e->horizon_ps ? p->epoch_ps : TIME_NEVER;
    p->key = rng_key(config.seed, config.replication, RNG_EXPERT_LOAD, (uint32_t)p->index);
    p->groups = memory_zero(p->experts->group_count, sizeof *p->groups);
    for (size_t g = 0; g < p->experts->group_count; g++) {
        p->groups[g].ranks = memory_zero(p->experts->shape.ranks, sizeof(int64_t));
        p->groups[g].experts = memory_zero(p->experts->shape.experts, sizeof(int64_t));
        p->groups[g].copies = memory_zero(p->experts->shape.experts, sizeof(int32_t));
    }
    p->drawn = memory_zero(p->experts->groups[0].placement.slots, sizeof *p->drawn);
    return true;
}

/* Names of the series: pool/layer group and pool/layer group/rank. */
static void labels_make(struct expert_run *e)
{
    for (size_t i = 0; i < e->pool_count; i++) {
        struct expert_pool *p = &e->pools[i];
        p->first_gpu = e->gpu_series;
        p->first_layer = e->layer_series;
        e->layer_series += p->experts->group_count;
        e->gpu_series += p->experts->group_count * p->experts->shape.ranks;
    }
    e->gpu_labels = arena_alloc(&e->labels, e->gpu_series * sizeof *e->gpu_labels);
    e->layer_labels = arena_alloc(&e->labels, e->layer_series * sizeof *e->layer_labels);
    for (size_t i = 0; i < e->pool_count; i++) {
        const struct expert_pool *p = &e->pools[i];
        const char *name = config_pool(&e->run->config, p->index)->name;
        size_t ranks = p->experts->shape.ranks;
        for (size_t g = 0; g < p->experts->group_count; g++) {
            e->layer_labels[p->first_layer + g] = arena_printf(&e->labels, "%s/%zu", name, g);
            for (size_t r = 0; r < ranks; r++) {
                e->gpu_labels[p->first_gpu + g * ranks + r] =
                    arena_printf(&e->labels, "%s/%zu/%zu", name, g, r);
            }
        }
    }
}

/* The pool's roofline where it states its experts' popularity; NULL: it does not. The model is the
 * run's own, made by run_models_build. */
static struct roofline *modelled(const struct run *run, size_t pool)
{
    if (config_pool(&run->config, pool)->step_time.type != &step_roofline_variant) {
        return NULL;
    }
    struct roofline *r = (struct roofline *)run->models[pool].model;
    return !moe_experts_balanced(&r->config.experts) ? r : NULL;
}

bool expert_run_make(struct run *run, const struct locator *where, struct errors *errors)
{
    size_t pools = run_pool_count(run), count = 0;
    for (size_t p = 0; p < pools; p++) {
        count += modelled(run, p) != NULL;
    }
    if (count == 0) {
        return true;
    }
    struct expert_run *e = memory_zero(1, sizeof *e);
    run->experts = e;
    *e = (struct expert_run){.run = run, .horizon_ps = workload_horizon(run->workload)};
    arena_init(&e->labels);
    e->pools = memory_zero(count, sizeof *e->pools);
    e->of_pool = memory_zero(pools, sizeof *e->of_pool);
    bool ok = true;
    for (size_t p = 0; p < pools; p++) {
        struct roofline *r = modelled(run, p);
        if (r != NULL) {
            char path[64];
            struct source_pos pos;
            struct expert_pool *pool = &e->pools[e->pool_count++];
            *pool = (struct expert_pool){.index = p, .roofline = r};
            snprintf(path, sizeof path, "fleet.pools[%zu].step_time.experts", p);
            where->find(where->self, path, &pos);
            ok &= pool_make(e, pool, errors, &pos);
            e->of_pool[p] = pool;
        }
    }
    if (ok) {
        labels_make(e);
    }
    return ok;
}

void expert_run_free(struct expert_run *e)
{
    if (e == NULL) {
        return;
    }
    for (size_t i = 0; i < e->pool_count; i++) {
        struct expert_pool *p = &e->pools[i];
        for (size_t g = 0; p->groups != NULL && g < p->experts->group_count; g++) {
            free(p->groups[g].ranks);
            free(p->groups[g].experts);
            free(p->groups[g].copies);
        }
        moe_experts_free(p->experts);
        free(p->groups);
        free(p->class_share);
        free(p->class_uses);
        free(p->drawn);
    }
    arena_free(&e->labels);
    free(e->pools);
    free(e->of_pool);
    free(e->gpus);
    free(e->layers);
    free(e->hot);
    free(e);
}

/* ---- while it runs -------------------------------------------------------------------------- */

static void take(void *self, const struct obs *obs)
{
    struct expert_run *e = self;
    struct expert_pool *p = e->of_pool[obs->pool];
    if (p == NULL) {
        return;
    }
    const struct obs_steps *s = obs->u.steps;
    uint64_t each = (uint64_t)s->decode_tokens + s->prefill_tokens;
    int64_t pipeline = p->experts->parallel.pipeline;
    int64_t at_once = (s->decode_tokens + pipeline - 1) / pipeline +
                      (s->prefill_tokens + pipeline - 1) / pipeline;
    /* What ends exactly at an edge belongs to the later interval. */
    uint64_t later = s->end_ps == e->edge_ps;
    p->tokens += each * (s->count - later);
    p->tokens_next += each * later;
    int64_t factor = (int64_t)(moe_law_factor(&p->experts->law, at_once) * FACTOR_UNIT);
    p->factors += (int128)factor * (int64_t)(s->count - later);
    p->factors_next += factor * (int64_t)later;
    p->steps += s->count - later;
    p->steps_next += later;
}

struct obs_sink expert_run_sink(struct expert_run *e)
{
    return (struct obs_sink){.take = take, .self = e, .kinds = 1u << OBS_STEPS};
}

/* Draws where the tokens since the last time went, under the popularity they met. */
static void flush(struct expert_pool *p, uint64_t tokens)
{
    if (tokens == 0) {
        return;
    }
    const struct moe_experts *x = p->experts;
    size_t slots = x->groups[0].placement.slots, each = slots / x->shape.ranks;
    for (size_t g = 0; g < x->group_count; g++) {
        struct moe_stream stream = {.key = p->key, .entity = (uint64_t)g << 40 | p->flushes};
        moe_sample_multinomial(&stream, (int64_t)tokens * x->routing.top_k, x->groups[g].slot_share,
                               slots, p->drawn);
        for (size_t s = 0; s < slots; s++) {
            p->groups[g].ranks[s / each] += p->drawn[s];
            p->groups[g].experts[x->groups[g].placement.expert[s]] += p->drawn[s];
        }
    }
    p->flushes++;
    p->tokens_interval += tokens;
}

int64_t expert_run_next(const struct expert_run *e)
{
    int64_t next = TIME_NEVER;
    for (size_t i = 0; i < e->pool_count; i++) {
        next = e->pools[i].next_ps < next ? e->pools[i].next_ps : next;
    }
    return next;
}

static void copies_take(struct expert_pool *p)
{
    for (size_t g = 0; g < p->experts->group_count && !p->copies_taken; g++) {
        memcpy(p->groups[g].copies, p->experts->groups[g].placement.copies,
               p->experts->shape.experts * sizeof *p->groups[g].copies);
    }
    p->copies_taken = true;
}

/* A rebalancing exactly at an edge belongs to the later interval, whichever timer comes first. */
static void rebalance_count(struct expert_pool *p, double stall_s, bool later)
{
    for (size_t g = 0; g < p->experts->group_count; g++) {
        struct group_counts *c = &p->groups[g];
        *(later ? &c->moved_next : &c->moved) += (int64_t)p->experts->groups[g].moved;
    }
    *(later ? &p->placements_next : &p->placements) += 1;
    *(later ? &p->stall_next_s : &p->stall_s) += stall_s;
}

static void advance(struct expert_run *e, struct expert_pool *p, struct fleet *fleet, int64_t t)
{
    bool rebalance = p->rebalance_ps != TIME_NEVER && t % p->rebalance_ps == 0;
    int64_t end = time_add(t, p->epoch_ps);
    class_mix(e, p, t, end < e->horizon_ps ? end : e->horizon_ps);
    /* What is in flight has the old law; its tokens are drawn when it ends, under the new
     * popularity. */
    fleet_refresh(fleet, (uint32_t)p->index, t, 0);
    flush(p, p->tokens);
    p->tokens = 0;
    if (t == e->edge_ps) {
        copies_take(p);
    }
    double stall_s = moe_experts_advance(p->experts, p->class_share, rebalance);
    if (rebalance) {
        rebalance_count(p, stall_s, t == e->edge_ps);
        fleet_refresh(fleet, (uint32_t)p->index, t, time_from_seconds(stall_s));
    }
    p->next_ps = end < e->horizon_ps ? end : TIME_NEVER;
}

void expert_run_epoch(struct expert_run *e, struct fleet *fleet, int64_t t)
{
    for (size_t i = 0; i < e->pool_count; i++) {
        if (e->pools[i].next_ps == t) {
            advance(e, &e->pools[i], fleet, t);
        }
    }
}

/* ---- rows ----------------------------------------------------------------------------------- */

static double over(double part, double whole)
{
    return whole > 0 ? part / whole : NAN;
}

static size_t largest(const int64_t *count, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++) {
        best = count[i] > count[best] ? i : best;
    }
    return best;
}

/* The most popular experts, most tokens first; those chosen are struck out of scratch. */
static void hot_rows(struct expert_run *e, const struct expert_pool *p, size_t group,
                     int64_t start_ps, double mean, int64_t *scratch)
{
    size_t experts = p->experts->shape.experts;
    memcpy(scratch, p->groups[group].experts, experts * sizeof *scratch);
    for (int64_t place = 1; place <= HOT_SHOWN && place <= (int64_t)experts; place++) {
        size_t best = largest(scratch, experts);
        if (scratch[best] <= 0) {
            return;
        }
        if (e->hot_count == e->hot_room) {
            e->hot_room = 2 * e->hot_room + 256;
            e->hot = memory_grow(e->hot, e->hot_room * sizeof *e->hot);
        }
        e->hot[e->hot_count++] = (struct expert_hot_row){
            .start_ps = start_ps,
            .pool = (int64_t)p->index,
            .layer_group = (int64_t)group,
            .place = place,
            .expert = (int64_t)best,
            .tokens = scratch[best],
            .copies = p->groups[group].copies[best],
            .load = (double)scratch[best] / mean,
        };
        scratch[best] = -1;
    }
}

static struct expert_layer_row layer_row(const struct expert_pool *p, size_t g)
{
    const struct moe_experts *x = p->experts;
    const struct group_counts *c = &p->groups[g];
    size_t ranks = x->shape.ranks, experts = x->shape.experts;
    size_t rank = largest(c->ranks, ranks), expert = largest(c->experts, experts);
    double pairs = (double)p->tokens_interval * (double)x->routing.top_k;
    double mean = pairs / (double)ranks, expert_mean = pairs / (double)experts;
    bool any = pairs > 0;
    return (struct expert_layer_row){
        .pool = (int64_t)p->index,
        .layer_group = (int64_t)g,
        .layers = x->groups[g].layers,
        .tokens = (int64_t)p->tokens_interval,
        .pairs = (int64_t)p->tokens_interval * x->routing.top_k,
        .max_over_mean = over((double)c->ranks[rank], mean),
        .mean_over_max = over(mean, (double)c->ranks[rank]),
        .step_max_over_mean = over((double)p->factors / FACTOR_UNIT, (double)p->steps),
        .expert_max_over_mean = over((double)c->experts[expert], expert_mean),
        .hottest_rank = any ? (int64_t)rank : COLUMN_INT_NONE,
        .hottest_expert = any ? (int64_t)expert : COLUMN_INT_NONE,
        .hottest_tokens = c->experts[expert],
        .placements = p->placements,
        .moved_copies = c->moved,
        .stall_s = p->stall_s,
    };
}

/* What the interval saw; what belongs to the next one stays. */
static void forget(struct expert_pool *p)
{
    for (size_t g = 0; g < p->experts->group_count; g++) {
        struct group_counts *c = &p->groups[g];
        memset(c->ranks, 0, p->experts->shape.ranks * sizeof *c->ranks);
        memset(c->experts, 0, p->experts->shape.experts * sizeof *c->experts);
        c->moved = 0;
    }
    p->tokens = p->tokens_interval = p->steps = 0;
    p->factors = 0;
    p->placements = 0;
    p->stall_s = 0;
}

/* On to the next interval. */
static void clear(struct expert_pool *p)
{
    forget(p);
    for (size_t g = 0; g < p->experts->group_count; g++) {
        p->groups[g].moved = p->groups[g].moved_next;
        p->groups[g].moved_next = 0;
    }
    p->tokens = p->tokens_next;
    p->factors = p->factors_next;
    p->steps = p->steps_next;
    p->copies_taken = false;
    p->placements = p->placements_next;
    p->stall_s = p->stall_next_s;
    p->tokens_next = p->steps_next = 0;
    p->factors_next = 0;
    p->placements_next = 0;
    p->stall_next_s = 0;
}

static void pool_rows(struct expert_run *e, const struct expert_pool *p, int64_t start_ps,
                      int64_t end_ps)
{
    size_t ranks = p->experts->shape.ranks, experts = p->experts->shape.experts;
    int64_t *scratch = memory_alloc(experts * sizeof *scratch);
    for (size_t g = 0; g < p->experts->group_count; g++) {
        struct expert_layer_row row = layer_row(p, g);
        row.start_ps = start_ps;
        row.end_ps = end_ps;
        e->layers[e->intervals * e->layer_series + p->first_layer + g] = row;
        struct expert_gpu_row *gpu =
            e->gpus + e->intervals * e->gpu_series + p->first_gpu + g * ranks;
        for (size_t r = 0; r < ranks; r++) {
            int64_t tokens = p->groups[g].ranks[r];
            gpu[r] = (struct expert_gpu_row){
                .start_ps = start_ps,
                .end_ps = end_ps,
                .pool = (int64_t)p->index,
                .layer_group = (int64_t)g,
                .rank = (int64_t)r,
                .tokens = tokens,
                .load = over((double)tokens, (double)row.pairs / (double)ranks),
            };
        }
        hot_rows(e, p, g, start_ps, (double)row.pairs / (double)experts, scratch);
    }
    free(scratch);
}

static void roll(struct expert_run *e, int64_t start_ps, int64_t end_ps)
{
    if (e->intervals == e->room) {
        e->room = 2 * e->room + 32;
        e->gpus = memory_grow(e->gpus, e->room * e->gpu_series * sizeof *e->gpus);
        e->layers = memory_grow(e->layers, e->room * e->layer_series * sizeof *e->layers);
    }
    for (size_t i = 0; i < e->pool_count; i++) {
        struct expert_pool *p = &e->pools[i];
        if (end_ps <= e->run->config.warmup_ps) {
            forget(p); /* a warm-up counts nowhere */
        }
        flush(p, p->tokens);
        copies_take(p);
        pool_rows(e, p, start_ps, end_ps);
        clear(p);
    }
    e->intervals++;
}

void expert_run_edge(struct expert_run *e)
{
    if (e == NULL) {
        return;
    }
    const struct metrics *m = e->run->metrics;
    size_t before = e->intervals, pools = run_pool_count(e->run);
    e->edge_ps = metrics_next_edge(m);
    while (e->intervals < metrics_hour_count(m)) {
        const struct metrics_hour *hour = &metrics_hours(m)[e->intervals * pools];
        roll(e, hour->start_ps, hour->end_ps);
    }
    for (size_t i = 0; i < e->pool_count && e->intervals == before; i++) {
        clear(&e->pools[i]);
    }
}

struct expert_rows expert_run_rows(const struct expert_run *e)
{
    return (struct expert_rows){.gpus = e->gpus,
                                .gpu_series = e->gpu_series,
                                .gpu_labels = e->gpu_labels,
                                .layers = e->layers,
                                .layer_series = e->layer_series,
                                .layer_labels = e->layer_labels,
                                .intervals = e->intervals,
                                .hot = e->hot,
                                .hot_count = e->hot_count};
}
