#include "sim/engine/replica.h"

#include <stdlib.h>

#include "sim/base/arena.h"
#include "sim/base/check.h"
#include "sim/engine/finish.h"
#include "sim/engine/form.h"
#include "sim/engine/replica_prefix.h"

void replica_init(struct replica *r, const struct engine *engine, uint32_t slot, uint32_t launch)
{
    *r = (struct replica){
        .engine = engine,
        .launch = launch,
        .slot = slot,
        .next_ps = TIME_NEVER,
        .run = sequence_list_empty(),
        .wait = sequence_list_empty(),
        .prefill_head = SEQUENCE_NONE,
    };
    kv_init(&r->kv, engine->num_gpu_blocks, engine->block_size);
    if (engine->prefix_caching) {
        r->prefix = prefix_cache_create(engine->block_size, engine->num_gpu_blocks,
                                        engine->listener != NULL);
    }
}

void replica_free(struct replica *r)
{
    free(r->finish);
    free(r->saturate);
    free(r->outcomes);
    prefix_cache_free(r->prefix);
    kv_free(&r->kv);
}

void replica_forget(const struct replica *r)
{
    const struct prefix_listener *listener = r->engine->listener;
    if (r->prefix != NULL && listener != NULL) {
        listener->forget(listener->self, r->slot);
    }
}

bool replica_has_room(const struct replica *r)
{
    int64_t queue = r->engine->max_queue;
    return queue == INT64_MAX ||
           (int64_t)replica_in_flight(r) < (int64_t)r->engine->max_num_seqs + queue;
}

static void report(const struct replica *r, enum obs_kind kind, int64_t t,
                   const struct request_record *record)
{
    struct obs obs = {.kind = kind,
                      .pool = r->engine->pool,
                      .replica = r->launch,
                      .time_ps = t,
                      .u.record = record};
    engine_emit(r->engine, &obs);
}

static struct sequence *at(const struct replica *r, uint32_t index)
{
    return sequence_at(r->engine->sequences, index);
}

static int64_t law_time(const struct step_law *law, uint32_t n)
{
    if (n == 1) {
        check(law->base_ps > 0);
        return law->base_ps;
    }
    int64_t linear, ramp, sum;
    int64_t pairs = (int64_t)((uint64_t)n * (n - 1) >> 1);
    bool overflow = __builtin_mul_overflow(law->base_ps, (int64_t)n, &linear);
    overflow |= __builtin_mul_overflow(law->slope_ps, pairs, &ramp);
    overflow |= __builtin_add_overflow(linear, ramp, &sum);
    check_limit(!overflow, "%u iterations of %lld + %lld i ps pass the clock's 106 days", n,
                (long long)law->base_ps, (long long)law->slope_ps);
    check(sum > 0);
    return sum;
}

static void law_advance(struct step_law *law, uint32_t k)
{
    law->base_ps += law->slope_ps * (int64_t)k;
}

/* Reports k ≤ span iterations as one run of equal composition. */
static void report_steps(const struct replica *r, uint32_t k, int64_t elapsed_ps)
{
    int64_t work_ps = r->work_ps < 0 ? elapsed_ps : r->work_ps * (int64_t)k;
    struct engine_tally *tally = r->engine->tally;
    tally->spans++;
    tally->iterations += k;
    tally->work_ps += work_ps;
    int64_t decode_ps = elapsed_ps;
    if (r->batch.prefills > 0) {
        decode_ps = r->batch.decodes > 0 ? law_time(&r->decode_law, k) : 0;
    }
    struct obs_steps steps = {
        .start_ps = r->origin_ps,
        .end_ps = time_add(r->origin_ps, elapsed_ps),
        .base_ps = r->law.base_ps,
        .slope_ps = r->law.slope_ps,
        .count = k,
        .decodes = r->decodes,
        .decode_tokens = r->batch.decodes,
        .prefill_tokens = r->batch.prefill_tokens,
        .running = r->run.count,
        .decode_ps = decode_ps,
        .work_ps = work_ps,
    };
    struct obs obs = {.kind = OBS_STEPS,
                      .pool = r->engine->pool,
                      .replica = r->launch,
                      .time_ps = steps.end_ps,
                      .u.steps = &steps};
    engine_emit(r->engine, &obs);
}

/* Stores `tokens` more of a prefill. Prompt tokens beyond anything it ever had stored are computed
 * for the first time; the rest is recomputation after a preemption. */
static void prefill_store(struct sequence *s, uint32_t tokens)
{
    uint32_t prompt = s->record.request.prompt_tokens;
    uint32_t from = s->stored > s->high ? s->stored : s->high;
    uint32_t to = s->stored + tokens < prompt ? s->stored + tokens : prompt;
    uint32_t first_time = to > from ? to - from : 0;
    s->record.computed_tokens += first_time;
    s->record.recomputed_tokens += tokens - first_time;
    s->stored += tokens;
}

/* What the prefills of the batch stored in k iterations, and the blocks they took for it: with the
 * iteration in flight after them (their next chunk), or without when the span is whole. */
static void settle_prefills(struct replica *r, uint32_t k, bool whole)
{
    for (uint32_t index = r->prefill_head; index != SEQUENCE_NONE;) {
        struct sequence *s = at(r, index);
        bool last = index == r->run.tail;
        uint32_t chunk = last ? r->last_chunk : s->target - s->stored;
        debug_check(k == 1 || (last && index == r->prefill_head));
        int64_t held = kv_blocks(&r->kv, (int64_t)s->stored + chunk);
        prefill_store(s, chunk * k);
        kv_take(&r->kv, kv_blocks(&r->kv, (int64_t)s->stored + (whole ? 0 : chunk)) - held);
        index = s->next;
    }
}

/* Accounts the first k iterations of the span, which take elapsed_ps, and moves its origin behind
 * them. The one primitive of step events, gauges, interval edges and cuts. Blocks: the iteration in
 * flight has its own already, so k < span takes those of the k iterations started since, and the
 * whole span (after which the batch is formed anew) those of k − 1. */
static inline void settle(struct replica *r, uint32_t k, int64_t elapsed_ps, bool whole)
{
    debug_check(whole == (k == r->span));
    report_steps(r, k, elapsed_ps);
    settle_prefills(r, k, whole);
    kv_start(&r->kv, whole ? k - 1 : k);
    kv_mark(&r->kv);
    r->origin_ps += elapsed_ps;
    r->iteration += k;
    r->span -= k;
    r->decode_kv += (int64_t)k * r->decodes;
    r->window_kv += (int64_t)k * r->growing;
    if (!whole) {
        r->batch = step_batch_advance(r->batch, k);
        law_advance(&r->law, k);
        if (r->batch.prefills > 0) {
            law_advance(&r->decode_law, k);
        }
    }
}

/* Settles the iterations that end at or before t, but never the last of the span: that is the step
 * event's. */
static void settle_until(struct replica *r, int64_t t)
{
    if (r->running && r->span > 1) {
        uint32_t k = step_law_complete(&r->law, r->span - 1, t - r->origin_ps);
        if (k > 0) {
            settle(r, k, law_time(&r->law, k), false);
        }
    }
}

void replica_settle(struct replica *r, int64_t t)
{
    debug_check(!r->running || t < r->next_ps);
    settle_until(r, t);
}

int64_t replica_kv_used(const struct replica *r, int64_t t)
{
    if (!r->running || r->span <= 1) {
        return r->kv.used;
    }
    uint32_t k = step_law_complete(&r->law, r->span - 1, t - r->origin_ps);
    int64_t used = r->kv.used + kv_need(&r->kv, k);
    if (r->prefill_head != SEQUENCE_NONE) { /* alone, as more than one iteration is left */
        int64_t stored = (int64_t)at(r, r->prefill_head)->stored + r->last_chunk;
        used += kv_blocks(&r->kv, stored + (int64_t)k * r->last_chunk) - kv_blocks(&r->kv, stored);
    }
    return used;
}

/* The span ends with its first k iterations, which take elapsed_ps. */
static void span_cut(struct replica *r, uint32_t k, int64_t elapsed_ps)
{
    if (k < r->span) {
        r->span = k;
        r->next_ps = time_add(r->origin_ps, elapsed_ps);
    }
}

static void span_cut_at_once(struct replica *r)
{
    span_cut(r, 1, law_time(&r->law, 1));
}

void replica_settle_edge(struct replica *r, int64_t t)
{
    replica_settle(r, t);
    if (r->running && r->batch.decodes > 0 && r->batch.prefills > 0) {
        span_cut_at_once(r);
    }
}

void replica_sync(const struct replica *r, uint32_t index)
{
    struct sequence *s = at(r, index);
    if (s->phase == SEQUENCE_DECODE) {
        uint32_t done = (uint32_t)(r->iteration - s->start_iteration);
        s->start_iteration = r->iteration;
        s->stored += done;
        s->record.emitted_tokens += done;
    }
}

static int64_t within_window(const struct replica *r, uint32_t stored)
{
    return stored < r->engine->window ? stored : r->engine->window;
}

void replica_decode_join(struct replica *r, uint32_t index)
{
    struct sequence *s = at(r, index);
    uint32_t left = s->record.request.output_tokens - s->record.emitted_tokens;
    s->phase = SEQUENCE_DECODE;
    s->start_iteration = r->iteration;
    finish_push(r->finish, r->decodes++, r->iteration + left, index);
    r->decode_kv += s->stored;
    kv_join(&r->kv, s->stored);
    r->window_kv += within_window(r, s->stored);
    if (s->stored < r->engine->window) {
        uint64_t full = r->iteration + (r->engine->window - s->stored);
        finish_push(r->saturate, r->growing++, full, index);
    }
}

void replica_decode_leave(struct replica *r, uint32_t index, uint32_t in_flight)
{
    replica_sync(r, index);
    const struct sequence *s = at(r, index);
    r->decode_kv -= s->stored;
    kv_leave(&r->kv, s->stored + in_flight);
    r->window_kv -= within_window(r, s->stored);
    if (s->stored < r->engine->window) {
        finish_remove(r->saturate, r->growing--, index);
    }
}

/* Takes a running sequence that ends out of the batch and frees its blocks. in_flight: tokens it is
 * storing in an iteration that goes on without it. A decode must have left the finish heap already.
 */
static void batch_leave(struct replica *r, uint32_t index, uint32_t in_flight)
{
    const struct sequence *s = at(r, index);
    if (s->phase == SEQUENCE_DECODE) {
        replica_decode_leave(r, index, in_flight);
    } else if (index == r->prefill_head) {
        r->prefill_head = s->next;
    }
    int64_t blocks = kv_blocks(&r->kv, (int64_t)s->stored + in_flight);
    if (r->prefix != NULL) {
        blocks = replica_prefix_leave(r, index, blocks, in_flight, true);
    }
    kv_give(&r->kv, blocks);
    sequence_list_remove(r->engine->sequences, &r->run, index);
}

static void sequence_end(struct replica *r, uint32_t index, int64_t t, enum outcome outcome)
{
    struct sequence *s = at(r, index);
    s->record.end_ps = t;
    s->record.outcome = outcome;
    r->engine->tally->ended++;
    report(r, OBS_END, t, &s->record);
    sequence_release(r->engine->sequences, index);
}

/* A prefill reached its target at t: its next token comes out, and it decodes from here on. Returns
 * whether that was its first token, or its end. */
static bool prefill_complete(struct replica *r, uint32_t index, int64_t t)
{
    struct sequence *s = at(r, index);
    struct request_record *record = &s->record;
    uint32_t output = record->request.output_tokens;
    if (output > 0) {
        record->emitted_tokens++;
        if (record->emitted_tokens == 1) {
            record->first_token_ps = t;
            report(r, OBS_FIRST_TOKEN, t, record);
            if (r->prefix != NULL) {
                replica_prefix_first_token(r, index);
            }
        } else {
            struct obs gap = {.kind = OBS_GAP,
                              .pool = r->engine->pool,
                              .replica = r->launch,
                              .time_ps = t,
                              .u.gap_ps = t - s->last_token_ps};
            engine_emit(r->engine, &gap);
        }
    }
    if (record->emitted_tokens == output) {
        batch_leave(r, index, 0);
        sequence_end(r, index, t, OUTCOME_COMPLETED);
        return true;
    }
    replica_decode_join(r, index);
    return record->emitted_tokens == 1;
}

/* By request id. Shell's sort: nearly always two or three entries, and it never allocates. */
static void outcomes_sort(const struct replica *r, uint32_t count)
{
    uint32_t *who = r->outcomes, gap = 1;
    while (gap < count / 3) {
        gap = 3 * gap + 1;
    }
    for (; gap > 0; gap /= 3) {
        for (uint32_t i = gap; i < count; i++) {
            uint32_t moved = who[i], j = i;
            uint64_t id = at(r, moved)->record.request.id;
            for (; j >= gap && at(r, who[j - gap])->record.request.id > id; j -= gap) {
                who[j] = who[j - gap];
            }
            who[j] = moved;
        }
    }
}

/* Reports what the iteration that ended at t brought: last tokens of decodes, prefills that reached
 * their target; in order of request id, whatever order the heap gives. Returns whether there was an
 * end or a first token. */
static bool complete(struct replica *r, int64_t t)
{
    uint32_t count = 0;
    while (r->growing > 0 && r->saturate[0].iteration == r->iteration) {
        finish_pop(r->saturate, r->growing--);
    }
    while (r->decodes > 0 && r->finish[0].iteration == r->iteration) {
        uint32_t index = finish_pop(r->finish, r->decodes--);
        r->outcomes[count++] = index;
    }
    uint32_t index = r->prefill_head;
    while (index != SEQUENCE_NONE) {
        const struct sequence *s = at(r, index);
        if (s->stored != s->target) {
            break;
        }
        r->outcomes[count++] = index;
        index = s->next;
    }
    r->prefill_head = index;
    if (count > 1) {
        outcomes_sort(r, count);
    }
    bool visible = false;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t who = r->outcomes[i];
        if (at(r, who)->phase == SEQUENCE_DECODE) {
            batch_leave(r, who, 0);
            sequence_end(r, who, t, OUTCOME_COMPLETED);
            visible = true;
        } else {
            visible |= prefill_complete(r, who, t);
        }
    }
    return visible;
}

/* A law for the decodes alone says what they would have cost without the prefills beside them. */
static void law_slow(struct step_law *law, int64_t factor)
{
    bool overflow = __builtin_mul_overflow(law->base_ps, factor, &law->base_ps);
    overflow |= __builtin_mul_overflow(law->slope_ps, factor, &law->slope_ps);
    check_limit(!overflow, "an iteration %lld times as long passes the clock's 106 days",
                (long long)factor);
}

static void laws_set(struct replica *r)
{
    const struct step_model *model = &r->engine->model;
    model->type->law(model->model, &r->batch, &r->law);
    r->work_ps = model->type->work ? model->type->work(model->model, &r->batch) : -1;
    bool mixed = r->batch.prefills > 0 && r->batch.decodes > 0;
    if (mixed) {
        struct step_batch *alone = &r->decode_batch; /* what prefills add to it stays zero */
        alone->decodes = r->batch.decodes;
        alone->decode_kv = r->batch.decode_kv;
        alone->decode_growing = r->batch.decode_growing;
        alone->decode_window_kv = r->batch.decode_window_kv;
        model->type->law(model->model, alone, &r->decode_law);
        if (r->decode_law.valid_n < r->law.valid_n) {
            r->law.valid_n = r->decode_law.valid_n;
        }
    }
    if (r->origin_ps < r->slow_until_ps) { /* a whole factor: laws stay linear in the iteration */
        law_slow(&r->law, r->slow_factor);
        if (mixed) {
            law_slow(&r->decode_law, r->slow_factor);
        }
    }
}

void replica_step(struct replica *r, int64_t t)
{
    check_context(t, r->slot);
    debug_check(t == r->next_ps);
    if (r->running) {
        debug_check(r->origin_ps + law_time(&r->law, r->span) == t);
        settle(r, r->span, t - r->origin_ps, true);
        if (complete(r, t) && r->prefix != NULL) {
            replica_prefix_report(r);
        }
    }
    bool preempted = form_batch(r, t);
    r->running = r->run.count > 0;
    if (!r->running) {
        r->next_ps = TIME_NEVER;
        return;
    }
    r->origin_ps = t;
    laws_set(r);
    r->span = form_span(r, preempted);
    if (t < r->slow_until_ps && r->span > 1) {
        int64_t elapsed_ps;
        r->span = step_law_reach(&r->law, r->span, r->slow_until_ps - t, &elapsed_ps);
    }
    r->next_ps = time_add(t, law_time(&r->law, r->span));
}

/* Ends the span at its first boundary at or after t, if the new head of the queue could be admitted
 * there. A seat, budget or KV that is missing now is missing until the span ends. How much of the
 * head is cached turns out at that boundary: one block it needs in any case. */
static void cut_for_arrival(struct replica *r, uint32_t index, int64_t t)
{
    int64_t blocks = r->prefix != NULL ? 1 : kv_blocks(&r->kv, at(r, index)->target);
    if (r->span > 1 && r->run.count < r->engine->max_num_seqs &&
        r->batch.decodes + r->batch.prefill_tokens < r->engine->max_num_batched_tokens &&
        blocks <= kv_available(&r->kv)) {
        int64_t elapsed_ps;
        uint32_t k = step_law_reach(&r->law, r->span, t - r->origin_ps, &elapsed_ps);
        span_cut(r, k, elapsed_ps);
    }
}

void replica_enqueue(struct replica *r, uint32_t index, int64_t t)
{
    struct sequence *s = at(r, index);
    s->slot = r->slot;
    s->record.pool = r->engine->pool;
    s->record.replica = r->launch;
    sequence_list_insert(r->engine->sequences, &r->wait, index, r->engine->by_priority);
    if (!r->running) {
        r->next_ps = t;
    } else if (r->wait.head == index) {
        cut_for_arrival(r, index, t);
    }
}

void replica_offer(struct replica *r, uint32_t index, int64_t t)
{
    if (!r->running) {
        r->next_ps = t;
    } else if (r->wait.count == 0) {
        cut_for_arrival(r, index, t);
    }
}

void replica_cancel(struct replica *r, uint32_t index, int64_t t)
{
    /* A token that would come out at t itself is not sent any more: cancels precede steps. */
    settle_until(r, t - 1);
    if (r->running) {
        span_cut_at_once(r);
    }
    struct sequence *s = at(r, index);
    if (s->phase == SEQUENCE_WAITING) {
        sequence_list_remove(r->engine->sequences, &r->wait, index);
    } else if (s->phase == SEQUENCE_DECODE) {
        finish_remove(r->finish, r->decodes--, index);
        batch_leave(r, index, 1);
    } else {
        bool last = index == r->run.tail;
        batch_leave(r, index, last ? r->last_chunk : s->target - s->stored);
        if (last && r->prefill_head != SEQUENCE_NONE) {
            const struct sequence *tail = at(r, r->run.tail);
            r->last_chunk = tail->target - tail->stored;
        }
    }
    sequence_end(r, index, t, OUTCOME_CANCELLED);
    if (r->prefix != NULL) {
        replica_prefix_report(r);
    }
}
