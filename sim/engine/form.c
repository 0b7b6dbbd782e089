#include "sim/engine/form.h"

#include "sim/base/arena.h"
#include "sim/base/check.h"
#include "sim/engine/finish.h"
#include "sim/engine/replica.h"
#include "sim/engine/replica_prefix.h"

static struct sequence *at(const struct replica *r, uint32_t index)
{
    return sequence_at(r->engine->sequences, index);
}

/* Whom to preempt: the last admitted, or by priority the last in the order of the queue. */
static uint32_t preempt_choose(const struct replica *r)
{
    uint32_t victim = r->run.tail;
    if (r->engine->by_priority) {
        for (uint32_t i = r->run.head; i != SEQUENCE_NONE; i = at(r, i)->next) {
            victim = sequence_precedes(at(r, victim), at(r, i)) ? i : victim;
        }
    }
    return victim;
}

/* A running sequence gives up its blocks (extra of them taken in this very pass) and goes back to
 * the queue, to compute its prompt and tokens so far again. */
static void preempt(struct replica *r, uint32_t index, int64_t extra, int64_t t)
{
    struct sequence *s = at(r, index);
    if (s->phase == SEQUENCE_DECODE) {
        finish_remove(r->finish, r->decodes--, index);
        replica_decode_leave(r, index, 0);
        s->last_token_ps = t; /* it emitted at this very boundary */
    } else {
        debug_check(index == r->prefill_head);
        r->prefill_head = SEQUENCE_NONE;
    }
    int64_t blocks = kv_blocks(&r->kv, s->stored) + extra;
    if (r->prefix != NULL) {
        blocks = replica_prefix_leave(r, index, blocks, 0, false);
    }
    kv_give(&r->kv, blocks);
    s->high = s->stored > s->high ? s->stored : s->high;
    s->stored = 0;
    s->target = s->record.request.prompt_tokens + s->record.emitted_tokens;
    s->phase = SEQUENCE_WAITING;
    s->record.preemptions++;
    sequence_list_remove(r->engine->sequences, &r->run, index);
    if (r->engine->by_priority) {
        sequence_list_insert(r->engine->sequences, &r->wait, index, true);
    } else {
        sequence_list_push_head(r->engine->sequences, &r->wait, index);
    }
    struct obs obs = {.kind = OBS_PREEMPT,
                      .pool = r->engine->pool,
                      .replica = r->launch,
                      .time_ps = t,
                      .u.record = &s->record};
    engine_emit(r->engine, &obs);
}

static bool needs_block_now(const struct replica *r, const struct sequence *s)
{
    return (s->stored + (r->iteration - s->start_iteration)) % r->kv.block_size == 0;
}

/* Whether it matters in this pass in which order sequences fill their blocks. */
static bool watch_begin(const struct replica *r)
{
    bool watch = r->prefix != NULL && r->prefix->watch;
    if (watch) {
        r->prefix->watch = false; /* until a turn says otherwise */
    }
    return watch;
}

/* Takes blocks for the sequence at index, preempting as long as they are not there; false when that
 * hit the sequence itself. passed: it and those before it in the list may have taken a block in
 * this pass. */
static bool take_or_preempt(struct replica *r, uint32_t index, int64_t need, int64_t t,
                            uint32_t *next)
{
    while (kv_available(&r->kv) < need) {
        uint32_t victim = preempt_choose(r);
        const struct sequence *v = at(r, victim);
        /* By priority the victim may stand before us in the list and have its block already. */
        bool earlier = false;
        for (uint32_t i = at(r, index)->previous; i != SEQUENCE_NONE && !earlier;
             i = at(r, i)->previous) {
            earlier = i == victim;
        }
        int64_t extra = earlier && needs_block_now(r, v) ? 1 : 0;
        if (victim == *next) {
            *next = v->next;
        }
        preempt(r, victim, extra, t);
        if (victim == index) {
            return false;
        }
    }
    kv_take(&r->kv, need);
    return true;
}

/* Blocks are short: gives them out one sequence at a time in order of admission, preempting for
 * whoever cannot have his. Returns the chunk of the prefill that goes on. */
static uint32_t form_short_of_blocks(struct replica *r, int64_t t)
{
    uint32_t chunk = 0;
    uint32_t next;
    bool watch = watch_begin(r);
    for (uint32_t index = r->run.head; index != SEQUENCE_NONE; index = next) {
        const struct sequence *s = at(r, index);
        next = s->next;
        if (s->phase == SEQUENCE_DECODE) {
            bool stays = !needs_block_now(r, s) || take_or_preempt(r, index, 1, t, &next);
            if (watch && stays) {
                replica_prefix_turn(r, index, 1);
            }
            continue;
        }
        uint32_t rest = s->target - s->stored;
        uint32_t budget = r->engine->max_num_batched_tokens - r->decodes;
        chunk = rest < budget ? rest : budget;
        int64_t need = kv_blocks(&r->kv, (int64_t)s->stored + chunk) - kv_blocks(&r->kv, s->stored);
        if (!take_or_preempt(r, index, need, t, &next)) {
            chunk = 0;
        } else if (watch) {
            replica_prefix_turn(r, index, chunk);
        }
    }
    kv_tick(&r->kv);
    return chunk;
}

/* Blocks are there for everyone: gives them out. */
static void form_with_blocks(struct replica *r, int64_t need, uint32_t chunk)
{
    if (watch_begin(r)) {
        need = 0;
        for (uint32_t index = r->run.head; index != SEQUENCE_NONE; index = at(r, index)->next) {
            const struct sequence *s = at(r, index);
            if (s->phase == SEQUENCE_DECODE) {
                kv_take(&r->kv, needs_block_now(r, s) ? 1 : 0);
            } else {
                kv_take(&r->kv, kv_blocks(&r->kv, (int64_t)s->stored + chunk) -
                                    kv_blocks(&r->kv, s->stored));
            }
            replica_prefix_turn(r, index, s->phase == SEQUENCE_DECODE ? 1 : chunk);
        }
    }
    kv_take(&r->kv, need);
    kv_tick(&r->kv);
}

/* The running part of the iteration: every decode takes one token, a prefill that goes on its next
 * chunk. (At most one goes on: while it does it takes all the budget, so nobody is admitted behind
 * it.) Returns whether somebody was preempted. */
static bool form_running(struct replica *r, int64_t t, uint32_t *budget)
{
    uint32_t chunk = 0;
    int64_t need = kv_need_now(&r->kv);
    *budget = r->engine->max_num_batched_tokens - r->decodes;
    if (r->prefill_head != SEQUENCE_NONE) {
        const struct sequence *s = at(r, r->prefill_head);
        debug_check(r->prefill_head == r->run.tail);
        uint32_t rest = s->target - s->stored;
        chunk = rest < *budget ? rest : *budget;
        need += kv_blocks(&r->kv, (int64_t)s->stored + chunk) - kv_blocks(&r->kv, s->stored);
    }
    bool fits = need <= kv_available(&r->kv);
    if (fits) {
        form_with_blocks(r, need, chunk);
    } else {
        chunk = form_short_of_blocks(r, t);
    }
    r->last_chunk = chunk;
    *budget -= chunk;
    return !fits;
}

/* Room in the per-sequence arrays for one more: the one place where a bigger batch costs memory. */
static void seats_reserve(struct replica *r)
{
    if (r->run.count == r->seats) {
        r->seats = r->seats == 0 ? 32 : 2 * r->seats;
        r->finish = memory_grow(r->finish, r->seats * sizeof *r->finish);
        r->outcomes = memory_grow(r->outcomes, r->seats * sizeof *r->outcomes);
        if (r->engine->window > 0) {
            r->saturate = memory_grow(r->saturate, r->seats * sizeof *r->saturate);
        }
    }
}

/* The head of a queue joins the batch with a chunk; match: what of it is cached (with prefix
 * caching). */
static void admit(struct replica *r, struct sequence_list *queue, int64_t t, uint32_t chunk,
                  const struct prefix_match *match)
{
    uint32_t index = queue->head;
    struct sequence *s = at(r, index);
    seats_reserve(r);
    sequence_list_remove(r->engine->sequences, queue, index);
    sequence_list_push_tail(r->engine->sequences, &r->run, index);
    s->phase = SEQUENCE_PREFILL;
    if (r->prefill_head == SEQUENCE_NONE) {
        r->prefill_head = index;
    }
    r->last_chunk = chunk;
    if (r->prefix == NULL) {
        kv_take(&r->kv, kv_blocks(&r->kv, chunk));
    }
    if (s->record.admitted_ps == TIME_NONE) {
        s->slot = r->slot;
        s->record.pool = r->engine->pool;
        s->record.replica = r->launch;
        s->record.admitted_ps = t;
        struct obs obs = {.kind = OBS_ADMIT,
                          .pool = r->engine->pool,
                          .replica = r->launch,
                          .time_ps = t,
                          .u.record = &s->record};
        engine_emit(r->engine, &obs);
    }
    if (r->prefix != NULL) {
        replica_prefix_admit(r, index, match, chunk, t);
    }
}

/* Whether the head of a queue fits as a whole, with `budget` tokens left; *rest: the tokens it has
 * to compute. */
static bool head_fits(struct replica *r, uint32_t index, uint32_t budget,
                      struct prefix_match *match, uint32_t *rest)
{
    uint32_t target = at(r, index)->target;
    *rest = target;
    if (r->prefix != NULL) {
        bool fits = replica_prefix_fits(r, index, budget, match);
        *rest = target - match->blocks * r->engine->block_size;
        return fits;
    }
    return kv_blocks(&r->kv, target) <= kv_available(&r->kv) &&
           (target <= budget || r->engine->chunked_prefill);
}

/* Waiting sequences in order, its own queue before the pool's, while budget, seats and KV allow. A
 * head that does not fit blocks those behind it. */
static void form_admissions(struct replica *r, int64_t t, uint32_t budget)
{
    struct sequence_list *central = r->draining ? NULL : r->engine->central;
    struct prefix_match match;
    r->head_may_grow = false;
    if (r->wait.count == 0 && (central == NULL || central->count == 0)) {
        return; /* as mostly */
    }
    while (budget > 0 && r->run.count < r->engine->max_num_seqs) {
        struct sequence_list *queue = r->wait.count > 0 ? &r->wait : central;
        if (queue == NULL || queue->count == 0) {
            return;
        }
        uint32_t rest;
        if (!head_fits(r, queue->head, budget, &match, &rest)) {
            return;
        }
        uint32_t chunk = rest < budget ? rest : budget;
        budget -= chunk;
        admit(r, queue, t, chunk, &match);
    }
}

static int64_t chunk_of(const struct replica *r, uint32_t index, const struct sequence *s)
{
    return index == r->run.tail ? r->last_chunk : s->target - s->stored;
}

/* A chunk's part of the batch within the window w: what it reads, and query-key pairs; a token at
 * position p has min(p + 1, w) keys. Affine while the chunk lies wholly below or wholly beyond w.
 */
static void compose_window(struct step_batch *batch, int64_t stored, int64_t chunk, int64_t window)
{
    int64_t below = stored >= window ? 0 : window - stored < chunk ? window - stored : chunk;
    batch->prefill_window_kv += stored < window ? stored : window;
    batch->prefill_window_pairs +=
        below * stored + below * (below + 1) / 2 + (chunk - below) * window;
    if (below == chunk) {
        batch->prefill_window_growth += chunk;
        batch->prefill_window_squares += chunk * chunk;
    }
}

static void compose_windows(const struct replica *r, struct step_batch *batch)
{
    batch->decode_growing = r->growing;
    batch->decode_window_kv = r->window_kv;
    batch->prefill_window_kv = batch->prefill_window_growth = 0;
    batch->prefill_window_pairs = batch->prefill_window_squares = 0;
    for (uint32_t index = r->prefill_head; index != SEQUENCE_NONE;) {
        const struct sequence *s = at(r, index);
        compose_window(batch, s->stored, chunk_of(r, index, s), r->engine->window);
        index = s->next;
    }
}

static void batch_compose(struct replica *r)
{
    uint32_t prefills = 0, tokens = 0;
    int64_t kv = 0, pairs = 0, squares = 0;
    for (uint32_t index = r->prefill_head; index != SEQUENCE_NONE;) {
        const struct sequence *s = at(r, index);
        int64_t chunk = chunk_of(r, index, s);
        prefills++;
        tokens += (uint32_t)chunk;
        kv += s->stored;
        pairs += chunk * s->stored + chunk * (chunk + 1) / 2;
        squares += chunk * chunk;
        index = s->next;
    }
    struct step_batch *batch = &r->batch; /* member by member: much of it stays zero all the time */
    batch->decodes = r->decodes;
    batch->prefills = prefills;
    batch->prefill_tokens = tokens;
    batch->decode_kv = r->decode_kv;
    batch->prefill_kv = kv;
    batch->prefill_pairs = pairs;
    batch->prefill_squares = squares;
    if (r->engine->window > 0) {
        compose_windows(r, batch);
    }
}

bool form_batch(struct replica *r, int64_t t)
{
    bool preempted = false;
    do {
        uint32_t budget;
        preempted = form_running(r, t, &budget);
        if (!preempted) {
            form_admissions(r, t, budget);
        }
        /* A lone sequence always fits (engine_can_serve), so this ends. */
    } while (preempted && r->run.count == 0);
    kv_mark(&r->kv);
    batch_compose(r);
    return preempted;
}

/* Blocks that the iterations 1 … n−1 of the span take at their starts. */
static int64_t span_blocks(const struct replica *r, uint32_t n)
{
    int64_t blocks = kv_need(&r->kv, n - 1);
    if (r->prefill_head != SEQUENCE_NONE) {
        int64_t stored = at(r, r->prefill_head)->stored;
        blocks += kv_blocks(&r->kv, stored + (int64_t)n * r->last_chunk) -
                  kv_blocks(&r->kv, stored + r->last_chunk);
    }
    return blocks;
}

/* The most iterations, up to n, whose blocks are there. The cheap bound is nearly always enough. */
static uint32_t span_that_fits(const struct replica *r, uint32_t n)
{
    int64_t available = kv_available(&r->kv);
    int64_t bound =
        r->decodes * kv_blocks(&r->kv, n) + kv_blocks(&r->kv, (int64_t)n * r->last_chunk);
    if (bound <= available || span_blocks(r, n) <= available) {
        return n;
    }
    uint32_t fits = 1, too_many = n;
    while (too_many - fits > 1) {
        uint32_t middle = fits + (too_many - fits) / 2;
        if (span_blocks(r, middle) <= available) {
            fits = middle;
        } else {
            too_many = middle;
        }
    }
    return fits;
}

uint32_t form_span(const struct replica *r, bool preempted)
{
    uint64_t n = r->engine->span_max < r->law.valid_n ? r->engine->span_max : r->law.valid_n;
    if (preempted || n <= 1) {
        return 1;
    }
    if (r->prefix != NULL && (r->prefix->watch || r->head_may_grow)) {
        return 1; /* what is cached may matter at the next start */
    }
    if (r->decodes > 0 && r->finish[0].iteration - r->iteration < n) {
        n = r->finish[0].iteration - r->iteration;
    }
    if (r->growing > 0 && r->saturate[0].iteration - r->iteration < n) {
        n = r->saturate[0].iteration - r->iteration;
    }
    if (r->prefill_head != SEQUENCE_NONE) {
        const struct sequence *s = at(r, r->prefill_head);
        uint32_t rest = s->target - s->stored;
        if (r->prefill_head != r->run.tail || rest <= r->last_chunk) {
            return 1; /* a prefill reaches its target in this iteration */
        }
        uint32_t whole = (rest - 1) / r->last_chunk;
        n = whole < n ? whole : n;
        if (s->stored < r->engine->window) {
            uint32_t below = (r->engine->window - s->stored) / r->last_chunk;
            n = below < 1 ? 1 : below < n ? below : n;
        }
    }
    return n > 1 ? span_that_fits(r, (uint32_t)n) : 1;
}
