/* Runs from end to end: the same traffic under every policy (T08 d), seeds apart (T08 e), the same
 * answer every time and in every mode, and the ends of a run. */
#include <math.h>
#include <pthread.h>

#include "sim/base/digest.h"
#include "tests/run_text.h"
#include "tests/unit/suite_run.h"

/* A bit of everything: two classes, two pools that overlap, little KV, cold starts, scaling, a
 * queue that is full at times. Router, autoscaler, seed, drain by set. */
static const char busy[] =
    "name: busy\n"
    "seed: 1\n"
    "horizon: 300 s\n"
    "output: {trace_interval: 60 s, gauge_interval: 7 s}\n"
    "workload:\n"
    "  - name: chat\n"
    "    arrivals: {process: poisson, rate: 15 /s}\n"
    "    prompt_tokens: {dist: lognormal, mean: 120, sigma: 0.8, max: 1000}\n"
    "    output_tokens: {dist: geometric, mean: 60}\n"
    "    slo: {ttft: 1 s, attainment: 90 %}\n"
    "  - name: batch\n"
    "    arrivals: {process: constant, rate: 1 /s}\n"
    "    prompt_tokens: {dist: exponential, mean: 300}\n"
    "    output_tokens: {dist: constant, value: 20}\n"
    "    pools: [slow]\n"
    "fleet:\n"
    "  router: {policy: least_loaded}\n"
    "  pools:\n"
    "    - name: fast\n"
    "      engine: {max_num_seqs: 32, max_num_batched_tokens: 256, block_size: 8, "
    "num_gpu_blocks_override: 200}\n"
    "      step_time: {model: affine, base: 40 ms, per_token: 100 us, per_kv_token: 1 us}\n"
    "      initial_replicas: 3\n"
    "      max_queue: 10\n"
    "      autoscaler: {policy: target, metric: utilization, target: 0.8, max_replicas: 5,\n"
    "                   scale_down_window: 40 s, interval: 10 s}\n"
    "      cold_start: {provision: 10 s, image_pull: 5 s, weights: 5 s, engine_init: 5 s}\n"
    "    - name: slow\n"
    "      engine: {max_num_seqs: 4, max_num_batched_tokens: 64, block_size: 4, "
    "num_gpu_blocks_override: 900}\n"
    "      step_time: {model: rate, prefill_tokens_per_s: 1500, decode_tokens_per_s: 200, "
    "min_step: 15 ms}\n"
    "      initial_replicas: 2\n"
    "      autoscaler: {policy: target, metric: concurrency, target: 3, max_replicas: 6,\n"
    "                   scale_down_window: 30 s}\n"
    "      cold_start: {provision: 20 s, image_pull: 0 s, weights: 10 s, engine_init: 0 s}\n";

static struct run_text busy_run(const char *a, const char *b, bool step)
{
    const char *const sets[] = {a, b};
    return run_text_set(busy, NULL, sets, b != NULL ? 2 : a != NULL ? 1 : 0, step);
}

/* What the traffic was, every bit of it. */
static uint64_t traffic_of(const struct run_text *r)
{
    struct digest d;
    digest_init(&d);
    for (size_t i = 0; i < r->row_count; i++) {
        const struct run_text_row *row = &r->rows[i];
        digest_word(&d, (uint64_t)row->arrival_ps);
        digest_word(&d, (uint64_t)row->prompt);
        digest_word(&d, (uint64_t)row->output);
        digest_word(&d, (uint64_t)row->class[0]);
    }
    return d.state;
}

/* T08 (d): routers and autoscalers change what happens, never what arrives. */
START_TEST(t08d_policies_do_not_touch_traffic)
{
    static const char *const sets[] = {
        "fleet.router.policy=round_robin",
        "fleet.router.policy=random",
        "fleet.router.policy=central_queue",
        "fleet.pools[0].autoscaler.max_replicas=4",
        "fleet.pools[0].autoscaler={policy: static, replicas: 3}",
        "fleet.pools[1].autoscaler.target=2",
        "fleet.pools[0].step_time.base=30 ms",
    };
    struct run_text base = busy_run(NULL, NULL, false);
    ck_assert_uint_gt(base.row_count, 1500);
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        struct run_text other = busy_run(sets[i], NULL, false);
        ck_assert_uint_eq(other.row_count, base.row_count);
        ck_assert_uint_eq(traffic_of(&other), traffic_of(&base));
        ck_assert_msg(strcmp(other.totals.digest, base.totals.digest) != 0, "%s changes nothing",
                      sets[i]);
        run_text_free(&other);
    }
    run_text_free(&base);
}
END_TEST

/* T08 (e): replications 0-4 of seeds 1 and 2: ten lists that share no arrival time of the Poisson
 * class, nor their lengths. */
START_TEST(t08e_seeds_and_replications)
{
    enum { LISTS = 10, KEPT = 1000 };
    static int64_t arrivals[LISTS][KEPT];
    uint64_t lengths[LISTS];
    for (int i = 0; i < LISTS; i++) {
        char seed[32], replication[32];
        snprintf(seed, sizeof seed, "seed=%d", 1 + i / 5);
        snprintf(replication, sizeof replication, "replication=%d", i % 5);
        struct run_text r = busy_run(seed, replication, false);
        struct digest d;
        digest_init(&d);
        size_t kept = 0;
        for (size_t k = 0; k < r.row_count && kept < KEPT; k++) {
            if (r.rows[k].class[0] == 'c') {
                arrivals[i][kept++] = r.rows[k].arrival_ps;
                digest_word(&d, (uint64_t)r.rows[k].prompt << 32 | (uint64_t)r.rows[k].output);
            }
        }
        ck_assert_uint_eq(kept, KEPT);
        lengths[i] = d.state;
        run_text_free(&r);
        for (int j = 0; j < i; j++) {
            ck_assert_uint_ne(lengths[i], lengths[j]);
            for (size_t a = 0, b = 0; a < KEPT && b < KEPT;) {
                ck_assert_int_ne(arrivals[i][a], arrivals[j][b]);
                arrivals[i][a] < arrivals[j][b] ? a++ : b++;
            }
        }
    }
}
END_TEST

static const char *const variants[] = {
    "seed=3",
    "fleet.router.policy=central_queue",
    "fleet.router.policy=random",
    "fleet.router.policy=round_robin",
    "fleet.pools[0].engine.num_gpu_blocks_override=130",
    "fleet.pools[0].engine.enable_chunked_prefill=false",
    "drain=false",
    "warmup=45 s",
    "fleet.pools[1].max_queue=0",
};
enum { VARIANTS = sizeof variants / sizeof *variants };

/* One iteration per event, or spans: the same digest and the same rows. */
START_TEST(steps_and_spans_agree)
{
    uint64_t preemptions = 0;
    for (size_t i = 0; i < VARIANTS * 2; i++) {
        const char *cut = i >= VARIANTS ? "drain=false" : NULL;
        struct run_text spans = busy_run(variants[i % VARIANTS], cut, false);
        struct run_text steps = busy_run(variants[i % VARIANTS], cut, true);
        ck_assert_str_eq(spans.totals.digest, steps.totals.digest);
        ck_assert_str_eq(spans.csv, steps.csv);
        ck_assert_uint_eq(spans.totals.iterations, steps.totals.iterations);
        ck_assert_uint_lt(spans.totals.spans, steps.totals.spans);
        preemptions += run_text_summary(&spans)->requests.preemptions;
        run_text_free(&spans);
        run_text_free(&steps);
    }
    ck_assert_uint_gt(preemptions, 100);
}
END_TEST

/* Two runs in one process: one after the other, one inside the life of the other, and both at once
 * in two threads. */
static void *simulate_in_thread(void *run)
{
    struct errors errors;
    errors_init(&errors);
    bool ok = run_simulate(run, &(struct run_options){0}, &errors);
    errors_free(&errors);
    return ok ? run : NULL;
}

START_TEST(two_runs_in_one_process)
{
    struct run_text first = busy_run("seed=1", NULL, false);
    struct run_text second = busy_run("seed=2", NULL, false);
    ck_assert_str_ne(first.totals.digest, second.totals.digest);
    struct run_text a, b;
    const char *const one = "seed=1", *const two = "seed=2";
    ck_assert(run_text_open(&a, busy, NULL, &one, 1));
    ck_assert(run_text_open(&b, busy, NULL, &two, 1));
    pthread_t threads[2];
    void *done[2];
    ck_assert_int_eq(pthread_create(&threads[0], NULL, simulate_in_thread, a.run), 0);
    ck_assert_int_eq(pthread_create(&threads[1], NULL, simulate_in_thread, b.run), 0);
    for (size_t i = 0; i < 2; i++) {
        ck_assert_int_eq(pthread_join(threads[i], &done[i]), 0);
        ck_assert_ptr_nonnull(done[i]);
    }
    ck_assert_str_eq(run_totals(a.run).digest, first.totals.digest);
    ck_assert_str_eq(run_totals(b.run).digest, second.totals.digest);
    run_text_free(&a);
    run_text_free(&b);
    ck_assert(run_text_open(&a, busy, NULL, &one, 1));
    run_text_free(&second);
    run_text_simulate(&a, false);
    ck_assert_str_eq(a.totals.digest, first.totals.digest);
    ck_assert_str_eq(a.csv, first.csv);
    run_text_free(&a);
    run_text_free(&first);
}
END_TEST

/* Every request refused, and no request at all: the same rows as ever, zeros, empty statistics, and
 * no NaN where a number is due. */
static void expect_idle(const struct run_text *r, double hours)
{
    const struct metrics_summary *s = run_text_summary(r);
    const struct metrics_latency *latencies[] = {&s->ttft, &s->tpot, &s->itl, &s->e2e, &s->queue};
    for (size_t i = 0; i < 5; i++) {
        ck_assert_uint_eq(latencies[i]->count, 0);
        ck_assert_int_eq(latencies[i]->mean_ps, TIME_NONE);
        ck_assert_int_eq(latencies[i]->p99_ps, TIME_NONE);
    }
    ck_assert_uint_eq(s->requests.completed, 0);
    ck_assert_uint_eq(s->requests.admitted, 0);
    ck_assert_uint_eq(s->tokens.prompt + s->tokens.computed + s->tokens.output, 0);
    ck_assert_uint_eq(s->iterations, 0);
    ck_assert_double_eq(s->in_flight_mean, 0);
    ck_assert_double_eq(s->utilization, 0);
    ck_assert_double_eq(s->busy_share, 0);
    ck_assert_double_eq_tol(s->gpu_hours.idle, hours, 1e-12);
    ck_assert_double_eq_tol(s->gpu_hours.held, hours, 1e-12);
    ck_assert_double_eq_tol(s->gpu_hours.billed, hours, 1e-12);
    ck_assert_double_eq_tol(s->usd.total, 2 * hours, 1e-12);
    ck_assert(isnan(s->usd.per_mtok_total)); /* dollars for no tokens: undefined */
    for (size_t k = 0; k < metrics_hour_count(run_metrics(r->run)); k++) {
        const struct metrics_hour *h = run_text_hour(r, k);
        ck_assert(isfinite(h->gpu_hours.held) && isfinite(h->gpu_hours.billed));
        ck_assert(h->is_drain || isfinite(h->gpus_ready_mean));
        ck_assert(h->is_drain || h->utilization == 0);
        ck_assert_uint_eq(h->ttft.count, 0);
    }
}

#define IDLE(arrivals)                                                                             \
    "name: idle\nhorizon: 2 h\n"                                                                   \
    "workload: [{name: w, arrivals: " arrivals ", slo: {ttft: 1 s, attainment: 90 %},\n"           \
    "            prompt_tokens: {dist: constant, value: 100},\n"                                   \
    "            output_tokens: {dist: constant, value: 10}}]\n"                                   \
    "fleet:\n"                                                                                     \
    "  pools:\n"                                                                                   \
    "    - {name: main, engine: {max_model_len: 50}, step_time: {model: constant, step: 1 s},\n"   \
    "       autoscaler: {policy: static, replicas: 3}, price: {usd_per_gpu_hour: 2}}\n"

START_TEST(all_refused)
{
    struct run_text r = run_text_do(IDLE("{process: constant, rate: 0.1 /s}"), NULL);
    expect_idle(&r, 6);
    const struct metrics_summary *s = run_text_summary(&r);
    ck_assert_uint_eq(s->requests.arrived, 720);
    ck_assert_uint_eq(s->requests.unservable, 720);
    ck_assert_double_eq(s->slo.attainment, 0);
    ck_assert_int_eq(s->slo_met, 0);
    ck_assert_uint_eq(r.row_count, 720);
    run_text_free(&r);
}
END_TEST

START_TEST(no_traffic)
{
    struct run_text r = run_text_do(IDLE("{process: poisson, rate: 1e-9 /s}"), NULL);
    expect_idle(&r, 6);
    ck_assert_uint_eq(run_text_summary(&r)->requests.arrived, 0);
    ck_assert(isnan(run_text_summary(&r)->slo.attainment)); /* 0/0 */
    ck_assert_int_eq(run_text_summary(&r)->slo_met, -1);
    ck_assert_uint_eq(r.row_count, 0);
    run_text_free(&r);
}
END_TEST

/* A run that is cut ends every request in flight at the cut, once. */
START_TEST(a_cut_run_adds_up)
{
    struct run_text r = busy_run("drain=false", "fleet.pools[0].step_time.base=100 ms", false);
    size_t in_flight = 0;
    for (size_t i = 0; i < r.row_count; i++) {
        const struct run_text_row *row = &r.rows[i];
        ck_assert_int_le(row->end_ps, SECONDS(300));
        if (strcmp(row->outcome, "in_flight") == 0) {
            ck_assert_int_eq(row->end_ps, SECONDS(300));
            in_flight++;
        }
    }
    const struct metrics_requests *q = &run_text_summary(&r)->requests;
    ck_assert_uint_gt(in_flight, 20);
    ck_assert_uint_eq(q->in_flight, in_flight);
    ck_assert_uint_eq(q->arrived,
                      q->completed + q->refused + q->unservable + q->cancelled + q->in_flight);
    ck_assert_uint_eq(q->arrived, r.row_count);
    run_text_free(&r);
}
END_TEST

/* A replica becomes ready at the very instant of the cut, with requests in a central queue: those
 * have ended, so it must not take one. (The cut is at 10 s; a launch at 5 s takes 5 s; the last
 * interval's edge, at 10 s too, keeps the loop going.) */
START_TEST(nothing_begins_after_the_cut)
{
    struct run_text r = run_text_do(
        "name: cut\nhorizon: 10 s\ndrain: false\n"
        "output: {trace_interval: 1 s}\n"
        "workload: [{name: w, arrivals: {process: trace, file: trace.csv}}]\n"
        "fleet:\n"
        "  router: {policy: central_queue}\n"
        "  pools:\n"
        "    - name: main\n"
        "      engine: {max_num_seqs: 1}\n"
        "      step_time: {model: constant, step: 100 s}\n"
        "      initial_replicas: 1\n"
        "      autoscaler: {policy: target, metric: concurrency, target: 1, max_replicas: 2, "
        "interval: 5 s}\n"
        "      cold_start: {provision: 3 s, image_pull: 0 s, weights: 2 s, engine_init: 0 s}\n",
        "1,1,1\n2,1,1\n3,1,1\n");
    ck_assert_uint_eq(r.row_count, 3);
    ck_assert_int_eq(r.rows[0].admitted_ps, SECONDS(1));
    for (size_t i = 0; i < 3; i++) {
        ck_assert_str_eq(r.rows[i].outcome, "in_flight");
        ck_assert_int_eq(r.rows[i].end_ps, SECONDS(10));
        ck_assert(i == 0 || r.rows[i].admitted_ps == TIME_NONE);
    }
    ck_assert_uint_eq(run_text_summary(&r)->requests.admitted, 1);
    run_text_free(&r);
}
END_TEST

/* The grain of the output changes nothing: a replica that becomes ready at the horizon itself does
 * so, or does not, whatever the intervals; drained or cut. (A launch at 5 s takes 5 s.) */
START_TEST(the_grain_of_the_output_changes_nothing)
{
    static const char *const sets[][2] = {{"output.trace_interval=1 h", "drain=true"},
                                          {"output.trace_interval=1 s", "drain=true"},
                                          {"output.trace_interval=1 h", "drain=false"},
                                          {"output.trace_interval=1 s", "drain=false"}};
    char digests[4][17];
    for (size_t i = 0; i < 4; i++) {
        struct run_text r = run_text_set(
            "name: grain\nhorizon: 10 s\n"
            "workload: [{name: w, arrivals: {process: trace, file: trace.csv}}]\n"
            "fleet:\n  pools:\n"
            "    - name: main\n"
            "      engine: {max_num_seqs: 1}\n"
            "      step_time: {model: constant, step: 2 s}\n"
            "      initial_replicas: 1\n"
            "      autoscaler: {policy: target, metric: concurrency, target: 1, max_replicas: 2, "
            "interval: 5 s}\n"
            "      cold_start: {provision: 3 s, image_pull: 0 s, weights: 2 s, engine_init: 0 s}\n",
            "4,1,1\n4,1,1\n", sets[i], 2, false);
        ck_assert_int_eq(r.rows[1].end_ps, SECONDS(8));
        memcpy(digests[i], r.totals.digest, sizeof digests[i]);
        run_text_free(&r);
    }
    ck_assert_str_eq(digests[0], digests[1]);
    ck_assert_str_eq(digests[2], digests[3]);
}
END_TEST

/* Rates so small that an iteration does not fit in 64 bits of picoseconds: refused as input, never
 * a fault or a wrapped number. */
START_TEST(steps_beyond_the_clock_are_the_users_error)
{
    struct run_text r;
    bool opened = run_text_open(
        &r,
        "name: slow\nhorizon: 1 min\n"
        "workload: [{name: w, arrivals: {process: trace, file: trace.csv}}]\n"
        "fleet:\n  pools:\n"
        "    - {name: main, autoscaler: {policy: static, replicas: 1}, step_time: {model: rate, "
        "prefill_tokens_per_s: 1e-7, decode_tokens_per_s: 1000}}\n",
        "0,10,1\n", NULL, 0);
    ck_assert(!opened);
    ck_assert_uint_gt(r.errors.error_count, 0);
    run_text_free(&r);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {t08d_policies_do_not_touch_traffic,
                                  t08e_seeds_and_replications,
                                  steps_and_spans_agree,
                                  two_runs_in_one_process,
                                  all_refused,
                                  no_traffic,
                                  a_cut_run_adds_up,
                                  nothing_begins_after_the_cut,
                                  the_grain_of_the_output_changes_nothing,
                                  steps_beyond_the_clock_are_the_users_error,
                                  NULL};
    return suite_run("run", tests, 120);
}
