/* What is counted, where it is filed, and what the statistics mean. */
#include "tests/unit/support_metrics.h"

/* T11: tokens at 1.0, 1.1, 1.2, 1.5; then a request with one token, and one with none. */
START_TEST(first_token_gaps_and_time_per_token)
{
    struct feed f = feed_open(NULL, NULL, 0, PS_PER_HOUR);
    feed_state(&f, 0, 0, 0, REPLICA_RELEASED, REPLICA_SERVING, 0, 0);
    struct request_record a = feed_arrive(&f, 0, 10, 4), b = feed_arrive(&f, 0, 10, 1),
                          c = feed_arrive(&f, 0, 10, 0);
    feed_admit(&f, 0, &a);
    feed_prefill(&f, 0, 1000 * MS, 10);
    feed_first(&f, 1000 * MS, &a);
    feed_decode(&f, 1000 * MS, 100 * MS, 2);
    feed_admit(&f, 1200 * MS, &b);
    feed_decode(&f, 1200 * MS, 300 * MS, 1);
    feed_end(&f, 1500 * MS, &a, OUTCOME_COMPLETED);
    feed_prefill(&f, 1500 * MS, 2000 * MS, 10);
    feed_first(&f, 2000 * MS, &b);
    feed_end(&f, 2000 * MS, &b, OUTCOME_COMPLETED);
    feed_admit(&f, 2000 * MS, &c);
    feed_prefill(&f, 2000 * MS, 2500 * MS, 10);
    feed_end(&f, 2500 * MS, &c, OUTCOME_COMPLETED);
    metrics_finish(f.m, PS_PER_HOUR);
    const struct metrics_summary *s = metrics_summaries(f.m);
    ck_assert_uint_eq(s->itl.count, 3);
    ck_assert_int_eq(s->itl.mean_ps, 166666666667);
    ck_assert_int_eq(s->itl.max_ps, 300 * MS);
    ck_assert_uint_eq(s->tpot.count, 1);
    ck_assert_int_eq(s->tpot.mean_ps, 166666666667);
    ck_assert_uint_eq(s->ttft.count, 2);
    ck_assert_int_eq(s->ttft.mean_ps, 1500 * MS);
    ck_assert_int_eq(s->ttft.max_ps, 2000 * MS);
    ck_assert_uint_eq(s->e2e.count, 3);
    ck_assert_int_eq(s->e2e.mean_ps, 2000 * MS);
    ck_assert_uint_eq(s->queue.count, 3);
    ck_assert_uint_eq(s->requests.zero_output, 1);
    ck_assert_uint_eq(s->tokens.output, 5);
    ck_assert_uint_eq(s->tokens.prompt, 30);
    ck_assert(feed_audit(&f, true));
    metrics_free(f.m);
}
END_TEST

/* T12: a day's percentile comes from merged histograms, never from the hours' percentiles. */
START_TEST(day_percentiles_from_merged_hours)
{
    struct feed f = feed_open(NULL, NULL, 0, 2 * PS_PER_HOUR);
    for (int hour = 0; hour < 2; hour++) {
        int64_t t = hour * PS_PER_HOUR, wait = hour ? 10 * SEC : 100 * MS;
        feed_roll(&f, t);
        for (int i = 0; i < (hour ? 10 : 990); i++) {
            struct request_record r = feed_arrive(&f, t, 1, 1);
            feed_admit(&f, t, &r);
            feed_prefill(&f, t, t + wait, 1);
            feed_first(&f, t + wait, &r);
            feed_end(&f, t + wait, &r, OUTCOME_COMPLETED);
            t += wait;
        }
    }
    metrics_finish(f.m, 2 * PS_PER_HOUR);
    const struct metrics_summary *day = metrics_summaries(f.m);
    ck_assert_uint_eq(day->ttft.count, 1000);
    ck_assert_int_eq(day->ttft.mean_ps, 199 * MS);
    ck_assert(feed_near(day->ttft.p99_ps, 100 * MS));
    ck_assert_int_eq(day->ttft.max_ps, 10 * SEC);
    ck_assert(feed_near(feed_hour(&f, 0)->ttft.p99_ps, 100 * MS));
    ck_assert_int_eq(feed_hour(&f, 1)->ttft.p50_ps, 10 * SEC); /* min = max: exact */
    ck_assert(metrics_quantile_defended(100, 990) && !metrics_quantile_defended(99, 990));
    ck_assert(metrics_quantile_defended(2, 500) && !metrics_quantile_defended(1, 500));
    ck_assert(feed_audit(&f, true));
    metrics_free(f.m);
}
END_TEST

/* A wait of 1,000 s and one of a day must not read as the top of some range. */
START_TEST(long_waits_are_not_clipped)
{
    struct feed f = feed_open(NULL, NULL, 0, PS_PER_HOUR);
    struct request_record a = feed_arrive(&f, 0, 1, 1), b = feed_arrive(&f, 0, 1, 1);
    feed_admit(&f, 0, &a);
    feed_admit(&f, 0, &b);
    feed_steps(&f, 0, (struct obs_steps){.base_ps = 1000 * SEC, .count = 1, .prefill_tokens = 1});
    feed_first(&f, 1000 * SEC, &a);
    feed_end(&f, 1000 * SEC, &a, OUTCOME_COMPLETED);
    feed_roll(&f, PS_PER_HOUR);
    feed_steps(&f, 0,
               (struct obs_steps){.start_ps = 1000 * SEC,
                                  .count = 1,
                                  .prefill_tokens = 1,
                                  .base_ps = 24 * PS_PER_HOUR - 1000 * SEC});
    feed_first(&f, 24 * PS_PER_HOUR, &b);
    feed_end(&f, 24 * PS_PER_HOUR, &b, OUTCOME_COMPLETED);
    metrics_finish(f.m, 24 * PS_PER_HOUR);
    const struct metrics_summary *s = metrics_summaries(f.m);
    ck_assert(feed_near(s->ttft.p50_ps, 1000 * SEC));
    ck_assert(feed_near(s->ttft.p99_ps, 24 * PS_PER_HOUR));
    ck_assert_int_eq(s->ttft.max_ps, 24 * PS_PER_HOUR);
    ck_assert(feed_audit(&f, true));
    metrics_free(f.m);
}
END_TEST

/* T09: starts at 3,599.9, ends at 3,600.1; another arrives at 3,600.000000 exactly, seen before the
 * edge's timer. */
START_TEST(hours_by_stamp_not_by_timer)
{
    struct feed f = feed_open(NULL, NULL, 0, 2 * PS_PER_HOUR);
    int64_t edge = PS_PER_HOUR, start = edge - 100 * MS, end = edge + 100 * MS;
    feed_state(&f, 0, 0, 0, REPLICA_RELEASED, REPLICA_IDLE, 0, 0);
    struct request_record a = feed_arrive(&f, start, 5, 1);
    feed_admit(&f, start, &a);
    feed_state(&f, 0, 0, start, REPLICA_IDLE, REPLICA_SERVING, 0, 0);
    struct request_record b = feed_arrive(&f, edge, 5, 1);
    b.pool = 0;
    feed_end(&f, edge, &b, OUTCOME_REFUSED);
    feed_roll(&f, edge);
    ck_assert_uint_eq(metrics_hour_count(f.m), 1);
    feed_prefill(&f, start, end, 5);
    feed_first(&f, end, &a);
    feed_end(&f, end, &a, OUTCOME_COMPLETED);
    feed_state(&f, 0, 0, end, REPLICA_SERVING, REPLICA_IDLE, start, 0);
    metrics_finish(f.m, 2 * PS_PER_HOUR);
    const struct metrics_hour *h0 = feed_hour(&f, 0), *h1 = feed_hour(&f, 1);
    ck_assert_uint_eq(h0->requests.arrived, 1);
    ck_assert_uint_eq(h0->requests.admitted, 1);
    ck_assert_uint_eq(h0->requests.completed, 0);
    ck_assert_uint_eq(h0->requests.in_flight, 1);
    ck_assert_uint_eq(h0->iterations, 0);
    ck_assert_uint_eq(h1->requests.arrived, 1);
    ck_assert_uint_eq(h1->requests.refused, 1);
    ck_assert_uint_eq(h1->requests.completed, 1);
    ck_assert_uint_eq(h1->ttft.count, 1);
    ck_assert_uint_eq(h1->iterations, 1);
    ck_assert_uint_eq(h0->slo.attained, 1); /* attainment is filed under arrival */
    ck_assert_uint_eq(h1->slo.missed, 1);
    double tenth = 0.1 / 3600;
    ck_assert_double_eq_tol(h0->gpu_hours.serving, tenth, 1e-15);
    ck_assert_double_eq_tol(h1->gpu_hours.serving, tenth, 1e-15);
    ck_assert_double_eq_tol(h0->utilization, tenth, 1e-12); /* work split by time */
    ck_assert_double_eq_tol(h1->utilization, tenth, 1e-12);
    ck_assert_double_eq(h0->gpu_hours.held, 1);
    ck_assert(feed_audit(&f, true));
    metrics_free(f.m);
}
END_TEST

START_TEST(in_flight_is_exact)
{
    struct feed f = feed_open(NULL, NULL, 0, PS_PER_HOUR);
    feed_state(&f, 0, 0, 0, REPLICA_RELEASED, REPLICA_IDLE, 0, 0);
    struct request_record r[3];
    for (int i = 0; i < 3; i++) {
        r[i] = feed_arrive(&f, i * 600 * SEC, 1, 0);
    }
    for (int i = 0; i < 3; i++) {
        int64_t t = (1800 + i * 1200) * SEC; /* the last ends at 4,200 s, in the drain */
        feed_roll(&f, t);
        r[i].admitted_ps = t;
        feed_admit(&f, t, &r[i]);
        feed_prefill(&f, t, t, 1);
        feed_end(&f, t, &r[i], OUTCOME_COMPLETED);
    }
    metrics_finish(f.m, 4200 * SEC);
    const struct metrics_hour *h = feed_hour(&f, 0);
    ck_assert_double_eq(h->in_flight_mean, (1800.0 + 2400 + 2400) / 3600);
    ck_assert_double_eq(h->in_flight_per_ready_gpu, (1800.0 + 2400 + 2400) / 3600);
    ck_assert_uint_eq(h->requests.in_flight, 1);
    const struct metrics_hour *drain = feed_hour(&f, 1);
    ck_assert_uint_eq(drain->is_drain, 1);
    ck_assert_int_eq(drain->covered_ps, 600 * SEC);
    ck_assert_double_eq(drain->in_flight_mean, 1);
    ck_assert_uint_eq(drain->requests.completed, 1);
    ck_assert_double_eq(drain->usd.total, 0);
    ck_assert_double_eq(drain->gpu_hours.billed, 0);
    ck_assert_double_eq_tol(drain->gpu_hours.held, 1.0 / 6, 1e-15);
    ck_assert(feed_audit(&f, true));
    metrics_free(f.m);
}
END_TEST

/* Ends a request of `output` tokens, first at ttft, last at e2e, after its arrival. */
static void run_one(struct feed *f, int64_t arrival, uint32_t output, int64_t ttft, int64_t e2e)
{
    struct request_record r = feed_arrive(f, arrival, 1, output);
    feed_admit(f, arrival, &r);
    if (output > 0) {
        feed_first(f, arrival + ttft, &r);
    }
    feed_end(f, arrival + e2e, &r, OUTCOME_COMPLETED);
}

/* What arrives or ends at an edge belongs to the row after it, in `in_flight_end` too: the rows'
 * books balance, whatever is seen before the edge's timer. */
START_TEST(in_flight_at_an_edge)
{
    struct feed f = feed_open(NULL, NULL, 0, 3 * PS_PER_HOUR);
    int64_t edge = PS_PER_HOUR, last = 3 * PS_PER_HOUR;
    feed_state(&f, 0, 0, 0, REPLICA_RELEASED, REPLICA_SERVING, 0, 0);
    struct request_record a = feed_arrive(&f, 0, 1, 1);
    feed_admit(&f, 0, &a);
    struct request_record b = feed_arrive(&f, edge, 1, 1), c = feed_arrive(&f, edge, 1, 1);
    feed_end(&f, edge, &c, OUTCOME_REFUSED);
    feed_prefill(&f, 0, edge, 1);
    feed_first(&f, edge, &a);
    feed_end(&f, edge, &a, OUTCOME_COMPLETED);
    feed_roll(&f, edge);
    feed_admit(&f, edge, &b);
    feed_roll(&f, 2 * PS_PER_HOUR);
    feed_end(&f, last, &b, OUTCOME_IN_FLIGHT); /* the cut, seen before the last edge's timer */
    metrics_finish(f.m, last);
    ck_assert_uint_eq(feed_hour(&f, 0)->requests.in_flight, 1); /* a */
    ck_assert_uint_eq(feed_hour(&f, 1)->requests.in_flight, 1); /* b */
    ck_assert_uint_eq(feed_hour(&f, 2)->requests.in_flight, 1); /* b */
    ck_assert_uint_eq(feed_hour(&f, 3)->requests.in_flight, 1); /* b, cut */
    for (size_t row = 1, before = 1; row < 3; row++) {
        const struct metrics_requests *r = &feed_hour(&f, row)->requests;
        ck_assert_uint_eq(before + r->arrived, r->completed + r->refused + r->in_flight);
        before = r->in_flight;
    }
    ck_assert(feed_audit(&f, false));
    metrics_free(f.m);
}
END_TEST

START_TEST(slo_rules)
{
    struct metrics_class class = {"chat", 1 * SEC, 50 * MS, 3 * SEC, 0.5};
    struct feed f = feed_open(NULL, &class, 0, PS_PER_HOUR);
    static const struct {
        uint32_t output;
        int64_t ttft, e2e;
        bool attained;
    } cases[] = {
        {11, 1 * SEC, 1500 * MS, true},      /* every limit met exactly */
        {11, 1 * SEC + 1, 1500 * MS, false}, /* a tick too late */
        {11, 1 * SEC, 1500 * MS + 1, false}, /* a tick over ten tokens: 50 ms + 0.1 ps */
        {1, 1 * SEC, 1 * SEC, true},         /* TPOT holds with one output */
        {0, 0, 3 * SEC, true},               /* and TTFT without any */
        {0, 0, 3 * SEC + 1, false},          /* but E2E does not */
        {101, 0, 3 * SEC + 1, false},
    };
    uint64_t attained = 0;
    int64_t t = 0;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++, t += 10 * SEC) {
        run_one(&f, t, cases[i].output, cases[i].ttft, cases[i].e2e);
        attained += cases[i].attained;
    }
    struct request_record refused = feed_arrive(&f, t, 1, 1);
    feed_end(&f, t, &refused, OUTCOME_REFUSED);
    struct request_record gone = feed_arrive(&f, t, 1, 1);
    feed_end(&f, t + SEC, &gone, OUTCOME_CANCELLED);
    struct request_record left = feed_arrive(&f, t + SEC, 1, 1);
    feed_end(&f, PS_PER_HOUR, &left, OUTCOME_IN_FLIGHT);
    metrics_finish(f.m, PS_PER_HOUR);
    const struct metrics_summary *s = metrics_summaries(f.m);
    ck_assert_uint_eq(attained, 3);
    ck_assert_uint_eq(s->slo.attained, 3);
    ck_assert_uint_eq(s->slo.missed, 6);
    ck_assert_uint_eq(s->slo.undecided, 1);
    ck_assert_double_eq(s->slo.attainment, 0.3);
    ck_assert_double_eq(s->slo.attainment_upper, 0.4);
    ck_assert_int_eq(s->slo_met, 0);
    ck_assert_uint_eq(s->requests.in_flight, 1);
    ck_assert_uint_eq(feed_hour(&f, 0)->requests.in_flight, 1);
    ck_assert_uint_eq(feed_hour(&f, 1)->requests.in_flight, 1); /* those cut */
    const struct metrics_class_summary *c = metrics_class_summaries(f.m);
    ck_assert_str_eq(c->name, "chat");
    ck_assert_uint_eq(c->slo.missed, 6);
    ck_assert_int_eq(c->slo_met, 0);
    ck_assert_uint_eq(c->ttft.count, s->ttft.count);
    metrics_free(f.m);
}
END_TEST

/* Two classes: each is judged by its own limits, has its own latencies, and both must meet. */
START_TEST(classes_apart)
{
    struct metrics_class classes[2] = {{"fast", 1 * SEC, TIME_NONE, TIME_NONE, 0.9},
                                       {"slow", 9 * SEC, TIME_NONE, TIME_NONE, 0.9}};
    struct metrics_config config = {.pools = &feed_pool,
                                    .pool_count = 1,
                                    .classes = classes,
                                    .class_count = 2,
                                    .horizon_ps = PS_PER_HOUR,
                                    .interval_ps = PS_PER_HOUR};
    struct feed f = {.m = metrics_create(&config)};
    f.sink = metrics_sink(f.m);
    for (uint32_t c = 0; c < 2; c++) {
        struct request request = {.id = c,
                                  .arrival_ps = c * 100 * SEC,
                                  .prompt_tokens = 1,
                                  .output_tokens = 1,
                                  .class_index = c};
        struct request_record r = {.request = request};
        feed_emit(&f, (struct obs){.kind = OBS_ARRIVAL,
                                   .pool = UINT32_MAX,
                                   .time_ps = request.arrival_ps,
                                   .u.request = &request});
        feed_admit(&f, request.arrival_ps, &r);
        feed_first(&f, request.arrival_ps + 5 * SEC, &r);
        feed_end(&f, request.arrival_ps + 5 * SEC, &r, OUTCOME_COMPLETED);
    }
    metrics_finish(f.m, PS_PER_HOUR);
    const struct metrics_class_summary *c = metrics_class_summaries(f.m);
    ck_assert_int_eq(c[0].slo_met, 0);
    ck_assert_int_eq(c[1].slo_met, 1);
    ck_assert_uint_eq(c[0].ttft.count, 1);
    ck_assert_uint_eq(c[1].e2e.count, 1);
    ck_assert_int_eq(c[1].ttft.max_ps, 5 * SEC);
    ck_assert_int_eq(metrics_summaries(f.m)->slo_met, 0);
    ck_assert_uint_eq(metrics_summaries(f.m)->slo.attained, 1);
    metrics_free(f.m);
}
END_TEST

/* Warm-up inside an hour: what arrives before it is not counted, GPU time starts at it. */
START_TEST(warmup_is_not_counted)
{
    struct feed f = feed_open(NULL, NULL, 1800 * SEC, 2 * PS_PER_HOUR);
    feed_state(&f, 0, 0, 0, REPLICA_RELEASED, REPLICA_IDLE, 0, 0);
    ck_assert_int_eq(metrics_next_edge(f.m), 1800 * SEC);
    struct request_record early = feed_arrive(&f, 1000 * SEC, 7, 2);
    feed_admit(&f, 1000 * SEC, &early);
    feed_prefill(&f, 1000 * SEC, 1010 * SEC, 7);
    feed_first(&f, 1010 * SEC, &early);
    feed_decode(&f, 1010 * SEC, 10 * SEC, 1);
    feed_end(&f, 1020 * SEC, &early, OUTCOME_COMPLETED);
    struct request_record late = feed_arrive(&f, 1799 * SEC, 7, 2);
    feed_roll(&f, 1800 * SEC);
    ck_assert_uint_eq(metrics_hour_count(f.m), 0);
    feed_admit(&f, 1800 * SEC, &late);
    feed_prefill(&f, 1800 * SEC, 1810 * SEC, 7);
    feed_first(&f, 1810 * SEC, &late);
    struct request_record counted = feed_arrive(&f, 1815 * SEC, 9, 0);
    feed_decode(&f, 1810 * SEC, 10 * SEC, 1); /* a gap in the window, of an uncounted request */
    feed_end(&f, 1820 * SEC, &late, OUTCOME_COMPLETED);
    feed_admit(&f, 1820 * SEC, &counted);
    feed_prefill(&f, 1820 * SEC, 1830 * SEC, 9);
    feed_end(&f, 1830 * SEC, &counted, OUTCOME_COMPLETED);
    metrics_finish(f.m, 2 * PS_PER_HOUR);
    const struct metrics_summary *s = metrics_summaries(f.m);
    ck_assert_uint_eq(s->requests.arrived, 1);
    ck_assert_uint_eq(s->requests.completed, 1);
    ck_assert_uint_eq(s->e2e.count, 1);
    ck_assert_int_eq(s->e2e.mean_ps, 15 * SEC);
    ck_assert_uint_eq(s->ttft.count, 0);
    ck_assert_int_eq(s->ttft.p99_ps, TIME_NONE);
    ck_assert_uint_eq(s->itl.count, 1);
    ck_assert_uint_eq(s->tokens.prompt, 9);
    ck_assert_uint_eq(s->tokens.output, 0);
    ck_assert_double_eq(s->gpu_hours.held, 1.5);
    ck_assert_double_eq(s->usd.total, 4.5);
    ck_assert_int_eq(feed_hour(&f, 0)->covered_ps, 1800 * SEC);
    ck_assert_uint_eq(feed_hour(&f, 0)->tokens.output, 2); /* late's, by emission */
    ck_assert_uint_eq(feed_hour(&f, 0)->requests.arrived, 1);
    ck_assert(feed_audit(&f, true));
    metrics_free(f.m);
}
END_TEST

/* Everything refused, or nothing at all: the same rows, zeros and empty fields, never "nan". */
START_TEST(all_refused_prints_the_same_table)
{
    for (int requests = 0; requests <= 3; requests += 3) {
        struct feed f = feed_open(NULL, NULL, 0, PS_PER_HOUR);
        for (int i = 0; i < requests; i++) {
            struct request_record r = feed_arrive(&f, 5 * SEC, 100, 10);
            r.pool = UINT32_MAX;
            feed_end(&f, 5 * SEC, &r, OUTCOME_REFUSED);
        }
        metrics_finish(f.m, PS_PER_HOUR);
        const struct metrics_summary *s = metrics_summaries(f.m);
        ck_assert_uint_eq(s->requests.refused, (unsigned)requests);
        ck_assert_uint_eq(s->tokens.prompt, 0);
        ck_assert_double_eq(s->usd.total, 0);
        ck_assert(requests ? s->slo.attainment == 0 : isnan(s->slo.attainment));
        char text[16384] = "";
        FILE *out = fmemopen(text, sizeof text, "w");
        column_csv_row(metrics_hour_columns, feed_hour(&f, 0), out);
        column_csv_row(metrics_hour_columns, feed_hour(&f, 1), out);
        column_csv_row(metrics_summary_columns, s, out);
        column_csv_row(metrics_class_columns, metrics_class_summaries(f.m), out);
        fclose(out);
        ck_assert_ptr_null(strstr(text, "nan"));
        ck_assert_ptr_null(strstr(text, "inf"));
        ck_assert(feed_audit(&f, true));
        metrics_free(f.m);
    }
}
END_TEST

START_TEST(gauges_and_scaling_events)
{
    struct feed f = feed_open(NULL, NULL, 0, PS_PER_HOUR);
    static const struct obs_gauge gauges[2] = {{10, 2, 30, 100, 20, 4, 12, 6},
                                               {20, 4, 50, 100, 45, 4, 24, 8}};
    for (int i = 0; i < 2; i++) {
        feed_emit(&f,
                  (struct obs){.kind = OBS_GAUGE, .time_ps = i * 60 * SEC, .u.gauge = &gauges[i]});
    }
    struct obs_scale scale = {
        .ready = 2, .starting = 1, .wished = 9, .target = 4, .metric = 0.8, .reason = "up"};
    for (int i = 0; i < 1000; i++) {
        feed_emit(&f, (struct obs){.kind = OBS_SCALE, .time_ps = i * SEC, .u.scale = &scale});
    }
    metrics_set_need(f.m, 0, 0, 12.5, 8);
    metrics_set_references(f.m, 0, 1, 2, 3);
    metrics_finish(f.m, PS_PER_HOUR);
    const struct metrics_hour *h = feed_hour(&f, 0);
    ck_assert_double_eq(h->running_mean, 15);
    ck_assert_double_eq(h->waiting_mean, 3);
    ck_assert_double_eq(h->kv_occupancy_mean, 0.4);
    ck_assert_int_eq(h->kv_blocks_max, 45);
    ck_assert_double_eq(h->need_gpus, 8);
    ck_assert(isnan(feed_hour(&f, 1)->running_mean));
    ck_assert_int_eq(feed_hour(&f, 1)->kv_blocks_max, COLUMN_INT_NONE);
    size_t count;
    const struct metrics_scale_event *events = metrics_scale_events(f.m, &count);
    ck_assert_uint_eq(count, 1000);
    ck_assert_int_eq(events[999].time_ps, 999 * SEC);
    ck_assert_str_eq(events[999].pool, "main");
    ck_assert_uint_eq(events[999].wished, 9);
    const struct metrics_summary *s = metrics_summaries(f.m);
    ck_assert_double_eq(s->gpu_hours_ideal, 2);
    ck_assert_double_eq(s->usd_peak, 9);
    ck_assert_int_eq(s->kv_peak_blocks, 45);
    metrics_free(f.m);
}
END_TEST

/* Two pools: a request belongs to the pool that was chosen; the fleet is their sum, and what never
 * got a pool is only in the fleet. */
START_TEST(two_pools)
{
    struct metrics_pool pools[2] = {feed_pool, feed_pool};
    pools[1].name = "spare";
    pools[1].gpus_per_replica = 8;
    pools[1].usd_per_gpu_hour = 2;
    struct metrics_config config = {.pools = pools,
                                    .pool_count = 2,
                                    .classes = &feed_class,
                                    .class_count = 1,
                                    .horizon_ps = PS_PER_HOUR,
                                    .interval_ps = PS_PER_HOUR};
    struct feed f = {.m = metrics_create(&config)};
    f.sink = metrics_sink(f.m);
    feed_state(&f, 0, 0, 0, REPLICA_RELEASED, REPLICA_IDLE, 0, 0);
    feed_state(&f, 1, 0, 0, REPLICA_RELEASED, REPLICA_SERVING, 0, 0);
    struct request_record a = feed_arrive(&f, 0, 3, 1), none = feed_arrive(&f, 0, 5, 1);
    a.pool = 1;
    none.pool = UINT32_MAX;
    metrics_route(f.m, 1, &a.request);
    feed_end(&f, 0, &none, OUTCOME_REFUSED);
    feed_admit(&f, 0, &a);
    feed_steps(&f, 1,
               (struct obs_steps){.base_ps = 900 * SEC,
                                  .count = 1,
                                  .prefill_tokens = 3,
                                  .running = 1,
                                  .work_ps = 900 * SEC});
    feed_first(&f, 900 * SEC, &a);
    feed_end(&f, 900 * SEC, &a, OUTCOME_COMPLETED);
    metrics_finish(f.m, PS_PER_HOUR);
    const struct metrics_hour *h = metrics_hours(f.m), *all = metrics_hours_all(f.m);
    ck_assert_uint_eq(h[0].requests.arrived, 0);
    ck_assert_uint_eq(h[1].requests.arrived, 1);
    ck_assert_uint_eq(all[0].requests.arrived, 2);
    ck_assert_uint_eq(all[0].requests.refused, 1);
    ck_assert_uint_eq(h[1].ttft.count, 1);
    ck_assert_uint_eq(all[0].ttft.count, 1);
    ck_assert_double_eq(h[1].in_flight_mean, 0.25);
    ck_assert_double_eq(all[0].in_flight_mean, 0.25);
    ck_assert_double_eq(all[0].gpu_hours.held, 9);
    ck_assert_double_eq(all[0].gpu_hours.serving, 8);
    ck_assert_double_eq(all[0].usd.total, 3 + 16);
    ck_assert_uint_eq(all[0].replicas_held_max, 2);
    ck_assert_double_eq(h[1].utilization, 0.25);
    ck_assert_double_eq(all[0].utilization, 2.0 / 9);
    ck_assert_uint_eq(metrics_summaries(f.m)[0].slo.missed, 1);
    ck_assert_uint_eq(metrics_summaries(f.m)[2].slo.attained, 1);
    ck_assert_str_eq(metrics_summaries(f.m)[2].pool, "spare");
    ck_assert(feed_audit(&f, true));
    metrics_free(f.m);
}
END_TEST

/* Every column has a name of its own, a unit and a definition. */
START_TEST(columns_are_described)
{
    const struct column *const tables[] = {metrics_hour_key_columns, metrics_hour_columns,
                                           metrics_scaling_columns,  metrics_summary_columns,
                                           metrics_class_columns,    metrics_request_columns};
    for (size_t t = 0; t < sizeof tables / sizeof tables[0]; t++) {
        size_t count = column_count(tables[t]);
        ck_assert_uint_gt(count, 2);
        for (size_t i = 0; i < count; i++) {
            const struct column *c = &tables[t][i];
            ck_assert_ptr_nonnull(c->name);
            ck_assert_uint_gt(strlen(c->unit), 0);
            ck_assert_uint_gt(strlen(c->long_name), 0);
            ck_assert_uint_gt(strlen(c->doc), 3);
            for (size_t j = 0; j < i; j++) {
                ck_assert_str_ne(c->name, tables[t][j].name);
                ck_assert_msg(c->offset != tables[t][j].offset, "%s and %s show the same member",
                              c->name, tables[t][j].name);
            }
        }
    }
}
END_TEST

FEED_MAIN("metrics", first_token_gaps_and_time_per_token, day_percentiles_from_merged_hours,
          long_waits_are_not_clipped, hours_by_stamp_not_by_timer, in_flight_is_exact,
          in_flight_at_an_edge, slo_rules, classes_apart, warmup_is_not_counted,
          all_refused_prints_the_same_table, gauges_and_scaling_events, two_pools,
          columns_are_described)
