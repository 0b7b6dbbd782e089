/* The event loop. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "sim/base/check.h"
#include "sim/engine/sequence.h"
#include "sim/run/clients.h"
#include "sim/run/expert_run.h"
#include "sim/run/run_internal.h"
#include "sim/run/run_rows.h"

enum run_timer {
    TIMER_EDGE = FLEET_TIMER_COUNT, /* an interval of the output ends */
    TIMER_GAUGE,
    TIMER_HORIZON,
    TIMER_EXPERTS, /* an epoch of the experts' popularity ends */
};

/* How often the clock on the wall is looked at, in events; and then, in seconds, what is due. */
enum { WALL_EVERY_EVENTS = 8192 };
enum { SECONDS_PER_DAY = 86400 };
static const double PROGRESS_EVERY_S = 0.2, SAVE_EVERY_S = 2.0;

struct loop {
    struct run *run;
    const struct run_options *options;
    struct errors *errors;
    struct clients clients;
    bool with_clients; /* some of them react to what happens */
    int64_t next_ps;   /* the next arrival, TIME_NEVER: none; outside the queue, since it precedes
                          whatever else happens at its instant */
    bool failed;
    int64_t now_ps;
    double began_s, progress_s, saved_s;
    int64_t hours_saved;
};

static double wall_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The digest covers what happened to every request and every replica, in order. */
enum {
    DIGEST_KINDS = 1 << OBS_ADMIT | 1 << OBS_FIRST_TOKEN | 1 << OBS_PREEMPT | 1 << OBS_END |
                   1 << OBS_REPLICA | 1 << OBS_SCALE
};

static void digest_record(void *self, const struct obs *obs)
{
    digest_event(self, obs->kind, obs->time_ps, obs->u.record->request.id, obs->replica);
}

static void digest_preempt(void *self, const struct obs *obs)
{
    digest_event(self, obs->kind, obs->time_ps, obs->u.record->request.id,
                 obs->u.record->emitted_tokens);
}

static void digest_end(void *self, const struct obs *obs)
{
    digest_event(self, obs->kind, obs->time_ps, obs->u.record->request.id,
                 obs->u.record->outcome + 16 * (uint64_t)obs->u.record->emitted_tokens);
}

static void digest_replica(void *self, const struct obs *obs)
{
    digest_event(self, obs->kind, obs->time_ps, obs->replica, obs->u.state->to);
}

static void digest_scale(void *self, const struct obs *obs)
{
    digest_event(self, obs->kind, obs->time_ps, obs->pool, obs->u.scale->target);
}

/* Steps are not among them: they are reported when a span is settled, which is no event. */
static obs_take *const digest_takers[OBS_KIND_COUNT] = {
    [OBS_ADMIT] = digest_record, [OBS_FIRST_TOKEN] = digest_record, [OBS_PREEMPT] = digest_preempt,
    [OBS_END] = digest_end,      [OBS_REPLICA] = digest_replica,    [OBS_SCALE] = digest_scale,
};

static void report_progress(struct loop *loop, double wall_s, bool finished)
{
    if (loop->options->progress == NULL) {
        return;
    }
    double share = (double)loop->now_ps / (double)loop->run->config.horizon_ps;
    struct run_progress progress = {
        .share = share < 1 ? share : 1,
        .time_ps = loop->now_ps,
        .arrived = loop->run->arrived,
        .wall_s = wall_s - loop->began_s,
        .hours_saved = loop->hours_saved,
        .finished = finished,
    };
    loop->options->progress(loop->options->progress_self, &progress);
}

static void look_at_the_wall(struct loop *loop)
{
    double wall_s = wall_now();
    if (wall_s - loop->progress_s >= PROGRESS_EVERY_S) {
        loop->progress_s = wall_s;
        report_progress(loop, wall_s, false);
    }
}

/* Saves the hours finished so far, now and then: a run that is killed leaves them readable. */
static void save_hours(struct loop *loop)
{
    struct run *run = loop->run;
    double wall_s = wall_now();
    if (loop->options->output_path == NULL || wall_s - loop->saved_s < SAVE_EVERY_S) {
        return;
    }
    if (!run_output_partial(run, loop->options->output_path, loop->errors)) {
        loop->failed = true;
        return;
    }
    loop->hours_saved = (int64_t)metrics_hour_count(run->metrics);
    loop->saved_s = wall_now();
    report_progress(loop, loop->saved_s, false);
}

static void arrive(struct loop *loop)
{
    struct run *run = loop->run;
    struct request request;
    if (workload_next(run->workload, &request, loop->errors) != WORKLOAD_OK) {
        loop->failed = true;
        return;
    }
    uint32_t class = request.class_index;
    run->arrived++;
    uint32_t sequence =
        fleet_arrive(run->fleet, &request, run->class_pools[class], run->class_pool_count[class]);
    if (loop->with_clients) {
        clients_arrived(&loop->clients, &request, sequence);
    }
    loop->next_ps = workload_peek(run->workload);
}

static void push_edge(struct run *run)
{
    int64_t edge = metrics_next_edge(run->metrics);
    if (edge != TIME_NEVER) {
        event_queue_push(&run->queue, edge, EVENT_TIMER, TIMER_EDGE, 0);
    }
}

static void push_epoch(struct run *run)
{
    int64_t next = run->experts != NULL ? expert_run_next(run->experts) : TIME_NEVER;
    if (next != TIME_NEVER) {
        event_queue_push(&run->queue, next, EVENT_TIMER, TIMER_EXPERTS, 0);
    }
}

static void timer(struct loop *loop, const struct event *event)
{
    struct run *run = loop->run;
    int64_t t = event->time_ps;
    switch (event->kind) {
    case TIMER_EDGE:
        fleet_edge(run->fleet, t);
        metrics_roll(run->metrics, t);
        expert_run_edge(run->experts);
        push_edge(run);
        save_hours(loop);
        break;
    case TIMER_GAUGE:
        fleet_gauge(run->fleet, t);
        if (t + run->config.output.gauge_interval_ps < run->config.horizon_ps) {
            event_queue_push(&run->queue, t + run->config.output.gauge_interval_ps, EVENT_TIMER,
                             TIMER_GAUGE, 0);
        }
        break;
    case TIMER_EXPERTS:
        expert_run_epoch(run->experts, run->fleet, t);
        push_epoch(run);
        break;
    case TIMER_HORIZON:
        if (!run->config.drain) {
            fleet_cut(run->fleet, t);
        }
        break;
    default:
        fleet_timer(run->fleet, (enum fleet_timer)event->kind, event->payload, t);
        break;
    }
}

/* Past the horizon with nobody in flight. What else is due at the horizon itself still happens. */
static bool over(const struct loop *loop)
{
    struct run *run = loop->run;
    return loop->failed ||
           (loop->next_ps == TIME_NEVER && loop->now_ps >= run->config.horizon_ps &&
            fleet_in_flight(run->fleet) == 0 && metrics_next_edge(run->metrics) == TIME_NEVER &&
            event_queue_peek_time(&run->queue) > run->config.horizon_ps);
}

static void happen(struct loop *loop, const struct event *event)
{
    struct run *run = loop->run;
    if (event->class == EVENT_STEP) {
        fleet_step(run->fleet, (uint32_t)event->payload, event->time_ps);
    } else if (event->class == EVENT_CANCEL) {
        clients_leave(&loop->clients, event->payload, event->time_ps);
    } else {
        check(event->class == EVENT_TIMER);
        timer(loop, event);
    }
    if (loop->with_clients) { /* an end may have brought an arrival */
        loop->next_ps = workload_peek(run->workload);
    }
}

static void loop_run(struct loop *loop)
{
    struct run *run = loop->run;
    struct event event;
    while (!over(loop)) {
        if (++run->events % WALL_EVERY_EVENTS == 0) {
            look_at_the_wall(loop);
        }
        if (!event_queue_pop_before(&run->queue, loop->next_ps, &event)) {
            if (loop->next_ps == TIME_NEVER) {
                break;
            }
            loop->now_ps = loop->next_ps;
            arrive(loop);
            continue;
        }
        loop->now_ps = event.time_ps;
        happen(loop, &event);
    }
    check_msg(loop->failed || fleet_in_flight(run->fleet) == 0,
              "the event queue ran dry with %llu requests in flight",
              (unsigned long long)fleet_in_flight(run->fleet));
}

static struct metrics *metrics_make(const struct run *run)
{
    const struct run_config *config = &run->config;
    size_t pools = run_pool_count(run), classes = run_class_count(run);
    struct metrics_pool *pool = memory_zero(pools, sizeof *pool);
    struct metrics_class *class = memory_zero(classes, sizeof *class);
    for (size_t p = 0; p < pools; p++) {
        const struct pool_config *c = config_pool(config, p);
        pool[p] = (struct metrics_pool){.name = c->name,
                                        .gpus_per_replica = config_gpus_per_replica(c),
                                        .usd_per_gpu_hour = c->price.usd_per_gpu_hour,
                                        .usd_low = c->price.low,
                                        .usd_high = c->price.high,
                                        .billing_increment_ps = c->price.billing_increment_ps,
                                        .billing_minimum_ps = c->price.billing_minimum_ps};
    }
    for (size_t i = 0; i < classes; i++) {
        const struct class_config *c = config_class(config, i);
        class[i] = (struct metrics_class){.name = c->traffic.name,
                                          .slo_ttft_ps = c->slo.ttft_ps,
                                          .slo_tpot_ps = c->slo.tpot_ps,
                                          .slo_e2e_ps = c->slo.e2e_ps,
                                          .slo_attainment = c->slo.attainment};
    }
    struct metrics_config m = {.pools = pool,
                               .pool_count = pools,
                               .classes = class,
                               .class_count = classes,
                               .warmup_ps = config->warmup_ps,
                               .horizon_ps = config->horizon_ps,
                               .interval_ps = config->output.trace_interval_ps};
    struct metrics *metrics = metrics_create(&m);
    free(pool);
    free(class);
    return metrics;
}

/* What the pool's policy may know beyond its signals. */
static struct autoscaler_env autoscaler_env(const struct run *run, size_t p)
{
    const struct cold_start_config *cold = &config_pool(&run->config, p)->cold_start;
    int64_t day_s = run->config.start_unix_s % SECONDS_PER_DAY;
    return (struct autoscaler_env){.lead_ps = cold_start_expected(cold),
                                   .day_ps =
                                       (day_s + (day_s < 0 ? SECONDS_PER_DAY : 0)) * PS_PER_SECOND,
                                   .horizon_ps = run->config.horizon_ps,
                                   .need = run_plan_need_at,
                                   .need_self = &run->plans[p]};
}

static struct fleet *fleet_make(struct run *run, const struct obs_sink *sinks, size_t sink_count,
                                bool step_by_step)
{
    size_t pools = run_pool_count(run);
    struct fleet_pool_config *pool = arena_alloc(&run->arena, pools * sizeof *pool);
    for (size_t p = 0; p < pools; p++) {
        const struct pool_config *c = config_pool(&run->config, p);
        pool[p] = (struct fleet_pool_config){.name = c->name,
                                             .engine = &c->engine,
                                             .model = run->models[p],
                                             .max_queue = c->max_queue,
                                             .victim = (enum fleet_victim)c->scale_down_victim,
                                             .initial_replicas = run->plans[p].initial_replicas,
                                             .autoscaler = &c->autoscaler,
                                             .cold_start = &c->cold_start,
                                             .env = autoscaler_env(run, p)};
    }
    struct fleet_config config = {.pools = pool,
                                  .pool_count = (uint32_t)pools,
                                  .router = &run->config.fleet.router,
                                  .seed = (uint64_t)run->config.seed,
                                  .replication = (uint32_t)run->config.replication,
                                  .horizon_ps = run->config.horizon_ps,
                                  .span_max = step_by_step ? 1 : ENGINE_SPAN_MAX,
                                  .sinks = sinks,
                                  .sink_count = sink_count};
    return fleet_create(&config, &run->queue);
}

static void loop_begin(struct loop *loop)
{
    struct run *run = loop->run;
    loop->began_s = loop->progress_s = loop->saved_s = wall_now();
    loop->next_ps = workload_peek(run->workload);
    push_edge(run);
    push_epoch(run);
    expert_run_edge(run->experts);
    event_queue_push(&run->queue, 0, EVENT_TIMER, TIMER_GAUGE, 0);
    event_queue_push(&run->queue, run->config.horizon_ps, EVENT_TIMER, TIMER_HORIZON, 0);
}

/* Every session ended in one of the ways there are. */
static void sessions_audit(struct run *run)
{
    struct sessions_counts s = workload_sessions_all(run->workload);
    if (s.started == 0) {
        return;
    }
    metrics_audit_add(run->metrics, "sessions",
                      s.started == s.finished + s.given_up + s.past_horizon + s.cut,
                      "%llu sessions started, %llu finished, %llu gave up, %llu would have gone on "
                      "past the horizon, %llu were cut",
                      (unsigned long long)s.started, (unsigned long long)s.finished,
                      (unsigned long long)s.given_up, (unsigned long long)s.past_horizon,
                      (unsigned long long)s.cut);
}

static void finish(struct run *run, int64_t now_ps)
{
    run->end_ps = now_ps > run->config.horizon_ps ? now_ps : run->config.horizon_ps;
    for (uint32_t p = 0; p < run_pool_count(run); p++) {
        metrics_set_kv_peak(run->metrics, p, fleet_kv_peak(run->fleet, p));
        metrics_set_forecast_error(run->metrics, p, fleet_forecast_error(run->fleet, p));
    }
    struct fleet_totals totals = fleet_totals(run->fleet);
    metrics_set_routing(run->metrics, totals.routed, totals.routed_stale);
    metrics_finish(run->metrics, run->end_ps);
    expert_run_edge(run->experts);
    metrics_audit_add(run->metrics, "kv_blocks", totals.kv_blocks_leaked == 0,
                      "%lld blocks held by replicas with nothing to do",
                      (long long)totals.kv_blocks_leaked);
    metrics_audit_add(run->metrics, "arrivals", totals.arrived == run->arrived,
                      "the workload made %llu requests, the fleet saw %llu",
                      (unsigned long long)run->arrived, (unsigned long long)totals.arrived);
    sessions_audit(run);
}

/* Gives the loop its clients where some react; whether they do. */
static bool clients_make(struct loop *loop)
{
    struct run *run = loop->run;
    size_t classes = run_class_count(run);
    int64_t *patience_ps = memory_alloc(classes * sizeof *patience_ps);
    loop->with_clients = workload_is_live(run->workload);
    for (size_t c = 0; c < classes; c++) {
        patience_ps[c] = config_class(&run->config, c)->traffic.patience_ps;
        loop->with_clients |= patience_ps[c] != FIELD_INT_UNSET;
    }
    clients_init(&loop->clients, run->workload, &run->queue, patience_ps, classes);
    free(patience_ps);
    return loop->with_clients;
}

/* The arrivals as a trace: now, or, where they follow from the fleet, while the run goes on. */
static bool export_begin(struct run *run, const struct run_options *options,
                         struct run_export **export, struct errors *errors)
{
    *export = NULL;
    if (options->export_path == NULL) {
        return true;
    }
    if (!workload_is_live(run->workload)) {
        return run_export_trace(run, options->export_path, options->force, errors);
    }
    *export = run_export_open(run, options->export_path, options->force, errors);
    return *export != NULL;
}

bool run_simulate(struct run *run, const struct run_options *options, struct errors *errors)
{
    struct run_export *export;
    struct run_rows rows;
    if (!export_begin(run, options, &export, errors)) {
        return false;
    }
    if (!run_rows_open(&rows, run, options, errors)) {
        run_export_close(export, false, errors);
        return false;
    }
    run->metrics = metrics_make(run);
    run_plan_publish(run);
    digest_init(&run->digest);
    struct obs_sink sinks[6] = {
        metrics_sink(run->metrics),
        {.by_kind = digest_takers, .self = &run->digest, .kinds = DIGEST_KINDS}};
    size_t sink_count = 2;
    if (rows.wanted) {
        sinks[sink_count++] = request_log_sink(&rows.log);
    }
    event_queue_init(&run->queue, 1);
    struct loop loop = {.run = run, .options = options, .errors = errors};
    if (export != NULL) {
        sinks[sink_count++] = run_export_sink(export);
    }
    if (clients_make(&loop)) {
        sinks[sink_count++] = clients_sink(&loop.clients);
    }
    if (run->experts != NULL) {
        sinks[sink_count++] = expert_run_sink(run->experts);
    }
    run->fleet = fleet_make(run, sinks, sink_count, options->step_by_step);
    loop.clients.fleet = run->fleet;
    loop_begin(&loop);
    loop_run(&loop);
    if (!loop.failed) {
        finish(run, loop.now_ps);
    }
    double wall_s = wall_now();
    run->wall_s = wall_s - loop.began_s;
    report_progress(&loop, wall_s, true);
    clients_free(&loop.clients);
    run_rows_close(&rows, !loop.failed, errors);
    run_export_close(export, !loop.failed, errors);
    return !loop.failed;
}

uint64_t run_met_cold_start(const struct run *run)
{
    return fleet_met_cold_start(run->fleet);
}

/* Linux hands the peak that getrusage knows down from the process that started this one, which may
 * be a large one; that of /proc is our own. */
static uint64_t peak_rss_bytes(void)
{
    FILE *status = fopen("/proc/self/status", "r");
    unsigned long long kib = 0;
    char line[128];
    while (status && kib == 0 && fgets(line, sizeof line, status)) {
        sscanf(line, "VmHWM: %llu", &kib);
    }
    if (status) {
        fclose(status);
    }
    if (kib == 0) {
        struct rusage usage;
        getrusage(RUSAGE_SELF, &usage);
        kib = (unsigned long long)usage.ru_maxrss;
    }
    return (uint64_t)kib * 1024;
}

struct run_totals run_totals(const struct run *run)
{
    struct fleet_totals fleet = fleet_totals(run->fleet);
    struct run_totals totals = {
        .wall_s = run->wall_s,
        .events = run->events,
        .spans = fleet.spans,
        .iterations = fleet.iterations,
        .requests_per_s = run->wall_s > 0 ? (double)run->arrived / run->wall_s : NAN,
        .peak_rss_bytes = peak_rss_bytes(),
    };
    for (size_t p = 0; p < run_pool_count(run); p++) {
        totals.measuring_s += run->plans[p].measured.wall_s;
    }
    snprintf(totals.digest, sizeof totals.digest, "%016llx", (unsigned long long)run->digest.state);
    return totals;
}

const struct metrics_check *run_audit(const struct run *run, size_t *count, bool *ok)
{
    return metrics_audit(run->metrics, run->config.drain, count, ok);
}
