/* GPU time, billing, dollars, and an audit whose every check can fail. */
#include "tests/unit/support_metrics.h"

#define MIN (60 * SEC)

/* A launch from t0 to t1 that is idle all the time. */
static void launch(struct feed *f, uint32_t number, int64_t t0, int64_t t1)
{
    feed_roll(f, t0 - 1);
    feed_state(f, 0, number, t0, REPLICA_RELEASED, REPLICA_IDLE, t0, t0);
    if (t1 != TIME_NEVER) {
        feed_roll(f, t1 - 1);
        feed_state(f, 0, number, t1, REPLICA_IDLE, REPLICA_RELEASED, t0, t0);
    }
}

static struct metrics_pool billing_pool(int64_t increment_ps, int64_t minimum_ps)
{
    struct metrics_pool pool = feed_pool;
    pool.billing_increment_ps = increment_ps;
    pool.billing_minimum_ps = minimum_ps;
    return pool;
}

START_TEST(states_add_up)
{
    struct feed f = feed_open(NULL, NULL, 0, 2 * PS_PER_HOUR);
    feed_state(&f, 0, 0, 10 * MIN, REPLICA_RELEASED, REPLICA_PROVISIONING, 10 * MIN, 10 * MIN);
    feed_state(&f, 0, 0, 20 * MIN, REPLICA_PROVISIONING, REPLICA_LOADING, 10 * MIN, 10 * MIN);
    feed_state(&f, 0, 0, 30 * MIN, REPLICA_LOADING, REPLICA_IDLE, 20 * MIN, 10 * MIN);
    feed_state(&f, 0, 0, 45 * MIN, REPLICA_IDLE, REPLICA_SERVING, 30 * MIN, 10 * MIN);
    feed_roll(&f, 60 * MIN);
    feed_state(&f, 0, 0, 75 * MIN, REPLICA_SERVING, REPLICA_DRAINING, 45 * MIN, 10 * MIN);
    feed_state(&f, 0, 0, 90 * MIN, REPLICA_DRAINING, REPLICA_RELEASED, 75 * MIN, 10 * MIN);
    metrics_finish(f.m, 2 * PS_PER_HOUR);
    const struct metrics_gpu_hours *h0 = &feed_hour(&f, 0)->gpu_hours,
                                   *h1 = &feed_hour(&f, 1)->gpu_hours;
    ck_assert_double_eq(h0->provisioning, 1.0 / 6);
    ck_assert_double_eq(h0->loading, 1.0 / 6);
    ck_assert_double_eq(h0->idle, 0.25);
    ck_assert_double_eq(h0->serving, 0.25);
    ck_assert_double_eq(h1->serving, 0.25);
    ck_assert_double_eq(h1->draining, 0.25);
    ck_assert_double_eq(h0->starting, 1.0 / 3);
    ck_assert_double_eq(h0->ready, 0.5);
    ck_assert_double_eq(h0->held, 5.0 / 6);
    ck_assert_double_eq(h0->billed, 5.0 / 6);
    ck_assert_double_eq(feed_hour(&f, 0)->busy_share, 0.5);
    ck_assert_double_eq(feed_hour(&f, 0)->gpus_ready_mean, 0.5);
    ck_assert_uint_eq(feed_hour(&f, 1)->replicas_ready_max, 1);
    ck_assert_double_eq(metrics_summaries(f.m)->gpu_hours.held, 80.0 / 60);
    ck_assert(feed_audit(&f, true));
    metrics_free(f.m);
}
END_TEST

START_TEST(billing_rounds_each_launch)
{
    static const struct {
        int64_t increment, minimum, held, billed;
    } cases[] = {
        {0, 0, 50 * MIN, 50 * MIN},
        {1, 0, 50 * MIN + 7, 50 * MIN + 7},
        {MIN, 0, 50 * MIN, 50 * MIN},
        {MIN, 0, 50 * MIN + 1, 51 * MIN},
        {60 * MIN, 0, 1, 60 * MIN},
        {60 * MIN, 0, 61 * MIN, 120 * MIN},
        {MIN, 10 * MIN, 3 * MIN, 10 * MIN},
        {MIN, 10 * MIN, 11 * MIN, 11 * MIN},
        {7 * MIN, 10 * MIN, 8 * MIN, 14 * MIN},
        {0, 10 * MIN, 10 * MIN, 10 * MIN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct metrics_pool pool = billing_pool(cases[i].increment, cases[i].minimum);
        struct feed f = feed_open(&pool, NULL, 0, 4 * PS_PER_HOUR);
        launch(&f, 0, 30 * MIN, 30 * MIN + cases[i].held);
        launch(&f, 1, 100 * MIN, 100 * MIN + cases[i].held); /* rounded by itself */
        metrics_finish(f.m, 4 * PS_PER_HOUR);
        ck_assert_double_eq_tol(metrics_summaries(f.m)->gpu_hours.billed,
                                2 * (double)cases[i].billed / (double)PS_PER_HOUR, 1e-12);
        ck_assert(feed_audit(&f, true));
        metrics_free(f.m);
    }
}
END_TEST

/* A release exactly at the horizon, one in the drain, one that is still held, one before warmup:
 * rounding is booked once, by the horizon. What starts at the horizon owes nothing, not even the
 * minimum, whether it stays or goes at once. */
START_TEST(billing_at_the_ends)
{
    struct metrics_pool pool = billing_pool(60 * MIN, 20 * MIN);
    struct feed f = feed_open(&pool, NULL, 30 * MIN, 150 * MIN);
    feed_state(&f, 0, 0, 0, REPLICA_RELEASED, REPLICA_IDLE, 0, 0);
    feed_state(&f, 0, 1, 0, REPLICA_RELEASED, REPLICA_IDLE, 0, 0);
    feed_state(&f, 0, 2, 0, REPLICA_RELEASED, REPLICA_IDLE, 0, 0);
    feed_state(&f, 0, 3, 0, REPLICA_RELEASED, REPLICA_IDLE, 0, 0);
    feed_state(&f, 0, 3, 10 * MIN, REPLICA_IDLE, REPLICA_RELEASED, 0, 0); /* before warmup */
    feed_roll(&f, 120 * MIN);
    feed_state(&f, 0, 0, 150 * MIN, REPLICA_IDLE, REPLICA_RELEASED, 0, 0); /* at the horizon */
    int64_t end = 150 * MIN;
    feed_state(&f, 0, 4, end, REPLICA_RELEASED, REPLICA_IDLE, end, end);
    feed_state(&f, 0, 5, end, REPLICA_RELEASED, REPLICA_IDLE, end, end);
    feed_state(&f, 0, 5, end, REPLICA_IDLE, REPLICA_RELEASED, end, end);
    feed_roll(&f, end);
    feed_state(&f, 0, 1, 155 * MIN, REPLICA_IDLE, REPLICA_RELEASED, 0, 0); /* in the drain */
    metrics_finish(f.m, 160 * MIN);
    const struct metrics_summary *s = metrics_summaries(f.m);
    ck_assert_double_eq(s->gpu_hours.held, 3 * 2.0);
    ck_assert_double_eq(s->gpu_hours.billed, 3 * 2.5); /* 150 min → 180 min, 30 before warmup */
    ck_assert_double_eq(feed_hour(&f, 0)->gpu_hours.billed, 1.5);
    ck_assert_double_eq(feed_hour(&f, 2)->gpu_hours.billed, 3.0);
    ck_assert_double_eq(feed_hour(&f, 3)->gpu_hours.billed, 0);
    ck_assert_double_eq(s->usd.total, 22.5);
    ck_assert(feed_audit(&f, true));
    metrics_free(f.m);
}
END_TEST

/* Steps of 1 h in all: half of it only decodes, half a mix in which decodes alone would have taken
 * a tenth; the replica idles for another hour. */
START_TEST(dollars_split_between_input_and_output)
{
    struct feed f = feed_open(NULL, NULL, 0, 2 * PS_PER_HOUR);
    feed_state(&f, 0, 0, 0, REPLICA_RELEASED, REPLICA_SERVING, 0, 0);
    struct request_record r = feed_arrive(&f, 0, 4000, 1001);
    feed_admit(&f, 0, &r);
    feed_steps(&f, 0,
               (struct obs_steps){.base_ps = 30 * MIN,
                                  .count = 1,
                                  .running = 1,
                                  .prefill_tokens = 4000,
                                  .decode_ps = 3 * MIN,
                                  .work_ps = 15 * MIN});
    feed_first(&f, 30 * MIN, &r);
    feed_decode(&f, 30 * MIN, 30 * MIN / 1000, 1000);
    feed_roll(&f, 60 * MIN);
    feed_end(&f, 60 * MIN, &r, OUTCOME_COMPLETED);
    feed_state(&f, 0, 0, 60 * MIN, REPLICA_SERVING, REPLICA_IDLE, 0, 0);
    metrics_finish(f.m, 2 * PS_PER_HOUR);
    const struct metrics_summary *s = metrics_summaries(f.m);
    ck_assert_double_eq(s->usd.total, 6);
    ck_assert_double_eq(s->usd.low, 4);
    ck_assert_double_eq(s->usd.high, 8);
    ck_assert_double_eq_tol(s->usd.output, 6 * 33.0 / 60, 1e-12);
    ck_assert_double_eq_tol(s->usd.input + s->usd.output, 6, 1e-12);
    ck_assert_double_eq_tol(s->usd.per_mtok_total, 6e6 / 5001, 1e-9);
    ck_assert_double_eq_tol(s->usd.per_mtok_input, s->usd.input * 1e6 / 4000, 1e-9);
    ck_assert_double_eq_tol(s->usd.per_mtok_output, s->usd.output * 1e6 / 1001, 1e-9);
    ck_assert_double_eq(s->utilization, 45.0 / 120);
    ck_assert_double_eq(feed_hour(&f, 0)->usd.total + feed_hour(&f, 1)->usd.total, s->usd.total);
    ck_assert(isnan(feed_hour(&f, 1)->usd.output)); /* nothing ran: no ratio */
    ck_assert(isnan(feed_hour(&f, 1)->usd.per_mtok_input));
    ck_assert(feed_audit(&f, true));
    metrics_free(f.m);
}
END_TEST

/* No price: every dollar is undefined, nothing else is. A second pool without bounds adds its price
 * to the fleet's. */
START_TEST(prices_may_be_missing)
{
    struct metrics_pool pools[2] = {feed_pool, feed_pool};
    pools[1].usd_low = pools[1].usd_high = NAN;
    for (int priced = 1; priced >= 0; priced--) {
        pools[0].usd_per_gpu_hour = priced ? 3 : NAN;
        struct metrics_config config = {.pools = pools,
                                        .pool_count = 2,
                                        .classes = &feed_class,
                                        .class_count = 1,
                                        .horizon_ps = PS_PER_HOUR,
                                        .interval_ps = PS_PER_HOUR};
        struct feed f = {.m = metrics_create(&config)};
        f.sink = metrics_sink(f.m);
        feed_state(&f, 0, 0, 0, REPLICA_RELEASED, REPLICA_IDLE, 0, 0);
        feed_state(&f, 1, 0, 0, REPLICA_RELEASED, REPLICA_IDLE, 0, 0);
        metrics_finish(f.m, PS_PER_HOUR);
        const struct metrics_summary *s = metrics_summaries(f.m);
        ck_assert(priced ? s->usd.total == 6 : isnan(s->usd.total));
        ck_assert_double_eq(s->usd.low, 2 + 3);
        ck_assert_double_eq(s->usd.high, 4 + 3);
        ck_assert_double_eq(s->gpu_hours.billed, 2);
        metrics_free(f.m);
    }
}
END_TEST

/* --- the audit ----------------------------------------------------------------------------------
 */

enum fault {
    FAULT_NONE,
    FAULT_LOST_END,
    FAULT_TWICE_ENDED,
    FAULT_PROMPT,
    FAULT_TOKEN,
    FAULT_PREFILL,
    FAULT_STATE,
    FAULT_LATE_STATE,
    FAULT_NEGATIVE,
    FAULT_NO_FIRST,
    FAULT_COUNT
};

static void request_with(struct feed *f, enum fault fault)
{
    struct request_record r = feed_arrive(f, 0, 10, 3);
    feed_admit(f, SEC, &r);
    feed_prefill(f, SEC, 2 * SEC, fault == FAULT_PREFILL ? 11 : 10);
    if (fault == FAULT_NO_FIRST) {
        r.first_token_ps = 2 * SEC;
    } else {
        feed_first(f, 2 * SEC, &r);
    }
    feed_decode(f, 2 * SEC, SEC, fault == FAULT_TOKEN ? 1 : 2);
    if (fault == FAULT_NEGATIVE) {
        feed_emit(f, (struct obs){.kind = OBS_GAP, .time_ps = 3 * SEC, .u.gap_ps = -1});
    }
    r.cached_tokens = 0;
    if (fault == FAULT_PROMPT) {
        r.end_ps = 4 * SEC;
        r.outcome = OUTCOME_COMPLETED;
        r.emitted_tokens = 3;
        r.computed_tokens = 9;
        feed_record(f, OBS_END, 4 * SEC, &r);
    } else if (fault != FAULT_LOST_END) {
        feed_end(f, 4 * SEC, &r, OUTCOME_COMPLETED);
    }
    if (fault == FAULT_TWICE_ENDED) {
        feed_end(f, 5 * SEC, &r, OUTCOME_COMPLETED);
    }
}

START_TEST(every_check_can_fail)
{
    static const char *const caught[FAULT_COUNT] = {NULL,
                                                    "requests",
                                                    "requests_by_pool",
                                                    "prompt_tokens",
                                                    "output_tokens",
                                                    "prefill_tokens",
                                                    "gpu_time",
                                                    "gpu_time",
                                                    "overflow",
                                                    "histograms"};
    enum fault fault = (enum fault)_i;
    struct feed f = feed_open(NULL, NULL, 0, PS_PER_HOUR);
    feed_state(&f, 0, 0, 0, REPLICA_RELEASED, REPLICA_IDLE, 0, 0);
    request_with(&f, fault);
    enum replica_state from = fault == FAULT_STATE ? REPLICA_SERVING : REPLICA_IDLE;
    feed_state(&f, 0, 0, MIN, from, REPLICA_DRAINING, fault == FAULT_LATE_STATE ? SEC : 0, 0);
    feed_state(&f, 0, 0, 2 * MIN, REPLICA_DRAINING, REPLICA_RELEASED, MIN, 0);
    metrics_finish(f.m, PS_PER_HOUR);
    if (fault == FAULT_NONE) {
        ck_assert(feed_audit(&f, true));
    } else {
        ck_assert_msg(!feed_check_ok(&f, caught[fault]), "%s did not see fault %d", caught[fault],
                      _i);
    }
    metrics_free(f.m);
}
END_TEST

START_TEST(audit_joins_other_checks)
{
    struct feed f = feed_open(NULL, NULL, 0, PS_PER_HOUR);
    metrics_audit_add(f.m, "kv_blocks", true, "%d = %d", 5, 5);
    metrics_audit_add(f.m, "digest", false, "differs");
    metrics_finish(f.m, PS_PER_HOUR);
    size_t count, again;
    bool ok;
    const struct metrics_check *checks = metrics_audit(f.m, true, &count, &ok);
    ck_assert(!ok);
    ck_assert_uint_gt(count, 8);
    ck_assert_str_eq(checks[count - 2].name, "kv_blocks");
    ck_assert_str_eq(checks[count - 2].detail, "5 = 5");
    ck_assert(!feed_check_ok(&f, "digest"));
    metrics_audit(f.m, true, &again, &ok);
    ck_assert_uint_eq(again, count);
    metrics_free(f.m);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("metrics money");
    TCase *tcase = tcase_create("money");
    tcase_add_test(tcase, states_add_up);
    tcase_add_test(tcase, billing_rounds_each_launch);
    tcase_add_test(tcase, billing_at_the_ends);
    tcase_add_test(tcase, dollars_split_between_input_and_output);
    tcase_add_test(tcase, prices_may_be_missing);
    tcase_add_loop_test(tcase, every_check_can_fail, 0, FAULT_COUNT);
    tcase_add_test(tcase, audit_joins_other_checks);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
