/* Spans across interval edges, against filing one iteration at a time by its end stamp and its busy
 * time by its overlap. Random spans, random edges, warm-up and horizon anywhere. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/arena.h"
#include "sim/base/histogram.h"
#include "sim/base/rng.h"
#include "sim/metrics/metrics.h"

enum { ROWS_MAX = 64, SCENARIOS = 400 };

/* What a naive account says of one row. */
struct naive_row {
    uint64_t iterations, batch_sum, decodes, prefills, output;
    int128 busy_ps;
    struct histogram itl;
};

struct world {
    int64_t interval_ps, horizon_ps, warmup_ps;
    struct metrics *m;
    struct naive_row *rows;
    uint64_t key, draws;
};

static uint64_t draw(struct world *w, uint64_t below)
{
    return rng_draw(w->key, 0, w->draws++).a % below;
}

static size_t row_of(const struct world *w, int64_t t)
{
    return t >= w->horizon_ps ? metrics_interval_count(w->m) : (size_t)(t / w->interval_ps);
}

/* One iteration [from, to): by its end, if that is counted; its busy time wherever it overlaps. */
static void naive_iteration(struct world *w, int64_t from, int64_t to, const struct obs_steps *s)
{
    if (to >= w->warmup_ps) {
        struct naive_row *row = &w->rows[row_of(w, to)];
        row->iterations++;
        row->batch_sum += s->running;
        row->decodes += s->decode_tokens;
        row->prefills += s->prefill_tokens;
        row->output += s->decodes;
        for (uint32_t d = 0; d < s->decodes; d++) {
            histogram_add(&row->itl, to - from);
        }
    }
    for (size_t r = 0; r <= metrics_interval_count(w->m); r++) {
        int64_t start = metrics_interval_start(w->m, r);
        int64_t end =
            r < metrics_interval_count(w->m) ? metrics_interval_start(w->m, r + 1) : INT64_MAX;
        start = start > w->warmup_ps ? start : w->warmup_ps;
        int64_t low = from > start ? from : start, high = to < end ? to : end;
        w->rows[r].busy_ps += high > low ? high - low : 0;
    }
}

static void world_open(struct world *w, uint64_t scenario)
{
    memset(w, 0, sizeof *w);
    w->key = rng_key(7, 0, RNG_TEST, (uint32_t)scenario);
    w->interval_ps = 1 + (int64_t)draw(w, 20000);
    w->horizon_ps = 1 + (int64_t)draw(w, (uint64_t)w->interval_ps * (ROWS_MAX - 2));
    w->warmup_ps = draw(w, 3) ? 0 : (int64_t)draw(w, (uint64_t)w->horizon_ps);
    struct metrics_pool pool = {.name = "p", .gpus_per_replica = 1, .usd_per_gpu_hour = 1};
    struct metrics_class class = {"c", TIME_NONE, TIME_NONE, TIME_NONE, 0};
    struct metrics_config config = {.pools = &pool,
                                    .pool_count = 1,
                                    .classes = &class,
                                    .class_count = 1,
                                    .warmup_ps = w->warmup_ps,
                                    .horizon_ps = w->horizon_ps,
                                    .interval_ps = w->interval_ps};
    w->m = metrics_create(&config);
    w->rows = memory_zero(ROWS_MAX, sizeof *w->rows);
    for (size_t r = 0; r < ROWS_MAX; r++) {
        histogram_init(&w->rows[r].itl);
    }
}

/* Reports iterations first … first + n − 1 of a span that starts at t; returns its end. */
static int64_t report(struct world *w, int64_t t, const struct obs_steps *whole, uint32_t first,
                      uint32_t n)
{
    struct obs_steps s = *whole;
    s.start_ps = t;
    s.base_ps = whole->base_ps + whole->slope_ps * (int64_t)first;
    s.count = n;
    s.end_ps = t;
    for (uint32_t i = 0; i < n; i++) {
        int64_t step = s.base_ps + s.slope_ps * (int64_t)i;
        naive_iteration(w, s.end_ps, s.end_ps + step, &s);
        s.end_ps += step;
    }
    s.work_ps = s.end_ps - s.start_ps; /* the whole busy time: checked through utilisation */
    s.decode_ps = (s.end_ps - s.start_ps) / 3;
    struct obs obs = {.kind = OBS_STEPS, .time_ps = s.end_ps, .u.steps = &s};
    struct obs_sink sink = metrics_sink(w->m);
    obs_emit(&sink, &obs);
    return s.end_ps;
}

/* One replica, busy without a break: spans that are settled at each edge as sim/run does (what has
 * ended by then is reported), or a little before. */
static int64_t run(struct world *w)
{
    int64_t t = 0, until = w->horizon_ps + (int64_t)draw(w, 30000);
    while (t < until) {
        struct obs_steps s = {.base_ps = 1 + (int64_t)draw(w, draw(w, 4) ? 300 : 9000),
                              .slope_ps = (int64_t)draw(w, 4),
                              .decodes = (uint32_t)draw(w, 4),
                              .prefill_tokens = (uint32_t)draw(w, 9),
                              .running = 5};
        s.decode_tokens = s.decodes + 1;
        uint32_t count = 1 + (uint32_t)draw(w, draw(w, 5) ? 40 : 400), done = 0;
        while (done < count) {
            /* Iterations that end before the next edge may be reported now; of those that end at it
             * or later, none before the edge is rolled, unless they end at the edge itself. */
            int64_t edge = metrics_next_edge(w->m), end = t;
            uint32_t n = 0;
            for (; done + n < count; n++) {
                int64_t step = s.base_ps + s.slope_ps * (int64_t)(done + n);
                if (end + step > edge || (end + step == edge && draw(w, 2))) {
                    break;
                }
                end += step;
            }
            if (n > 0) {
                t = report(w, t, &s, done, n);
                done += n;
            }
            if (done < count) {
                metrics_roll(w->m, edge);
            }
        }
    }
    return t;
}

static void rows_compare(struct world *w, int64_t end_ps)
{
    const struct metrics_hour *hours = metrics_hours(w->m);
    for (size_t r = 0; r <= metrics_interval_count(w->m); r++) {
        const struct metrics_hour *h = &hours[r];
        const struct naive_row *n = &w->rows[r];
        ck_assert_uint_eq(h->iterations, n->iterations);
        ck_assert_uint_eq(h->tokens.decode_executed, n->decodes);
        ck_assert_uint_eq(h->tokens.prefill_executed, n->prefills);
        ck_assert_uint_eq(h->tokens.output, n->output);
        ck_assert_uint_eq(h->itl.count, n->itl.count);
        ck_assert_int_eq(h->itl.p50_ps, histogram_quantile(&n->itl, 0.5));
        ck_assert_int_eq(h->itl.p99_ps, histogram_quantile(&n->itl, 0.99));
        if (n->itl.count > 0) {
            ck_assert_int_eq(h->itl.max_ps, n->itl.max);
        }
        /* The replica is ready all the time: utilisation is busy time / covered time. Each piece of
         * a span is rounded down to the tick, so the sum is exact where spans lie within a row. */
        if (h->covered_ps > 0) {
            double expected = (double)n->busy_ps / (double)h->covered_ps;
            ck_assert_double_eq(h->utilization, expected);
        }
    }
    ck_assert_int_eq(hours[metrics_interval_count(w->m)].end_ps, end_ps);
}

START_TEST(spans_equal_iterations)
{
    struct world w;
    world_open(&w, (uint64_t)_i);
    struct obs_state state = {REPLICA_RELEASED, REPLICA_SERVING, 0, 0};
    struct obs born = {.kind = OBS_REPLICA, .u.state = &state};
    struct obs_sink sink = metrics_sink(w.m);
    obs_emit(&sink, &born);
    int64_t end = run(&w);
    metrics_finish(w.m, end);
    rows_compare(&w, end);
    metrics_free(w.m);
    free(w.rows);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("metrics spans");
    TCase *tcase = tcase_create("spans");
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, spans_equal_iterations, 0, SCENARIOS);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
