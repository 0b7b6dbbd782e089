#include "tests/theory/support_queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/workload/workload.h"
#include "tests/fleet_drive.h"

struct watch {
    uint64_t drop, requests; /* ids below drop are not kept */
    int64_t *waits, *times;  /* owned; [requests − drop], in order of id */
    int64_t in_system, now_ps, from_ps, until_ps;
    int128 area_ps, window_ps; /* ∫ N dt: of all; while from_ps is known and until_ps is not */
    int128 sojourn_ps;
};

/* Check's asserts write to a pipe each time: check() where it runs per request. */
static void watch_advance(struct watch *w, int64_t t)
{
    check(t >= w->now_ps);
    int128 area = (int128)w->in_system * (t - w->now_ps);
    w->area_ps += area;
    if (w->from_ps != TIME_NONE && w->until_ps == TIME_NONE) {
        w->window_ps += area;
    }
    w->now_ps = t;
}

static void watch_take(void *self, const struct obs *obs)
{
    struct watch *w = self;
    if (obs->kind == OBS_ARRIVAL) {
        watch_advance(w, obs->time_ps);
        w->in_system++;
        if (obs->u.request->id == w->drop) {
            w->from_ps = obs->time_ps;
        } else if (obs->u.request->id == w->requests - 1) {
            w->until_ps = obs->time_ps;
        }
    } else if (obs->kind == OBS_END) {
        watch_advance(w, obs->time_ps);
        w->in_system--;
        const struct request_record *r = obs->u.record;
        check(r->outcome == OUTCOME_COMPLETED);
        w->sojourn_ps += r->end_ps - r->request.arrival_ps;
        if (r->request.id >= w->drop) {
            w->waits[r->request.id - w->drop] = r->admitted_ps - r->request.arrival_ps;
            w->times[r->request.id - w->drop] = r->end_ps - r->request.arrival_ps;
        }
    }
}

/* "name key=value key=value" as a variant of the field called key of a table. */
static struct variant_value variant_of(struct arena *arena, const struct field *field,
                                       const char *spec)
{
    char *save = NULL;
    char *name = strtok_r(arena_copy(arena, spec), " ", &save);
    const char *keys[3] = {0};
    for (size_t i = 0; i < 3; i++) {
        keys[i] = strtok_r(NULL, ",", &save);
    }
    const struct variant *variant = field_variant(field, name);
    ck_assert_msg(variant != NULL, "no variant '%s'", name);
    return drive_variant(arena, variant, keys[0], keys[1], keys[2], NULL);
}

static struct traffic_config *traffic_of(struct arena *arena, const struct queue_case *c)
{
    struct traffic_config *traffic = arena_alloc(arena, sizeof *traffic);
    field_defaults(workload_class_fields, traffic, arena);
    traffic->name = c->name;
    traffic->arrivals = variant_of(arena, field_find(workload_class_fields, "arrivals", NULL),
                                   arena_printf(arena, "poisson rate=%s", c->rate));
    const struct field *lengths = field_find(workload_class_fields, "prompt_tokens", NULL);
    traffic->prompt_tokens = variant_of(arena, lengths, c->prompt);
    traffic->output_tokens = variant_of(arena, lengths, c->output);
    return traffic;
}

static struct fleet *fleet_of(struct drive *d, const struct queue_case *c, uint32_t replication,
                              struct event_queue *queue)
{
    static const struct field step = {.kind = FIELD_VARIANT, .variants = step_time_variants};
    static const struct field router = {.kind = FIELD_VARIANT, .variants = router_variants};
    d->model = drive_model(&d->arena, variant_of(&d->arena, &step, c->step));
    d->router = variant_of(&d->arena, &router, c->router);
    d->engine.max_num_seqs = c->seats;
    d->engine.max_num_batched_tokens = 1048576;
    struct fleet_pool_config *pool = arena_alloc(&d->arena, sizeof *pool);
    *pool = (struct fleet_pool_config){.name = "main",
                                       .engine = &d->engine,
                                       .model = d->model,
                                       .max_queue = FIELD_INT_UNLIMITED,
                                       .initial_replicas = c->replicas,
                                       .autoscaler = &d->autoscaler,
                                       .cold_start = &d->cold_start};
    struct fleet_config config = {.pools = pool,
                                  .pool_count = 1,
                                  .router = &d->router,
                                  .seed = 1,
                                  .replication = replication,
                                  .horizon_ps = HORIZON_MAX_PS,
                                  .span_max = ENGINE_SPAN_MAX,
                                  .sinks = &d->sink,
                                  .sink_count = 1};
    return fleet_create(&config, queue);
}

static void nowhere(void *self, const char *path, struct source_pos *pos)
{
    (void)self, (void)path;
    *pos = (struct source_pos){0};
}

static struct workload *workload_of(struct arena *arena, const struct queue_case *c,
                                    uint32_t replication, struct errors *errors)
{
    const struct traffic_config **classes = arena_alloc(arena, sizeof *classes);
    classes[0] = traffic_of(arena, c);
    struct workload_config config = {.classes = classes,
                                     .class_count = 1,
                                     .seed = 1,
                                     .replication = replication,
                                     .start_unix_s = FIELD_INT_UNSET,
                                     .horizon_ps = HORIZON_MAX_PS};
    struct locator where = {.find = nowhere};
    struct workload *w = workload_open(&config, &where, errors);
    ck_assert_ptr_nonnull(w);
    return w;
}

static void loop(struct fleet *fleet, struct event_queue *queue, struct workload *traffic,
                 uint64_t requests, struct errors *errors)
{
    const uint32_t pool = 0;
    struct request next;
    ck_assert_int_eq(workload_next(traffic, &next, errors), WORKLOAD_OK);
    event_queue_push(queue, next.arrival_ps, EVENT_ARRIVAL, 0, 0);
    struct event e;
    while (event_queue_pop(queue, &e)) {
        if (e.class == EVENT_STEP) {
            fleet_step(fleet, (uint32_t)e.payload, e.time_ps);
            continue;
        }
        check(e.class == EVENT_ARRIVAL);
        fleet_arrive(fleet, &next, &pool, 1);
        if (next.id + 1 < requests) {
            check(workload_next(traffic, &next, errors) == WORKLOAD_OK);
            event_queue_push(queue, next.arrival_ps, EVENT_ARRIVAL, 0, 0);
        }
    }
}

static int by_value(const void *a_, const void *b_)
{
    int64_t a = *(const int64_t *)a_, b = *(const int64_t *)b_;
    return (a > b) - (a < b);
}

/* Mean and nearest-rank p99 in seconds; sorts. */
static void describe(int64_t *values, uint64_t count, double *mean_s, double *p99_s)
{
    int128 sum = 0;
    for (uint64_t i = 0; i < count; i++) {
        sum += values[i];
    }
    qsort(values, count, sizeof *values, by_value);
    *mean_s = (double)sum / (double)count / (double)PS_PER_SECOND;
    *p99_s = time_seconds(values[(count * 99 + 99) / 100 - 1]);
}

void queue_simulate(const struct queue_case *c, uint32_t replication, uint64_t requests,
                    struct queue_sample *sample)
{
    struct watch w = {.drop = requests / 20, .requests = requests};
    w.from_ps = w.until_ps = TIME_NONE;
    uint64_t kept = requests - w.drop;
    w.waits = memory_alloc(kept * sizeof *w.waits);
    w.times = memory_alloc(kept * sizeof *w.times);
    struct drive d;
    drive_init(&d);
    d.sink = (struct obs_sink){.take = watch_take, .self = &w};
    struct errors errors;
    errors_init(&errors);
    struct event_queue queue;
    event_queue_init(&queue, 1);
    struct workload *traffic = workload_of(&d.arena, c, replication, &errors);
    struct fleet *fleet = fleet_of(&d, c, replication, &queue);
    loop(fleet, &queue, traffic, requests, &errors);
    ck_assert_int_eq(w.in_system, 0);
    *sample = (struct queue_sample){
        .area_ps = w.area_ps, .sojourn_ps = w.sojourn_ps, .end_ps = w.now_ps, .requests = requests};
    describe(w.waits, kept, &sample->wait_mean_s, &sample->wait_p99_s);
    describe(w.times, kept, &sample->time_mean_s, &sample->time_p99_s);
    uint64_t waiting = 0;
    for (uint64_t i = 0; i < kept; i++) {
        waiting += w.waits[i] > 0;
    }
    sample->share_waiting = (double)waiting / (double)kept;
    sample->wait_max_ps = w.waits[kept - 1];
    sample->in_system = (double)w.window_ps / (double)(w.until_ps - w.from_ps);
    fleet_free(fleet);
    workload_close(traffic);
    event_queue_free(&queue);
    errors_free(&errors);
    drive_free(&d);
    free(w.waits);
    free(w.times);
}

uint32_t queue_scale(void)
{
    const char *text = getenv("FLEETSIM_THEORY_SCALE");
    if (text != NULL) {
        long scale = strtol(text, NULL, 10);
        ck_assert_msg(scale >= 1 && scale <= 100, "FLEETSIM_THEORY_SCALE is 1 to 100");
        return (uint32_t)scale;
    }
#ifdef __has_feature
#if __has_feature(address_sanitizer)
    return 10;
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
    return 10;
#else
    return 1;
#endif
}
