/* A fleet driven by hand, for tests that need what a scenario cannot ask for: clients that leave,
 * timers that do nothing, every observation. */
#ifndef FLEETSIM_TESTS_FLEET_DRIVE_H
#define FLEETSIM_TESTS_FLEET_DRIVE_H

#include <check.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "sim/fleet/fleet.h"

/* A variant's value from "key=value" texts, ended by NULL. */
static inline struct variant_value drive_variant(struct arena *arena, const struct variant *variant,
                                                 ...)
{
    struct variant_value value;
    field_variant_init(variant, &value, arena);
    va_list texts;
    va_start(texts, variant);
    const char *text;
    while ((text = va_arg(texts, const char *)) != NULL) {
        const char *equals = strchr(text, '=');
        char *name = arena_copyn(arena, text, (size_t)(equals - text));
        size_t offset;
        const struct field *field = field_find(variant->fields, name, &offset);
        char why[FIELD_WHY_MAX];
        ck_assert_msg(field != NULL, "no key '%s'", name);
        ck_assert_msg(
            field_parse(field, equals + 1, (char *)value.config + offset, arena, why, sizeof why),
            "%s: %s", text, why);
    }
    va_end(texts);
    return value;
}

/* A step-time model from its filled variant. */
static inline struct step_model drive_model(struct arena *arena, struct variant_value value)
{
    struct errors errors;
    errors_init(&errors);
    struct step_model model = {.type = value.type->ops};
    model.model = model.type->build(value.config, arena, &errors, NULL);
    ck_assert_ptr_nonnull(model.model);
    errors_free(&errors);
    return model;
}

/* One pool. Times in ps. */
struct drive {
    struct arena arena;
    struct engine_config engine; /* the defaults of its table; change before drive_run */
    struct step_model model;
    struct variant_value router, autoscaler;
    struct cold_start_config cold_start;
    int64_t max_queue, horizon_ps;
    uint32_t replicas, span_max;
    enum fleet_victim victim;
    int64_t patience_ps;  /* a client leaves this long after arrival; 0: never */
    uint32_t idle_timers; /* timers at 0 that do nothing */
    struct obs_sink sink; /* sees everything */
    const struct request *requests;
    size_t request_count;
    /* Results. */
    int64_t now_ps;     /* of the last event */
    uint64_t decisions; /* of the autoscaler */
    uint64_t iterations;
    /* While it runs. */
    event_handle *leave; /* owned; [request_count] */
    uint32_t *sequence;  /* owned; [request_count] */
    struct event_queue queue;
};

enum { DRIVE_TIMER_IDLE = FLEET_TIMER_COUNT };

static inline void drive_init(struct drive *d)
{
    *d = (struct drive){.max_queue = FIELD_INT_UNLIMITED,
                        .horizon_ps = PS_PER_HOUR,
                        .replicas = 1,
                        .span_max = ENGINE_SPAN_MAX};
    arena_init(&d->arena);
    field_defaults(engine_fields, &d->engine, &d->arena);
    d->router = (struct variant_value){.type = &router_least_loaded_variant};
    d->autoscaler = drive_variant(&d->arena, &autoscaler_static_variant, "replicas=1", NULL);
}

static inline void drive_free(struct drive *d)
{
    arena_free(&d->arena);
}

static inline void drive_take(void *self, const struct obs *obs)
{
    struct drive *d = self;
    if (obs->kind == OBS_END) {
        uint64_t id = obs->u.record->request.id;
        d->sequence[id] = SEQUENCE_NONE;
        if (d->leave[id] != 0 && obs->u.record->outcome != OUTCOME_CANCELLED) {
            event_queue_cancel(&d->queue, d->leave[id]);
        }
    }
    if (d->sink.take != NULL) {
        obs_emit(&d->sink, obs);
    }
}

static inline void drive_arrive(struct drive *d, struct fleet *fleet, size_t i)
{
    const uint32_t pool = 0;
    if (d->patience_ps > 0) {
        d->leave[i] = event_queue_push(&d->queue, d->requests[i].arrival_ps + d->patience_ps,
                                       EVENT_CANCEL, 0, i);
    }
    uint32_t sequence = fleet_arrive(fleet, &d->requests[i], &pool, 1);
    if (sequence != SEQUENCE_NONE) {
        d->sequence[i] = sequence;
    }
}

static inline void drive_loop(struct drive *d, struct fleet *fleet)
{
    struct event e;
    while (event_queue_pop(&d->queue, &e)) {
        d->now_ps = e.time_ps;
        if (e.class == EVENT_ARRIVAL) {
            drive_arrive(d, fleet, e.payload);
        } else if (e.class == EVENT_CANCEL) {
            fleet_cancel(fleet, d->sequence[e.payload], e.time_ps);
        } else if (e.class == EVENT_STEP) {
            fleet_step(fleet, (uint32_t)e.payload, e.time_ps);
        } else if (e.kind != DRIVE_TIMER_IDLE) {
            d->decisions += e.kind == FLEET_TIMER_DECIDE;
            fleet_timer(fleet, (enum fleet_timer)e.kind, e.payload, e.time_ps);
        }
    }
}

/* Runs until no event is left: everything has ended. */
static inline void drive_run(struct drive *d)
{
    struct fleet_pool_config pool = {.name = "main",
                                     .engine = &d->engine,
                                     .model = d->model,
                                     .max_queue = d->max_queue,
                                     .initial_replicas = d->replicas,
                                     .victim = d->victim,
                                     .autoscaler = &d->autoscaler,
                                     .cold_start = &d->cold_start};
    struct obs_sink sink = {.take = drive_take, .self = d};
    struct fleet_config config = {.pools = &pool,
                                  .pool_count = 1,
                                  .router = &d->router,
                                  .seed = 1,
                                  .horizon_ps = d->horizon_ps,
                                  .span_max = d->span_max,
                                  .sinks = &sink,
                                  .sink_count = 1};
    d->decisions = 0;
    d->leave = memory_zero(d->request_count + 1, sizeof *d->leave);
    d->sequence = memory_zero(d->request_count + 1, sizeof *d->sequence);
    event_queue_init(&d->queue, 1);
    struct fleet *fleet = fleet_create(&config, &d->queue);
    for (uint32_t i = 0; i < d->idle_timers; i++) {
        event_queue_push(&d->queue, 0, EVENT_TIMER, DRIVE_TIMER_IDLE, i);
    }
    for (size_t i = 0; i < d->request_count; i++) {
        event_queue_push(&d->queue, d->requests[i].arrival_ps, EVENT_ARRIVAL, 0, i);
    }
    drive_loop(d, fleet);
    struct fleet_totals totals = fleet_totals(fleet);
    d->iterations = totals.iterations;
    ck_assert_uint_eq(totals.arrived, totals.ended);
    ck_assert_int_eq(totals.kv_blocks_leaked, 0);
    fleet_free(fleet);
    event_queue_free(&d->queue);
    free(d->leave);
    free(d->sequence);
}

#endif
