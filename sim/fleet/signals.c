#include "sim/fleet/signals.h"

#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/check.h"

enum { SCRAPES_FIRST = 4 };

void signals_init(struct signals *s, const struct autoscaler_type *type, const void *config)
{
    *s = (struct signals){.idle_since_ps = TIME_NONE};
    if (type->signals != NULL) {
        const struct autoscaler_signal_config *c = type->signals(config);
        s->interval_ps = c->interval_ps;
        s->delay_ps = c->delay_ps;
    }
    if (type->slo != NULL) {
        s->watches = true;
        type->slo(config, &s->slo);
    }
}

void signals_free(struct signals *s)
{
    free(s->scrapes);
}

bool signals_has(const struct signals *s, int64_t t)
{
    return s->count > 0 && s->scrapes[s->count - 1].time_ps >= t;
}

void signals_add(struct signals *s, const struct signals_scrape *scrape)
{
    check(!signals_has(s, scrape->time_ps));
    /* Decisions from now on see the newest scrape of delay ago or before, and the one before it. */
    uint32_t keep = 0;
    while (keep + 2 < s->count && s->scrapes[keep + 2].time_ps <= scrape->time_ps - s->delay_ps) {
        keep++;
    }
    if (keep > 0) {
        s->count -= keep;
        memmove(s->scrapes, s->scrapes + keep, s->count * sizeof *s->scrapes);
    }
    if (s->count == s->capacity) { /* grows to what the delay holds, then never again */
        s->capacity = s->capacity == 0 ? SCRAPES_FIRST : 2 * s->capacity;
        s->scrapes = memory_grow(s->scrapes, s->capacity * sizeof *s->scrapes);
    }
    s->scrapes[s->count++] = *scrape;
}

void signals_read(const struct signals *s, struct autoscaler_signal *signal)
{
    uint32_t seen = s->count;
    while (seen > 0 && s->scrapes[seen - 1].time_ps > signal->now_ps - s->delay_ps) {
        seen--;
    }
    signal->missing = seen == 0;
    if (seen == 0) {
        return;
    }
    const struct signals_scrape *now = &s->scrapes[seen - 1];
    const struct signals_scrape *before = seen > 1 ? now - 1 : now;
    signal->in_flight = now->in_flight;
    signal->waiting = now->waiting;
    signal->waiting_late = now->waiting_late;
    signal->kv_used = now->kv_used;
    signal->seen_ps = now->time_ps;
    signal->arrived_total = now->arrived;
    signal->work_total_ps = now->work_ps;
    signal->window_ps = now->time_ps - before->time_ps;
    signal->work_ps = now->work_ps - before->work_ps;
    const struct signals_latency *a = &before->latency, *b = &now->latency;
    signal->ttft_count = b->ttft_count - a->ttft_count;
    signal->ttft_late = b->ttft_late - a->ttft_late;
    signal->ttft_hopeless = b->ttft_hopeless - a->ttft_hopeless;
    signal->tpot_count = b->tpot_count - a->tpot_count;
    signal->tpot_late = b->tpot_late - a->tpot_late;
    signal->tpot_hopeless = b->tpot_hopeless - a->tpot_hopeless;
}

void signals_idle(struct signals *s, uint64_t in_flight, uint64_t arrived,
                  struct autoscaler_signal *signal)
{
    if (in_flight > 0) {
        s->idle_since_ps = TIME_NONE;
    } else if (s->idle_since_ps == TIME_NONE || arrived != s->idle_arrived) {
        s->idle_since_ps = signal->now_ps;
    }
    s->idle_arrived = arrived;
    signal->active = in_flight > 0 || signal->starting > 0;
    signal->idle_ps = s->idle_since_ps == TIME_NONE ? 0 : signal->now_ps - s->idle_since_ps;
}

/* A chunk of one prompt, alone in its batch, after `stored` tokens. */
static struct step_batch lone_chunk(const struct engine *engine, int64_t stored, int64_t chunk)
{
    struct step_batch batch = {.prefills = 1,
                               .prefill_tokens = (uint32_t)chunk,
                               .prefill_kv = stored,
                               .prefill_pairs = chunk * stored + chunk * (chunk + 1) / 2,
                               .prefill_squares = chunk * chunk};
    int64_t window = engine->window;
    if (window > 0) {
        int64_t below = stored >= window ? 0 : window - stored < chunk ? window - stored : chunk;
        batch.prefill_window_kv = stored < window ? stored : window;
        batch.prefill_window_pairs =
            below * stored + below * (below + 1) / 2 + (chunk - below) * window;
    }
    return batch;
}

static int64_t lone_step(const struct engine *engine, const struct step_batch *batch)
{
    struct step_law law;
    engine->model.type->law(engine->model.model, batch, &law);
    return law.base_ps;
}

/* The TTFT of a request that finds an idle replica. */
static int64_t lone_ttft(const struct engine *engine, const struct request *request)
{
    int64_t total = 0;
    for (int64_t stored = 0; stored < request->prompt_tokens;) {
        int64_t left = request->prompt_tokens - stored;
        int64_t chunk =
            left < engine->max_num_batched_tokens ? left : engine->max_num_batched_tokens;
        struct step_batch batch = lone_chunk(engine, stored, chunk);
        total = time_add(total, lone_step(engine, &batch));
        stored += chunk;
    }
    return total;
}

/* Whether a request decoding alone would be over the TPOT limit too: its middle step decides. */
static bool lone_tpot_late(const struct engine *engine, const struct request *request,
                           int64_t limit_ps)
{
    int64_t stored = (int64_t)request->prompt_tokens + request->output_tokens / 2;
    int64_t window = engine->window;
    struct step_batch batch = {.decodes = 1,
                               .decode_kv = stored,
                               .decode_growing = window > 0 && stored < window ? 1 : 0,
                               .decode_window_kv =
                                   window > 0 ? (stored < window ? stored : window) : 0};
    return lone_step(engine, &batch) > limit_ps;
}

void signals_watch(struct signals *s, const struct engine *engine, const struct obs *obs)
{
    const struct request_record *record = obs->u.record;
    struct signals_latency *l = &s->latency;
    if (obs->kind == OBS_FIRST_TOKEN) {
        bool late = s->slo.ttft_ps != FIELD_INT_UNSET &&
                    record->first_token_ps - record->request.arrival_ps > s->slo.ttft_ps;
        l->ttft_count++;
        l->ttft_late += late;
        l->ttft_hopeless += late && lone_ttft(engine, &record->request) > s->slo.ttft_ps;
        return;
    }
    if (record->outcome != OUTCOME_COMPLETED || record->emitted_tokens < 2) {
        return;
    }
    bool late = s->slo.tpot_ps != FIELD_INT_UNSET &&
                record->end_ps - record->first_token_ps >
                    (int128)s->slo.tpot_ps * (record->emitted_tokens - 1);
    l->tpot_count++;
    l->tpot_late += late;
    l->tpot_hopeless += late && lone_tpot_late(engine, &record->request, s->slo.tpot_ps);
}
