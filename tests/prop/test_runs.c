/* Random scenarios as text, through everything a run is: each must open, end, pass its audit, give
 * the same digest and rows in spans and in steps, and keep a few laws that hold for every run.
 * Environment as in support_scenario_gen.h: PROP_SEED is the seed of the first case, PROP_COUNT the
 * number of cases. */
#include <signal.h>
#include <stdarg.h>

#include "sim/base/rng.h"
#include "sim/fleet/autoscaler.h"
#include "tests/run_text.h"

/* A scenario being written. */
struct gen {
    uint64_t key, draws;
    char yaml[16384];
    char trace[65536];
    size_t used, trace_used;
    uint32_t pools;
    int64_t horizon_s;
    bool from_trace;
    bool caching; /* enable_prefix_caching, in all pools or in some */
};

/* 0 … n − 1. */
static uint32_t draw(struct gen *g, uint32_t n)
{
    return (uint32_t)(rng_draw(g->key, 0, g->draws++).a % n);
}

#define PICK(g, ...) pick(g, (const char *const[]){__VA_ARGS__, NULL})

static const char *pick(struct gen *g, const char *const *words)
{
    uint32_t count = 0;
    while (words[count] != NULL) {
        count++;
    }
    return words[draw(g, count)];
}

__attribute__((format(printf, 2, 3))) static void put(struct gen *g, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(g->yaml + g->used, sizeof g->yaml - g->used, fmt, args);
    va_end(args);
    ck_assert(n >= 0 && (size_t)n < sizeof g->yaml - g->used);
    g->used += (size_t)n;
}

static void put_lengths(struct gen *g, const char *key, bool prompt)
{
    uint32_t mean = 1 + draw(g, prompt ? 200 : 40);
    put(g, "    %s: ", key);
    switch (draw(g, 4)) {
    case 0:
        put(g, "{dist: constant, value: %u}\n", mean - (prompt || draw(g, 4) ? 0 : mean));
        break;
    case 1:
        put(g, "{dist: exponential, mean: %u.5}\n", mean);
        break;
    case 2:
        put(g, "{dist: geometric, mean: %u}\n", mean);
        break;
    default:
        put(g, "{dist: lognormal, mean: %u, cv: 0.%u, max: %u}\n", mean + 1, 2 + draw(g, 8),
            10 * mean + 10);
        break;
    }
}

/* Stamps on a coarse grid: many ties, and arrivals on the boundaries of steps and of timers. */
static void put_trace(struct gen *g)
{
    uint32_t rows = 20 + draw(g, 200);
    double at_s = 0;
    for (uint32_t i = 0; i < rows && at_s < (double)g->horizon_s; i++) {
        int n = snprintf(g->trace + g->trace_used, sizeof g->trace - g->trace_used, "%g,%u,%u\n",
                         at_s, 1 + draw(g, 150), draw(g, 30));
        g->trace_used += (size_t)n;
        at_s += draw(g, 3) == 0 ? 0.5 * draw(g, 4) : 0;
    }
}

/* Prompts that many begin with, and conversations. */
static void put_common(struct gen *g)
{
    if (draw(g, 3) == 0) {
        put(g, "    shared_prompt: {tokens: %u, count: %u}\n", 1 + draw(g, 100), 1 + draw(g, 3));
    }
    if (draw(g, 3) == 0) {
        put(g, "    sessions: {turns: {dist: %s}, think_time: %s",
            PICK(g, "constant, value: 3", "uniform, min: 1, max: 6", "geometric, mean: 4"),
            PICK(g, "0 s", "0.5 s", "{dist: exponential, mean: 2 s}"));
        put(g, ", max_history_tokens: %u", 100 + draw(g, 500));
        put(g, ", stationary_start: %s}\n", PICK(g, "false", "false", "true"));
    }
}

static void put_class(struct gen *g, uint32_t index)
{
    put(g, "  - name: class%u\n", index);
    if (index == 0 && draw(g, 3) == 0) {
        g->from_trace = true;
        put(g, "    arrivals: {process: trace, file: trace.csv}\n");
        put_trace(g);
    } else {
        double rate = (1 + draw(g, 300)) / (double)g->horizon_s;
        put(g, "    arrivals: {process: %s, rate: %.6f /s}\n", PICK(g, "poisson", "constant"),
            rate);
        put_lengths(g, "prompt_tokens", true);
        put_lengths(g, "output_tokens", false);
        put_common(g);
    }
    if (draw(g, 2)) {
        put(g, "    slo: {%s: %s, attainment: 90 %%}\n", PICK(g, "ttft", "tpot", "e2e"),
            PICK(g, "50 ms", "1 s", "10 s"));
    }
    if (g->pools > 1 && draw(g, 2)) {
        uint32_t first = draw(g, g->pools);
        put(g, "    pools: [pool%u", first);
        if (draw(g, 2)) {
            put(g, ", pool%u", (first + 1) % g->pools);
        }
        put(g, "]\n");
    }
}

static void put_step_time(struct gen *g)
{
    switch (draw(g, 4)) {
    case 0:
        put(g, "      step_time: {model: constant, step: %s}\n",
            PICK(g, "10 ms", "100 ms", "250 ms", "7.3 ms"));
        break;
    case 1:
        put(g,
            "      step_time: {model: rate, prefill_tokens_per_s: %u, decode_tokens_per_s: %u, "
            "min_step: %s}\n",
            300 + draw(g, 5000), 50 + draw(g, 500), PICK(g, "1 ms", "30 ms", "0.1 s"));
        break;
    default:
        put(g, "      step_time: {model: affine, base: %s, per_token: %s, per_kv_token: %s}\n",
            PICK(g, "1 ms", "20 ms", "50 ms"), PICK(g, "0 s", "100 us", "1.7 ms"),
            PICK(g, "0 s", "1 us", "33 us"));
        break;
    }
}

/* What all that react share, after the policy's own keys. */
static void put_behavior(struct gen *g, uint32_t initial)
{
    put(g, "min_replicas: %u, max_replicas: %u,\n", draw(g, initial + 1), initial + draw(g, 9));
    put(g,
        "                   interval: %s, scale_up_window: %s, scale_down_window: %s, "
        "idle_timeout: %s",
        PICK(g, "1 s", "2.5 s", "10 s"), PICK(g, "0 s", "0 s", "5 s"),
        PICK(g, "0 s", "4 s", "20 s"), PICK(g, "0 s", "3 s", "60 s"));
    if (draw(g, 3) == 0) {
        put(g, ", signals: {interval: %s, delay: %s}", PICK(g, "0 s", "1 s", "3 s"),
            PICK(g, "0 s", "0.7 s", "5 s"));
    }
    if (draw(g, 3) == 0) {
        put(g, ", scale_up_step: %u, scale_down_percent: %s, step_period: %s", 1 + draw(g, 3),
            PICK(g, "10 %", "50 %"), PICK(g, "1 s", "7 s"));
    }
    if (draw(g, 3) == 0) {
        put(g, ", scale_down_limit: %s", PICK(g, "20 %", "80 %"));
    }
    put(g, "}\n");
}

static void put_target(struct gen *g, const char *policy)
{
    bool concurrency = draw(g, 2);
    put(g, "      autoscaler: {policy: %s, metric: %s, target: %s, tolerance: %s, ", policy,
        concurrency ? "concurrency" : "utilization",
        concurrency ? PICK(g, "1", "3", "7.5") : PICK(g, "0.3", "70 %", "0.95"),
        PICK(g, "0", "10 %", "30 %"));
}

static void put_autoscaler(struct gen *g)
{
    uint32_t initial = 1 + draw(g, 4);
    switch (draw(g, 8)) {
    case 0:
    case 1:
        put(g, "      autoscaler: {policy: static, replicas: %u}\n", initial);
        return;
    case 2:
        put(g, "      autoscaler: {policy: queue, waiting: %s, ", PICK(g, "0.5", "2"));
        break;
    case 3:
        put(g, "      autoscaler: {policy: slo, ttft: %s, tpot: %s, ", PICK(g, "10 ms", "1 s"),
            PICK(g, "1 ms", "100 ms"));
        break;
    case 4:
        put(g, "      autoscaler: {policy: predictive, bucket: %s, season: %s, ",
            PICK(g, "1 s", "5 s"), PICK(g, "60 s", "120 s"));
        break;
    case 5:
        put_target(g, "warm_pool");
        put(g, "spares: %u, ", draw(g, 3));
        break;
    default:
        put_target(g, "target");
        break;
    }
    put_behavior(g, initial);
    put(g, "      initial_replicas: %u\n", initial);
}

static void put_pool(struct gen *g, uint32_t index)
{
    uint32_t seats = 1u << draw(g, 6);
    uint32_t block = 1 + draw(g, 20);
    put(g, "    - name: pool%u\n", index);
    put(g, "      engine: {max_num_seqs: %u, max_num_batched_tokens: %u, block_size: %u, ", seats,
        seats + draw(g, 400), block);
    if (draw(g, 2)) {
        put(g, "num_gpu_blocks_override: %u, ", 1 + (100 + draw(g, 900)) / block);
    }
    if (g->caching && (index == 0 || draw(g, 3))) {
        put(g, "enable_prefix_caching: true, ");
    }
    if (draw(g, 4) == 0) {
        put(g, "max_model_len: %u, ", 50 + draw(g, 300));
    }
    put(g, "scheduling_policy: %s, enable_chunked_prefill: %s}\n", PICK(g, "fcfs", "priority"),
        PICK(g, "true", "true", "false"));
    put_step_time(g);
    put(g, "      max_queue: %s\n", PICK(g, "unlimited", "unlimited", "0", "5"));
    put_autoscaler(g);
    put(g, "      cold_start: {provision: %s, image_pull: %s, weights: %s, engine_init: %s}\n",
        PICK(g, "0 s", "2 s", "5 s", "{dist: lognormal, mean: 4 s, sigma: 1}"),
        PICK(g, "0 s", "0.5 s", "{dist: empirical, values: [0 s, 3 s]}"),
        PICK(g, "0 s", "2.5 s", "10 s",
             "{source: object_store, bytes: 10 GB, bandwidth: 5 GB/s, per_replica: 4 GB/s}"),
        PICK(g, "0 s", "0 s", "1 s"));
    if (draw(g, 2)) {
        put(g, "      price: {usd_per_gpu_hour: 3, billing_increment: %s, billing_minimum: %s}\n",
            PICK(g, "0 s", "1 min"), PICK(g, "0 s", "2 min"));
        put(g, "      parallel: {tensor: %u}\n", 1 + draw(g, 4));
    }
}

static struct gen *generate(uint64_t seed)
{
    static const int64_t horizons_s[] = {10, 30, 60, 100};
    struct gen *g = memory_zero(1, sizeof *g);
    g->key = rng_key(seed, 0, RNG_TEST, 7);
    g->pools = 1 + (draw(g, 2) ? draw(g, 3) : 0);
    g->horizon_s = horizons_s[draw(g, 4)];
    put(g, "name: random\nseed: %llu\nhorizon: %lld s\ndrain: %s\nwarmup: %s\n",
        (unsigned long long)seed, (long long)g->horizon_s, PICK(g, "true", "false"),
        PICK(g, "0 s", "0 s", "3 s"));
    put(g, "output: {trace_interval: %s, gauge_interval: %s}\n",
        PICK(g, "1 s", "10 s", "7 s", "1 h"), PICK(g, "0.5 s", "1 s", "1 min"));
    put(g, "workload:\n");
    for (uint32_t i = 0, classes = 1 + draw(g, 3); i < classes; i++) {
        put_class(g, i);
    }
    g->caching = draw(g, 2);
    put(g, "fleet:\n  router: {policy: %s}\n  pools:\n",
        g->caching && draw(g, 2)
            ? PICK(g, "prefix_aware", "session_sticky", "weighted")
            : PICK(g, "round_robin", "random", "least_loaded", "central_queue", "power_of_two"));
    for (uint32_t i = 0; i < g->pools; i++) {
        put_pool(g, i);
    }
    return g;
}

static bool has_caching(const struct run_config *config, const char *pool)
{
    for (size_t p = 0; p < config->fleet.pools.count; p++) {
        const struct pool_config *c = config_pool(config, p);
        if (strcmp(c->name, pool) == 0) {
            return c->engine.enable_prefix_caching;
        }
    }
    return false;
}

static void expect_rows(const struct run_text *r)
{
    const struct run_config *config = run_config(r->run);
    size_t counted = 0;
    for (size_t i = 0; i < r->row_count; i++) {
        const struct run_text_row *row = &r->rows[i];
        bool completed = strcmp(row->outcome, "completed") == 0;
        bool admitted = row->admitted_ps != TIME_NONE, first = row->first_token_ps != TIME_NONE;
        check(row->id == (int64_t)i);
        check(i == 0 || row->arrival_ps >= r->rows[i - 1].arrival_ps);
        check(row->arrival_ps < config->horizon_ps);
        check(!admitted ||
              (row->admitted_ps >= row->arrival_ps && row->admitted_ps < row->end_ps) ||
              !completed);
        check(!first ||
              (row->first_token_ps > row->admitted_ps && row->first_token_ps <= row->end_ps));
        check(!completed || (admitted && first == (row->output > 0)));
        check(row->cached >= 0 && (row->cached < row->prompt || row->cached == 0));
        check(row->cached == 0 || (admitted && has_caching(config, row->pool)));
        check(config->drain || row->end_ps <= config->horizon_ps);
        counted += row->arrival_ps >= config->warmup_ps;
    }
    check(run_text_summary(r)->requests.arrived == counted);
}

/* One latency, from the rows. */
struct tally {
    uint64_t count;
    int128 sum;
    int64_t max;
};

static void tally_add(struct tally *t, int64_t from_ps, int64_t to_ps)
{
    if (from_ps != TIME_NONE && to_ps != TIME_NONE) {
        t->count++;
        t->sum += to_ps - from_ps;
        t->max = to_ps - from_ps > t->max ? to_ps - from_ps : t->max;
    }
}

static void expect_latency(const struct metrics_latency *l, const struct tally *t)
{
    check(l->count == t->count);
    if (t->count > 0) {
        int128 off = (int128)l->mean_ps * (int64_t)t->count - t->sum;
        check(2 * (off < 0 ? -off : off) <= (int64_t)t->count);
        check(l->max_ps == t->max);
    }
}

/* The summary says of the requests what their rows say. */
static void expect_summary(const struct run_text *r)
{
    const struct metrics_summary *s = run_text_summary(r);
    struct tally ttft = {0}, e2e = {0}, queue = {0};
    uint64_t outcomes[OUTCOME_COUNT] = {0}, prompt = 0, preemptions = 0, recomputed = 0, cached = 0;
    for (size_t i = 0; i < r->row_count; i++) {
        const struct run_text_row *row = &r->rows[i];
        if (row->arrival_ps < run_config(r->run)->warmup_ps) {
            continue;
        }
        for (size_t o = 0; o < OUTCOME_COUNT; o++) {
            outcomes[o] += strcmp(row->outcome, outcome_names[o]) == 0;
        }
        prompt += row->admitted_ps != TIME_NONE ? (uint64_t)row->prompt : 0;
        preemptions += (uint64_t)row->preemptions;
        recomputed += (uint64_t)row->recomputed;
        cached += (uint64_t)row->cached;
        tally_add(&ttft, row->arrival_ps, row->first_token_ps);
        tally_add(&queue, row->arrival_ps, row->admitted_ps);
        if (strcmp(row->outcome, "completed") == 0) {
            tally_add(&e2e, row->arrival_ps, row->end_ps);
        }
    }
    check(s->requests.completed == outcomes[OUTCOME_COMPLETED]);
    check(s->requests.refused == outcomes[OUTCOME_REFUSED]);
    check(s->requests.unservable == outcomes[OUTCOME_UNSERVABLE]);
    check(s->requests.in_flight == outcomes[OUTCOME_IN_FLIGHT]);
    check(s->tokens.prompt == prompt);
    check(s->requests.preemptions == preemptions);
    check(s->tokens.recomputed == recomputed);
    check(s->tokens.cached == cached);
    expect_latency(&s->ttft, &ttft);
    expect_latency(&s->queue, &queue);
    expect_latency(&s->e2e, &e2e);
}

/* Floors, ceilings and what is held, from the scaling events and the bill. */
static void expect_scaling(const struct run_text *r)
{
    const struct run_config *config = run_config(r->run);
    size_t count;
    const struct metrics_scale_event *events = metrics_scale_events(run_metrics(r->run), &count);
    for (size_t p = 0; p < config->fleet.pools.count; p++) {
        const struct pool_config *pool = config_pool(config, p);
        const struct autoscaler_type *type = pool->autoscaler.type->ops;
        uint32_t min, max, initial;
        type->limits(pool->autoscaler.config, &min, &max, &initial);
        for (size_t i = 0; i < count; i++) {
            if (events[i].pool_index == p) {
                check(events[i].target >= min && events[i].target <= max);
                check(events[i].target != events[i].ready + events[i].starting ||
                      strstr(events[i].reason, "infeasible") != NULL);
            }
        }
        const struct metrics_summary *s = &metrics_summaries(run_metrics(r->run))[1 + p];
        double hours = (double)(config->horizon_ps - config->warmup_ps) / (double)PS_PER_HOUR *
                       config_gpus_per_replica(pool);
        check(s->gpu_hours.ready + s->gpu_hours.starting >= min * hours * (1 - 1e-12));
        check(s->gpu_hours.ready + s->gpu_hours.starting <= max * hours * (1 + 1e-12));
        check(s->gpu_hours.billed >= s->gpu_hours.held * (1 - 1e-12));
    }
}

struct coverage {
    uint64_t requests, refused, unservable, in_flight, preemptions, scalings, starting, draining;
    uint64_t cached; /* runs with requests that found part of their prompt */
};

static void cover(struct coverage *c, const struct run_text *r)
{
    const struct metrics_summary *s = run_text_summary(r);
    size_t scalings;
    metrics_scale_events(run_metrics(r->run), &scalings);
    bool cached = false;
    for (size_t i = 0; i < r->row_count; i++) {
        cached |= r->rows[i].cached > 0;
    }
    c->cached += cached;
    c->requests += s->requests.arrived;
    c->refused += s->requests.refused;
    c->unservable += s->requests.unservable;
    c->in_flight += s->requests.in_flight;
    c->preemptions += s->requests.preemptions;
    c->scalings += scalings;
    c->starting += s->gpu_hours.starting > 0;
    c->draining += s->gpu_hours.draining > 0;
}

static void expect_same(const struct run_text *a, const struct run_text *b)
{
    check(strcmp(a->totals.digest, b->totals.digest) == 0);
    check(strcmp(a->csv, b->csv) == 0);
    check(a->totals.iterations == b->totals.iterations);
}

static void run_case(uint64_t seed, struct coverage *coverage)
{
    struct gen *g = generate(seed);
    if (getenv("PROP_VERBOSE") != NULL) {
        fprintf(stderr, "case %llu\n%s", (unsigned long long)seed, g->yaml);
    }
    struct run_text spans = run_text_do(g->yaml, g->trace);
    expect_rows(&spans);
    expect_summary(&spans);
    expect_scaling(&spans);
    cover(coverage, &spans);
    struct run_text steps = run_text_set(g->yaml, g->trace, NULL, 0, true);
    expect_same(&spans, &steps);
    run_text_free(&steps);
    /* Looking more often cuts spans in other places and changes nothing. */
    static const char *const looks[] = {"output.gauge_interval=310 ms",
                                        "output.trace_interval=3 s"};
    struct run_text watched = run_text_set(g->yaml, g->trace, looks, 2, false);
    expect_same(&spans, &watched);
    run_text_free(&watched);
    if (!g->from_trace) { /* the path of a trace is echoed as seen from the working directory */
        struct run_text again = run_text_do(run_resolved(spans.run), NULL);
        expect_same(&spans, &again);
        run_text_free(&again);
    }
    run_text_free(&spans);
    free(g);
}

static uint64_t number_of(const char *name, uint64_t fallback)
{
    const char *text = getenv(name);
    return text != NULL ? strtoull(text, NULL, 10) : fallback;
}

/* How to replay the case in hand, told when it aborts. */
static char current_case[64];

static void tell_case(int signal_number)
{
    ssize_t written = write(STDERR_FILENO, current_case, strlen(current_case));
    (void)written;
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

START_TEST(random_scenarios)
{
    signal(SIGABRT, tell_case);
    signal(SIGSEGV, tell_case);
    uint64_t first = number_of("PROP_SEED", 1), count = number_of("PROP_COUNT", 200);
    struct coverage c = {0};
    for (uint64_t i = 0; i < count; i++) {
        snprintf(current_case, sizeof current_case, "PROP_SEED=%llu PROP_COUNT=1\n",
                 (unsigned long long)(first + i));
        run_case(first + i, &c);
    }
    printf("%llu requests, %llu refused, %llu unservable, %llu cut, %llu preemptions, %llu "
           "scalings; runs with cold starts %llu, with draining %llu, with cached prompts %llu\n",
           (unsigned long long)c.requests, (unsigned long long)c.refused,
           (unsigned long long)c.unservable, (unsigned long long)c.in_flight,
           (unsigned long long)c.preemptions, (unsigned long long)c.scalings,
           (unsigned long long)c.starting, (unsigned long long)c.draining,
           (unsigned long long)c.cached);
    fflush(stdout);
    if (count >= 200) { /* the generator reaches what it is there for */
        ck_assert(c.refused > 100 && c.unservable > 100 && c.in_flight > 100);
        ck_assert(c.preemptions > 300 && c.scalings > 200 && c.starting > 40 && c.draining > 5);
        ck_assert(c.cached > 40);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("runs");
    TCase *tests = tcase_create("random");
    tcase_set_timeout(tests, 600);
    tcase_add_test(tests, random_scenarios);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
