#include "tests/prop/support_scenario_gen.h"

#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/check.h"
#include "sim/base/rng.h"

/* Numbered draws of one stream. At most one draw per full expression: C leaves the order of several
 * open, and a seed must mean the same case under every compiler. */
struct draws {
    uint64_t key, next;
};

static int64_t draw_below(struct draws *d, int64_t n)
{
    check(n > 0);
    return (int64_t)(rng_draw(d->key, 0, d->next++).a % (uint64_t)n);
}
static bool draw_chance(struct draws *d, int64_t part, int64_t whole)
{
    return draw_below(d, whole) < part;
}
static int64_t draw_of(struct draws *d, const int64_t *values, size_t count)
{
    return values[draw_below(d, (int64_t)count)];
}
#define PICK(d, ...)                                                                               \
    draw_of(d, (const int64_t[]){__VA_ARGS__},                                                     \
            sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

static int64_t at_least(int64_t value, int64_t low)
{
    return value > low ? value : low;
}
static int64_t at_most(int64_t value, int64_t high)
{
    return value < high ? value : high;
}

/* ---- sorted lists ---- */

/* Opens a gap at index in an array that grows by one; returns the array. */
static void *array_open(void *items, size_t *count, size_t index, size_t size)
{
    char *grown = memory_grow(items, (*count + 1) * size);
    memmove(grown + (index + 1) * size, grown + index * size, (*count - index) * size);
    ++*count;
    return grown;
}

/* After its equals in time; later ids move up by one, in cancels and links too. Takes over the
 * request's hashes. */
static void insert_request(struct prop_case *c, struct request request)
{
    size_t at = c->request_count;
    while (at > 0 && c->requests[at - 1].arrival_ps > request.arrival_ps) {
        at--;
    }
    c->requests = array_open(c->requests, &c->request_count, at, sizeof(*c->requests));
    c->requests[at] = request;
    for (size_t i = at; i < c->request_count; i++) {
        c->requests[i].id = i;
    }
    for (size_t i = 0; i < c->cancel_count; i++) {
        c->cancels[i].id += c->cancels[i].id >= at;
    }
    for (size_t i = 0; i < c->link_count; i++) {
        c->links[i].id += c->links[i].id >= at;
        c->links[i].after += c->links[i].after >= at;
    }
}

static void insert_cancel(struct prop_case *c, int64_t time_ps, uint64_t id)
{
    size_t at = c->cancel_count;
    while (at > 0 && c->cancels[at - 1].time_ps > time_ps) {
        at--;
    }
    c->cancels = array_open(c->cancels, &c->cancel_count, at, sizeof(*c->cancels));
    c->cancels[at] = (struct naive_cancel){.time_ps = time_ps, .id = id};
}

/* A replica drains once, and one replica never does: then nothing is inserted. */
static void insert_drain(struct prop_case *c, int64_t time_ps, uint32_t replica)
{
    size_t at = c->drain_count;
    for (size_t i = 0; i < c->drain_count; i++) {
        if (c->drains[i].replica == replica) {
            return;
        }
    }
    if (c->drain_count + 1 >= c->replicas) {
        return;
    }
    while (at > 0 && c->drains[at - 1].time_ps > time_ps) {
        at--;
    }
    c->drains = array_open(c->drains, &c->drain_count, at, sizeof(*c->drains));
    c->drains[at] = (struct naive_drain){.time_ps = time_ps, .replica = replica};
}

static void insert_gauge(struct prop_case *c, int64_t time_ps)
{
    size_t at = c->gauge_count;
    while (at > 0 && c->gauge_times_ps[at - 1] > time_ps) {
        at--;
    }
    c->gauge_times_ps =
        array_open(c->gauge_times_ps, &c->gauge_count, at, sizeof(*c->gauge_times_ps));
    c->gauge_times_ps[at] = time_ps;
}

/* ---- drawing a case ---- */

static void draw_engine(struct draws *d, struct naive_engine *e)
{
    e->max_num_seqs = PICK(d, 1, 2, 3, 4, 5, 8, 16, 64);
    e->block_size = PICK(d, 1, 2, 3, 4, 4, 8, 16, 16, 32);
    e->enable_chunked_prefill = draw_chance(d, 3, 4);
    e->by_priority = draw_chance(d, 2, 5);
    e->max_num_batched_tokens =
        e->max_num_seqs + PICK(d, 0, 1, 2, e->block_size, 3 * e->block_size, 30, 100, 2048);
    if (!e->enable_chunked_prefill && draw_chance(d, 2, 3)) {
        e->max_num_batched_tokens += PICK(d, 100, 300, 1000);
    }
    e->max_queue = PICK(d, NAIVE_UNLIMITED, NAIVE_UNLIMITED, NAIVE_UNLIMITED, 0, 1, 3, 10);
    e->max_model_len = NAIVE_UNLIMITED;
    e->num_gpu_blocks = NAIVE_UNLIMITED;
}

/* Two lines that cross at `corner` KV tokens; the first may fall towards it, the second never
 * falls: a step stays positive. */
static void draw_kink(struct draws *d, int64_t base_ps, struct kink_config *k)
{
    int64_t corner = 1 + draw_below(d, PICK(d, 10, 100, 1000));
    k->d_ps = PICK(d, 0, 1, base_ps / 30, base_ps / 3);
    k->b_ps = PICK(d, 0, -(base_ps / (2 * corner)), k->d_ps / 2, 1);
    k->a_ps = base_ps;
    k->c_ps = k->a_ps + (k->b_ps - k->d_ps) * corner - (k->d_ps > 0 ? draw_below(d, 2) : 0);
    k->per_decode_ps = PICK(d, 0, 1, base_ps / 10);
    k->per_prefill_ps = PICK(d, 0, 1, base_ps / 10);
    k->per_pair_ps = PICK(d, 0, 0, 1);
    k->cap_kv = PICK(d, 0, 0, 1 + draw_below(d, 500));
    if (k->c_ps + k->d_ps * corner <= 0) {
        k->c_ps = k->a_ps; /* a step of 1 ps, rounded away: no corner then */
    }
    if (draw_chance(d, 2, 3)) {
        k->window = (uint32_t)(1 + draw_below(d, PICK(d, 4, 16, 40, 40, 150, 400)));
        k->per_window_kv_ps = PICK(d, 0, 1, base_ps / 20, base_ps / 3);
        k->per_window_pair_ps = PICK(d, 0, 1, base_ps / 50);
    }
}

static void draw_step(struct draws *d, struct prop_step *s)
{
    s->kind = (enum prop_step_kind)PICK(d, PROP_CONSTANT, PROP_AFFINE, PROP_AFFINE, PROP_RATE,
                                        PROP_KINK, PROP_KINK, PROP_KINK);
    int64_t scale_ps = PICK(d, 1, 7, 1000, 1000003, 1000000000, 10000000000);
    s->base_ps = scale_ps * (1 + draw_below(d, 9));
    s->per_token_ps = PICK(d, 0, 1, s->base_ps / 10, s->base_ps / 3);
    s->per_kv_ps = at_most(PICK(d, 0, 1, s->base_ps / 100, s->base_ps / 7), 100000000);
    if (s->kind == PROP_RATE) {
        s->prefill_rate = PICK(d, 333, 1000, 15000, 1000000);
        s->decode_rate = PICK(d, 10, 700, 1500, 33333);
        s->base_ps = PICK(d, 0, 7, 1000000000, 30000000000);
    }
    if (s->kind == PROP_KINK) {
        draw_kink(d, s->base_ps, &s->kink);
    }
}

enum { LENGTHS_TINY, LENGTHS_BLOCKS, LENGTHS_BUDGETS, LENGTHS_WIDE, LENGTHS_MODES };

static uint32_t draw_prompt(struct draws *d, const struct naive_engine *e, int64_t mode)
{
    int64_t prompt = 1 + draw_below(d, 200);
    if (mode == LENGTHS_TINY) {
        prompt = 1 + draw_below(d, 8);
    } else if (mode == LENGTHS_BLOCKS) {
        prompt = e->block_size * draw_below(d, 8);
        prompt += PICK(d, -1, 0, 1);
    } else if (mode == LENGTHS_BUDGETS && e->max_num_batched_tokens < 300) {
        prompt = e->max_num_batched_tokens * draw_below(d, 5);
        prompt += PICK(d, -1, 0, 0, 1);
    }
    return (uint32_t)at_least(prompt, 1);
}

static uint32_t draw_output(struct draws *d, int64_t mode)
{
    switch (mode) {
    case LENGTHS_TINY:
        return (uint32_t)draw_below(d, 4);
    case LENGTHS_BLOCKS:
        return (uint32_t)draw_below(d, 20);
    case LENGTHS_BUDGETS:
        return (uint32_t)PICK(d, 0, 1, 2, 16, 17, 33, 64);
    default:
        return (uint32_t)draw_below(d, 120);
    }
}

/* What about one step takes: the grid of the times. */
static int64_t step_unit(const struct prop_step *s)
{
    if (s->kind == PROP_RATE) {
        return at_least(s->base_ps, PS_PER_SECOND / s->decode_rate);
    }
    return s->base_ps;
}

/* A time in [from, from + window]: on the grid, between two of its lines, or anywhere. */
static int64_t draw_time(struct draws *d, int64_t unit_ps, int64_t from_ps, int64_t window_ps)
{
    int64_t lines = window_ps / unit_ps + 1;
    switch (draw_below(d, 4)) {
    case 0:
        return from_ps + draw_below(d, window_ps + 1);
    case 1:
        return from_ps + unit_ps * draw_below(d, lines) / 2;
    default:
        return from_ps - from_ps % unit_ps + unit_ps * (from_ps % unit_ps ? 1 : 0) +
               unit_ps * draw_below(d, lines);
    }
}

static int64_t draw_requests(struct draws *d, struct prop_case *c)
{
    int64_t unit_ps = step_unit(&c->step);
    int64_t count = 1 + draw_below(d, PICK(d, 3, 8, 20, 40, 120));
    int64_t prompt_mode = draw_below(d, LENGTHS_MODES);
    int64_t output_mode = draw_below(d, LENGTHS_MODES);
    int64_t per_request = PICK(d, 0, 0, 1, 1, 3, 10, 30, 100);
    int64_t window_ps = unit_ps * (1 + count * per_request / (int64_t)c->replicas);
    uint32_t long_output = draw_chance(d, 1, 8) ? 700 : 0;
    int64_t priorities = PICK(d, 1, 2, 3, 1000);
    for (int64_t i = 0; i < count; i++) {
        uint32_t output = draw_output(d, output_mode);
        if (long_output && draw_chance(d, 1, 6)) {
            output = long_output + (uint32_t)draw_below(d, 900);
        }
        uint32_t prompt = draw_prompt(d, &c->engine, prompt_mode);
        int32_t priority = (int32_t)(draw_below(d, priorities) - priorities / 2);
        insert_request(c, (struct request){.arrival_ps = draw_time(d, unit_ps, 0, window_ps),
                                           .prompt_tokens = prompt,
                                           .output_tokens = output,
                                           .priority = priority,
                                           .session = -1});
    }
    return window_ps;
}

/* Closed loops: some requests come after the end of an earlier one, instead of at their time. Users
 * that take turns (a chain for each), or whoever. */
static void draw_links(struct draws *d, struct prop_case *c)
{
    int64_t unit_ps = step_unit(&c->step);
    int64_t share = PICK(d, 0, 0, 1, 2, 4); /* of 4 */
    int64_t users = PICK(d, 0, 1, 2, 5);
    for (size_t i = 1; i < c->request_count; i++) {
        int64_t think_ps = PICK(d, 1, 1, unit_ps, 2 * unit_ps, 1 + draw_below(d, 10 * unit_ps));
        int64_t any = draw_below(d, (int64_t)i);
        if ((int64_t)i >= users && draw_chance(d, share, 4)) {
            c->links = memory_grow(c->links, (c->link_count + 1) * sizeof(*c->links));
            c->links[c->link_count++] =
                (struct naive_link){.id = i,
                                    .after = users > 0 ? i - (uint64_t)users : (uint64_t)any,
                                    .think_ps = think_ps};
        }
    }
}

/* ---- what prompts hold in common ---- */

enum { GROUPS = 3, STREAM_TOKENS_MAX = 300 };

enum contents { CONTENTS_OWN, CONTENTS_SHARED, CONTENTS_STREAM, CONTENTS_HASHES, CONTENTS_ANY };

/* A few shared prompts, a few streams, a tree of hashes. Numbers are small, so that those of
 * different kinds are equal. */
struct contents_plan {
    enum contents contents;        /* of most requests */
    int64_t strange;               /* of 10 have contents of any kind */
    int64_t longer;                /* most blocks by which a stream may grow in a turn */
    int64_t again;                 /* of 4 turns say what was said, instead of going on */
    int64_t groups;                /* 1 … GROUPS: how many prompts and streams */
    int64_t shared_tokens[GROUPS]; /* length of the prompts */
    uint64_t stream[GROUPS];       /* number of the stream */
    int64_t stream_tokens[GROUPS]; /* of it so far: prompts and answers */
    int64_t stream_prompt[GROUPS]; /* its last prompt's tokens */
    bool stream_shared[GROUPS];    /* whether it begins with the prompt of its number */
    uint32_t hash_block;           /* tokens that a hash names */
    bool tree;                     /* a hash tells all before it; else equal ones may differ */
};

/* Small blocks, small chunks, priorities, many at once, and all say the same: prefills are
 * preempted half way, and others compute what they were about to. */
static void draw_herd(struct draws *d, struct prop_case *c)
{
    struct naive_engine *e = &c->engine;
    int64_t closer = PICK(d, 4, 30, 100);
    c->replicas = (uint32_t)PICK(d, 1, 1, 2);
    e->max_num_seqs = at_least(e->max_num_seqs, 3);
    e->block_size = PICK(d, 1, 1, 2, 3, 4);
    e->max_num_batched_tokens = e->max_num_seqs + PICK(d, 0, 1, 2, e->block_size, 8);
    e->enable_chunked_prefill = true;
    e->by_priority = draw_chance(d, 3, 4);
    for (size_t i = 0; i < c->request_count; i++) {
        c->requests[i].arrival_ps /= closer;
        c->requests[i].output_tokens = (uint32_t)(1 + draw_below(d, 30));
    }
}

static void draw_plan(struct draws *d, const struct prop_case *c, struct contents_plan *plan)
{
    int64_t size = c->engine.block_size;
    plan->contents = (enum contents)PICK(d, CONTENTS_SHARED, CONTENTS_STREAM, CONTENTS_STREAM,
                                         CONTENTS_HASHES, CONTENTS_ANY, CONTENTS_ANY);
    plan->strange = 1;
    plan->longer = PICK(d, 2, 2, 12);
    plan->again = PICK(d, 1, 1, 3);
    plan->groups = PICK(d, 1, 1, 2, GROUPS);
    plan->hash_block = (uint32_t)(size * PICK(d, 1, 2, 4));
    plan->tree = draw_chance(d, 2, 3);
    for (size_t i = 0; i < GROUPS; i++) {
        int64_t tokens = size * draw_below(d, 6);
        tokens += PICK(d, 0, 0, 1, -1, size / 2);
        plan->shared_tokens[i] = at_least(tokens, 1);
        plan->stream[i] = i + 1;
        plan->stream_shared[i] = draw_chance(d, 1, 3);
    }
}

static void draw_shared(struct draws *d, const struct prop_case *c, struct contents_plan *plan,
                        struct request *q)
{
    int64_t which = draw_below(d, plan->groups);
    int64_t tokens = plan->shared_tokens[which];
    if (draw_chance(d, 1, 8)) {
        tokens = 1 + draw_below(d, tokens);
    }
    q->shared_prompt = (uint32_t)which;
    q->shared_tokens = (uint32_t)tokens;
    int64_t behind = draw_below(d, 2 * c->engine.block_size + 2);
    q->prompt_tokens = (uint32_t)(tokens + (draw_chance(d, 3, 4) ? behind : 0));
}

/* A turn of a stream: goes on behind all it has; or says again the last prompt, or part of it all;
 * perhaps at once with the request before. */
static void draw_stream(struct draws *d, struct prop_case *c, struct contents_plan *plan, size_t i)
{
    struct request *q = &c->requests[i];
    int64_t which = draw_below(d, plan->groups);
    int64_t size = c->engine.block_size;
    int64_t *tokens = &plan->stream_tokens[which];
    int64_t more = 1 + draw_below(d, size * plan->longer);
    int64_t prompt = *tokens + more;
    if (*tokens > STREAM_TOKENS_MAX) {
        plan->stream[which] += GROUPS;
        *tokens = 0;
        prompt = more;
    } else if (*tokens > 0 && draw_chance(d, 1, 4)) {
        prompt = 1 + draw_below(d, *tokens);
    } else if (*tokens > 0 && draw_chance(d, plan->again, 4)) {
        prompt = plan->stream_prompt[which];
        if (draw_chance(d, 1, 2)) {
            q->arrival_ps = c->requests[i - 1].arrival_ps;
        }
    }
    if (draw_chance(d, 1, 4)) {
        prompt = size * naive_blocks(prompt, size);
    }
    if (plan->stream_shared[which] && !draw_chance(d, 1, 10)) {
        q->shared_prompt = (uint32_t)(draw_chance(d, 1, 10) ? draw_below(d, GROUPS) : which);
        q->shared_tokens = (uint32_t)at_most(plan->shared_tokens[which], prompt);
    }
    q->stream = plan->stream[which];
    q->prompt_tokens = (uint32_t)prompt;
    plan->stream_prompt[which] = prompt;
    *tokens = at_least(*tokens, prompt + q->output_tokens);
}

/* A way down the tree from its root, mostly along the first branch. */
static void draw_hashes(struct draws *d, struct contents_plan *plan, struct request *q)
{
    int64_t size = plan->hash_block;
    int64_t prompt = size * draw_below(d, 5);
    prompt += PICK(d, 0, 0, 1, -1, size / 2, size / 4);
    q->prompt_tokens = (uint32_t)at_least(prompt, 1);
    int64_t named = q->prompt_tokens;
    named += draw_chance(d, 1, 2) ? q->output_tokens : 0;
    int64_t count = at_most(named / size, STREAM_TOKENS_MAX / size + 1);
    if (draw_chance(d, 1, 6)) {
        count = draw_below(d, count + 1);
    }
    q->hashes = prop_hashes((uint32_t)size, (uint32_t)count, NULL);
    uint64_t id = 0;
    for (int64_t i = 0; i < count; i++) {
        uint64_t branch = 1 + (draw_chance(d, 1, 6) ? (uint64_t)draw_below(d, 2) : 0);
        id = plan->tree ? 3 * id + branch : branch;
        q->hashes->ids[i] = id;
    }
    if (draw_chance(d, 1, 8)) {
        q->stream = 1; /* says nothing, where there are hashes */
    }
}

/* The turn after the one it waits for: all of that, and more. */
static void follow(struct draws *d, struct prop_case *c, const struct naive_link *link)
{
    struct request *q = &c->requests[link->id];
    const struct request *before = &c->requests[link->after];
    int64_t tokens = (int64_t)before->prompt_tokens + before->output_tokens;
    if (before->stream != 0 && !before->hashes && !q->hashes && tokens <= STREAM_TOKENS_MAX) {
        q->stream = before->stream;
        q->shared_prompt = before->shared_prompt;
        q->shared_tokens = before->shared_tokens;
        q->prompt_tokens = (uint32_t)(tokens + 1 + draw_below(d, c->engine.block_size));
    }
}

/* Prefix caching, and prompts to hit. */
static void draw_contents(struct draws *d, struct prop_case *c, bool herd)
{
    struct contents_plan plan = {0};
    c->engine.enable_prefix_caching = true;
    if (herd) {
        draw_herd(d, c);
    }
    draw_plan(d, c, &plan);
    if (herd) {
        plan.contents = CONTENTS_STREAM;
        plan.strange = 6;
        plan.longer = 40;
        plan.again = 3;
    }
    for (size_t i = 0; i < c->request_count; i++) {
        enum contents contents = plan.contents;
        if (contents == CONTENTS_ANY || draw_chance(d, plan.strange, 10)) {
            contents = (enum contents)draw_below(d, CONTENTS_ANY);
        }
        if (contents == CONTENTS_SHARED) {
            draw_shared(d, c, &plan, &c->requests[i]);
        } else if (contents == CONTENTS_STREAM) {
            draw_stream(d, c, &plan, i);
        } else if (contents == CONTENTS_HASHES) {
            draw_hashes(d, &plan, &c->requests[i]);
        }
    }
    for (size_t i = 0; i < c->link_count; i++) {
        if (draw_chance(d, 2, 3)) {
            follow(d, c, &c->links[i]);
        }
    }
}

/* Tokens of the longest request, all of them or those it stores. */
static int64_t longest(const struct prop_case *c, bool stored)
{
    int64_t most = 1;
    for (size_t i = 0; i < c->request_count; i++) {
        int64_t tokens = (int64_t)c->requests[i].prompt_tokens + c->requests[i].output_tokens;
        most = at_least(most, tokens - (stored && c->requests[i].output_tokens > 0));
    }
    return most;
}

/* Limits that depend on the lengths. */
static void draw_limits(struct draws *d, struct prop_case *c)
{
    int64_t need = naive_blocks(longest(c, true), c->engine.block_size);
    c->engine.num_gpu_blocks = PICK(d, NAIVE_UNLIMITED, NAIVE_UNLIMITED, need, need, need, need + 1,
                                    need + 1, need + need / 4, need + need / 2, 2 * need,
                                    at_least(need - 1, 1), at_least(need / 2, 1));
    if (draw_chance(d, 1, 8)) {
        c->engine.max_model_len = at_least(longest(c, false) - draw_below(d, 3), 1);
    }
}

static void draw_events(struct draws *d, struct prop_case *c, int64_t window_ps)
{
    int64_t unit_ps = step_unit(&c->step);
    int64_t patience_ps = unit_ps * PICK(d, 2, 10, 100);
    int64_t impatient = PICK(d, 0, 0, 1, 3); /* of 8 */
    for (size_t i = 0; i < c->request_count; i++) {
        if (draw_chance(d, impatient, 8)) {
            int64_t t = draw_time(d, unit_ps, c->requests[i].arrival_ps, patience_ps);
            insert_cancel(c, t, i);
        }
    }
    for (int64_t n = PICK(d, 0, 0, 1, 2); n > 0; n--) {
        uint32_t replica = (uint32_t)draw_below(d, c->replicas);
        insert_drain(c, draw_time(d, unit_ps, 0, window_ps), replica);
    }
    for (int64_t n = draw_below(d, 6); n > 0; n--) {
        insert_gauge(c, draw_time(d, unit_ps, 0, 2 * window_ps));
    }
}

/* ---- events exactly at boundaries ---- */

struct boundaries {
    int64_t *times_ps; /* owned */
    size_t count, capacity;
    int64_t after_ps; /* only later ones are kept */
};

static void collect_boundary(void *self, uint32_t replica, int64_t start_ps, int64_t end_ps)
{
    (void)replica;
    (void)start_ps;
    struct boundaries *b = self;
    if (end_ps <= b->after_ps) {
        return;
    }
    if (b->count == b->capacity) {
        b->capacity = 2 * b->capacity + 64;
        b->times_ps = memory_grow(b->times_ps, b->capacity * sizeof(*b->times_ps));
    }
    b->times_ps[b->count++] = end_ps;
}

/* A request in flight at t, or one that waits; any if there is none. */
static uint64_t draw_alive(struct draws *d, const struct naive_result *result, int64_t t,
                           bool waiting)
{
    size_t alive = 0;
    uint64_t id = 0;
    for (size_t i = 0; i < result->record_count; i++) {
        const struct request_record *r = &result->records[i];
        bool admitted = r->admitted_ps != TIME_NONE && r->admitted_ps < t;
        if (r->request.arrival_ps <= t && r->end_ps >= t && !(waiting && admitted) &&
            draw_below(d, (int64_t)++alive) == 0) {
            id = r->request.id;
        }
    }
    return id;
}

static void insert_probe(struct draws *d, struct prop_case *c, int64_t t,
                         const struct naive_result *result)
{
    struct request like = c->requests[draw_below(d, (int64_t)c->request_count)];
    int64_t what = draw_below(d, 7);
    switch (what) {
    case 0:
    case 1:
    case 2:
        like.arrival_ps = t;
        like.hashes = prop_hashes_copy(like.hashes);
        insert_request(c, like);
        break;
    case 3:
    case 4:
        insert_cancel(c, t, draw_alive(d, result, t, what == 4));
        break;
    case 5:
        insert_drain(c, t, (uint32_t)draw_below(d, c->replicas));
        break;
    default:
        insert_gauge(c, t);
    }
}

/* Simulates what is drawn so far, and puts one more event on a boundary after the last one placed
 * (or 1 ps beside it): what comes before it stays as it was, so earlier probes stay exact. */
static void draw_probes(struct draws *d, struct prop_case *c)
{
    int64_t last_ps = -1;
    for (int64_t n = draw_below(d, 7); n > 0; n--) {
        struct arena arena;
        arena_init(&arena);
        struct step_model model = prop_case_model(c, &arena);
        struct naive_config config = prop_case_naive(c, &model);
        struct boundaries b = {.after_ps = last_ps + 1};
        config.iteration = collect_boundary;
        config.iteration_self = &b;
        struct naive_result *result = naive_run(&config);
        if (b.count > 0) {
            /* Near the first ones: later probes still find room. */
            size_t among = (size_t)at_least((int64_t)b.count / (n + 1), 1);
            last_ps = b.times_ps[draw_below(d, (int64_t)among)];
            last_ps += PICK(d, 0, 0, 0, 0, -1, 1);
            insert_probe(d, c, last_ps, result);
        }
        naive_free(result);
        free(b.times_ps);
        arena_free(&arena);
    }
}

/* Some runs do not drain: cut at a gauge, beside it, or anywhere. */
static void draw_cut(struct draws *d, struct prop_case *c, int64_t window_ps)
{
    int64_t last_ps = c->gauge_count > 0 ? c->gauge_times_ps[c->gauge_count - 1] : window_ps;
    int64_t anywhere_ps = 1 + draw_below(d, 2 * window_ps);
    int64_t beside_ps = at_least(last_ps + draw_below(d, 3) - 1, 1);
    if (draw_chance(d, 1, 8)) {
        c->cut_ps = draw_chance(d, 1, 2) ? anywhere_ps : beside_ps;
    }
}

struct prop_case *prop_case_generate(uint64_t seed)
{
    struct draws d = {.key = rng_key(seed, 0, RNG_TEST, 0)};
    struct prop_case *c = memory_zero(1, sizeof(*c));
    c->seed = seed;
    c->replicas = (uint32_t)PICK(&d, 1, 1, 1, 2, 2, 3, 4, 7);
    c->router =
        (enum naive_router)PICK(&d, NAIVE_ROUND_ROBIN, NAIVE_LEAST_LOADED, NAIVE_CENTRAL_QUEUE);
    draw_engine(&d, &c->engine);
    draw_step(&d, &c->step);
    int64_t window_ps = draw_requests(&d, c);
    draw_links(&d, c);
    /* From draws of their own: cases without caching are what they would be without these. */
    struct draws extra = {.key = rng_key(seed, 0, RNG_TEST, 8)};
    bool caching = draw_chance(&extra, 1, 2);
    bool herd = caching && draw_chance(&extra, 1, 5);
    if (caching) {
        draw_contents(&extra, c, herd);
    }
    draw_limits(&d, c);
    if (herd) {
        int64_t need = naive_blocks(longest(c, true), c->engine.block_size);
        c->engine.num_gpu_blocks = need + PICK(&extra, 0, 0, 1, 2, need / 4);
    }
    draw_events(&d, c, window_ps);
    draw_probes(&d, c);
    draw_cut(&d, c, window_ps);
    return c;
}

static void *array_copy(const void *items, size_t count, size_t size)
{
    void *copy = memory_alloc(count * size + 1);
    if (count > 0) {
        memcpy(copy, items, count * size);
    }
    return copy;
}

struct token_hashes *prop_hashes(uint32_t block_tokens, uint32_t count, const uint64_t *ids)
{
    struct token_hashes *hashes = memory_alloc(sizeof(*hashes) + count * sizeof(hashes->ids[0]));
    hashes->pool = NULL;
    hashes->count = count;
    hashes->block_tokens = block_tokens;
    for (uint32_t i = 0; i < count; i++) {
        hashes->ids[i] = ids ? ids[i] : 0;
    }
    return hashes;
}

struct token_hashes *prop_hashes_copy(const struct token_hashes *hashes)
{
    return hashes ? prop_hashes(hashes->block_tokens, hashes->count, hashes->ids) : NULL;
}

struct prop_case *prop_case_copy(const struct prop_case *c)
{
    struct prop_case *copy = memory_alloc(sizeof(*copy));
    *copy = *c;
    copy->requests = array_copy(c->requests, c->request_count, sizeof(*c->requests));
    for (size_t i = 0; i < c->request_count; i++) {
        copy->requests[i].hashes = prop_hashes_copy(c->requests[i].hashes);
    }
    copy->cancels = array_copy(c->cancels, c->cancel_count, sizeof(*c->cancels));
    copy->links = array_copy(c->links, c->link_count, sizeof(*c->links));
    copy->drains = array_copy(c->drains, c->drain_count, sizeof(*c->drains));
    copy->gauge_times_ps =
        array_copy(c->gauge_times_ps, c->gauge_count, sizeof(*c->gauge_times_ps));
    return copy;
}

void prop_case_free(struct prop_case *c)
{
    if (c) {
        for (size_t i = 0; i < c->request_count; i++) {
            free(c->requests[i].hashes);
        }
        free(c->requests);
        free(c->cancels);
        free(c->links);
        free(c->drains);
        free(c->gauge_times_ps);
        free(c);
    }
}

/* ---- the case as a simulation ---- */

struct setting {
    const char *name;
    int64_t value;
    const char *unit;
};

static void set_field(const struct variant *variant, void *config, struct arena *arena,
                      const struct setting *setting)
{
    char text[64];
    char why[256] = "no such field";
    snprintf(text, sizeof(text), "%lld%s", (long long)setting->value, setting->unit);
    for (const struct field *f = variant->fields; f->kind != FIELD_END; f++) {
        if (strcmp(f->name, setting->name) == 0) {
            bool ok = field_parse(f, text, (char *)config + f->offset, arena, why, sizeof(why));
            check_msg(ok, "step_time %s: %s: %s: %s", variant->name, f->name, text, why);
            return;
        }
    }
    check_fail(__FILE__, __LINE__, "field", "step_time %s has no %s", variant->name, setting->name);
}

static struct step_model registry_model(const char *name, const struct setting *settings,
                                        size_t count, struct arena *arena)
{
    const struct variant *const *v = step_time_variants;
    while (*v && strcmp((*v)->name, name) != 0) {
        v++;
    }
    check_msg(*v, "no step_time model '%s'", name);
    void *config = arena_alloc(arena, (*v)->size);
    field_defaults((*v)->fields, config, arena);
    for (size_t i = 0; i < count; i++) {
        set_field(*v, config, arena, &settings[i]);
    }
    struct errors errors;
    errors_init(&errors);
    struct step_model model = {.type = (*v)->ops};
    model.model = model.type->build(config, arena, &errors, NULL);
    check_msg(model.model, "step_time %s refused the case's coefficients", name);
    errors_free(&errors);
    return model;
}

struct step_model prop_case_model(const struct prop_case *c, struct arena *arena)
{
    const struct prop_step *s = &c->step;
    const struct setting constant[] = {{"step", s->base_ps, " ps"}};
    const struct setting affine[] = {{"base", s->base_ps, " ps"},
                                     {"per_token", s->per_token_ps, " ps"},
                                     {"per_kv_token", s->per_kv_ps, " ps"}};
    const struct setting rate[] = {{"prefill_tokens_per_s", s->prefill_rate, ""},
                                   {"decode_tokens_per_s", s->decode_rate, ""},
                                   {"min_step", s->base_ps, " ps"}};
    switch (s->kind) {
    case PROP_CONSTANT:
        return registry_model("constant", constant, 1, arena);
    case PROP_AFFINE:
        return registry_model("affine", affine, 3, arena);
    case PROP_RATE:
        return registry_model("rate", rate, 3, arena);
    default:
        return (struct step_model){.type = &kink_type,
                                   .model = kink_type.build(&s->kink, arena, NULL, NULL)};
    }
}

struct naive_config prop_case_naive(const struct prop_case *c, const struct step_model *model)
{
    return (struct naive_config){.engine = c->engine,
                                 .step = model,
                                 .replicas = c->replicas,
                                 .router = c->router,
                                 .requests = c->requests,
                                 .request_count = c->request_count,
                                 .links = c->links,
                                 .link_count = c->link_count,
                                 .cancels = c->cancels,
                                 .cancel_count = c->cancel_count,
                                 .drains = c->drains,
                                 .drain_count = c->drain_count,
                                 .gauge_times_ps = c->gauge_times_ps,
                                 .gauge_count = c->gauge_count,
                                 .cut_ps = c->cut_ps};
}

struct naive_result *prop_case_run_naive(const struct prop_case *c)
{
    struct arena arena;
    arena_init(&arena);
    struct step_model model = prop_case_model(c, &arena);
    struct naive_config config = prop_case_naive(c, &model);
    struct naive_result *result = naive_run(&config);
    arena_free(&arena);
    return result;
}
