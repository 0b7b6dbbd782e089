#include "tests/prop/support_naive.h"

#include <stdlib.h>
#include <sys/queue.h>

#include "sim/base/arena.h"
#include "sim/base/check.h"
#include "sim/base/obs.h"
#include "tests/prop/support_naive_cache.h"

enum place { PLACE_NOWHERE, PLACE_WAITING, PLACE_RUNNING, PLACE_ENDED };

struct sequence {
    struct request_record record;
    enum place place;
    int64_t target; /* tokens to prefill: the prompt; after a preemption the prompt and outputs */
    int64_t stored; /* KV tokens it was given at its admission, and those of complete iterations */
    int64_t high;   /* most it ever had stored */
    struct naive_holder kv;
    int64_t short_hit; /* blocks it would have hit when it last found too few; -1: it never did */
    int64_t taken;     /* tokens scheduled in the iteration in flight; 0: none */
    int64_t last_token_ps;
    struct waiting *queue; /* the queue it waits in; NULL when it does not */
    TAILQ_ENTRY(sequence) link;
};
TAILQ_HEAD(sequence_list, sequence);

struct running {
    struct sequence_list list; /* in order of last admission */
    int64_t count;
};
struct waiting {
    struct sequence_list list; /* head first */
    int64_t count;
};

struct replica {
    uint32_t index;
    struct running running;
    struct waiting waiting;
    struct naive_cache cache; /* its KV blocks; without prefix caching nothing is published */
    int64_t step_ps;          /* the one step event; TIME_NEVER: idle */
    bool draining;
    uint64_t dispatch;        /* number of its last dispatch, from 1; 0: none yet */
    struct step_batch flight; /* what the iteration until step_ps computes; empty: none */
    int64_t started_ps;       /* its start */
};

struct fleet {
    const struct naive_config *config;
    const struct naive_engine *engine;
    struct naive_result *result;
    struct sequence *sequences; /* [request_count] */
    struct replica *replicas;   /* [config->replicas] */
    struct waiting central;
    struct sequence_list future; /* requests whose arrival is known, by (arrival, id) */
    uint32_t window;             /* of the step model; 0: none */
    struct sequence **scratch;   /* [request_count] */
    struct naive_contents contents;
    uint32_t last_replica; /* of round_robin */
    int64_t now_ps;
    uint64_t dispatches;
};

/* ---- lists ---- */

static void waiting_remove(struct sequence *s)
{
    TAILQ_REMOVE(&s->queue->list, s, link);
    s->queue->count--;
    s->queue = NULL;
    s->place = PLACE_NOWHERE;
}

/* Whether a's key (priority, id) is the smaller one: it goes first. */
static bool goes_first(const struct sequence *a, const struct sequence *b)
{
    const struct request *x = &a->record.request;
    const struct request *y = &b->record.request;
    return x->priority != y->priority ? x->priority < y->priority : x->id < y->id;
}

/* Behind all whose key is smaller. */
static void insert_by_key(struct sequence_list *list, struct sequence *s)
{
    struct sequence *other;
    TAILQ_FOREACH(other, list, link)
    {
        if (goes_first(s, other)) {
            TAILQ_INSERT_BEFORE(other, s, link);
            return;
        }
    }
    TAILQ_INSERT_TAIL(list, s, link);
}

static void waiting_insert(const struct naive_engine *e, struct waiting *w, struct sequence *s,
                           bool at_head)
{
    check(s->place == PLACE_NOWHERE);
    if (e->by_priority) {
        insert_by_key(&w->list, s);
    } else if (at_head) {
        TAILQ_INSERT_HEAD(&w->list, s, link);
    } else {
        TAILQ_INSERT_TAIL(&w->list, s, link);
    }
    w->count++;
    s->queue = w;
    s->place = PLACE_WAITING;
}

static void running_append(struct replica *r, struct sequence *s)
{
    check(s->place == PLACE_NOWHERE);
    TAILQ_INSERT_TAIL(&r->running.list, s, link);
    r->running.count++;
    s->place = PLACE_RUNNING;
}

/* Leaves the running list and gives its blocks back. */
static void running_remove(struct replica *r, struct sequence *s)
{
    TAILQ_REMOVE(&r->running.list, s, link);
    r->running.count--;
    naive_holder_release(&r->cache, &s->kv);
    s->taken = 0;
    s->place = PLACE_NOWHERE;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* ---- what the world sees ---- */

static void report(struct fleet *f, enum obs_kind kind, const struct sequence *s, uint64_t value)
{
    digest_event(&f->result->digest, kind, f->now_ps, s->record.request.id, value);
}

/* The next request to come, after all that come earlier or have a smaller id. */
static void arrives_at(struct fleet *f, struct sequence *s, int64_t t)
{
    struct sequence *other;
    s->record.request.arrival_ps = t;
    TAILQ_FOREACH(other, &f->future, link)
    {
        const struct request *q = &other->record.request;
        if (t < q->arrival_ps || (t == q->arrival_ps && s->record.request.id < q->id)) {
            TAILQ_INSERT_BEFORE(other, s, link);
            return;
        }
    }
    TAILQ_INSERT_TAIL(&f->future, s, link);
}

static void arrive_after(struct fleet *f, const struct sequence *ended)
{
    for (size_t i = 0; i < f->config->link_count; i++) {
        const struct naive_link *link = &f->config->links[i];
        if (link->after == ended->record.request.id) {
            arrives_at(f, &f->sequences[link->id], time_add(f->now_ps, link->think_ps));
        }
    }
}

static void report_end(struct fleet *f, struct sequence *s, enum outcome outcome)
{
    struct naive_result *result = f->result;
    struct request_record *record = &s->record;
    check(s->place == PLACE_NOWHERE && s->kv.count == 0);
    s->place = PLACE_ENDED;
    record->end_ps = f->now_ps;
    record->outcome = outcome;
    report(f, OBS_END, s, (uint64_t)outcome + 16 * (uint64_t)record->emitted_tokens);
    if (outcome == OUTCOME_COMPLETED) {
        histogram_add(&result->e2e, record->end_ps - record->request.arrival_ps);
        if (record->emitted_tokens >= 2) {
            int64_t gaps = (int64_t)record->emitted_tokens - 1;
            int64_t span_ps = s->last_token_ps - record->first_token_ps;
            histogram_add(&result->tpot, (2 * span_ps + gaps) / (2 * gaps));
        }
    }
    result->outcomes[outcome]++;
    result->computed_tokens += record->computed_tokens;
    result->recomputed_tokens += record->recomputed_tokens;
    result->cached_tokens += record->cached_tokens;
    result->emitted_tokens += record->emitted_tokens;
    result->preemptions += record->preemptions;
    result->records[result->record_count++] = *record;
    arrive_after(f, s);
}

/* One output token at the end of an iteration. */
static void emit_token(struct fleet *f, struct sequence *s)
{
    s->record.emitted_tokens++;
    if (s->record.emitted_tokens == 1) {
        s->record.first_token_ps = f->now_ps;
        report(f, OBS_FIRST_TOKEN, s, s->record.replica);
        histogram_add(&f->result->ttft, f->now_ps - s->record.request.arrival_ps);
    } else {
        histogram_add(&f->result->itl, f->now_ps - s->last_token_ps);
    }
    s->last_token_ps = f->now_ps;
}

/* ---- complete the iteration that ends now ---- */

static int compare_ids(const void *a, const void *b)
{
    uint64_t x = (*(struct sequence *const *)a)->record.request.id;
    uint64_t y = (*(struct sequence *const *)b)->record.request.id;
    return (x > y) - (x < y);
}

/* A chunk's prompt tokens never stored before are computed, all others recomputed. */
static void count_chunk(struct sequence *s)
{
    int64_t reached = smaller(s->stored + s->taken, s->record.request.prompt_tokens);
    int64_t fresh = larger(reached - larger(s->stored, s->high), 0);
    s->record.computed_tokens += (uint32_t)fresh;
    s->record.recomputed_tokens += (uint32_t)(s->taken - fresh);
}

static void complete_one(struct fleet *f, struct replica *r, struct sequence *s)
{
    uint32_t output = s->record.request.output_tokens;
    bool decode = s->stored >= s->target;
    if (!decode) {
        count_chunk(s);
    }
    s->stored += s->taken;
    s->high = larger(s->high, s->stored);
    s->taken = 0;
    f->result->window_fills += decode && s->stored == f->window;
    if (s->stored < s->target) {
        return; /* prefill goes on */
    }
    if (output > 0) {
        emit_token(f, s);
    }
    if (s->record.emitted_tokens == output) {
        running_remove(r, s);
        report_end(f, s, OUTCOME_COMPLETED);
    }
}

/* Outcomes at one boundary go by request id. */
static void complete(struct fleet *f, struct replica *r)
{
    size_t count = 0;
    struct sequence *s;
    TAILQ_FOREACH(s, &r->running.list, link)
    {
        if (s->taken > 0) {
            f->scratch[count++] = s;
        }
    }
    qsort(f->scratch, count, sizeof(*f->scratch), compare_ids);
    for (size_t i = 0; i < count; i++) {
        complete_one(f, r, f->scratch[i]);
    }
}

/* ---- form the next batch ---- */

/* How many of its first blocks are cached now; at least one token is left to compute. */
static int64_t count_hits(struct fleet *f, struct replica *r, struct sequence *s)
{
    int64_t most = (s->target - 1) / f->engine->block_size;
    return f->engine->enable_prefix_caching ? naive_holder_hits(&r->cache, &s->kv, most) : 0;
}

/* Takes what is cached of it, and says so. */
static void take_hits(struct fleet *f, struct replica *r, struct sequence *s, int64_t hits)
{
    struct naive_result *result = f->result;
    int64_t tokens = hits * f->engine->block_size;
    if (!f->engine->enable_prefix_caching) {
        return;
    }
    f->result->story.shrunk += s->short_hit >= 0 && hits > s->short_hit;
    f->result->story.grown += hits < s->short_hit;
    f->result->story.hit_again += hits > 0 && s->record.preemptions > 0;
    f->result->story.hit_more_again += tokens > s->high && s->record.preemptions > 0;
    naive_holder_hit(&r->cache, &s->kv, hits, s->target, f->now_ps);
    s->stored = tokens;
    s->record.cached_tokens += (uint32_t)larger(tokens - s->high, 0);
    s->high = larger(s->high, tokens);
    digest_event(&result->prefix, s->record.preemptions == 0, f->now_ps, s->record.request.id,
                 (uint64_t)tokens << 32 | (uint64_t)s->target);
    result->lookups++;
    result->hit_tokens += (uint64_t)tokens;
    result->lookup_tokens += (uint64_t)s->target;
}

/* Tokens for this iteration, and the blocks they need. */
static void give(const struct fleet *f, struct replica *r, struct sequence *s, int64_t taken)
{
    s->taken = taken;
    naive_holder_store(&r->cache, &s->kv, s->stored, s->stored + taken, f->now_ps);
}

static void preempt(struct fleet *f, struct replica *r, struct sequence *s)
{
    f->result->taken_back += s->taken > 0;
    naive_holder_take_back(&r->cache, &s->kv, s->stored, s->stored + s->taken);
    running_remove(r, s);
    s->record.preemptions++;
    s->stored = 0;
    s->target = (int64_t)s->record.request.prompt_tokens + s->record.emitted_tokens;
    waiting_insert(f->engine, &r->waiting, s, true);
    report(f, OBS_PREEMPT, s, s->record.emitted_tokens);
}

/* What a sliding window of w tokens leaves of it: a token at position p has min(p + 1, w) keys. */
static void compose_window(struct fleet *f, struct step_batch *batch, const struct sequence *s)
{
    int64_t w = f->window;
    if (s->stored >= s->target) {
        batch->decode_growing += s->stored < w;
        batch->decode_window_kv += smaller(s->stored, w);
        return;
    }
    batch->prefill_window_kv += smaller(s->stored, w);
    for (int64_t p = s->stored; p < s->stored + s->taken; p++) {
        batch->prefill_window_pairs += smaller(p + 1, w);
    }
    f->result->window_straddles += s->stored < w && w < s->stored + s->taken;
}

/* What everybody computes in this iteration. How it would grow is left out: the law is asked for
 * one iteration only. */
static void compose(struct fleet *f, const struct replica *r, struct step_batch *batch)
{
    const struct sequence *s;
    TAILQ_FOREACH(s, &r->running.list, link)
    {
        if (s->taken == 0) {
            continue;
        }
        if (s->stored >= s->target) {
            batch->decodes++;
            batch->decode_kv += s->stored;
        } else {
            batch->prefills++;
            batch->prefill_tokens += (uint32_t)s->taken;
            batch->prefill_kv += s->stored;
            batch->prefill_pairs += s->taken * s->stored + s->taken * (s->taken + 1) / 2;
            batch->prefill_squares += s->taken * s->taken;
        }
        if (f->window > 0) {
            compose_window(f, batch, s);
        }
    }
}

static int64_t budget_left(const struct naive_engine *e, const struct replica *r)
{
    int64_t budget = e->max_num_batched_tokens;
    const struct sequence *s;
    TAILQ_FOREACH(s, &r->running.list, link)
    {
        budget -= s->taken;
    }
    return budget;
}

/* Who goes when blocks are short: the last of the list, or the one with the largest key. */
static struct sequence *victim(const struct naive_engine *e, const struct replica *r)
{
    struct sequence *worst = TAILQ_LAST(&r->running.list, sequence_list);
    struct sequence *s;
    TAILQ_FOREACH(s, &r->running.list, link)
    {
        if (e->by_priority && goes_first(worst, s)) {
            worst = s;
        }
    }
    return worst;
}

/* Gives s its part of this iteration, preempting for its blocks, perhaps s itself. */
static void schedule_running(struct fleet *f, struct replica *r, struct sequence *s,
                             bool *preempted)
{
    const struct naive_engine *e = f->engine;
    int64_t want = s->stored >= s->target ? 1 : s->target - s->stored;
    int64_t taken = smaller(want, budget_left(e, r));
    int64_t need = taken > 0 ? naive_blocks(s->stored + taken, e->block_size) : s->kv.count;
    while (naive_cache_spare(&r->cache) < need - s->kv.count) {
        struct sequence *gone = victim(e, r);
        preempt(f, r, gone);
        *preempted = true;
        if (gone == s) {
            return;
        }
    }
    give(f, r, s, taken);
}

/* (a) Running sequences in order of admission, but those preempted before their turn. Returns
 * whether anybody was preempted. */
static bool form_running(struct fleet *f, struct replica *r)
{
    bool preempted = false;
    size_t count = 0;
    struct sequence *s;
    TAILQ_FOREACH(s, &r->running.list, link)
    {
        f->scratch[count++] = s;
    }
    for (size_t i = 0; i < count; i++) {
        if (f->scratch[i]->place == PLACE_RUNNING) {
            schedule_running(f, r, f->scratch[i], &preempted);
        }
    }
    return preempted;
}

/* The next sequence that r may admit: its own queue first. */
static struct sequence *form_head(struct fleet *f, struct replica *r)
{
    struct sequence *s = TAILQ_FIRST(&r->waiting.list);
    if (!s && !r->draining) {
        s = TAILQ_FIRST(&f->central.list);
    }
    return s;
}

static void admit(struct fleet *f, struct replica *r, struct sequence *s)
{
    waiting_remove(s);
    running_append(r, s);
    s->record.replica = r->index;
    if (s->record.admitted_ps == TIME_NONE) {
        s->record.admitted_ps = f->now_ps;
        report(f, OBS_ADMIT, s, r->index);
        histogram_add(&f->result->queue, f->now_ps - s->record.request.arrival_ps);
    }
}

/* (b) The waiting ones in order, until the head does not fit. */
static void form_waiting(struct fleet *f, struct replica *r)
{
    const struct naive_engine *e = f->engine;
    struct sequence *s;
    int64_t budget = budget_left(e, r);
    while (budget > 0 && r->running.count < e->max_num_seqs && (s = form_head(f, r))) {
        int64_t hits = count_hits(f, r, s);
        if (naive_blocks(s->target, e->block_size) - hits >
            naive_cache_spare(&r->cache) - naive_holder_free_hits(&r->cache, &s->kv, hits)) {
            s->short_hit = hits;
            break;
        }
        if (!e->enable_chunked_prefill && s->target - hits * e->block_size > budget) {
            break;
        }
        admit(f, r, s);
        take_hits(f, r, s, hits);
        give(f, r, s, smaller(s->target - s->stored, budget));
        budget -= s->taken;
    }
}

/* The iteration in flight is complete: its tokens, and its cost, split as the bill splits it. */
static void count_iteration(struct fleet *f, struct replica *r)
{
    const struct step_model *model = f->config->step;
    const struct step_batch *batch = &r->flight;
    int64_t step_ps = f->now_ps - r->started_ps;
    struct step_batch decodes = {.decodes = batch->decodes,
                                 .decode_kv = batch->decode_kv,
                                 .decode_growing = batch->decode_growing,
                                 .decode_window_kv = batch->decode_window_kv};
    struct step_law alone = {.base_ps = 0};
    if (batch->decodes > 0) {
        model->type->law(model->model, &decodes, &alone);
    }
    f->result->busy_ps += step_ps;
    f->result->decode_ps += alone.base_ps;
    f->result->work_ps += model->type->work ? model->type->work(model->model, batch) : step_ps;
    f->result->iterations++;
    f->result->decode_tokens += batch->decodes;
    f->result->prefill_tokens += batch->prefill_tokens;
}

static void form(struct fleet *f, struct replica *r)
{
    struct naive_result *result = f->result;
    struct step_batch batch = {0};
    bool preempted = form_running(f, r);
    if (!preempted) {
        form_waiting(f, r);
    }
    compose(f, r, &batch);
    r->flight = batch;
    r->started_ps = f->now_ps;
    if (batch.decodes + batch.prefills == 0) {
        /* A lone sequence always fits, or it would be unservable. */
        check(r->running.count == 0 && r->waiting.count == 0);
        r->step_ps = TIME_NEVER;
        return;
    }
    struct step_law law;
    f->config->step->type->law(f->config->step->model, &batch, &law);
    check(law.base_ps > 0);
    result->law_ends += law.valid_n == 1;
    r->step_ps = time_add(f->now_ps, law.base_ps);
    result->peak_blocks[r->index] = larger(result->peak_blocks[r->index], r->cache.referenced);
    if (f->config->iteration) {
        f->config->iteration(f->config->iteration_self, r->index, f->now_ps, r->step_ps);
    }
}

static void release_if_done(struct fleet *f, struct replica *r)
{
    if (r->draining && r->step_ps == TIME_NEVER && f->result->released_ps[r->index] == TIME_NONE) {
        f->result->released_ps[r->index] = f->now_ps;
    }
}

static void step(struct fleet *f, struct replica *r)
{
    if (r->flight.decodes + r->flight.prefills > 0) {
        count_iteration(f, r);
    }
    complete(f, r);
    form(f, r);
    release_if_done(f, r);
}

/* ---- arrivals, cancels, timers ---- */

static bool is_unservable(const struct naive_engine *e, const struct request *q)
{
    int64_t stored_at_most =
        (int64_t)q->prompt_tokens + (q->output_tokens > 1 ? q->output_tokens : 1) - 1;
    return naive_blocks(stored_at_most, e->block_size) > e->num_gpu_blocks ||
           (int64_t)q->prompt_tokens + q->output_tokens > e->max_model_len ||
           (!e->enable_chunked_prefill && stored_at_most > e->max_num_batched_tokens);
}

/* running + waiting ≥ places · (max_num_seqs + max_queue) */
static bool is_full(const struct naive_engine *e, int64_t inside, int64_t places)
{
    return places == 0 ||
           (e->max_queue != NAIVE_UNLIMITED && inside >= places * (e->max_num_seqs + e->max_queue));
}

static int64_t load(const struct replica *r)
{
    return r->running.count + r->waiting.count;
}

static struct replica *route_least_loaded(struct fleet *f)
{
    struct replica *best = NULL;
    for (uint32_t i = 0; i < f->config->replicas; i++) {
        struct replica *r = &f->replicas[i];
        if (!r->draining && (!best || load(r) < load(best) ||
                             (load(r) == load(best) && r->dispatch < best->dispatch))) {
            best = r;
        }
    }
    return best;
}

static struct replica *route_round_robin(struct fleet *f)
{
    for (uint32_t i = 1; i <= f->config->replicas; i++) {
        struct replica *r = &f->replicas[(f->last_replica + i) % f->config->replicas];
        if (!r->draining) {
            f->last_replica = r->index;
            return r;
        }
    }
    return NULL;
}

/* The replica that gets the request; NULL when all are draining. */
static struct replica *route(struct fleet *f, const struct request *request)
{
    struct replica *r = NULL;
    switch (f->config->router) {
    case NAIVE_ROUND_ROBIN:
        r = route_round_robin(f);
        break;
    case NAIVE_LEAST_LOADED:
        r = route_least_loaded(f);
        break;
    default:
        r = &f->replicas[f->config->route(f->config->route_self, request)];
        check(!r->draining);
    }
    if (r) {
        r->dispatch = ++f->dispatches;
    }
    return r;
}

static void arrive_central(struct fleet *f, struct sequence *s)
{
    int64_t inside = f->central.count;
    int64_t places = 0;
    for (uint32_t i = 0; i < f->config->replicas; i++) {
        if (!f->replicas[i].draining) {
            places++;
            inside += load(&f->replicas[i]);
        }
    }
    if (is_full(f->engine, inside, places)) {
        report_end(f, s, OUTCOME_REFUSED);
        return;
    }
    waiting_insert(f->engine, &f->central, s, false);
    for (uint32_t i = 0; i < f->config->replicas; i++) {
        struct replica *r = &f->replicas[i];
        if (!r->draining && r->step_ps == TIME_NEVER) {
            r->step_ps = f->now_ps;
            return;
        }
    }
}

static void arrive(struct fleet *f, struct sequence *s)
{
    /* No replica could ever serve it, so the router is not asked. */
    if (is_unservable(f->engine, &s->record.request)) {
        report_end(f, s, OUTCOME_UNSERVABLE);
        return;
    }
    if (f->config->router == NAIVE_CENTRAL_QUEUE) {
        arrive_central(f, s);
        return;
    }
    struct replica *r = route(f, &s->record.request);
    if (!r) {
        report_end(f, s, OUTCOME_REFUSED);
        return;
    }
    s->record.replica = r->index;
    if (is_full(f->engine, load(r), 1)) {
        report_end(f, s, OUTCOME_REFUSED);
    } else {
        waiting_insert(f->engine, &r->waiting, s, false);
        if (r->step_ps == TIME_NEVER) {
            r->step_ps = f->now_ps;
        }
    }
}

/* The iteration in flight keeps its duration; the sequence leaves it without a trace. */
static void cancel(struct fleet *f, struct sequence *s)
{
    if (s->place == PLACE_WAITING) {
        waiting_remove(s);
    } else if (s->place == PLACE_RUNNING) {
        running_remove(&f->replicas[s->record.replica], s);
    } else {
        return;
    }
    report_end(f, s, OUTCOME_CANCELLED);
}

static void drain(struct fleet *f, struct replica *r)
{
    r->draining = true;
    release_if_done(f, r);
}

static void gauge(const struct fleet *f, struct naive_gauge *g)
{
    *g = (struct naive_gauge){.waiting = (uint64_t)f->central.count};
    for (uint32_t i = 0; i < f->config->replicas; i++) {
        const struct replica *r = &f->replicas[i];
        g->running += (uint64_t)r->running.count;
        g->waiting += (uint64_t)r->waiting.count;
        g->kv_blocks += r->cache.referenced;
        g->kv_blocks_max = larger(g->kv_blocks_max, r->cache.referenced);
    }
}

/* ---- the loop over instants ---- */

struct cursor {
    size_t cancel, drain, gauge;
};

static int64_t next_instant(const struct fleet *f, const struct cursor *at)
{
    const struct naive_config *c = f->config;
    int64_t t = TIME_NEVER;
    const struct sequence *next = TAILQ_FIRST(&f->future);
    if (next) {
        t = next->record.request.arrival_ps;
    }
    if (at->cancel < c->cancel_count) {
        t = smaller(t, c->cancels[at->cancel].time_ps);
    }
    if (at->drain < c->drain_count) {
        t = smaller(t, c->drains[at->drain].time_ps);
    }
    for (uint32_t i = 0; i < c->replicas; i++) {
        t = smaller(t, f->replicas[i].step_ps);
    }
    return t;
}

static void advance(struct fleet *f, int64_t t)
{
    struct naive_gauge g;
    gauge(f, &g);
    int64_t dt = t - f->now_ps;
    check(dt >= 0);
    f->result->running_ps += (int128)g.running * dt;
    f->result->waiting_ps += (int128)g.waiting * dt;
    f->result->blocks_ps += (int128)g.kv_blocks * dt;
    f->now_ps = t;
    check_context(t, -1);
}

/* Everything that happens at t: arrivals, cancels, steps by replica, timers. */
static void run_instant(struct fleet *f, struct cursor *at, int64_t t)
{
    const struct naive_config *c = f->config;
    advance(f, t);
    struct sequence *next;
    while ((next = TAILQ_FIRST(&f->future)) && next->record.request.arrival_ps == t) {
        TAILQ_REMOVE(&f->future, next, link);
        arrive(f, next);
    }
    while (at->cancel < c->cancel_count && c->cancels[at->cancel].time_ps == t) {
        cancel(f, &f->sequences[c->cancels[at->cancel++].id]);
    }
    for (uint32_t i = 0; i < c->replicas; i++) {
        if (f->replicas[i].step_ps == t) {
            step(f, &f->replicas[i]);
        }
    }
    while (at->drain < c->drain_count && c->drains[at->drain].time_ps == t) {
        drain(f, &f->replicas[c->drains[at->drain++].replica]);
    }
}

/* Whoever is in flight, in order of id. */
static void cut(struct fleet *f)
{
    f->now_ps = f->config->cut_ps;
    for (size_t i = 0; i < f->config->request_count; i++) {
        struct sequence *s = &f->sequences[i];
        if (s->place == PLACE_WAITING) {
            waiting_remove(s);
            report_end(f, s, OUTCOME_IN_FLIGHT);
        } else if (s->place == PLACE_RUNNING) {
            running_remove(&f->replicas[s->record.replica], s);
            report_end(f, s, OUTCOME_IN_FLIGHT);
        }
    }
}

static void run_all(struct fleet *f)
{
    const struct naive_config *c = f->config;
    struct cursor at = {0};
    for (;;) {
        int64_t t = next_instant(f, &at);
        int64_t timer = at.gauge < c->gauge_count ? c->gauge_times_ps[at.gauge] : TIME_NEVER;
        if (c->cut_ps > 0 && c->cut_ps < t && c->cut_ps < timer) {
            cut(f);
            return;
        }
        if (timer < t) { /* a gauge comes after everything of its instant */
            gauge(f, &f->result->gauges[at.gauge++]);
        } else if (t == TIME_NEVER) {
            return;
        } else {
            run_instant(f, &at, t);
            f->result->end_ps = t;
        }
    }
}

/* All arrivals that wait for nobody's end. */
static void futures_init(struct fleet *f)
{
    const struct naive_config *c = f->config;
    TAILQ_INIT(&f->future);
    for (size_t i = 0; i < c->request_count; i++) {
        bool linked = false;
        for (size_t k = 0; k < c->link_count; k++) {
            linked |= c->links[k].id == i;
        }
        if (!linked) {
            TAILQ_INSERT_TAIL(&f->future, &f->sequences[i], link);
        }
    }
}

static void fleet_init(struct fleet *f, const struct naive_config *c, struct naive_result *result)
{
    *f = (struct fleet){
        .config = c, .engine = &c->engine, .result = result, .last_replica = c->replicas - 1};
    f->window = c->step->type->window ? c->step->type->window(c->step->model) : 0;
    f->sequences = memory_zero(c->request_count + 1, sizeof(*f->sequences));
    f->scratch = memory_zero(c->request_count + 1, sizeof(struct sequence *));
    f->replicas = memory_zero(c->replicas, sizeof(*f->replicas));
    TAILQ_INIT(&f->central.list);
    for (uint32_t i = 0; i < c->replicas; i++) {
        f->replicas[i].index = i;
        f->replicas[i].step_ps = TIME_NEVER;
        naive_cache_init(&f->replicas[i].cache, &c->engine, &f->contents, &f->result->story);
        TAILQ_INIT(&f->replicas[i].running.list);
        TAILQ_INIT(&f->replicas[i].waiting.list);
    }
    for (size_t i = 0; i < c->request_count; i++) {
        check(c->requests[i].id == i);
        f->sequences[i].target = c->requests[i].prompt_tokens;
        f->sequences[i].short_hit = -1;
        f->sequences[i].kv.request = &c->requests[i];
        f->sequences[i].record = (struct request_record){.request = c->requests[i],
                                                         .admitted_ps = TIME_NONE,
                                                         .first_token_ps = TIME_NONE,
                                                         .end_ps = TIME_NONE,
                                                         .replica = UINT32_MAX};
    }
    futures_init(f);
}

static void fleet_free(struct fleet *f)
{
    for (uint32_t i = 0; i < f->config->replicas; i++) {
        struct replica *r = &f->replicas[i];
        check(load(r) == 0 && r->cache.referenced == 0);
        naive_cache_free(&r->cache);
    }
    for (size_t i = 0; i < f->config->request_count; i++) {
        naive_holder_free(&f->sequences[i].kv);
    }
    naive_contents_free(&f->contents);
    free(f->sequences);
    free(f->scratch);
    free(f->replicas);
}

static struct naive_result *result_create(const struct naive_config *c)
{
    struct naive_result *result = memory_zero(1, sizeof(*result));
    digest_init(&result->digest);
    digest_init(&result->prefix);
    histogram_init(&result->ttft);
    histogram_init(&result->tpot);
    histogram_init(&result->itl);
    histogram_init(&result->e2e);
    histogram_init(&result->queue);
    result->records = memory_zero(c->request_count + 1, sizeof(*result->records));
    result->gauges = memory_zero(c->gauge_count + 1, sizeof(*result->gauges));
    result->peak_blocks = memory_zero(c->replicas, sizeof(*result->peak_blocks));
    result->released_ps = memory_zero(c->replicas, sizeof(*result->released_ps));
    for (uint32_t i = 0; i < c->replicas; i++) {
        result->released_ps[i] = TIME_NONE;
    }
    return result;
}

struct naive_result *naive_run(const struct naive_config *config)
{
    struct fleet f;
    check(config->replicas > 0);
    check(config->engine.max_num_batched_tokens >= config->engine.max_num_seqs);
    fleet_init(&f, config, result_create(config));
    run_all(&f);
    /* Only what every replica's drain left behind in the central queue has no end. */
    check(config->cut_ps > 0 ||
          f.result->record_count + (size_t)f.central.count == config->request_count);
    fleet_free(&f);
    return f.result;
}

void naive_free(struct naive_result *result)
{
    if (result) {
        free(result->records);
        free(result->gauges);
        free(result->peak_blocks);
        free(result->released_ps);
        free(result);
    }
}
