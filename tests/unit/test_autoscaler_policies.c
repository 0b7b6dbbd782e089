/* Every autoscaling policy, by decisions from signals made by hand and by whole runs: steps,
 * survivors, stale signals, timetables, the oracle, latency limits, forecasts, scale to zero. */
#include <math.h>

#include "tests/fleet_drive.h"
#include "tests/run_text.h"
#include "tests/unit/suite_run.h"

struct bench {
    struct arena arena;
    struct variant_value value;
    const struct autoscaler_type *type;
    void *state;
};

static void bench_open(struct bench *b, const struct variant *variant, const char *a, const char *c,
                       const char *d, const char *e)
{
    arena_init(&b->arena);
    b->value = drive_variant(&b->arena, variant, "max_replicas=1000", a, c, d, e, NULL);
    b->type = b->value.type->ops;
    struct autoscaler_env env = {.lead_ps = SECONDS(180), .horizon_ps = SECONDS(864000)};
    b->state = b->type->create(b->value.config, &env);
}

static void bench_free(struct bench *b)
{
    b->type->destroy(b->state);
    arena_free(&b->arena);
}

static struct autoscaler_decision decide(struct bench *b, const struct autoscaler_signal *signal)
{
    struct autoscaler_decision decision = {0};
    b->type->decide(b->state, signal, &decision);
    return decision;
}

/* A signal 15 s after the one before, with this utilization of the ready replicas. */
static struct autoscaler_signal busy(int64_t now_s, uint32_t ready, int64_t percent)
{
    return (struct autoscaler_signal){.now_ps = SECONDS(now_s),
                                      .ready = ready,
                                      .active = true,
                                      .window_ps = SECONDS(15),
                                      .seen_ps = SECONDS(now_s),
                                      .kv_blocks = 1000,
                                      .work_ps = (int128)ready * SECONDS(15) * percent / 100};
}

/* T15 (b): the survivors must stay below 80 %: 2 at 70 % would be 1.40, 8 exactly 0.80 (not below),
 * 10 become 9 (0.778). The wish for one fewer comes from in-flight requests. */
START_TEST(t15b_survivors)
{
    static const struct {
        uint32_t ready, with, without;
    } cases[] = {{2, 2, 1}, {8, 8, 7}, {10, 9, 9}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int with = 0; with < 2; with++) {
            struct bench b;
            bench_open(&b, &autoscaler_target_variant, "metric=concurrency", "target=10",
                       "scale_down_window=0 s", with ? "scale_down_limit=80 %" : "tolerance=0 %");
            struct autoscaler_signal s = busy(15, cases[i].ready, 70);
            s.in_flight = 10 * (cases[i].ready - 1);
            if (with) { /* within 10 % of ten replicas, nine are no wish */
                s.in_flight -= cases[i].ready == 10 ? 1 : 0;
            }
            ck_assert_uint_eq(decide(&b, &s).target, with ? cases[i].with : cases[i].without);
            bench_free(&b);
        }
    }
}
END_TEST

/* Kubernetes' step limits: the larger of step and percent, counted from the period's begin. */
START_TEST(steps_limit_growth)
{
    struct bench b;
    bench_open(&b, &autoscaler_target_variant, "metric=concurrency", "target=1", "scale_up_step=4",
               "scale_up_percent=100 %");
    uint32_t present = 3;
    /* From 3: 7 (+4 beats 6) for a minute; then from 7: 14 (100 % beats 11); then 28. */
    static const uint32_t expected[] = {7, 7, 7, 7, 14, 14, 14, 14, 28};
    for (int64_t i = 0; i < 9; i++) {
        struct autoscaler_signal s = busy(15 * i, present, 100);
        s.in_flight = 500;
        present = decide(&b, &s).target;
        ck_assert_msg(present == expected[i], "at %lld s: %u", (long long)(15 * i), present);
    }
    bench_free(&b);
}
END_TEST

START_TEST(steps_limit_shrinking)
{
    struct bench b;
    bench_open(&b, &autoscaler_target_variant, "metric=concurrency", "target=1",
               "scale_down_percent=50 %", "scale_down_window=0 s");
    uint32_t present = 21;
    static const uint32_t expected[] = {10, 10, 10, 10, 5, 5, 5, 5, 2, 2, 2, 2, 1};
    for (int64_t i = 0; i < 13; i++) {
        struct autoscaler_signal s = busy(15 * i, present, 0);
        present = decide(&b, &s).target;
        ck_assert_msg(present == expected[i], "at %lld s: %u", (long long)(15 * i), present);
    }
    bench_free(&b);
}
END_TEST

/* queue: ceil(40 / 5) = 8; an empty queue lets go only what the survivors do not need. */
START_TEST(queue_and_kv)
{
    struct bench b;
    bench_open(&b, &autoscaler_queue_variant, "waiting=5", "scale_down_window=0 s", NULL, NULL);
    struct autoscaler_signal s = busy(0, 3, 90);
    s.waiting = 40;
    ck_assert_uint_eq(decide(&b, &s).target, 8);
    s = busy(15, 8, 40); /* 3.2 replicas of work: 5 at 64 %, 4 at exactly 80 % are too few */
    ck_assert_uint_eq(decide(&b, &s).target, 5);
    s.missing = true; /* an unreadable signal is no demand of zero */
    ck_assert_uint_eq(decide(&b, &s).target, 8);
    bench_free(&b);
    bench_open(&b, &autoscaler_kv_variant, "utilization=80 %", "scale_down_window=0 s", NULL, NULL);
    s = busy(0, 4, 90);
    s.kv_used = 3600; /* 0.9 of 4 × 1,000: ceil(3.6 / 0.8) = 5 */
    struct autoscaler_decision d = decide(&b, &s);
    ck_assert_uint_eq(d.target, 5);
    ck_assert_double_eq_tol(d.metric, 0.9, 1e-12);
    s.kv_blocks = INT64_MAX; /* unlimited: no signal, no change */
    ck_assert_uint_eq(decide(&b, &s).target, 4);
    bench_free(&b);
}
END_TEST

/* Spares come on top, and are not measured: 40 requests at 10 each are 4 + 2, and then hold. */
START_TEST(warm_pool_keeps_spares)
{
    struct bench b;
    bench_open(&b, &autoscaler_warm_pool_variant, "metric=concurrency", "target=10", "spares=2",
               NULL);
    struct autoscaler_signal s = busy(0, 4, 50);
    s.in_flight = 40;
    ck_assert_uint_eq(decide(&b, &s).target, 6);
    s = busy(15, 6, 50);
    s.in_flight = 42; /* within 10 % of the four that work */
    struct autoscaler_decision d = decide(&b, &s);
    ck_assert_uint_eq(d.target, 6);
    ck_assert_str_eq(d.reason, "within tolerance");
    bench_free(&b);
}
END_TEST

/* Limits: 3 of 20 late asks for 20 % more; requests late on an idle replica too are not chased. */
START_TEST(slo_grows_and_says_infeasible)
{
    struct bench b;
    bench_open(&b, &autoscaler_slo_variant, "ttft=1 s", "attainment=95 %", "scale_down_window=60 s",
               NULL);
    struct autoscaler_signal s = busy(15, 10, 90);
    s.ttft_count = 20;
    s.ttft_late = 3;
    struct autoscaler_decision d = decide(&b, &s);
    ck_assert_uint_eq(d.target, 12);
    ck_assert_double_eq_tol(d.metric, 0.85, 1e-12);
    ck_assert_uint_eq(decide(&b, &s).target, 10); /* the same scrape is not judged twice */
    s = busy(30, 10, 90);
    s.starting = 2; /* on their way: the share is of those ready */
    s.ttft_count = 20;
    s.ttft_late = 3;
    ck_assert_uint_eq(decide(&b, &s).target, 12);
    s = busy(45, 12, 90);
    s.ttft_count = s.ttft_late = s.ttft_hopeless = 20;
    d = decide(&b, &s);
    ck_assert_uint_eq(d.target, 12);
    ck_assert_ptr_nonnull(strstr(d.reason, "infeasible"));
    ck_assert(d.announce);
    s.now_ps = s.seen_ps = SECONDS(60);
    ck_assert(!decide(&b, &s).announce); /* said once */
    s = busy(75, 12, 90);
    s.waiting_late = 5; /* nobody is served, five wait too long */
    ck_assert_uint_eq(decide(&b, &s).target, 15);
    s = busy(300, 12, 50);
    s.ttft_count = 100;
    ck_assert_uint_eq(decide(&b, &s).target, 11);
    bench_free(&b);
}
END_TEST

/* Two days of 60 s buckets with a step from 1 to 10 requests/s at 1 h, each costing 1 replica-
 * second: on day 2 the step is foreseen a cold start (180 s) and a bucket ahead. */
START_TEST(predictive_foresees_a_season)
{
    struct bench b;
    bench_open(&b, &autoscaler_predictive_variant, "bucket=60 s", "season=7200 s", "target=50 %",
               "scale_down_window=0 s");
    uint64_t arrived = 0;
    uint32_t present = 2, before = 0, after = 0;
    int64_t foreseen_s = -1;
    for (int64_t t = 0; t < 4 * 3600; t += 15) {
        struct autoscaler_signal s = busy(t, present, 50);
        s.arrived_total = arrived;
        s.work_total_ps = (int128)arrived * PS_PER_SECOND;
        present = decide(&b, &s).target;
        before = t == 2 * 3600 + 1800 ? present : before;
        after = t == 3 * 3600 + 1800 ? present : after;
        if (foreseen_s < 0 && t > 2 * 3600 + 1200 && present >= 20) {
            foreseen_s = t;
        }
        arrived += (uint64_t)(15 * (t / 3600 % 2 == 0 ? 1 : 10));
    }
    ck_assert_uint_eq(before, 2);
    ck_assert_uint_eq(after, 20);
    ck_assert_int_eq(foreseen_s, 3 * 3600 - 240);
    double error = b.type->forecast_error(b.state);
    ck_assert(isfinite(error) && error > 0 && error < 0.2);
    bench_free(&b);
}
END_TEST

#define SCALED(horizon, pool)                                                                      \
    "name: scaled\n"                                                                               \
    "horizon: " horizon "\n"                                                                       \
    "start: 2026-03-02T06:00:00Z\n"                                                                \
    "workload: [{name: w, arrivals: {process: trace, file: trace.csv}}]\n"                         \
    "fleet:\n"                                                                                     \
    "  pools:\n"                                                                                   \
    "    - name: main\n"                                                                           \
    "      step_time: {model: constant, step: 1 s}\n"                                              \
    "      cold_start: {provision: 60 s, image_pull: 60 s, weights: 30 s, engine_init: 30 s}\n"    \
    "      price: {usd_per_gpu_hour: 3600}\n" pool

static const struct metrics_scale_event *events_of(const struct run_text *r, size_t *count)
{
    return metrics_scale_events(run_metrics(r->run), count);
}

/* T15 (d): idle timer 60 s, load time 180 s, scale from 0 by one request: it is ready, and serves
 * it, at 180 + service; the replica is not let go while loading, and goes 60 s after. */
START_TEST(t15d_scale_from_zero)
{
    struct run_text r =
        run_text_do(SCALED("1000 s", "      initial_replicas: 0\n"
                                     "      autoscaler: {policy: target, metric: concurrency, "
                                     "target: 10, min_replicas: 0, max_replicas: 5, "
                                     "idle_timeout: 60 s, scale_down_window: 0 s}\n"),
                    "100,1,3\n");
    ck_assert_str_eq(r.rows[0].outcome, "completed");
    ck_assert_int_eq(r.rows[0].admitted_ps, SECONDS(280));
    ck_assert_int_eq(r.rows[0].first_token_ps, SECONDS(281));
    ck_assert_int_eq(r.rows[0].end_ps, SECONDS(283));
    size_t count;
    const struct metrics_scale_event *e = events_of(&r, &count);
    ck_assert_uint_eq(count, 2);
    ck_assert_int_eq(e[0].time_ps, SECONDS(100));
    ck_assert_uint_eq(e[0].target, 1);
    ck_assert_uint_eq(e[1].target, 0);
    ck_assert_int_eq(e[1].time_ps, SECONDS(345)); /* first seen idle at 285 */
    const struct metrics_summary *s = run_text_summary(&r);
    ck_assert_double_eq_tol(s->gpu_hours.held * 3600, 245, 1e-9);
    ck_assert_uint_eq(run_met_cold_start(r.run), 1);
    /* $1 a second: three steps of work, the rest of 65 s ready, 180 s of cold start. */
    ck_assert_double_eq_tol(s->split.work, 3, 1e-9);
    ck_assert_double_eq_tol(s->split.headroom, 62, 1e-9);
    ck_assert_double_eq_tol(s->split.cold_start, 180, 1e-9);
    ck_assert_double_eq_tol(s->split.drain, 0, 1e-9);
    ck_assert_double_eq_tol(s->split.rounding, 0, 1e-9);
    ck_assert_double_eq(s->split.refused, 0);
    ck_assert(isnan(s->forecast_error));
    run_text_free(&r);
}
END_TEST

/* A full pool refuses what it cannot hold, at zero too. */
START_TEST(held_requests_are_bounded)
{
    struct run_text r =
        run_text_do(SCALED("600 s", "      initial_replicas: 0\n"
                                    "      max_queue: 2\n"
                                    "      autoscaler: {policy: target, metric: concurrency, "
                                    "target: 10, min_replicas: 0, max_replicas: 5}\n"),
                    "100,1,3\n101,1,3\n102,1,3\n");
    ck_assert_str_eq(r.rows[0].outcome, "completed");
    ck_assert_str_eq(r.rows[1].outcome, "completed");
    ck_assert_str_eq(r.rows[2].outcome, "refused");
    const struct metrics_summary *s = run_text_summary(&r);
    ck_assert_double_eq_tol(s->split.work, 3, 1e-9); /* both in one batch */
    ck_assert_double_eq_tol(s->split.refused, 1.5, 1e-9);
    ck_assert_uint_eq(run_met_cold_start(r.run), 3); /* the one turned away too */
    double sum = s->split.work + s->split.headroom + s->split.cold_start + s->split.drain +
                 s->split.rounding;
    ck_assert_double_eq_tol(sum, s->usd.total, 1e-9);
    run_text_free(&r);
}
END_TEST

/* The clock at time 0 is 06:00. What grows is ordered `ahead`, what shrinks goes on time. */
START_TEST(schedule_by_the_clock)
{
    struct run_text r = run_text_do(
        SCALED("24 h",
               "      initial_replicas: 2\n"
               "      autoscaler: {policy: schedule, ahead: 10 min, times: [{at: \"07:00\", "
               "replicas: 5}, {at: \"22:30\", replicas: 2}]}\n"),
        "0,1,3\n");
    size_t count;
    const struct metrics_scale_event *e = events_of(&r, &count);
    ck_assert_uint_eq(count, 2);
    ck_assert_int_eq(e[0].time_ps, SECONDS(3000));
    ck_assert_uint_eq(e[0].target, 5);
    ck_assert_int_eq(e[1].time_ps, SECONDS(16 * 3600 + 1800));
    ck_assert_uint_eq(e[1].target, 2);
    run_text_free(&r);
}
END_TEST

START_TEST(schedule_refuses_nonsense)
{
    static const char *const times[] = {
        "{at: \"24:00\", replicas: 1}", "{at: \"7:00\", replicas: 1}",
        "{at: \"08:00\", replicas: 1}, {at: \"08:00\", replicas: 2}"};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        char set[160];
        snprintf(set, sizeof set, "fleet.pools[0].autoscaler={policy: schedule, times: [%s]}",
                 times[i]);
        const char *const sets[] = {set};
        struct run_text r;
        ck_assert(!run_text_open(&r,
                                 SCALED("1 h", "      initial_replicas: 1\n"
                                               "      autoscaler: {policy: static, replicas: "
                                               "1}\n"),
                                 "0,1,1\n", sets, 1));
        run_text_free(&r);
    }
}
END_TEST

#define CURVE(values, pool)                                                                        \
    "name: curve\n"                                                                                \
    "horizon: 3 h\n"                                                                               \
    "workload:\n"                                                                                  \
    "  - name: w\n"                                                                                \
    "    arrivals: {process: constant, rate: 6 /s, curve: {shape: hourly, values: " values "}}\n"  \
    "    prompt_tokens: {dist: constant, value: 100}\n"                                            \
    "    output_tokens: {dist: constant, value: 10}\n"                                             \
    "fleet:\n"                                                                                     \
    "  pools:\n"                                                                                   \
    "    - name: main\n"                                                                           \
    "      step_time: {model: rate, prefill_tokens_per_s: 10000, decode_tokens_per_s: 100, "       \
    "min_step: 10 ms}\n"                                                                           \
    "      cold_start: {provision: 60 s, image_pull: 60 s, weights: 30 s, engine_init: 30 s}\n"    \
    "      price: {usd_per_gpu_hour: 1}\n" pool

/* The oracle holds Σ need(h) ready replica-hours, and what more it pays is the cold starts. */
START_TEST(ideal_is_ready_on_the_hour)
{
    struct run_text r = run_text_do(CURVE("[4,40,40,12,4,4,4,4,4,4,4,4,4,4,4,4,4,4,4,4,4,4,4,4]",
                                          "      autoscaler: {policy: ideal}\n"),
                                    NULL);
    const struct metrics_summary *s = run_text_summary(&r);
    size_t count;
    const struct metrics_scale_event *e = events_of(&r, &count);
    ck_assert_uint_ge(count, 1);
    ck_assert_int_eq(e[0].time_ps, SECONDS(3600 - 180));
    for (size_t h = 0; h < 3; h++) {
        const struct metrics_hour *row = run_text_hour(&r, h);
        ck_assert_double_eq_tol(row->gpu_hours.ready, row->need_gpus, 1e-9);
    }
    ck_assert_double_eq_tol(s->gpu_hours.ready, s->gpu_hours_ideal, 1e-9);
    ck_assert_double_gt(s->gpu_hours.starting, 0);
    run_text_free(&r);
}
END_TEST

START_TEST(ideal_needs_a_plan)
{
    struct run_text r;
    ck_assert(!run_text_open(&r,
                             SCALED("1 h", "      initial_replicas: 1\n"
                                           "      autoscaler: {policy: ideal}\n"),
                             "0,1,1\n", NULL, 0));
    run_text_free(&r);
}
END_TEST

/* A decision at 60 with a scrape each 30 s and a delay of 45 s sees the scrape of 0: nothing. */
START_TEST(stale_signals)
{
    const char *const trace = "10,1,500\n10,1,500\n10,1,500\n10,1,500\n";
    struct run_text r = run_text_do(
        SCALED("300 s", "      initial_replicas: 1\n"
                        "      autoscaler: {policy: target, metric: concurrency, target: 1, "
                        "max_replicas: 9, signals: {interval: 30 s, delay: 45 s}}\n"),
        trace);
    size_t count;
    const struct metrics_scale_event *e = events_of(&r, &count);
    ck_assert_uint_eq(count, 1);
    ck_assert_int_eq(e[0].time_ps, SECONDS(75)); /* the scrape of 30 s can be seen from 75 s on */
    ck_assert_uint_eq(e[0].target, 4);
    run_text_free(&r);
}
END_TEST

/* A prompt takes 10 s alone, the limit is 1 s: said, not chased; and the same to the bit step by
 * step. */
START_TEST(slo_run_infeasible)
{
    const char *const yaml =
        SCALED("600 s", "      initial_replicas: 1\n"
                        "      autoscaler: {policy: slo, ttft: 500 ms, max_replicas: 9}\n");
    const char *const trace = "0,1,2\n20,1,2\n40,1,2\n60,1,2\n80,1,2\n";
    struct run_text r = run_text_do(yaml, trace);
    struct run_text step = run_text_set(yaml, trace, NULL, 0, true);
    size_t count;
    const struct metrics_scale_event *e = events_of(&r, &count);
    ck_assert_uint_ge(count, 1);
    for (size_t i = 0; i < count; i++) {
        ck_assert_uint_eq(e[i].target, 1);
        ck_assert_ptr_nonnull(strstr(e[i].reason, "infeasible"));
    }
    ck_assert_str_eq(r.totals.digest, step.totals.digest);
    run_text_free(&r);
    run_text_free(&step);
}
END_TEST

/* Changes in the last two of four hours of constant load that 3.3 replicas carry. */
static size_t late_changes(const char *policy)
{
    char set[200];
    snprintf(set, sizeof set, "fleet.pools[0].autoscaler=%s", policy);
    const char *const sets[] = {set, "horizon=4 h", "fleet.pools[0].initial_replicas=5",
                                "workload[0].arrivals={process: constant, rate: 30 /s}"};
    struct run_text r =
        run_text_set(CURVE("[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]",
                           "      engine: {num_gpu_blocks_override: 400, max_num_seqs: 16}\n"
                           "      initial_replicas: 5\n"
                           "      autoscaler: {policy: static, replicas: 5}\n"),
                     NULL, sets, 4, false);
    size_t count, late = 0;
    const struct metrics_scale_event *e = events_of(&r, &count);
    for (size_t k = 0; k < count; k++) {
        late += e[k].time_ps > SECONDS(7200) && e[k].target != e[k].ready + e[k].starting;
    }
    run_text_free(&r);
    return late;
}

START_TEST(nothing_oscillates_on_constant_load)
{
    static const char *const policies[] = {
        "{policy: target, metric: concurrency, target: 4, max_replicas: 50, scale_down_limit: 80 "
        "%}",
        "{policy: target, metric: utilization, target: 60 %, max_replicas: 50}",
        "{policy: queue, waiting: 3, max_replicas: 50}",
        "{policy: kv, utilization: 50 %, max_replicas: 50}",
        "{policy: predictive, target: 60 %, max_replicas: 50}",
        "{policy: warm_pool, spares: 2, target: 60 %, max_replicas: 50}",
        "{policy: slo, ttft: 1 s, max_replicas: 50}",
        "{policy: ideal}"};
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        size_t late = late_changes(policies[i]);
        ck_assert_msg(late == 0, "%s: %zu changes in the last two hours", policies[i], late);
    }
}
END_TEST

/* What the survivors' limit is for: three replicas hold 1.3 requests each, one is overrun. Every
 * count that can carry the load is below a target of 4 in flight, so the plain rule shrinks the
 * fleet into overload, over and over. */
START_TEST(plain_concurrency_oscillates)
{
    ck_assert_uint_gt(
        late_changes("{policy: target, metric: concurrency, target: 4, max_replicas: 50}"), 10);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {t15b_survivors,
                                  steps_limit_growth,
                                  steps_limit_shrinking,
                                  queue_and_kv,
                                  warm_pool_keeps_spares,
                                  slo_grows_and_says_infeasible,
                                  predictive_foresees_a_season,
                                  t15d_scale_from_zero,
                                  held_requests_are_bounded,
                                  schedule_by_the_clock,
                                  schedule_refuses_nonsense,
                                  ideal_is_ready_on_the_hour,
                                  ideal_needs_a_plan,
                                  stale_signals,
                                  slo_run_infeasible,
                                  nothing_oscillates_on_constant_load,
                                  plain_concurrency_oscillates,
                                  NULL};
    return suite_run("autoscaler policies", tests, 120);
}
