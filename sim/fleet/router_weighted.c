/* The replica with the highest weighted sum of scores between 0 and 1, after the scorers of the
 * llm-d inference scheduler:
 *   prefix_affinity  cached tokens of the prompt / its tokens
 *   queue_depth      1 − waiting requests / max_num_seqs, at least 0
 *   kv_utilization   1 − KV blocks in use / KV blocks
 *   active_requests  1 − requests running or waiting / max_num_seqs, at least 0
 *   no_hit_lru       for prompts that nobody has anything of: how long ago the replica last got one
 *                    like that, counted in such prompts, over the replicas that take requests
 * Loads are those of the last reading. Where llm-d divides by the largest value among the replicas
 * at hand, these scores have fixed scales: one replica's score then does not hang on another's, and
 * the best one is found in a tree instead of by a scan. Equal sums: least recently sent to.
 *
 * All scores but prefix_affinity are the replica's own, so who has nothing of the prompt cached is
 * beaten by the best of these sums; holders are looked at from the longest match down, each once,
 * at most HOLDERS_LOOKED_AT of them. */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include "sim/base/arena.h"
#include "sim/base/tournament.h"
#include "sim/fleet/prefix_path.h"
#include "sim/fleet/router.h"

enum {
    HOLDERS_LOOKED_AT = 64,
    NO_POOL = UINT32_MAX,
    SCORE_BITS = 20, /* scores are whole numbers of 2^-20 of the sum of all weights */
    SENT_BITS = 40   /* dispatches, behind the score in a tree's key */
};
static const int64_t SCORE_ONE = INT64_C(1) << SCORE_BITS;

struct weighted_config {
    double prefix_affinity, queue_depth, kv_utilization, active_requests, no_hit_lru;
    struct router_signal_config signals;
};

#define WEIGHT(member, weight, text)                                                               \
    {                                                                                              \
        .name = #member, .kind = FIELD_REAL, .offset = offsetof(struct weighted_config, member),   \
        .fallback = weight, .max = 1000, .doc = "Weight of " text                                  \
    }

static const struct field fields[] = {
    WEIGHT(prefix_affinity, "3", "the share of the prompt that is cached"),
    WEIGHT(queue_depth, "2", "few waiting requests"),
    WEIGHT(kv_utilization, "2", "free KV blocks"),
    WEIGHT(active_requests, "0", "few requests running or waiting"),
    WEIGHT(no_hit_lru, "2", "having got no prompt without any cached part for long, for those"),
    {.name = "signals",
     .kind = FIELD_STRUCT,
     .offset = offsetof(struct weighted_config, signals),
     .fields = router_reading_fields,
     .doc = ROUTER_SIGNALS_DOC},
    {0},
};

/* What the policy knows of a slot. */
struct known {
    uint32_t pool; /* NO_POOL: takes no requests */
    struct router_reading reading;
    int64_t score;    /* all but prefix_affinity and no_hit_lru */
    uint64_t sent;    /* number of the last dispatch */
    uint64_t cold_at; /* prompts without any hit that there had been after its last one */
    uint64_t looked;  /* the search that looked at it last */
};

struct pool_trees {
    struct tournament score; /* highest first */
    struct tournament cold;  /* the same with no_hit_lru */
    uint32_t ready;
};

struct weighted {
    const struct router_pool *pools; /* borrowed */
    uint32_t pool_count, slots;
    int64_t affinity, queue, kv, active, lru; /* weights, summing to about SCORE_ONE */
    struct known *known;                      /* owned; [slots] */
    struct pool_trees *trees;                 /* owned; [pool_count] */
    uint64_t sent, cold;
    uint64_t searches;          /* for holders, in one pool each */
    struct prefix_index *index; /* owned */
    struct prefix_path path;
};

static void *create(const void *config, const struct router_env *env)
{
    const struct weighted_config *c = config;
    struct weighted *r = memory_zero(1, sizeof *r);
    double sum = c->prefix_affinity + c->queue_depth + c->kv_utilization + c->active_requests +
                 c->no_hit_lru;
    double unit = sum > 0 ? (double)SCORE_ONE / sum : 0;
    r->affinity = llround(c->prefix_affinity * unit);
    r->queue = llround(c->queue_depth * unit);
    r->kv = llround(c->kv_utilization * unit);
    r->active = llround(c->active_requests * unit);
    r->lru = llround(c->no_hit_lru * unit);
    r->pools = env->pools;
    r->pool_count = env->pool_count;
    r->slots = env->slots;
    r->known = memory_zero(env->slots, sizeof *r->known);
    for (uint32_t i = 0; i < env->slots; i++) {
        r->known[i].pool = NO_POOL;
    }
    r->trees = memory_zero(env->pool_count, sizeof *r->trees);
    for (uint32_t i = 0; i < env->pool_count; i++) {
        tournament_init(&r->trees[i].score, env->slots);
        tournament_init(&r->trees[i].cold, env->slots);
    }
    r->index = prefix_index_create(env->slots);
    return r;
}

static void destroy(void *state)
{
    struct weighted *r = state;
    for (uint32_t i = 0; i < r->pool_count; i++) {
        tournament_free(&r->trees[i].score);
        tournament_free(&r->trees[i].cold);
    }
    free(r->trees);
    free(r->known);
    prefix_index_free(r->index);
    prefix_path_free(&r->path);
    free(r);
}

static void resize(void *state, uint32_t slots)
{
    struct weighted *r = state;
    for (uint32_t i = 0; i < r->pool_count; i++) {
        tournament_resize(&r->trees[i].score, slots);
        tournament_resize(&r->trees[i].cold, slots);
    }
    prefix_index_resize(r->index, slots);
    r->known = memory_grow(r->known, slots * sizeof *r->known);
    for (; r->slots < slots; r->slots++) {
        r->known[r->slots] = (struct known){.pool = NO_POOL};
    }
}

/* 1 − part / whole, at least 0, times a weight. */
static int64_t spare(int64_t weight, int64_t part, int64_t whole)
{
    return part >= whole ? 0 : weight * (whole - part) / whole;
}

/* Puts what is known of a ready slot in its pool's trees. Age counts from a common zero, so that
 * only the slot that is sent something moves. */
static void rank(struct weighted *r, uint32_t slot)
{
    struct known *k = &r->known[slot];
    int64_t seats = r->pools[k->pool].max_num_seqs;
    k->score = spare(r->queue, k->reading.waiting, seats) +
               spare(r->active, k->reading.in_flight, seats) +
               spare(r->kv, k->reading.kv_millionths, 1000000);
    struct pool_trees *trees = &r->trees[k->pool];
    uint64_t missing = (uint64_t)(2 * SCORE_ONE - k->score);
    tournament_set(&trees->score, slot, missing << SENT_BITS | k->sent);
    if (r->lru > 0) {
        uint64_t ready = trees->ready > 0 ? trees->ready : 1;
        uint64_t age = (uint64_t)((unsigned __int128)k->cold_at * (uint64_t)r->lru / ready);
        tournament_set(&trees->cold, slot, missing + age);
    }
}

static void ready(void *state, uint32_t pool, uint32_t slot, bool is_ready)
{
    struct weighted *r = state;
    struct pool_trees *trees = &r->trees[pool];
    prefix_index_forget(r->index, slot);
    trees->ready += is_ready ? 1 : UINT32_MAX;
    if (is_ready) {
        r->known[slot] = (struct known){.pool = pool};
    } else {
        r->known[slot].pool = NO_POOL;
        tournament_set(&trees->score, slot, TOURNAMENT_IDLE);
        tournament_set(&trees->cold, slot, TOURNAMENT_IDLE);
    }
    for (uint32_t i = 0; i < r->slots; i++) { /* the age of each is a share of their number */
        if (r->known[i].pool == pool) {
            rank(r, i);
        }
    }
}

static void load(void *state, uint32_t pool, uint32_t slot, uint32_t in_flight)
{
    (void)pool;
    struct weighted *r = state;
    struct router_reading *reading = &r->known[slot].reading;
    if (in_flight > reading->in_flight) { /* its own dispatches may have to wait */
        reading->waiting += in_flight - reading->in_flight;
    }
    reading->in_flight = in_flight;
    rank(r, slot);
}

static void reading(void *state, uint32_t pool, uint32_t slot, const struct router_reading *now)
{
    (void)pool;
    struct weighted *r = state;
    r->known[slot].reading = *now; /* its load comes next */
}

static void cached(void *state, uint32_t slot, uint64_t key, uint32_t blocks)
{
    struct weighted *r = state;
    if (r->known[slot].pool != NO_POOL) {
        prefix_index_put(r->index, slot, key, blocks);
    }
}

/* The best so far. */
struct choice {
    uint32_t slot;
    int64_t score;
};

static void consider(const struct weighted *r, struct choice *best, uint32_t slot, int64_t affinity)
{
    int64_t score = r->known[slot].score + affinity;
    if (best->slot == ROUTER_NONE || score > best->score ||
        (score == best->score && r->known[slot].sent < r->known[best->slot].sent)) {
        *best = (struct choice){.slot = slot, .score = score};
    }
}

/* Holders of any part of the prompt in one pool, from the longest match down. */
static void consider_holders(struct weighted *r, const struct request *request, uint32_t pool,
                             struct choice *best)
{
    uint32_t block_size = r->pools[pool].block_size, prompt = request->prompt_tokens;
    size_t looked_at = 0;
    r->searches++;
    for (size_t depth = prefix_path_known(&r->path, r->index); depth > 0; depth--) {
        const struct prefix_step *step = &r->path.steps[depth - 1];
        size_t count;
        const struct prefix_holder *held = prefix_index_holders(r->index, step->node, &count);
        for (size_t i = 0; i < count; i++) {
            struct known *k = &r->known[held[i].slot];
            if (!prefix_index_holds(r->index, &held[i]) || k->pool != pool ||
                k->looked == r->searches) {
                continue; /* who holds a part holds those before it: it was looked at there */
            }
            k->looked = r->searches;
            if (looked_at++ == HOLDERS_LOOKED_AT) {
                return;
            }
            uint64_t tokens = prefix_path_match(step, held[i].blocks) * block_size;
            consider(r, best, held[i].slot, r->affinity * (int64_t)tokens / prompt);
        }
    }
}

/* The best of a tree over these pools. */
static uint32_t first_of(const struct weighted *r, const uint32_t *pools, uint32_t pool_count,
                         bool cold)
{
    uint64_t best = TOURNAMENT_IDLE;
    uint32_t slot = ROUTER_NONE;
    for (uint32_t i = 0; i < pool_count; i++) {
        const struct pool_trees *trees = &r->trees[pools[i]];
        const struct tournament *tree = cold ? &trees->cold : &trees->score;
        if (tournament_key(tree) < best) {
            best = tournament_key(tree);
            slot = tournament_winner(tree);
        }
    }
    return slot;
}

static uint32_t pick(void *state, const struct request *request, const uint32_t *pools,
                     uint32_t pool_count)
{
    struct weighted *r = state;
    struct choice best = {.slot = ROUTER_NONE};
    for (uint32_t i = 0; i < pool_count && r->affinity > 0; i++) {
        prefix_path_fill(&r->path, request, r->pools[pools[i]].block_size);
        consider_holders(r, request, pools[i], &best);
    }
    bool cold = best.slot == ROUTER_NONE && r->lru > 0;
    uint32_t other = first_of(r, pools, pool_count, cold);
    if (other == ROUTER_NONE) {
        return ROUTER_NONE;
    }
    if (best.slot == ROUTER_NONE) {
        best.slot = other;
    } else {
        consider(r, &best, other, 0);
    }
    struct known *k = &r->known[best.slot];
    k->sent = ++r->sent;
    if (cold) {
        k->cold_at = ++r->cold;
    }
    rank(r, best.slot);
    return best.slot;
}

static const struct router_signal_config *signals(const void *config)
{
    return &((const struct weighted_config *)config)->signals;
}

static const struct router_type weighted = {
    .create = create,
    .destroy = destroy,
    .resize = resize,
    .ready = ready,
    .load = load,
    .pick = pick,
    .signals = signals,
    .reading = reading,
    .cached = cached,
};

const struct variant router_weighted_variant = {
    .name = "weighted",
    .doc = "The highest weighted sum of scores: cached prefix, queue, KV, load",
    .fields = fields,
    .size = sizeof(struct weighted_config),
    .ops = &weighted,
};
