/* A made-up day with the look of a real one, through metrics into a file: for tests of the readers
 * and of the plots, which need no engine. */
#ifndef FLEETSIM_TESTS_UNIT_SUPPORT_DAY_H
#define FLEETSIM_TESTS_UNIT_SUPPORT_DAY_H

#include "sim/base/arena.h"
#include "sim/base/detmath.h"
#include "sim/base/rng.h"
#include "sim/metrics/metrics.h"
#include "sim/trace/trace.h"

#define DAY_SECONDS 86400

struct day_event {
    int64_t t;
    uint32_t kind, index;
};
enum day_kind { DAY_ARRIVAL, DAY_FIRST, DAY_END, DAY_TICK, DAY_SCALE };

struct day {
    struct metrics *m;
    struct obs_sink sink;
    struct request_record *records; /* owned */
    struct day_event *events;       /* owned */
    size_t record_count, event_count;
    int64_t replicas, capacity; /* held now, launches so far */
    int64_t since[4096];        /* by launch: since when it is in its state */
    uint8_t state[4096];
    uint64_t in_flight;
};

static inline int day_compare(const void *a, const void *b)
{
    const struct day_event *x = a, *y = b;
    if (x->t != y->t) {
        return x->t < y->t ? -1 : 1;
    }
    if (x->kind != y->kind) {
        return x->kind < y->kind ? -1 : 1;
    }
    return (x->index > y->index) - (x->index < y->index);
}

/* Requests per second at second s, mean 1. */
static inline double day_rate(double s)
{
    double c = (1 + detmath_cos_turns((s / 3600 - 20) / 24)) / 2, c4 = c * c * c * c;
    return 1 + 2 * (c4 - 70.0 / 256) / (1 - 70.0 / 256);
}

static inline double day_need(double s)
{
    return (double)(int64_t)(day_rate(s) * 3.2 + 0.999);
}

static inline void day_add(struct day *d, int64_t t, uint32_t kind, uint32_t index)
{
    d->events[d->event_count++] = (struct day_event){t, kind, index};
}

/* Arrivals by thinning, lengths fixed, first tokens later when the curve climbs. */
static inline void day_requests(struct day *d, double mean_rate)
{
    uint64_t key = rng_key(1, 0, RNG_TEST, 0);
    double t = 0, top = mean_rate * 3;
    size_t capacity = (size_t)(mean_rate * DAY_SECONDS * 1.05) + 1000;
    d->records = memory_zero(capacity, sizeof *d->records);
    d->events = memory_zero(3 * capacity + 20000, sizeof *d->events);
    for (uint64_t i = 0; d->record_count < capacity; i++) {
        struct rng_pair bits = rng_draw(key, i, 0), more = rng_draw(key, i, 1);
        t += -detmath_log(rng_unit_open(bits.a)) / top;
        if (t >= DAY_SECONDS) {
            break;
        }
        if (rng_unit(bits.b) * top > mean_rate * day_rate(t)) {
            continue;
        }
        uint32_t index = (uint32_t)d->record_count++;
        double climb = day_rate(t) - day_rate(t - 400);
        double wait = 0.12 * detmath_exp(0.5 * detmath_normal_quantile(rng_unit_open(more.a))) +
                      (climb > 0 && rng_unit(more.b) < climb ? 8 * climb : 0);
        struct request_record *r = &d->records[index];
        r->request = (struct request){.id = index,
                                      .arrival_ps = time_from_seconds(t),
                                      .prompt_tokens = 1500,
                                      .output_tokens = 400,
                                      .session = -1};
        r->admitted_ps = r->request.arrival_ps;
        r->first_token_ps = r->request.arrival_ps + time_from_seconds(wait);
        r->end_ps = r->first_token_ps + 399 * 32 * (PS_PER_SECOND / 1000);
        day_add(d, r->request.arrival_ps, DAY_ARRIVAL, index);
        day_add(d, r->first_token_ps, DAY_FIRST, index);
        day_add(d, r->end_ps, DAY_END, index);
    }
}

static inline void day_emit(const struct day *d, struct obs obs)
{
    obs_emit(&d->sink, &obs);
}

static inline void day_move(struct day *d, uint32_t launch, int64_t t, enum replica_state to)
{
    enum replica_state from = (enum replica_state)d->state[launch];
    struct obs_state state = {from, to, d->since[launch], 0};
    d->since[launch] = t;
    d->state[launch] = (uint8_t)to;
    day_emit(d,
             (struct obs){.kind = OBS_REPLICA, .replica = launch, .time_ps = t, .u.state = &state});
}

/* Every minute: replicas follow the need through provisioning and loading; one gauge. */
static inline void day_scale(struct day *d, int64_t t)
{
    int64_t want = (int64_t)(day_need(time_seconds(t) + 240) * 1.1 + 1);
    for (int64_t i = 0; i < d->capacity; i++) {
        uint32_t launch = (uint32_t)i;
        if (d->state[i] == REPLICA_PROVISIONING && t - d->since[i] >= 120 * PS_PER_SECOND) {
            day_move(d, launch, t, REPLICA_LOADING);
        } else if (d->state[i] == REPLICA_LOADING && t - d->since[i] >= 120 * PS_PER_SECOND) {
            day_move(d, launch, t, i % 3 ? REPLICA_SERVING : REPLICA_IDLE);
        } else if (d->state[i] == REPLICA_DRAINING) {
            day_move(d, launch, t, REPLICA_RELEASED);
        } else if (d->state[i] == REPLICA_SERVING && d->replicas > want) {
            day_move(d, launch, t, REPLICA_DRAINING);
            d->replicas--;
        }
    }
    struct obs_scale scale = {.ready = (uint32_t)d->replicas,
                              .wished = (uint32_t)want,
                              .target = (uint32_t)want,
                              .metric = 0.7,
                              .reason = "need"};
    if (d->replicas != want) {
        day_emit(d, (struct obs){.kind = OBS_SCALE, .time_ps = t, .u.scale = &scale});
    }
    for (; d->replicas < want && d->capacity < 4096; d->replicas++) {
        day_move(d, (uint32_t)d->capacity++, t, t ? REPLICA_PROVISIONING : REPLICA_SERVING);
    }
    struct obs_gauge gauge = {.running = d->in_flight,
                              .waiting = d->in_flight / 20,
                              .kv_blocks = (int64_t)d->in_flight * 100,
                              .kv_blocks_total = d->replicas * 8000,
                              .kv_blocks_max = 2900};
    day_emit(d, (struct obs){.kind = OBS_GAUGE, .time_ps = t, .u.gauge = &gauge});
}

/* Ten seconds of iterations of the whole pool as one span. */
static inline void day_tick(const struct day *d, int64_t t)
{
    int64_t step = 30 * (PS_PER_SECOND / 1000);
    uint32_t decodes = (uint32_t)d->in_flight;
    struct obs_steps steps = {.start_ps = t,
                              .end_ps = t + 333 * step,
                              .base_ps = step,
                              .count = 333,
                              .decodes = decodes,
                              .decode_tokens = decodes,
                              .prefill_tokens = decodes,
                              .running = decodes,
                              .decode_ps = 200 * step,
                              .work_ps = 250 * step};
    day_emit(d, (struct obs){.kind = OBS_STEPS, .time_ps = steps.end_ps, .u.steps = &steps});
}

static inline void day_event_emit(struct day *d, const struct day_event *e)
{
    struct request_record *r = &d->records[e->index];
    switch ((enum day_kind)e->kind) {
    case DAY_ARRIVAL:
        day_emit(d, (struct obs){.kind = OBS_ARRIVAL,
                                 .pool = UINT32_MAX,
                                 .time_ps = e->t,
                                 .u.request = &r->request});
        day_emit(d, (struct obs){.kind = OBS_ADMIT, .time_ps = e->t, .u.record = r});
        d->in_flight++;
        break;
    case DAY_FIRST:
        r->emitted_tokens = 1;
        day_emit(d, (struct obs){.kind = OBS_FIRST_TOKEN, .time_ps = e->t, .u.record = r});
        break;
    case DAY_END:
        r->emitted_tokens = 400;
        r->computed_tokens = 1500;
        day_emit(d, (struct obs){.kind = OBS_END, .time_ps = e->t, .u.record = r});
        d->in_flight--;
        break;
    case DAY_TICK:
        day_tick(d, e->t);
        break;
    case DAY_SCALE:
        day_scale(d, e->t);
        break;
    }
}

/* Runs the day with so many requests per second on average. */
static inline void day_open(struct day *d, double mean_rate)
{
    static const struct metrics_pool pool = {"main", 1, 3.0, 2.0, 4.0, 0, 0};
    static const struct metrics_class class = {"chat", PS_PER_SECOND, 50 * PS_PER_SECOND / 1000,
                                               TIME_NONE, 0.95};
    struct metrics_config config = {.pools = &pool,
                                    .pool_count = 1,
                                    .classes = &class,
                                    .class_count = 1,
                                    .horizon_ps = DAY_SECONDS * PS_PER_SECOND,
                                    .interval_ps = PS_PER_HOUR};
    memset(d, 0, sizeof *d);
    d->m = metrics_create(&config);
    d->sink = metrics_sink(d->m);
    day_requests(d, mean_rate);
    for (int64_t s = 0; s < DAY_SECONDS; s += 10) {
        day_add(d, s * PS_PER_SECOND, DAY_TICK, 0);
        if (s % 60 == 0) {
            day_add(d, s * PS_PER_SECOND, DAY_SCALE, 0);
        }
    }
    qsort(d->events, d->event_count, sizeof *d->events, day_compare);
    int64_t end = 0;
    for (size_t i = 0; i < d->event_count; i++) {
        while (metrics_next_edge(d->m) < d->events[i].t) {
            metrics_roll(d->m, metrics_next_edge(d->m));
        }
        day_event_emit(d, &d->events[i]);
        end = d->events[i].t;
    }
    for (size_t row = 0; row < 24; row++) {
        double s = (double)row * 3600;
        metrics_set_need(d->m, 0, row, mean_rate * day_rate(s), day_need(s));
    }
    metrics_finish(d->m, end > DAY_SECONDS * PS_PER_SECOND ? end : DAY_SECONDS * PS_PER_SECOND);
}

static inline void day_close(struct day *d)
{
    metrics_free(d->m);
    free(d->records);
    free(d->events);
}

/* The tables of a run of one pool and one class. */
static inline size_t day_tables(const struct day *d, struct trace_table tables[5])
{
    static const char *const scopes[] = {"all", "main"}, *const classes[] = {"chat"};
    size_t events;
    const struct metrics_scale_event *scale = metrics_scale_events(d->m, &events);
    tables[0] = (struct trace_table){.group = "hourly",
                                     .doc = "Each pool by interval.",
                                     .shape = TRACE_SERIES,
                                     .columns = metrics_hour_columns,
                                     .rows = metrics_hours(d->m),
                                     .row_count = metrics_hour_count(d->m),
                                     .row_size = sizeof(struct metrics_hour),
                                     .start_offset = offsetof(struct metrics_hour, start_ps),
                                     .end_offset = offsetof(struct metrics_hour, end_ps),
                                     .dimension = "pool",
                                     .labels = &scopes[1],
                                     .series_count = 1};
    tables[1] = tables[0];
    tables[1].group = "fleet";
    tables[1].doc = "All pools together by interval.";
    tables[1].shape = TRACE_TIMES;
    tables[1].rows = metrics_hours_all(d->m);
    tables[1].dimension = NULL;
    tables[2] = (struct trace_table){.group = "scaling",
                                     .doc = "Decisions of the autoscalers.",
                                     .shape = TRACE_LIST,
                                     .columns = metrics_scaling_columns,
                                     .rows = scale,
                                     .row_count = events,
                                     .row_size = sizeof *scale,
                                     .dimension = "event"};
    tables[3] = (struct trace_table){.group = "summary",
                                     .doc = "The whole run.",
                                     .shape = TRACE_LABELS,
                                     .columns = metrics_summary_columns,
                                     .rows = metrics_summaries(d->m),
                                     .row_count = 2,
                                     .row_size = sizeof(struct metrics_summary),
                                     .dimension = "pool",
                                     .labels = scopes};
    tables[4] = (struct trace_table){.group = "classes",
                                     .doc = "The whole run by class.",
                                     .shape = TRACE_LABELS,
                                     .columns = metrics_class_columns,
                                     .rows = metrics_class_summaries(d->m),
                                     .row_count = 1,
                                     .row_size = sizeof(struct metrics_class_summary),
                                     .dimension = "class",
                                     .labels = classes};
    return 5;
}

#endif
