#include "sim/engine/form.h"

#include "sim/base/arena.h"
#include "sim/base/check.h"
#include "sim/engine/finish.h"
#include "sim/engine/replica.h"

static struct sequence *at(const struct replica *r, uint32_t index)
{
    return sequence_at(r->engine->sequences, index);
}

/* The tail of the running list gives up its blocks and goes back to the head of the queue, to
 * compute its prompt and tokens so far again. */
static void preempt_tail(struct replica *r, int64_t t)
{
    uint32_t index = r->run.tail;
    struct sequence *s = at(r, index);
    replica_sync(r, index);
    if (s->phase == SEQUENCE_DECODE) {
        finish_remove(r->finish, r->decodes--, index);
        r->decode_kv -= s->stored;
        kv_leave(&r->kv, s->stored);
        s->last_token_ps = t; /* it emitted at this very boundary */
    } else {
        debug_check(index == r->prefill_head);
        r->prefill_head = SEQUENCE_NONE;
    }
    kv_give(&r->kv, kv_blocks(&r->kv, s->stored));
    s->high = s->stored > s->high ? s->stored : s->high;
    s->stored = 0;
    s->target = s->record.request.prompt_tokens + s->record.emitted_tokens;
    s->phase = SEQUENCE_WAITING;
    s->record.preemptions++;
    sequence_list_remove(r->engine->sequences, &r->run, index);
    sequence_list_push_head(r->engine->sequences, &r->wait, index);
    struct obs obs = {.kind = OBS_PREEMPT,
                      .pool = r->engine->pool,
                      .replica = r->launch,
                      .time_ps = t,
                      .u.record = &s->record};
    obs_emit(&r->engine->sink, &obs);
}

/* Blocks are short: gives them out one sequence at a time in order of admission, preempting from
 * the tail for whoever cannot have his. */
static void form_short_of_blocks(struct replica *r, int64_t t, uint32_t chunk)
{
    uint32_t index = r->run.head;
    while (index != SEQUENCE_NONE && index != r->prefill_head) {
        const struct sequence *s = at(r, index);
        uint64_t stored = s->stored + (r->iteration - s->start_iteration);
        if (stored % r->kv.block_size == 0) {
            bool self = false;
            while (kv_available(&r->kv) < 1 && !self) {
                self = r->run.tail == index;
                preempt_tail(r, t);
            }
            if (self) {
                break;
            }
            kv_take(&r->kv, 1);
        }
        index = at(r, index)->next;
    }
    kv_tick(&r->kv);
    if (r->prefill_head != SEQUENCE_NONE) {
        const struct sequence *s = at(r, r->prefill_head);
        int64_t need = kv_blocks(&r->kv, (int64_t)s->stored + chunk) - kv_blocks(&r->kv, s->stored);
        if (need > kv_available(&r->kv)) {
            preempt_tail(r, t);
        } else {
            kv_take(&r->kv, need);
        }
    }
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
        kv_take(&r->kv, need);
        kv_tick(&r->kv);
    } else {
        form_short_of_blocks(r, t, chunk);
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
    }
}

static void admit(struct replica *r, struct sequence_list *queue, int64_t t, uint32_t chunk)
{
    uint32_t index = queue->head;
    struct sequence *s = at(r, index);
    seats_reserve(r);
    sequence_list_remove(r->engine->sequences, queue, index);
    sequence_list_push_tail(r->engine->sequences, &r->run, index);
    kv_take(&r->kv, kv_blocks(&r->kv, chunk));
    s->phase = SEQUENCE_PREFILL;
    if (r->prefill_head == SEQUENCE_NONE) {
        r->prefill_head = index;
    }
    r->last_chunk = chunk;
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
        obs_emit(&r->engine->sink, &obs);
    }
}

/* Waiting sequences in order, its own queue before the pool's, while budget, seats and KV allow. A
 * head that does not fit blocks those behind it. */
static void form_admissions(struct replica *r, int64_t t, uint32_t budget)
{
    struct sequence_list *central = r->draining ? NULL : r->engine->central;
    while (budget > 0 && r->run.count < r->engine->max_num_seqs) {
        struct sequence_list *queue = r->wait.count > 0 ? &r->wait : central;
        if (queue == NULL || queue->count == 0) {
            return;
        }
        uint32_t target = at(r, queue->head)->target;
        if (kv_blocks(&r->kv, target) > kv_available(&r->kv) ||
            (target > budget && !r->engine->chunked_prefill)) {
            return;
        }
        uint32_t chunk = target < budget ? target : budget;
        budget -= chunk;
        admit(r, queue, t, chunk);
    }
}

static void batch_compose(struct replica *r)
{
    r->batch = (struct step_batch){.decodes = r->decodes, .decode_kv = r->decode_kv};
    uint32_t index = r->prefill_head;
    while (index != SEQUENCE_NONE) {
        const struct sequence *s = at(r, index);
        int64_t chunk = index == r->run.tail ? r->last_chunk : s->target - s->stored;
        r->batch.prefills++;
        r->batch.prefill_tokens += (uint32_t)chunk;
        r->batch.prefill_kv += s->stored;
        r->batch.prefill_pairs += chunk * s->stored + chunk * (chunk + 1) / 2;
        r->batch.prefill_squares += chunk * chunk;
        index = s->next;
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
    int64_t bound = (int64_t)r->decodes * (1 + (int64_t)n / r->kv.block_size) +
                    ((int64_t)n * r->last_chunk) / r->kv.block_size + 1;
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
    if (r->decodes > 0 && r->finish[0].iteration - r->iteration < n) {
        n = r->finish[0].iteration - r->iteration;
    }
    if (r->prefill_head != SEQUENCE_NONE) {
        const struct sequence *s = at(r, r->prefill_head);
        uint32_t rest = s->target - s->stored;
        if (r->prefill_head != r->run.tail || rest <= r->last_chunk) {
            return 1; /* a prefill reaches its target in this iteration */
        }
        uint32_t whole = (rest - 1) / r->last_chunk;
        n = whole < n ? whole : n;
    }
    return n > 1 ? span_that_fits(r, (uint32_t)n) : 1;
}
