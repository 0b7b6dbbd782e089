#include "tests/prop/support_engine.h"

#include <stdlib.h>
#include <string.h>

#include "sim/base/check.h"
#include "sim/fleet/fleet.h"

struct collect {
    struct naive_result *result;
    const struct prop_case *c;
    uint32_t *sequence_of; /* [request_count]: SEQUENCE_NONE when not in flight */
    int64_t *arrival_ps;   /* [request_count]: TIME_NEVER before it is known, TIME_NONE after */
    struct event_queue *queue;
    struct token_hash_pool *hashes; /* of the requests in flight */
};

/* Closed loops: what waited for this end will arrive. */
static void push_linked(struct collect *k, const struct request_record *ended)
{
    for (size_t i = 0; i < k->c->link_count; i++) {
        const struct naive_link *link = &k->c->links[i];
        if (link->after == ended->request.id) {
            k->arrival_ps[link->id] = time_add(ended->end_ps, link->think_ps);
            event_queue_push(k->queue, k->arrival_ps[link->id], EVENT_ARRIVAL, 0, 0);
        }
    }
}

static void take_end(struct collect *k, const struct request_record *record)
{
    struct naive_result *r = k->result;
    r->records[r->record_count++] = *record;
    r->outcomes[record->outcome]++;
    r->computed_tokens += record->computed_tokens;
    r->recomputed_tokens += record->recomputed_tokens;
    r->cached_tokens += record->cached_tokens;
    r->emitted_tokens += record->emitted_tokens;
    r->preemptions += record->preemptions;
    k->sequence_of[record->request.id] = SEQUENCE_NONE;
    push_linked(k, record);
    digest_event(&r->digest, OBS_END, record->end_ps, record->request.id,
                 record->outcome + 16 * (uint64_t)record->emitted_tokens);
    if (record->outcome != OUTCOME_COMPLETED) {
        return;
    }
    histogram_add(&r->e2e, record->end_ps - record->request.arrival_ps);
    if (record->emitted_tokens >= 2) {
        int64_t gaps = record->emitted_tokens - 1;
        int64_t ps = record->end_ps - record->first_token_ps;
        histogram_add(&r->tpot, (2 * ps + gaps) / (2 * gaps));
    }
}

static void take(void *self, const struct obs *obs)
{
    struct collect *k = self;
    struct naive_result *r = k->result;
    switch (obs->kind) {
    case OBS_ADMIT:
        digest_event(&r->digest, OBS_ADMIT, obs->time_ps, obs->u.record->request.id, obs->replica);
        histogram_add(&r->queue, obs->time_ps - obs->u.record->request.arrival_ps);
        break;
    case OBS_FIRST_TOKEN:
        digest_event(&r->digest, OBS_FIRST_TOKEN, obs->time_ps, obs->u.record->request.id,
                     obs->replica);
        histogram_add(&r->ttft, obs->time_ps - obs->u.record->request.arrival_ps);
        break;
    case OBS_PREEMPT:
        digest_event(&r->digest, OBS_PREEMPT, obs->time_ps, obs->u.record->request.id,
                     obs->u.record->emitted_tokens);
        break;
    case OBS_GAP:
        histogram_add(&r->itl, obs->u.gap_ps);
        break;
    case OBS_STEPS: {
        const struct obs_steps *s = obs->u.steps;
        r->iterations += s->count;
        r->decode_tokens += (uint64_t)s->count * s->decode_tokens;
        r->prefill_tokens += (uint64_t)s->count * s->prefill_tokens;
        r->busy_ps += s->end_ps - s->start_ps;
        r->decode_ps += s->decode_ps;
        r->work_ps += s->work_ps;
        if (s->decodes > 0) {
            histogram_add_ramp(&r->itl, s->base_ps, s->slope_ps, s->count, s->decodes);
        }
        break;
    }
    case OBS_END:
        take_end(k, obs->u.record);
        break;
    case OBS_PREFIX: {
        const struct obs_prefix *p = obs->u.prefix;
        r->lookups++;
        r->hit_tokens += p->hit_tokens;
        r->lookup_tokens += p->lookup_tokens;
        digest_event(&r->prefix, p->first, obs->time_ps, p->record->request.id,
                     (uint64_t)p->hit_tokens << 32 | p->lookup_tokens);
        break;
    }
    case OBS_REPLICA:
        if (obs->u.state->to == REPLICA_RELEASED) {
            r->released_ps[obs->replica] = obs->time_ps;
        }
        break;
    default:
        break;
    }
}

/* Kinds of timers of this harness. */
enum { TIMER_DRAIN = FLEET_TIMER_COUNT, TIMER_GAUGE, TIMER_CUT };

struct gauge_sink {
    struct naive_gauge *out;
};

static void gauge_take(void *self, const struct obs *obs)
{
    struct gauge_sink *sink = self;
    if (obs->kind == OBS_GAUGE && sink->out != NULL) {
        const struct obs_gauge *g = obs->u.gauge;
        *sink->out = (struct naive_gauge){.running = g->running,
                                          .waiting = g->waiting,
                                          .kv_blocks = g->kv_blocks,
                                          .kv_blocks_max = g->kv_blocks_max};
    }
}

static struct naive_result *result_make(const struct prop_case *c)
{
    struct naive_result *r = memory_zero(1, sizeof *r);
    r->records = memory_zero(c->request_count + 1, sizeof *r->records);
    r->peak_blocks = memory_zero(c->replicas, sizeof *r->peak_blocks);
    r->released_ps = memory_zero(c->replicas, sizeof *r->released_ps);
    r->gauges = memory_zero(c->gauge_count + 1, sizeof *r->gauges);
    for (uint32_t i = 0; i < c->replicas; i++) {
        r->released_ps[i] = TIME_NONE;
    }
    digest_init(&r->digest);
    digest_init(&r->prefix);
    histogram_init(&r->ttft);
    histogram_init(&r->tpot);
    histogram_init(&r->itl);
    histogram_init(&r->e2e);
    histogram_init(&r->queue);
    return r;
}

static void push_events(const struct prop_case *c, struct event_queue *queue, struct collect *k)
{
    for (size_t i = 0; i < c->request_count; i++) {
        k->arrival_ps[i] = c->requests[i].arrival_ps;
    }
    for (size_t i = 0; i < c->link_count; i++) {
        k->arrival_ps[c->links[i].id] = TIME_NEVER;
    }
    for (size_t i = 0; i < c->request_count; i++) {
        if (k->arrival_ps[i] != TIME_NEVER) {
            event_queue_push(queue, k->arrival_ps[i], EVENT_ARRIVAL, 0, 0);
        }
    }
    for (size_t i = 0; i < c->cancel_count; i++) {
        event_queue_push(queue, c->cancels[i].time_ps, EVENT_CANCEL, 0, c->cancels[i].id);
    }
    for (size_t i = 0; i < c->drain_count; i++) {
        event_queue_push(queue, c->drains[i].time_ps, EVENT_TIMER, TIMER_DRAIN,
                         c->drains[i].replica);
    }
    for (size_t i = 0; i < c->gauge_count; i++) {
        event_queue_push(queue, c->gauge_times_ps[i], EVENT_TIMER, TIMER_GAUGE, i);
    }
    if (c->cut_ps > 0) {
        event_queue_push(queue, c->cut_ps, EVENT_TIMER, TIMER_CUT, 0);
    }
}

/* The request with the smallest id among those that arrive at t: the queue's order among equals is
 * that of pushing, which in closed loops is another. */
static void arrive(const struct prop_case *c, struct fleet *fleet, struct collect *k, int64_t t)
{
    const uint32_t pool = 0;
    size_t i = 0;
    while (i < c->request_count && k->arrival_ps[i] != t) {
        i++;
    }
    check(i < c->request_count);
    k->arrival_ps[i] = TIME_NONE;
    struct request request = c->requests[i];
    request.arrival_ps = t;
    if (request.hashes != NULL) {
        const struct token_hashes *named = c->requests[i].hashes;
        request.hashes = token_hashes_acquire(k->hashes, named->count, named->block_tokens);
        memcpy(request.hashes->ids, named->ids, named->count * sizeof named->ids[0]);
    }
    uint32_t sequence = fleet_arrive(fleet, &request, &pool, 1);
    k->sequence_of[i] = sequence;
}

static void loop(const struct prop_case *c, struct fleet *fleet, struct event_queue *queue,
                 struct collect *k, struct gauge_sink *gauges)
{
    struct event e;
    while (event_queue_pop(queue, &e)) {
        if (e.class == EVENT_ARRIVAL) {
            arrive(c, fleet, k, e.time_ps);
        } else if (e.class == EVENT_STEP) {
            fleet_step(fleet, (uint32_t)e.payload, e.time_ps);
        } else if (e.class == EVENT_CANCEL) {
            if (k->sequence_of[e.payload] != SEQUENCE_NONE) {
                fleet_cancel(fleet, k->sequence_of[e.payload], e.time_ps);
            }
        } else if (e.kind == TIMER_DRAIN) {
            fleet_drain(fleet, (uint32_t)e.payload, e.time_ps);
        } else if (e.kind == TIMER_CUT) {
            fleet_cut(fleet, e.time_ps);
            return;
        } else {
            gauges->out = &k->result->gauges[e.payload];
            fleet_gauge(fleet, e.time_ps);
        }
    }
}

static struct fleet *fleet_make(const struct prop_case *c, struct fleet_pool_config *pool,
                                const struct obs_sink *sinks, uint32_t span_max,
                                struct event_queue *queue)
{
    static const struct variant *const routers[] = {
        [NAIVE_ROUND_ROBIN] = &router_round_robin_variant,
        [NAIVE_LEAST_LOADED] = &router_least_loaded_variant,
        [NAIVE_CENTRAL_QUEUE] = &router_central_queue_variant,
    };
    struct variant_value router = {.type = routers[c->router]};
    struct fleet_config config = {.pools = pool,
                                  .pool_count = 1,
                                  .router = &router,
                                  .seed = 1,
                                  .horizon_ps = 1,
                                  .span_max = span_max,
                                  .sinks = sinks,
                                  .sink_count = 2};
    return fleet_create(&config, queue);
}

struct naive_result *engine_run(const struct prop_case *c, uint32_t span_max)
{
    struct arena arena;
    arena_init(&arena);
    struct event_queue queue;
    event_queue_init(&queue, 1);
    struct collect k = {
        .result = result_make(c), .c = c, .queue = &queue, .hashes = token_hashes_pool_create()};
    k.arrival_ps = memory_alloc((c->request_count + 1) * sizeof *k.arrival_ps);
    k.sequence_of = memory_alloc((c->request_count + 1) * sizeof *k.sequence_of);
    memset(k.sequence_of, 0xff, c->request_count * sizeof *k.sequence_of);
    struct gauge_sink gauges = {0};
    struct obs_sink sinks[] = {{.take = take, .self = &k},
                               {.take = gauge_take, .self = &gauges, .kinds = 1 << OBS_GAUGE}};
    struct engine_config engine = {.max_num_seqs = c->engine.max_num_seqs,
                                   .max_num_batched_tokens = c->engine.max_num_batched_tokens,
                                   .block_size = c->engine.block_size,
                                   .num_gpu_blocks = c->engine.num_gpu_blocks,
                                   .max_model_len = c->engine.max_model_len,
                                   .enable_chunked_prefill = c->engine.enable_chunked_prefill,
                                   .enable_prefix_caching = c->engine.enable_prefix_caching,
                                   .scheduling_policy =
                                       c->engine.by_priority ? ENGINE_PRIORITY : ENGINE_FCFS};
    struct variant_value autoscaler = {.type = &autoscaler_static_variant};
    field_variant_init(&autoscaler_static_variant, &autoscaler, &arena);
    struct cold_start_config cold = {0};
    struct fleet_pool_config pool = {.name = "main",
                                     .engine = &engine,
                                     .model = prop_case_model(c, &arena),
                                     .max_queue = c->engine.max_queue,
                                     .initial_replicas = c->replicas,
                                     .autoscaler = &autoscaler,
                                     .cold_start = &cold};
    struct fleet *fleet = fleet_make(c, &pool, sinks, span_max, &queue);
    push_events(c, &queue, &k);
    loop(c, fleet, &queue, &k, &gauges);
    k.result->peak_blocks[0] = fleet_kv_peak(fleet, 0);
    check(fleet_totals(fleet).kv_blocks_leaked == 0);
    check(fleet_in_flight(fleet) == 0);
    fleet_free(fleet);
    event_queue_free(&queue);
    token_hashes_pool_free(k.hashes);
    free(k.sequence_of);
    free(k.arrival_ps);
    arena_free(&arena);
    return k.result;
}

#define DIFFER(out, ...) ((out) ? (void)fprintf(out, __VA_ARGS__) : (void)0)

static bool records_equal(const struct request_record *a, const struct request_record *b)
{
    return a->request.id == b->request.id && a->request.arrival_ps == b->request.arrival_ps &&
           a->admitted_ps == b->admitted_ps && a->first_token_ps == b->first_token_ps &&
           a->end_ps == b->end_ps && a->emitted_tokens == b->emitted_tokens &&
           a->cached_tokens == b->cached_tokens && a->computed_tokens == b->computed_tokens &&
           a->recomputed_tokens == b->recomputed_tokens && a->preemptions == b->preemptions &&
           a->replica == b->replica && a->outcome == b->outcome;
}

static void record_print(const char *name, const struct request_record *r, FILE *out)
{
    DIFFER(out,
           "  %s: id %llu admitted %lld first %lld end %lld emitted %u cached %u computed %u "
           "recomputed %u "
           "preemptions %u replica %u %s\n",
           name, (unsigned long long)r->request.id, (long long)r->admitted_ps,
           (long long)r->first_token_ps, (long long)r->end_ps, r->emitted_tokens, r->cached_tokens,
           r->computed_tokens, r->recomputed_tokens, r->preemptions, r->replica,
           outcome_names[r->outcome]);
}

static bool all_records_equal(const struct naive_result *a, const struct naive_result *b, FILE *out)
{
    size_t n = a->record_count < b->record_count ? a->record_count : b->record_count;
    for (size_t i = 0; i < n; i++) {
        if (!records_equal(&a->records[i], &b->records[i])) {
            DIFFER(out, "record %zu in order of end:\n", i);
            record_print("a", &a->records[i], out);
            record_print("b", &b->records[i], out);
            return false;
        }
    }
    if (a->record_count != b->record_count) {
        DIFFER(out, "%zu records against %zu\n", a->record_count, b->record_count);
        return false;
    }
    return true;
}

static bool histograms_equal(const char *name, const struct histogram *a, const struct histogram *b,
                             FILE *out)
{
    if (a->count == b->count && a->sum == b->sum &&
        memcmp(a->buckets, b->buckets, sizeof a->buckets) == 0 &&
        (a->count == 0 || (a->min == b->min && a->max == b->max))) {
        return true;
    }
    DIFFER(out, "histogram %s differs: %llu values against %llu\n", name,
           (unsigned long long)a->count, (unsigned long long)b->count);
    return false;
}

static bool gauges_equal(const struct naive_result *a, const struct naive_result *b,
                         const struct prop_case *c, FILE *out)
{
    for (size_t i = 0; i < c->gauge_count; i++) {
        const struct naive_gauge *g = &a->gauges[i], *h = &b->gauges[i];
        if (g->running != h->running || g->waiting != h->waiting || g->kv_blocks != h->kv_blocks ||
            g->kv_blocks_max != h->kv_blocks_max) {
            DIFFER(
                out,
                "gauge %zu: running %llu %llu waiting %llu %llu blocks %lld %lld max %lld %lld\n",
                i, (unsigned long long)g->running, (unsigned long long)h->running,
                (unsigned long long)g->waiting, (unsigned long long)h->waiting,
                (long long)g->kv_blocks, (long long)h->kv_blocks, (long long)g->kv_blocks_max,
                (long long)h->kv_blocks_max);
            return false;
        }
    }
    return true;
}

static bool numbers_equal(const char *name, uint64_t a, uint64_t b, FILE *out)
{
    if (a != b) {
        DIFFER(out, "%s: %llu against %llu\n", name, (unsigned long long)a, (unsigned long long)b);
    }
    return a == b;
}

static int64_t peak_of(const struct naive_result *r, uint32_t replicas)
{
    int64_t peak = 0;
    for (uint32_t i = 0; i < replicas; i++) {
        peak = r->peak_blocks[i] > peak ? r->peak_blocks[i] : peak;
    }
    return peak;
}

bool engine_results_equal(const struct naive_result *a, const struct naive_result *b,
                          const struct prop_case *c, FILE *out)
{
    bool released =
        memcmp(a->released_ps, b->released_ps, c->replicas * sizeof *a->released_ps) == 0;
    if (!released) {
        DIFFER(out, "release times differ\n");
    }
    return all_records_equal(a, b, out) &&
           numbers_equal("digest", a->digest.state, b->digest.state, out) &&
           histograms_equal("ttft", &a->ttft, &b->ttft, out) &&
           histograms_equal("tpot", &a->tpot, &b->tpot, out) &&
           histograms_equal("itl", &a->itl, &b->itl, out) &&
           histograms_equal("e2e", &a->e2e, &b->e2e, out) &&
           histograms_equal("queue", &a->queue, &b->queue, out) &&
           numbers_equal("iterations", a->iterations, b->iterations, out) &&
           numbers_equal("decode tokens", a->decode_tokens, b->decode_tokens, out) &&
           numbers_equal("prefill tokens", a->prefill_tokens, b->prefill_tokens, out) &&
           numbers_equal("computed tokens", a->computed_tokens, b->computed_tokens, out) &&
           numbers_equal("cached tokens", a->cached_tokens, b->cached_tokens, out) &&
           numbers_equal("admissions with lookups", a->lookups, b->lookups, out) &&
           numbers_equal("hit tokens", a->hit_tokens, b->hit_tokens, out) &&
           numbers_equal("lookup tokens", a->lookup_tokens, b->lookup_tokens, out) &&
           numbers_equal("digest of hits", a->prefix.state, b->prefix.state, out) &&
           numbers_equal("recomputed tokens", a->recomputed_tokens, b->recomputed_tokens, out) &&
           numbers_equal("busy", (uint64_t)a->busy_ps, (uint64_t)b->busy_ps, out) &&
           numbers_equal("work", (uint64_t)a->work_ps, (uint64_t)b->work_ps, out) &&
           numbers_equal("decode share", (uint64_t)a->decode_ps, (uint64_t)b->decode_ps, out) &&
           numbers_equal("peak blocks", (uint64_t)peak_of(a, c->replicas),
                         (uint64_t)peak_of(b, c->replicas), out) &&
           gauges_equal(a, b, c, out) && released;
}
