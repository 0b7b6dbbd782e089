#include "tests/validation/support_loop.h"

#include <math.h>

#include "sim/base/check.h"
#include "sim/workload/workload.h"
#include "tests/fleet_drive.h"

/* Prompt tokens of an iteration and attention copy: InferenceX's vLLM, TensorRT-LLM's default. */
enum { BUDGET = 8192 };

struct loop {
    struct workload *workload;
    struct event_queue queue;
    struct fleet *fleet;
    double *ttft_s, *tpot_s; /* owned; [expected] */
    uint64_t expected, ended;
};

static void loop_take(void *self, const struct obs *obs)
{
    struct loop *l = self;
    const struct request_record *r = obs->u.record;
    check(r->outcome == OUTCOME_COMPLETED && r->emitted_tokens > 1 && l->ended < l->expected);
    l->ttft_s[l->ended] = time_seconds(r->first_token_ps - r->request.arrival_ps);
    l->tpot_s[l->ended] = time_seconds(r->end_ps - r->first_token_ps) / (r->emitted_tokens - 1);
    l->ended++;
    workload_complete(l->workload, r);
}

/* Lengths uniform in 0.8 to 1.0 of the nominal ones; mean: 0.9 of them. */
static struct variant_value lengths_of(struct arena *arena, double mean)
{
    const struct field *field = field_find(workload_class_fields, "prompt_tokens", NULL);
    return drive_variant(arena, field_variant(field, "uniform"),
                         arena_printf(arena, "min=%.0f", floor(mean * 8 / 9)),
                         arena_printf(arena, "max=%.0f", floor(mean * 10 / 9)), NULL);
}

static void nowhere(void *self, const char *path, struct source_pos *pos)
{
    (void)self, (void)path;
    *pos = (struct source_pos){0};
}

/* The time outside the engine passes before a request reaches it: the user "thinks" so long. */
static struct workload *workload_of(struct arena *arena, const struct point *p, int64_t waves,
                                    int64_t outside_ps, struct errors *errors)
{
    struct traffic_config *traffic = arena_alloc(arena, sizeof *traffic);
    field_defaults(workload_class_fields, traffic, arena);
    const struct field *arrivals = field_find(workload_class_fields, "arrivals", NULL);
    traffic->name = p->id;
    traffic->arrivals = drive_variant(
        arena, field_variant(arrivals, "closed_loop"),
        arena_printf(arena, "concurrency=%.0f", p->concurrency),
        arena_printf(arena, "count=%.0f", p->concurrency * (double)waves),
        arena_printf(arena, "think_time=%lld us", (long long)(outside_ps / 1000000)), NULL);
    traffic->prompt_tokens = lengths_of(arena, p->prompt);
    traffic->output_tokens = lengths_of(arena, p->output);
    const struct traffic_config **classes = arena_alloc(arena, sizeof *classes);
    classes[0] = traffic;
    struct workload_config config = {.classes = classes,
                                     .class_count = 1,
                                     .seed = 1,
                                     .start_unix_s = FIELD_INT_UNSET,
                                     .horizon_ps = HORIZON_MAX_PS};
    struct locator where = {.find = nowhere};
    struct workload *w = workload_open(&config, &where, errors);
    check(w);
    return w;
}

/* One replica with a seat for every user and the KV pool of the memory model (no limit where the
 * point ran although the model says that it does not fit). */
static struct fleet *fleet_of(struct drive *d, const struct point *p,
                              struct roofline_config *config, struct event_queue *queue)
{
    d->model = drive_model(
        &d->arena, (struct variant_value){.type = &step_roofline_variant, .config = config});
    struct memory_plan plan = points_memory(p);
    d->engine.max_num_seqs = (int64_t)p->concurrency;
    d->engine.max_num_batched_tokens = BUDGET * p->parallel.attention_data;
    d->engine.num_gpu_blocks =
        plan.fits ? (int64_t)(plan.kv_tokens / (double)d->engine.block_size) : FIELD_INT_UNLIMITED;
    struct fleet_pool_config *pool = arena_alloc(&d->arena, sizeof *pool);
    *pool = (struct fleet_pool_config){.name = "main",
                                       .engine = &d->engine,
                                       .model = d->model,
                                       .max_queue = FIELD_INT_UNLIMITED,
                                       .initial_replicas = 1,
                                       .autoscaler = &d->autoscaler,
                                       .cold_start = &d->cold_start};
    struct fleet_config fleet = {.pools = pool,
                                 .pool_count = 1,
                                 .router = &d->router,
                                 .seed = 1,
                                 .horizon_ps = HORIZON_MAX_PS,
                                 .span_max = ENGINE_SPAN_MAX,
                                 .sinks = &d->sink,
                                 .sink_count = 1};
    return fleet_create(&fleet, queue);
}

/* Arrivals come before steps at the same time, as in every run. */
static void loop_events(struct loop *l, struct errors *errors)
{
    const uint32_t pool = 0;
    struct event e;
    struct request next;
    for (;;) {
        int64_t arrival_ps = workload_peek(l->workload);
        if (arrival_ps != TIME_NEVER && arrival_ps <= event_queue_peek_time(&l->queue)) {
            check(workload_next(l->workload, &next, errors) == WORKLOAD_OK);
            fleet_arrive(l->fleet, &next, &pool, 1);
        } else if (event_queue_pop(&l->queue, &e)) {
            check(e.class == EVENT_STEP);
            fleet_step(l->fleet, (uint32_t)e.payload, e.time_ps);
        } else {
            return;
        }
    }
}

static int by_value(const void *a_, const void *b_)
{
    double a = *(const double *)a_, b = *(const double *)b_;
    return (a > b) - (a < b);
}

static double mean(const double *values, uint64_t count)
{
    double sum = 0;
    for (uint64_t i = 0; i < count; i++)
        sum += values[i];
    return sum / (double)count;
}

static struct loop_result result_of(struct loop *l, double outside_s)
{
    struct loop_result result = {.ttft_mean_s = outside_s + mean(l->ttft_s, l->ended),
                                 .tpot_mean_s = mean(l->tpot_s, l->ended),
                                 .requests = l->ended};
    qsort(l->ttft_s, l->ended, sizeof *l->ttft_s, by_value);
    result.ttft_median_s = outside_s + l->ttft_s[l->ended / 2];
    return result;
}

struct loop_result loop_run(const struct point *point, int64_t waves)
{
    struct roofline_config config = points_roofline(point, NULL);
    roofline_fill_factors(&config.factors, point->llm);
    int64_t outside_ps = config.factors.first_token_ps;
    struct errors errors;
    errors_init(&errors);
    struct drive d;
    drive_init(&d);
    struct loop l = {.expected = (uint64_t)(point->concurrency * (double)waves)};
    l.ttft_s = memory_alloc(l.expected * sizeof *l.ttft_s);
    l.tpot_s = memory_alloc(l.expected * sizeof *l.tpot_s);
    l.workload = workload_of(&d.arena, point, waves, outside_ps, &errors);
    d.sink = (struct obs_sink){.take = loop_take, .self = &l, .kinds = 1u << OBS_END};
    event_queue_init(&l.queue, 1);
    l.fleet = fleet_of(&d, point, &config, &l.queue);
    loop_events(&l, &errors);
    struct fleet_totals totals = fleet_totals(l.fleet);
    check(l.ended == l.expected && totals.ended == l.expected && totals.kv_blocks_leaked == 0);
    struct loop_result result = result_of(&l, time_seconds(outside_ps));
    fleet_free(l.fleet);
    event_queue_free(&l.queue);
    workload_close(l.workload);
    drive_free(&d);
    errors_free(&errors);
    free(l.ttft_s);
    free(l.tpot_s);
    return result;
}
