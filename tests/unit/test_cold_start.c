/* Cold starts: phases that last what they should, drawn by launch alone; weights that share a
 * store; caches, shortages and failures. */
#include <math.h>

#include "sim/base/rng.h"
#include "sim/fleet/cold_start.h"
#include "tests/run_text.h"
#include "tests/unit/suite_run.h"

#define SCENARIO(cold, pool)                                                                       \
    "name: cold\n"                                                                                 \
    "horizon: 1000 s\n"                                                                            \
    "output: {trace_interval: 1000 s}\n"                                                           \
    "workload: [{name: w, arrivals: {process: trace, file: trace.csv}}]\n"                         \
    "fleet:\n"                                                                                     \
    "  router: {policy: central_queue}\n"                                                          \
    "  pools:\n"                                                                                   \
    "    - name: main\n"                                                                           \
    "      step_time: {model: constant, step: 1 s}\n"                                              \
    "      initial_replicas: 0\n"                                                                  \
    "      engine: {max_num_seqs: 1}\n"                                                            \
    "      autoscaler: {policy: target, metric: concurrency, target: 1, min_replicas: 0, "         \
    "max_replicas: 9, scale_down_window: 0 s}\n" pool "      cold_start: " cold "\n"

static const struct cold_start_config *cold_of(const struct run_text *r)
{
    return &config_pool(run_config(r->run), 0)->cold_start;
}

static struct run_text opened(const char *yaml)
{
    struct run_text r;
    bool ok = run_text_open(&r, yaml, "0,1,1\n", NULL, 0);
    if (!ok) {
        errors_print(&r.errors, stderr);
    }
    ck_assert_msg(ok, "%s", yaml);
    return r;
}

/* A bare time is the constant's value; a mapping chooses; --set may do either. */
START_TEST(bare_and_mapping_are_the_same)
{
    static const char *const ways[] = {
        "{provision: 40 s, image_pull: 0 s, weights: 2 min, engine_init: 0 s}",
        "{provision: {dist: constant, value: 40 s}, image_pull: 0 s, weights: {source: constant, "
        "value: 2 min}, engine_init: 0 s}",
        "{provision: {value: 40 s}, image_pull: 0, weights: {value: 120}, engine_init: 0 s}",
        "{provision: {dist: empirical, values: [30 s, 50 s]}, image_pull: 0 s, weights: 2 min, "
        "engine_init: 0 s}"};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        char yaml[2000];
        snprintf(yaml, sizeof yaml, SCENARIO("%s", ""), ways[i]);
        struct run_text r = opened(yaml);
        ck_assert_int_eq(cold_start_expected(cold_of(&r)), SECONDS(160));
        run_text_free(&r);
    }
    static const char *const sets[] = {
        "fleet.pools[0].cold_start.provision=10 s", "fleet.pools[0].cold_start.weights.value=70 s",
        "fleet.pools[0].cold_start.engine_init={dist: lognormal, mean: 20 s, sigma: 1}"};
    struct run_text r;
    ck_assert(run_text_open(&r, SCENARIO("{provision: {value: 5 s}, image_pull: 0 s}", ""),
                            "0,1,1\n", sets, 3));
    ck_assert_int_eq(cold_start_expected(cold_of(&r)), SECONDS(100));
    run_text_free(&r);
}
END_TEST

START_TEST(nonsense_is_refused)
{
    static const char *const wrong[] = {
        "{provision: soon}",
        "{provision: -1 s}",
        "{provision: {dist: lognormal, mean: 3 s}}",
        "{provision: {dist: normal, mean: 3 s}}",
        "{weights: {source: object_store}}", /* no model, no bytes */
        "{weights: {source: usb, bytes: 1 GB}}"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char yaml[2000];
        snprintf(yaml, sizeof yaml, SCENARIO("%s", ""), wrong[i]);
        struct run_text r;
        ck_assert_msg(!run_text_open(&r, yaml, "0,1,1\n", NULL, 0), "%s", wrong[i]);
        run_text_free(&r);
    }
}
END_TEST

/* The mean of draws is the mean that was asked for, whatever the launches before. */
START_TEST(draws_have_their_mean)
{
    struct run_text r =
        opened(SCENARIO("{provision: {dist: lognormal, mean: 100 s, sigma: 0.8}, "
                        "image_pull: {dist: empirical, values: [10 s, 20 s, 90 s]}, "
                        "shortage: 25 %, shortage_wait: 200 s, failure: 10 %}",
                        ""));
    uint64_t key = rng_key(1, 0, RNG_COLD_START, 0);
    double sum = 0;
    int fails = 0;
    enum { LAUNCHES = 40000 };
    for (uint64_t i = 0; i < LAUNCHES; i++) {
        struct cold_start_course course, again;
        cold_start_draw(cold_of(&r), key, i, false, &course);
        cold_start_draw(cold_of(&r), key, i, false, &again);
        ck_assert_int_eq(course.provisioning_ps, again.provisioning_ps);
        sum += (double)course.provisioning_ps / (double)PS_PER_SECOND;
        fails += course.fails;
    }
    /* 100 + 40 + 0.25 × 200; the standard error is about 0.7 s. */
    ck_assert_double_eq_tol(sum / LAUNCHES, 190, 3);
    ck_assert_double_eq_tol((double)fails / LAUNCHES, 0.1, 0.006);
    run_text_free(&r);
}
END_TEST

/* Ready times of the requests' replicas: each of max_num_seqs 1 serves one, for a second. */
static void ends_are(const char *yaml, const char *trace, const double *ends, size_t count)
{
    struct run_text r = run_text_do(yaml, trace);
    ck_assert_uint_eq(r.row_count, count);
    for (size_t i = 0; i < count; i++) {
        double end = (double)r.rows[i].end_ps / (double)PS_PER_SECOND;
        ck_assert_msg(fabs(end - ends[i]) < 1e-6, "request %zu ends at %.9f s, not %g", i, end,
                      ends[i]);
    }
    run_text_free(&r);
}

#define STORE(own)                                                                                 \
    SCENARIO(                                                                                      \
        "{provision: 0 s, image_pull: 0 s, engine_init: 0 s, weights: {source: object_store, "     \
        "bytes: 100 GB, bandwidth: 4 GB/s, per_replica: " own "}}",                                \
        "")

/* 100 GB at 4 GB/s. Three at 0 (one by the arrival, two by the decision of the same instant): 12
 * GB/s are wanted, each gets 4/3: 75 s. */
START_TEST(a_store_is_shared)
{
    ends_are(STORE("4 GB/s"), "0,1,1\n", (const double[]){26}, 1);
    ends_are(STORE("2 GB/s"), "0,1,1\n", (const double[]){51}, 1);
    ends_are(STORE("4 GB/s"), "0,1,1\n0,1,1\n0,1,1\n", (const double[]){76, 76, 76}, 3);
    /* A second one starts at 10, seen at 15: the first has 60 GB; both at 2 GB/s; the first is done
     * after 20 s more, at 35; the second, with 40 GB then, has 60 to go at 4: 50. It serves 51, but
     * the first is free at 36 and takes the waiting one: which ends at 37. */
    ends_are(STORE("4 GB/s"), "0,1,1\n10,1,1\n", (const double[]){36, 37}, 2);
    /* Long first request: the second waits for its own replica. */
    ends_are(STORE("4 GB/s"), "0,1,30\n10,1,1\n", (const double[]){65, 51}, 2);
    /* Its own limit binds while few load: 1 GB/s each, nobody disturbs the other. */
    ends_are(STORE("1 GB/s"), "0,1,60\n10,1,1\n", (const double[]){160, 116}, 2);
}
END_TEST

/* Local sources are each replica's own. */
START_TEST(local_sources_are_not_shared)
{
    ends_are(SCENARIO("{provision: 0 s, image_pull: 0 s, engine_init: 0 s, weights: {source: "
                      "local_nvme, bytes: 126 GB}}",
                      ""),
             "0,1,1\n0,1,1\n", (const double[]){11, 11}, 2);
}
END_TEST

/* The first to start compiles, those that start when one was ready do not. */
START_TEST(the_first_engine_init_is_longer)
{
    ends_are(SCENARIO("{provision: 0 s, image_pull: 0 s, weights: 0 s, engine_init: 100 s, "
                      "engine_init_cached: 20 s}",
                      ""),
             "0,1,200\n120,1,1\n", (const double[]){300, 141}, 2);
}
END_TEST

/* Nine in ten launches find no GPU: requests wait, and are served all the same, after the horizon
 * too. */
START_TEST(failures_are_tried_again)
{
    struct run_text r = run_text_do(
        SCENARIO("{provision: 10 s, image_pull: 0 s, weights: 5 s, engine_init: 0 s, failure: 90 "
                 "%}",
                 ""),
        "0,1,1\n995,1,1\n996,1,1\n");
    size_t count;
    const struct metrics_scale_event *e = metrics_scale_events(run_metrics(r.run), &count);
    size_t again = 0;
    for (size_t i = 0; i < count; i++) {
        again += strstr(e[i].reason, "no replica comes") != NULL;
    }
    for (size_t i = 0; i < r.row_count; i++) {
        ck_assert_str_eq(r.rows[i].outcome, "completed");
        int64_t wait = r.rows[i].admitted_ps - r.rows[i].arrival_ps;
        ck_assert_int_ge(wait, SECONDS(15));
    }
    ck_assert_uint_ge(again, 3);
    run_text_free(&r);
}
END_TEST

/* Ready at 2 s; iterations of 1 s that start before 6 s take 3 s: tokens at 5, 8, 9, 10 … The
 * replica is not slow for who comes later, nor are those that were ready from the start. */
START_TEST(first_requests_are_slower)
{
    static const char slow[] = "{provision: 2 s, image_pull: 0 s, weights: 0 s, engine_init: 0 s, "
                               "slow_start_time: 4 s, slow_start_factor: 3}";
    char yaml[2000];
    snprintf(yaml, sizeof yaml, SCENARIO("%s", ""), slow);
    for (int step = 0; step < 2; step++) {
        struct run_text r = run_text_set(yaml, "0,1,10\n20,1,3\n", NULL, 0, step == 1);
        ck_assert_int_eq(r.rows[0].first_token_ps, SECONDS(5));
        ck_assert_int_eq(r.rows[0].end_ps, SECONDS(16));
        ck_assert_int_eq(r.rows[1].end_ps, SECONDS(23));
        run_text_free(&r);
        static const char *const warm[] = {"fleet.pools[0].initial_replicas=1"};
        r = run_text_set(yaml, "0,1,10\n", warm, 1, step == 1);
        ck_assert_int_eq(r.rows[0].end_ps, SECONDS(10));
        run_text_free(&r);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {bare_and_mapping_are_the_same,
                                  nonsense_is_refused,
                                  draws_have_their_mean,
                                  a_store_is_shared,
                                  local_sources_are_not_shared,
                                  the_first_engine_init_is_longer,
                                  failures_are_tried_again,
                                  first_requests_are_slower,
                                  NULL};
    return suite_run("cold start", tests, 60);
}
