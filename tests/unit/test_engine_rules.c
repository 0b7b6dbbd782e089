/* The scheduler's rules, as a user sees them: acceptance cases T01, T08 (a, b), T09, T11, T12 and
 * the one-liners about blocks, timeouts and over-subscribed memory. Exact picoseconds. */
#include "sim/base/digest.h"
#include "sim/base/histogram.h"
#include "tests/fleet_drive.h"
#include "tests/run_text.h"
#include "tests/unit/suite_run.h"
#include "tests/unit/support_traffic.h"

#define SCENARIO(engine, step, more)                                                               \
    "name: rules\n"                                                                                \
    "horizon: 2 h\n"                                                                               \
    "workload: [{name: w, arrivals: {process: trace, file: trace.csv}}]\n"                         \
    "fleet:\n"                                                                                     \
    "  pools:\n"                                                                                   \
    "    - name: main\n"                                                                           \
    "      engine: {" engine "}\n"                                                                 \
    "      step_time: {" step "}\n"                                                                \
    "      autoscaler: {policy: static, replicas: 1}\n" more

/* T01: a replica never idles with work queued. */
START_TEST(t01_never_idle)
{
    struct run_text r = run_text_do(SCENARIO("max_num_seqs: 1", "model: constant, step: 10 ms", ""),
                                    "0,1,5\n0.010,1,5\n10,1,5\n");
    ck_assert_uint_eq(r.row_count, 3);
    ck_assert_int_eq(r.rows[0].first_token_ps, MILLIS(10));
    ck_assert_int_eq(r.rows[0].end_ps, MILLIS(50));
    ck_assert_int_eq(r.rows[1].admitted_ps, MILLIS(50));
    ck_assert_int_eq(r.rows[1].first_token_ps, MILLIS(60));
    ck_assert_int_eq(r.rows[1].first_token_ps - r.rows[1].arrival_ps, MILLIS(50));
    ck_assert_int_eq(r.rows[1].end_ps, MILLIS(100));
    ck_assert_int_eq(r.rows[2].end_ps, MILLIS(10050));
    run_text_free(&r);
}
END_TEST

/* T08 (a): 1,000 arrivals at 0, one server, 1 ms each: request k ends at (k + 1) ms. */
START_TEST(t08a_a_thousand_at_once)
{
    char trace[8001] = "";
    for (size_t i = 0; i < 1000; i++) {
        memcpy(trace + 6 * i, "0,1,1\n", 7);
    }
    for (int step = 0; step < 2; step++) {
        struct run_text r =
            run_text_set(SCENARIO("max_num_seqs: 1", "model: constant, step: 1 ms", ""), trace,
                         NULL, 0, step == 1);
        ck_assert_uint_eq(r.row_count, 1000);
        for (int64_t k = 0; k < 1000; k++) {
            ck_assert_int_eq(r.rows[k].id, k);
            ck_assert_int_eq(r.rows[k].end_ps, MILLIS(k + 1));
        }
        run_text_free(&r);
    }
}
END_TEST

struct story {
    struct digest digest;
    uint64_t admitted, ended, preemptions, cancelled;
    int64_t last_end_ps;
    uint32_t preemptions_of_first;
};

static void story_take(void *self, const struct obs *obs)
{
    struct story *s = self;
    switch (obs->kind) {
    case OBS_ADMIT:
        s->admitted++;
        digest_event(&s->digest, obs->kind, obs->time_ps, obs->u.record->request.id, obs->replica);
        break;
    case OBS_PREEMPT:
        s->preemptions++;
        break;
    case OBS_END:
        s->ended++;
        s->cancelled += obs->u.record->outcome == OUTCOME_CANCELLED;
        s->last_end_ps = obs->time_ps;
        digest_event(&s->digest, obs->kind, obs->time_ps, obs->u.record->request.id,
                     obs->u.record->outcome);
        if (obs->u.record->request.id == 0) {
            s->preemptions_of_first = obs->u.record->preemptions;
        }
        break;
    default:
        break;
    }
}

static struct story drive_story(struct drive *d)
{
    struct story s = {0};
    digest_init(&s.digest);
    d->sink = (struct obs_sink){.take = story_take, .self = &s};
    drive_run(d);
    return s;
}

/* count equal requests, gap_ps apart; in the arena. */
static void drive_requests(struct drive *d, size_t count, int64_t gap_ps, uint32_t prompt,
                           uint32_t output)
{
    struct request *list = arena_alloc(&d->arena, count * sizeof *list);
    for (size_t i = 0; i < count; i++) {
        list[i] = (struct request){.id = i,
                                   .arrival_ps = (int64_t)i * gap_ps,
                                   .prompt_tokens = prompt,
                                   .output_tokens = output,
                                   .session = -1};
    }
    d->requests = list;
    d->request_count = count;
}

static void drive_step_time(struct drive *d, const struct variant *variant, const char *a,
                            const char *b)
{
    d->model = drive_model(&d->arena, drive_variant(&d->arena, variant, a, b, NULL));
}

/* T08 (b): 500 timers at 0 that do nothing change nothing. */
START_TEST(t08b_idle_timers_change_nothing)
{
    struct drive d;
    drive_init(&d);
    drive_step_time(&d, &step_constant_variant, "step=1 ms", NULL);
    d.engine.max_num_seqs = 3;
    d.replicas = 2;
    drive_requests(&d, 1000, 0, 20, 7);
    struct story plain = drive_story(&d);
    d.idle_timers = 500;
    struct story idle = drive_story(&d);
    ck_assert_uint_eq(plain.ended, 1000);
    ck_assert_uint_eq(plain.digest.state, idle.digest.state);
    ck_assert_uint_eq(plain.digest.events, idle.digest.events);
    ck_assert_int_eq(plain.last_end_ps, idle.last_end_ps);
    drive_free(&d);
}
END_TEST

/* 300 s timeouts, cancelled by completion at 20 s: the clock stops at 20 s. One that is reached
 * takes its client away. */
START_TEST(cancelled_timeouts_do_not_move_the_clock)
{
    struct drive d;
    drive_init(&d);
    drive_step_time(&d, &step_constant_variant, "step=1 s", NULL);
    drive_requests(&d, 10, 0, 1, 20);
    d.patience_ps = SECONDS(300);
    struct story s = drive_story(&d);
    ck_assert_uint_eq(s.ended, 10);
    ck_assert_uint_eq(s.cancelled, 0);
    ck_assert_int_eq(s.last_end_ps, SECONDS(20));
    ck_assert_int_eq(d.now_ps, SECONDS(20));
    d.patience_ps = SECONDS(15);
    s = drive_story(&d);
    ck_assert_uint_eq(s.cancelled, 10);
    ck_assert_int_eq(s.last_end_ps, SECONDS(15));
    drive_free(&d);
}
END_TEST

/* T09: a 15 s decision timer fires 40,320 times in 7 days, at 0 the first time. */
START_TEST(t09_a_week_of_decisions)
{
    struct drive d;
    drive_init(&d);
    drive_step_time(&d, &step_constant_variant, "step=1 s", NULL);
    d.autoscaler = drive_variant(&d.arena, &autoscaler_target_variant, "metric=concurrency",
                                 "target=10", "max_replicas=4", NULL);
    d.horizon_ps = 7 * 24 * PS_PER_HOUR;
    drive_run(&d);
    ck_assert_uint_eq(d.decisions, 40320);
    ck_assert_int_eq(d.now_ps, 7 * 24 * PS_PER_HOUR - SECONDS(15));
    drive_free(&d);
}
END_TEST

/* T09: a request that arrives at 3,600 belongs to hour 1; one that starts at 3,599.9 and ends at
 * 3,600.1 is admitted in hour 0 and completes in hour 1, and keeps the replica busy for 0.1 s of
 * each. */
START_TEST(t09_hour_edges)
{
    struct run_text r =
        run_text_do(SCENARIO("max_num_seqs: 1", "model: constant, step: 200 ms", ""),
                    "3599.9,1,1\n3600.000000,1,1\n");
    ck_assert_int_eq(r.rows[0].admitted_ps, MILLIS(3599900));
    ck_assert_int_eq(r.rows[0].end_ps, MILLIS(3600100));
    ck_assert_int_eq(r.rows[1].end_ps, MILLIS(3600300));
    const struct metrics_hour *h0 = run_text_hour(&r, 0), *h1 = run_text_hour(&r, 1);
    ck_assert_uint_eq(h0->requests.arrived, 1);
    ck_assert_uint_eq(h0->requests.admitted, 1);
    ck_assert_uint_eq(h0->requests.completed, 0);
    ck_assert_uint_eq(h1->requests.arrived, 1);
    ck_assert_uint_eq(h1->requests.admitted, 1);
    ck_assert_uint_eq(h1->requests.completed, 2);
    ck_assert_double_eq_tol(h0->gpu_hours.serving * 3600, 0.1, 1e-12);
    ck_assert_double_eq_tol(h1->gpu_hours.serving * 3600, 0.3, 1e-12);
    run_text_free(&r);
}
END_TEST

/* T11: tokens of A at 1.0, 1.1, 1.2 and 1.5 s. An iteration takes 90 ms + 10 ms per token: A's
 * prompt of 91 takes 1 s, its decodes 0.1 s each; the last shares its iteration with B's prompt of
 * 20, which is B's only token, and takes 0.3 s. C has one token too, D none. */
START_TEST(t11_first_token_gaps_and_time_per_token)
{
    struct run_text r =
        run_text_do(SCENARIO("max_num_seqs: 4", "model: affine, base: 90 ms, per_token: 10 ms", ""),
                    "0,91,4\n1.15,20,1\n10,191,1\n20,1,0\n");
    const struct run_text_row *a = &r.rows[0];
    ck_assert_int_eq(a->first_token_ps, MILLIS(1000));
    ck_assert_int_eq(a->end_ps, MILLIS(1500));
    ck_assert_int_eq(r.rows[1].admitted_ps, MILLIS(1200));
    ck_assert_int_eq(r.rows[1].end_ps, MILLIS(1500));
    ck_assert_int_eq(r.rows[2].first_token_ps - r.rows[2].arrival_ps, MILLIS(2000));
    ck_assert_int_eq(r.rows[3].first_token_ps, TIME_NONE);
    ck_assert_int_eq(r.rows[3].end_ps, MILLIS(20100));
    const struct metrics_summary *s = run_text_summary(&r);
    ck_assert_uint_eq(s->itl.count, 3);
    ck_assert_int_eq(s->itl.mean_ps, (MILLIS(500) + 1) / 3);
    ck_assert_int_eq(s->itl.max_ps, MILLIS(300));
    ck_assert_uint_eq(s->tpot.count, 1);
    ck_assert_int_eq(s->tpot.mean_ps, s->itl.mean_ps);
    ck_assert_uint_eq(s->ttft.count, 3);
    ck_assert_uint_eq(s->requests.completed, 4);
    ck_assert_uint_eq(s->requests.zero_output, 1);
    run_text_free(&r);
}
END_TEST

/* T12: ends at 1 … 10 s: nearest rank says p50 5 and p99 10; p99 of ten values is marked. */
START_TEST(t12_nearest_rank)
{
    struct run_text r =
        run_text_do(SCENARIO("max_num_seqs: 10", "model: constant, step: 1 s", ""),
                    "0,1,1\n0,1,2\n0,1,3\n0,1,4\n0,1,5\n0,1,6\n0,1,7\n0,1,8\n0,1,9\n0,1,10\n");
    const struct metrics_latency *e2e = &run_text_summary(&r)->e2e;
    ck_assert_uint_eq(e2e->count, 10);
    ck_assert_double_eq_tol(time_seconds(e2e->p50_ps), 5, 5 * HISTOGRAM_RELATIVE_ERROR);
    ck_assert_double_eq_tol(time_seconds(e2e->p99_ps), 10, 10 * HISTOGRAM_RELATIVE_ERROR);
    ck_assert_int_eq(e2e->max_ps, SECONDS(10));
    ck_assert(metrics_quantile_defended(e2e->count, 500));
    ck_assert(!metrics_quantile_defended(e2e->count, 990));
    ck_assert(!metrics_quantile_defended(99, 990));
    ck_assert(metrics_quantile_defended(100, 990));
    run_text_free(&r);
}
END_TEST

/* Block 4, 3 tokens held, chunk of 5: 8 tokens are 2 blocks, not 1 + 2. The budget makes the first
 * chunk 3 (a decode of another request beside it would do the same). */
START_TEST(blocks_follow_tokens_not_chunks)
{
    struct run_text r =
        run_text_do(SCENARIO("max_num_seqs: 2, max_num_batched_tokens: 3, block_size: 4, "
                             "num_gpu_blocks_override: 2",
                             "model: constant, step: 1 s", ""),
                    "0,8,1\n");
    ck_assert_str_eq(r.rows[0].outcome, "completed");
    ck_assert_int_eq(r.rows[0].end_ps, SECONDS(3));
    ck_assert_int_eq(run_text_summary(&r)->kv_peak_blocks, 2);
    ck_assert_uint_eq(run_text_summary(&r)->requests.preemptions, 0);
    run_text_free(&r);
    /* A decode of B leaves 5 of 6 tokens to A: chunks of 3 and 5. A's first chunk shares with B's
     * prompt of 3: 3 + 3 tokens, 1 + 1 blocks; then 5 + 1 tokens: A has 8 in 2 blocks, B 4 in 1. */
    r = run_text_do(SCENARIO("max_num_seqs: 2, max_num_batched_tokens: 6, block_size: 4, "
                             "num_gpu_blocks_override: 3",
                             "model: constant, step: 1 s", ""),
                    "0,3,2\n0,8,1\n");
    ck_assert_int_eq(r.rows[0].end_ps, SECONDS(2));
    ck_assert_int_eq(r.rows[1].end_ps, SECONDS(2));
    ck_assert_int_eq(run_text_summary(&r)->kv_peak_blocks, 3);
    ck_assert_uint_eq(run_text_summary(&r)->requests.preemptions, 0);
    run_text_free(&r);
}
END_TEST

/* A request that waits for memory through several steps, and a prompt of several chunks, are
 * admitted once and computed once; the wait ends at admission. */
START_TEST(a_waiting_request_is_counted_once)
{
    struct run_text r =
        run_text_do(SCENARIO("max_num_seqs: 4, max_num_batched_tokens: 16, block_size: 16, "
                             "num_gpu_blocks_override: 4",
                             "model: constant, step: 1 s", ""),
                    "0,40,6\n0,48,1\n");
    const struct metrics_summary *s = run_text_summary(&r);
    ck_assert_int_eq(r.rows[0].end_ps, SECONDS(8));
    ck_assert_int_eq(r.rows[1].admitted_ps, SECONDS(8));
    ck_assert_int_eq(r.rows[1].end_ps, SECONDS(11));
    ck_assert_uint_eq(s->requests.admitted, 2);
    ck_assert_uint_eq(s->queue.count, 2);
    ck_assert_int_eq(s->queue.max_ps, SECONDS(8));
    ck_assert_uint_eq(s->tokens.prompt, 88);
    ck_assert_uint_eq(s->tokens.computed, 88);
    ck_assert_uint_eq(s->tokens.cached, 0);
    ck_assert_uint_eq(s->tokens.recomputed, 0);
    run_text_free(&r);
}
END_TEST

/* Less KV memory never makes a batch of equal requests finish earlier; evictions end; the oldest is
 * never evicted, so every round makes progress. Recomputation is told apart from the prompts. */
START_TEST(over_subscription_gains_nothing)
{
    struct drive d;
    drive_init(&d);
    drive_step_time(&d, &step_affine_variant, "base=5 ms", "per_token=100 us");
    d.engine.max_num_seqs = 64;
    d.engine.max_num_batched_tokens = 256;
    d.engine.block_size = 4;
    drive_requests(&d, 64, 0, 30, 50); /* 20 blocks each at the end */
    static const int64_t blocks[] = {FIELD_INT_UNLIMITED, 1280, 640, 320, 160, 80, 40, 20};
    int64_t before_ps = 0;
    uint64_t evictions = 0;
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        d.engine.num_gpu_blocks = blocks[i];
        struct story s = drive_story(&d);
        ck_assert_uint_eq(s.ended, 64);
        ck_assert_uint_eq(s.admitted, 64);
        ck_assert_uint_eq(s.cancelled, 0);
        ck_assert_int_ge(s.last_end_ps, before_ps);
        ck_assert_uint_eq(s.preemptions_of_first, 0);
        ck_assert_uint_le(s.preemptions, 64 * 64);
        ck_assert_uint_le(d.iterations, 64 * (50 + 30 + s.preemptions));
        evictions += s.preemptions;
        before_ps = s.last_end_ps;
    }
    ck_assert_uint_gt(evictions, 100);
    drive_free(&d);
}
END_TEST

/* T05 on real data: what one replica without limits finds of a trace is what `cache` counts of it,
 * whatever the size of its blocks. */
START_TEST(t05_real_traces)
{
    static const struct {
        const char *name;
        uint64_t cached, prompt;
    } traces[] = {{"data/mooncake/conversation_trace.jsonl.gz", 54063104, 144793823},
                  {"data/mooncake/synthetic_trace.jsonl.gz", 39802880, 61194628}};
    for (size_t i = 0; i < 2; i++) {
        const char *path = traffic_shared(traces[i].name);
        if (path == NULL) {
            continue;
        }
        for (int block = 16; block <= 512; block *= 32) {
            char size[64], file[1100];
            snprintf(size, sizeof size, "fleet.pools[0].engine.block_size=%d", block);
            snprintf(file, sizeof file, "workload[0].arrivals.file=%s", path);
            const char *const sets[] = {size, file};
            struct run_text r =
                run_text_set(SCENARIO("max_num_seqs: 1048576, max_num_batched_tokens: 1048576, "
                                      "enable_prefix_caching: true",
                                      "model: constant, step: 1 us", ""),
                             "0,1,1\n", sets, 2, false);
            const struct metrics_summary *s = run_text_summary(&r);
            ck_assert_uint_eq(s->tokens.cached, traces[i].cached);
            ck_assert_uint_eq(s->tokens.prompt, traces[i].prompt);
            ck_assert_uint_eq(s->tokens.computed, traces[i].prompt - traces[i].cached);
            run_text_free(&r);
        }
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {t01_never_idle,
                                  t08a_a_thousand_at_once,
                                  t08b_idle_timers_change_nothing,
                                  cancelled_timeouts_do_not_move_the_clock,
                                  t09_a_week_of_decisions,
                                  t09_hour_edges,
                                  t11_first_token_gaps_and_time_per_token,
                                  t12_nearest_rank,
                                  blocks_follow_tokens_not_chunks,
                                  a_waiting_request_is_counted_once,
                                  over_subscription_gains_nothing,
                                  t05_real_traces,
                                  NULL};
    return suite_run("engine rules", tests, 60);
}
