/* Autoscalers: decisions from signals made by hand, and whole runs with cold starts, draining and
 * the bill (T14, T15). */
#include <math.h>

#include "sim/base/rng.h"
#include "tests/fleet_drive.h"
#include "tests/run_text.h"
#include "tests/unit/suite_run.h"

/* One policy with its state. */
struct bench {
    struct arena arena;
    struct variant_value value;
    const struct autoscaler_type *type;
    void *state;
};

static void bench_open(struct bench *b, const char *a, const char *c, const char *d)
{
    arena_init(&b->arena);
    b->value =
        drive_variant(&b->arena, &autoscaler_target_variant, "max_replicas=1000", a, c, d, NULL);
    b->type = b->value.type->ops;
    b->state = b->type->create(b->value.config, &(struct autoscaler_env){0});
}

static void bench_free(struct bench *b)
{
    b->type->destroy(b->state);
    arena_free(&b->arena);
}

static struct autoscaler_decision decide(struct bench *b, int64_t now_ps, uint32_t ready,
                                         uint32_t starting, uint64_t in_flight)
{
    struct autoscaler_signal signal = {.now_ps = now_ps,
                                       .ready = ready,
                                       .starting = starting,
                                       .in_flight = in_flight,
                                       .window_ps = now_ps == 0 ? 0 : SECONDS(15)};
    struct autoscaler_decision decision;
    b->type->decide(b->state, &signal, &decision);
    return decision;
}

/* T14: tolerance 10 %, exact: in doubles 110 on 10 is beyond it, and 0.07 × 100 is above 7. */
START_TEST(t14_rounding)
{
    static const struct {
        uint32_t ready;
        uint64_t in_flight;
        uint32_t target;
    } cases[] = {{10, 110, 10}, {10, 111, 12}, {10, 120, 12},     {100, 70, 7},
                 {10, 90, 10},  {10, 89, 9},   {3, 33, 3},        {3, 34, 4},
                 {7, 77, 7},    {7, 78, 8},    {1000, 9000, 1000}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bench b;
        bench_open(&b, "metric=concurrency", "target=10", "scale_down_window=0 s");
        struct autoscaler_decision d = decide(&b, 0, cases[i].ready, 0, cases[i].in_flight);
        ck_assert_msg(d.target == cases[i].target, "%u ready, %llu in flight: %u", cases[i].ready,
                      (unsigned long long)cases[i].in_flight, d.target);
        ck_assert_double_eq_tol(d.metric, (double)cases[i].in_flight / cases[i].ready, 1e-12);
        bench_free(&b);
    }
}
END_TEST

/* T14: replicas that are starting count, or every decision would order them again. */
START_TEST(t14_pending_replicas_count)
{
    struct bench b;
    bench_open(&b, "metric=concurrency", "target=10", NULL);
    ck_assert_uint_eq(decide(&b, 0, 2, 0, 40).target, 4);
    for (int64_t t = 15; t < 180; t += 15) {
        ck_assert_uint_eq(decide(&b, SECONDS(t), 2, 2, 40).target, 4);
    }
    ck_assert_uint_eq(decide(&b, SECONDS(180), 4, 0, 40).target, 4);
    bench_free(&b);
}
END_TEST

/* T15 (a): a wish exactly 300 s old is outside the window. */
START_TEST(t15a_scale_down_window)
{
    static const uint32_t wishes[] = {10, 10, 15, 10, 10, 5, 5, 5, 5, 5, 5};
    static const uint32_t results[] = {10, 10, 15, 15, 15, 15, 15, 10, 10, 5, 5};
    struct bench b;
    bench_open(&b, "metric=concurrency", "target=10", "interval=60 s");
    uint32_t present = 10;
    for (size_t i = 0; i < sizeof wishes / sizeof *wishes; i++) {
        struct autoscaler_decision d =
            decide(&b, SECONDS(60 * (int64_t)i), present, 0, 10 * wishes[i]);
        ck_assert_uint_eq(d.wished, wishes[i]);
        ck_assert_msg(d.target == results[i], "at %zu s: %u", 60 * i, d.target);
        present = d.target;
    }
    bench_free(&b);
}
END_TEST

/* The windows begin with what there is (Kubernetes: recordInitialRecommendation): a fleet that
 * starts before its traffic does is not scaled down at the first decision, but a window later. */
START_TEST(the_window_begins_with_the_initial_replicas)
{
    struct bench b;
    bench_open(&b, "metric=concurrency", "target=10", "scale_down_window=300 s");
    uint32_t present = 10;
    for (int64_t t = 0; t < 300; t += 15) {
        present = decide(&b, SECONDS(t), present, 0, 0).target;
        ck_assert_msg(present == 10, "%u replicas at %lld s", present, (long long)t);
    }
    ck_assert_uint_eq(decide(&b, SECONDS(300), present, 0, 0).target, 1);
    bench_free(&b);
}
END_TEST

/* A scale-up window holds back until every wish in it is above. */
START_TEST(scale_up_window)
{
    struct bench b;
    bench_open(&b, "metric=concurrency", "target=10", "scale_up_window=60 s");
    ck_assert_uint_eq(decide(&b, 0, 2, 0, 20).target, 2);
    ck_assert_uint_eq(decide(&b, SECONDS(15), 2, 0, 50).target, 2);
    ck_assert_uint_eq(decide(&b, SECONDS(45), 2, 0, 40).target, 2);
    ck_assert_uint_eq(decide(&b, SECONDS(60), 2, 0, 50).target, 4);
    bench_free(&b);
}
END_TEST

/* No traffic is no demand: the floor. No window yet is no signal: what there is. Neither is a NaN
 * that decides. */
START_TEST(nothing_over_nothing)
{
    struct bench b;
    bench_open(&b, "metric=utilization", "target=70 %", "scale_down_window=0 s");
    struct autoscaler_decision first = decide(&b, 0, 5, 0, 0);
    ck_assert_uint_eq(first.target, 5);
    ck_assert(isnan(first.metric));
    struct autoscaler_decision idle = decide(&b, SECONDS(15), 5, 0, 0);
    ck_assert_uint_eq(idle.target, 1);
    ck_assert_double_eq(idle.metric, 0);
    struct autoscaler_decision loading = decide(&b, SECONDS(30), 0, 3, 0);
    ck_assert_uint_eq(loading.target, 1);
    ck_assert(isnan(loading.metric));
    bench_free(&b);
}
END_TEST

/* Whatever the signal: never below the floor, never above the ceiling; the result is never outside
 * what lies between the present and the wish of some decision in the window. */
START_TEST(limits_always_hold)
{
    struct arena arena;
    arena_init(&arena);
    struct variant_value value =
        drive_variant(&arena, &autoscaler_target_variant, "metric=utilization", "target=0.3",
                      "min_replicas=3", "max_replicas=40", "scale_down_window=60 s", NULL);
    const struct autoscaler_type *type = value.type->ops;
    void *state = type->create(value.config, &(struct autoscaler_env){0});
    uint64_t key = rng_key(2, 0, RNG_TEST, 0);
    uint32_t present = 3;
    bool floor = false, ceiling = false;
    for (uint64_t i = 0; i < 20000; i++) {
        struct rng_pair draw = rng_draw(key, i, 0);
        uint32_t starting = (uint32_t)(draw.a >> 40) % (present + 1);
        struct autoscaler_signal signal = {
            .now_ps = (int64_t)i * SECONDS(15),
            .ready = present - starting,
            .starting = starting,
            .in_flight = draw.b % 1000,
            .window_ps = i == 0 ? 0 : SECONDS(15),
            .work_ps = i % 200 < 40 ? 0 : (int128)(draw.a % 20) * SECONDS(15),
        };
        struct autoscaler_decision d;
        type->decide(state, &signal, &d);
        ck_assert_uint_ge(d.target, 3);
        ck_assert_uint_le(d.target, 40);
        ck_assert(signal.ready == 0 || signal.window_ps == 0 || isfinite(d.metric));
        present = d.target;
        floor |= present == 3 && i > 0;
        ceiling |= present == 40;
    }
    ck_assert(floor && ceiling);
    type->destroy(state);
    arena_free(&arena);
}
END_TEST

/* A target that rounds to nothing is the user's slip, not ours: an error, or a run that works. */
START_TEST(a_tiny_target_is_no_fault_of_ours)
{
    const char *const yaml = "name: tiny\nhorizon: 1 min\n"
                             "workload: [{name: w, arrivals: {process: trace, file: trace.csv}}]\n"
                             "fleet:\n"
                             "  pools:\n"
                             "    - name: main\n"
                             "      step_time: {model: constant, step: 1 s}\n"
                             "      initial_replicas: 1\n"
                             "      autoscaler: {policy: target, metric: concurrency, "
                             "target: 1e-7, max_replicas: 2}\n";
    struct run_text r;
    if (run_text_open(&r, yaml, "0,1,1\n", NULL, 0)) {
        run_text_simulate(&r, false);
    } else {
        ck_assert_uint_gt(r.errors.error_count, 0);
    }
    run_text_free(&r);
}
END_TEST

#define SCALED(horizon, interval, pool)                                                            \
    "name: scaled\n"                                                                               \
    "horizon: " horizon "\n"                                                                       \
    "output: {trace_interval: " interval "}\n"                                                     \
    "workload: [{name: w, arrivals: {process: trace, file: trace.csv}}]\n"                         \
    "fleet:\n"                                                                                     \
    "  pools:\n"                                                                                   \
    "    - name: main\n"                                                                           \
    "      step_time: {model: constant, step: 1 s}\n"                                              \
    "      cold_start: {provision: 60 s, image_pull: 60 s, weights: 30 s, engine_init: 30 s}\n"    \
    "      price: {usd_per_gpu_hour: 3600}\n" pool

static char *repeat(const char *line, size_t count)
{
    size_t length = strlen(line);
    char *text = memory_alloc(count * length + 1);
    for (size_t i = 0; i < count; i++) {
        memcpy(text + i * length, line, length + 1);
    }
    return text;
}

/* T14: target 10, 2 ready, 40 in flight constantly, decisions at 0, 15, …, start-up 180 s: one
 * decision orders 2, 720 replica-seconds are held in [0, 180), then 4 serve. $1 a replica-second.
 */
START_TEST(t14_a_run)
{
    char *trace = repeat("0,1,900\n", 40);
    struct run_text r = run_text_do(SCALED("720 s", "180 s",
                                           "      initial_replicas: 2\n"
                                           "      autoscaler: {policy: target, metric: "
                                           "concurrency, target: 10, max_replicas: 100}\n"),
                                    trace);
    size_t count;
    const struct metrics_scale_event *events = metrics_scale_events(run_metrics(r.run), &count);
    ck_assert_uint_eq(count, 1);
    ck_assert_int_eq(events[0].time_ps, 0);
    ck_assert_uint_eq(events[0].ready, 2);
    ck_assert_uint_eq(events[0].target, 4);
    for (size_t k = 0; k < 4; k++) {
        const struct metrics_hour *h = run_text_hour(&r, k);
        ck_assert_double_eq_tol(h->gpu_hours.held * 3600, 720, 1e-9);
        ck_assert_double_eq_tol(h->gpu_hours.billed * 3600, 720, 1e-9);
        ck_assert_double_eq_tol(h->usd.total, 720, 1e-9);
        ck_assert_double_eq_tol(h->gpu_hours.starting * 3600, k == 0 ? 360 : 0, 1e-9);
        ck_assert_double_eq_tol(h->gpu_hours.provisioning * 3600, k == 0 ? 240 : 0, 1e-9);
        ck_assert_double_eq_tol(h->gpu_hours.loading * 3600, k == 0 ? 120 : 0, 1e-9);
        ck_assert_double_eq_tol(h->gpu_hours.ready * 3600, k == 0 ? 360 : 720, 1e-9);
        ck_assert_uint_eq(h->replicas_held_max, 4);
        ck_assert_uint_eq(h->requests.in_flight, 40);
    }
    ck_assert_double_eq_tol(run_text_summary(&r)->gpu_hours.held * 3600, 2880, 1e-9);
    run_text_free(&r);
    free(trace);
}
END_TEST

/* T15 (c): 7 replicas, load stops at 600, floor 1. The last wish of 7 was at 585: at 885 it is
 * outside the window. */
START_TEST(t15c_load_stops)
{
    char *trace = repeat("0,1,600\n", 70);
    struct run_text r = run_text_do(SCALED("1800 s", "900 s",
                                           "      initial_replicas: 7\n"
                                           "      autoscaler: {policy: target, metric: "
                                           "concurrency, target: 10, max_replicas: 100}\n"),
                                    trace);
    size_t count;
    const struct metrics_scale_event *events = metrics_scale_events(run_metrics(r.run), &count);
    ck_assert_uint_eq(count, 1);
    ck_assert_int_eq(events[0].time_ps, SECONDS(885));
    ck_assert_uint_eq(events[0].ready, 7);
    ck_assert_uint_eq(events[0].target, 1);
    ck_assert_double_eq(events[0].metric, 0);
    const struct metrics_summary *s = run_text_summary(&r);
    ck_assert_double_eq_tol(s->gpu_hours.held * 3600, 7 * 885 + 1 * 915, 1e-9);
    for (size_t k = 0; k < 2; k++) {
        const struct metrics_hour *h = run_text_hour(&r, k);
        ck_assert(isfinite(h->gpus_held_mean) && isfinite(h->gpus_ready_mean));
        ck_assert(isfinite(h->utilization) && isfinite(h->busy_share));
        ck_assert(isfinite(h->in_flight_mean) && isfinite(h->in_flight_per_ready_gpu));
        ck_assert(isfinite(h->usd.total) && isfinite(h->gpu_hours.billed));
    }
    run_text_free(&r);
    free(trace);
}
END_TEST

/* GPU-hours include draining: of two replicas with a long request each, the newer drains from 300
 * until its request ends at 1,000. */
START_TEST(draining_is_held_and_billed)
{
    char *tail = repeat("0,1,10\n", 18);
    char *trace = memory_alloc(strlen(tail) + 64);
    snprintf(trace, strlen(tail) + 64, "0,1,1000\n0,1,1000\n%s", tail);
    struct run_text r = run_text_do(SCALED("2000 s", "3600 s",
                                           "      initial_replicas: 2\n"
                                           "      autoscaler: {policy: target, metric: "
                                           "concurrency, target: 10, max_replicas: 100}\n"),
                                    trace);
    ck_assert_int_eq(r.rows[0].replica, 0);
    ck_assert_int_eq(r.rows[1].replica, 1);
    ck_assert_int_eq(r.rows[1].end_ps, SECONDS(1000));
    const struct metrics_gpu_hours *g = &run_text_summary(&r)->gpu_hours;
    ck_assert_double_eq_tol(g->ready * 3600, 2000 + 300, 1e-9);
    ck_assert_double_eq_tol(g->draining * 3600, 700, 1e-9);
    ck_assert_double_eq_tol(g->held * 3600, 3000, 1e-9);
    ck_assert_double_eq_tol(g->billed * 3600, 3000, 1e-9);
    run_text_free(&r);
    free(trace);
    free(tail);
}
END_TEST

/* A replica that is still starting when it is no longer wanted is dropped at once, and before any
 * that serve. */
START_TEST(starting_replicas_go_first)
{
    char *trace = repeat("0,1,30\n", 60);
    struct run_text r = run_text_do(SCALED("600 s", "600 s",
                                           "      initial_replicas: 2\n"
                                           "      autoscaler: {policy: target, metric: "
                                           "concurrency, target: 10, max_replicas: 100, "
                                           "scale_down_window: 0 s, min_replicas: 2}\n"),
                                    trace);
    size_t count;
    const struct metrics_scale_event *events = metrics_scale_events(run_metrics(r.run), &count);
    ck_assert_uint_eq(count, 2);
    ck_assert_uint_eq(events[0].target, 6);
    ck_assert_int_eq(events[1].time_ps, SECONDS(30));
    ck_assert_uint_eq(events[1].starting, 4);
    ck_assert_uint_eq(events[1].target, 2);
    const struct metrics_gpu_hours *g = &run_text_summary(&r)->gpu_hours;
    ck_assert_double_eq_tol(g->provisioning * 3600, 4 * 30, 1e-9);
    ck_assert_double_eq_tol(g->ready * 3600, 1200, 1e-9);
    ck_assert_double_eq_tol(g->held * 3600, 1320, 1e-9);
    run_text_free(&r);
    free(trace);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {t14_rounding,
                                  t14_pending_replicas_count,
                                  t15a_scale_down_window,
                                  the_window_begins_with_the_initial_replicas,
                                  scale_up_window,
                                  nothing_over_nothing,
                                  limits_always_hold,
                                  a_tiny_target_is_no_fault_of_ours,
                                  t14_a_run,
                                  t15c_load_stops,
                                  draining_is_held_and_billed,
                                  starting_replicas_go_first,
                                  NULL};
    return suite_run("autoscaler", tests, 60);
}
