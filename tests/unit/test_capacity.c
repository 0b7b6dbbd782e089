/* The measured capacity of a replica: against M/D/1, and what it must not depend on. */
#include <math.h>

#include "tests/unit/suite_run.h"
#include "tests/run_text.h"

/* One request at a time, 100 ms each: M/D/1. */
#define CLASS                                                                                      \
    "  - name: c\n"                                                                                \
    "    arrivals: {process: poisson, rate: 30 /s}\n"                                              \
    "    prompt_tokens: 10\n"                                                                      \
    "    output_tokens: 1\n"                                                                       \
    "    slo: {ttft: 300 ms, attainment: 95 %}\n"
#define POOL                                                                                       \
    "    - name: main\n"                                                                           \
    "      engine: {max_num_seqs: 1}\n"                                                            \
    "      step_time: {model: constant, step: 100 ms}\n"                                           \
    "      autoscaler: {policy: ideal}\n"
#define SCENARIO "name: t\nhorizon: 1 min\nworkload:\n" CLASS "fleet:\n  pools:\n" POOL

static const struct capacity *measured(struct run_text *r, const char *yaml, const char *trace,
                                       const char *const *sets, size_t count)
{
    if (!run_text_open(r, yaml, trace, sets, count)) {
        errors_print(&r->errors, stderr);
        ck_abort_msg("the scenario does not open");
    }
    const struct capacity *capacity = run_capacity_measured(r->run, 0);
    ck_assert_ptr_nonnull(capacity);
    ck_assert_double_eq(run_capacity(r->run, 0), capacity->requests_per_s);
    return capacity;
}

static double rate_of(const char *yaml, const char *trace, const char *const *sets, size_t count)
{
    struct run_text r;
    double rate = measured(&r, yaml, trace, sets, count)->requests_per_s;
    run_text_free(&r);
    return rate;
}

/* P(W ≤ 2 D) of M/D/1 is (1 − ρ)(e^2ρ − ρ e^ρ): the ρ at which it is that. */
static double md1_load(double within)
{
    double low = 0, high = 1;
    for (int i = 0; i < 60; i++) {
        double load = (low + high) / 2;
        bool holds = (1 - load) * (exp(2 * load) - load * exp(load)) >= within;
        *(holds ? &low : &high) = load;
    }
    return low;
}

START_TEST(as_md1_says)
{
    struct run_text r;
    const struct capacity *capacity = measured(&r, SCENARIO, NULL, NULL, 0);
    double load = md1_load(0.95);
    ck_assert_double_eq_tol(capacity->requests_per_s, 10 * load, 10 * load * 0.03);
    ck_assert_double_ge(capacity->attainment, 0.95);
    double in_flight = load + load * load / (2 * (1 - load));
    ck_assert_double_eq_tol(capacity->in_flight, in_flight, in_flight * 0.06);
    load *= 0.7; /* target_utilization */
    in_flight = load + load * load / (2 * (1 - load));
    ck_assert_double_eq_tol(capacity->in_flight_target, in_flight, in_flight * 0.06);
    /* 30 /s over 0.7 of that. */
    ck_assert_uint_eq(run_initial_replicas(r.run, 0),
                      (uint32_t)ceil(30 / (0.7 * capacity->requests_per_s)));
    run_text_free(&r);
}
END_TEST

/* A limit that no queue can break: then the replica's speed is what it sustains. */
START_TEST(must_keep_up)
{
    const char *const sets[] = {"workload[0].slo={tpot: 1 s, attainment: 95 %}",
                                "workload[0].output_tokens=2"};
    double rate = rate_of(SCENARIO, NULL, sets, 2);
    ck_assert_double_eq_tol(rate, 5, 0.25);
}
END_TEST

START_TEST(same_whatever_the_chance)
{
    double rate = rate_of(SCENARIO, NULL, NULL, 0);
    static const char *const others[] = {"seed=77",
                                         "replication=5",
                                         "horizon=3 min",
                                         "workload[0].arrivals.rate=3 /s",
                                         "fleet.router.policy=round_robin",
                                         "fleet.pools[0].initial_replicas=4"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        ck_assert_double_eq(rate_of(SCENARIO, NULL, &others[i], 1), rate);
    }
    const char *faster = "fleet.pools[0].step_time.step=50 ms";
    ck_assert_double_gt(rate_of(SCENARIO, NULL, &faster, 1), 1.5 * rate);
}
END_TEST

/* A trace of the same lengths; conversations, whose turns count; another class beside it that uses
 * another pool. */
START_TEST(same_whatever_it_comes_from)
{
    double rate = rate_of(SCENARIO, NULL, NULL, 0);
    const char *const trace = "name: t\nhorizon: 1 min\nworkload:\n"
                              "  - name: c\n"
                              "    arrivals: {process: trace, file: trace.csv}\n"
                              "    slo: {ttft: 300 ms, attainment: 95 %}\n"
                              "fleet:\n  pools:\n" POOL;
    ck_assert_double_eq(rate_of(trace, "0,10,1\n1,10,1\n2,10,1\n", NULL, 0), rate);

    const char *const turns[] = {"workload[0].sessions={turns: {dist: geometric, mean: 4}, "
                                 "think_time: {dist: exponential, mean: 5 s}}"};
    double of_turns = rate_of(SCENARIO, NULL, turns, 1);
    ck_assert_double_eq_tol(of_turns, rate, 0.06 * rate);

    const char *const two = "name: t\nhorizon: 1 min\nworkload:\n"
                            "  - name: other\n"
                            "    arrivals: {process: poisson, rate: 1 /s}\n"
                            "    prompt_tokens: 1\n"
                            "    output_tokens: 1\n"
                            "    pools: [other]\n" CLASS "    pools: [main]\n"
                            "fleet:\n  pools:\n" POOL "    - name: other\n"
                            "      step_time: {model: constant, step: 10 ms}\n"
                            "      autoscaler: {policy: static, replicas: 1}\n";
    struct run_text r;
    ck_assert_double_eq(measured(&r, two, NULL, NULL, 0)->requests_per_s, rate);
    ck_assert_ptr_null(run_capacity_measured(r.run, 1)); /* nobody needs it */
    ck_assert(isnan(run_capacity(r.run, 1)));
    run_text_free(&r);
}
END_TEST

/* The echo of a run states what was measured, and a run of that does the same. */
START_TEST(echoed)
{
    struct run_text r = run_text_do(SCENARIO, NULL);
    char line[64];
    snprintf(line, sizeof line, "capacity: %.9g /s", run_capacity(r.run, 0));
    ck_assert_ptr_nonnull(strstr(run_resolved(r.run), line));
    ck_assert_double_gt(r.totals.measuring_s, 0);
    ck_assert(!isnan(run_text_summary(&r)->gpu_hours_ideal));
    struct run_text again = run_text_do(run_resolved(r.run), NULL);
    ck_assert_ptr_null(run_capacity_measured(again.run, 0));
    ck_assert_double_eq(again.totals.measuring_s, 0);
    ck_assert_str_eq(again.totals.digest, r.totals.digest);
    ck_assert_str_eq(run_resolved(again.run), run_resolved(r.run));
    run_text_free(&again);
    run_text_free(&r);
}
END_TEST

static void refused(const char *yaml, const char *const *sets, size_t count, const char *what)
{
    struct run_text r;
    ck_assert(!run_text_open(&r, yaml, NULL, sets, count));
    ck_assert_uint_ge(r.errors.count, 1);
    ck_assert_msg(strstr(r.errors.items[0].message, what) != NULL, "'%s' is not in: %s", what,
                  r.errors.items[0].message);
    run_text_free(&r);
}

START_TEST(what_cannot_be_measured_is_said)
{
    const char *const without[] = {"workload[0].slo={ttft: 300 ms}"};
    refused(SCENARIO, without, 1,
            "cannot be measured: no class that uses it states an slo with an attainment");
    const char *const strict[] = {"workload[0].slo.ttft=99 ms"};
    refused(SCENARIO, strict, 1, "requests/s one replica attains 0 %");
    const char *const closed[] = {"workload[0].arrivals={process: closed_loop, concurrency: 4}"};
    refused(SCENARIO, closed, 1, "traffic comes is not known beforehand");
    const char *const initial[] = {
        "fleet.pools[0].autoscaler={policy: target, metric: concurrency, target: 2, "
        "max_replicas: 9}",
        "workload[0].slo={ttft: 300 ms}"};
    refused(SCENARIO, initial, 2, "state initial_replicas or capacity");
}
END_TEST

struct told {
    uint32_t trials, finished;
};

static void tell(void *self, const struct capacity_progress *at)
{
    struct told *told = self;
    told->trials += !at->finished;
    told->finished += at->finished;
    ck_assert_str_eq(at->pool, "main");
}

/* Opens with an ask; sets: at most one more. */
static struct run *asked(const char *path, const char *set, const struct capacity_ask *ask)
{
    struct errors errors;
    errors_init(&errors);
    struct run_request request = {
        .scenario = path, .sets = &set, .set_count = set != NULL, .capacity = ask};
    struct run *run = run_open(&request, &errors);
    errors_print(&errors, stderr);
    ck_assert_ptr_nonnull(run);
    errors_free(&errors);
    return run;
}

START_TEST(measured_once)
{
    static const char *const fixed = "fleet.pools[0].autoscaler={policy: static, replicas: 2}";
    struct run_text r;
    struct told told = {0};
    char path[128];
    struct capacity_ask ask = {.cache = capacity_cache_create(), .progress = tell};
    ask.progress_self = &told;
    ck_assert(run_text_open(&r, SCENARIO, NULL, NULL, 0));
    run_text_path(&r, "scenario.yaml", path);

    struct run *one = asked(path, NULL, &ask);
    ck_assert_uint_gt(told.trials, 5);
    ck_assert_uint_eq(told.finished, 1);
    struct run *two = asked(path, fixed, &ask);
    ck_assert_ptr_null(run_capacity_measured(two, 0)); /* not needed, nor asked for */
    run_free(two);
    ask.wanted = true;
    two = asked(path, fixed, &ask);
    ck_assert_double_eq(run_capacity(two, 0), run_capacity(one, 0));
    ck_assert_uint_eq(told.finished, 1); /* from the cache */
    run_free(two);
    two = asked(path, "fleet.pools[0].engine.max_num_seqs=2", &ask);
    ck_assert_double_gt(run_capacity(two, 0), run_capacity(one, 0));
    ck_assert_uint_eq(told.finished, 2);
    run_free(two);
    run_free(one);
    capacity_cache_free(ask.cache);
    run_text_free(&r);
}
END_TEST

static size_t warnings(const char *policy, const char *more)
{
    char set[160];
    struct run_text r;
    snprintf(set, sizeof set, "fleet.pools[0].autoscaler={policy: %s}", policy);
    const char *const sets[] = {set, "fleet.pools[0].initial_replicas=1", more};
    bool opened = run_text_open(&r, SCENARIO, NULL, sets, 3);
    errors_print(&r.errors, stdout);
    ck_assert(opened);
    size_t count = r.errors.warning_count;
    run_text_free(&r);
    return count;
}

/* Utilisation of a model that takes busy for full. */
START_TEST(utilization_is_doubted)
{
    static const char *const many = "fleet.pools[0].engine.max_num_seqs=8";
    ck_assert_uint_eq(warnings("target, metric: utilization, target: 70 %, max_replicas: 9", many),
                      1);
    ck_assert_uint_eq(warnings("warm_pool, target: 70 %, max_replicas: 9", many), 1);
    ck_assert_uint_eq(warnings("predictive, max_replicas: 9", many), 1);
    ck_assert_uint_eq(warnings("predictive, max_replicas: 9, capacity: 3 /s", many), 0);
    ck_assert_uint_eq(warnings("target, metric: concurrency, target: 3, max_replicas: 9", many), 0);
    ck_assert_uint_eq(warnings("target, metric: utilization, target: 70 %, max_replicas: 9",
                               "fleet.pools[0].engine.max_num_seqs=1"),
                      0);
    ck_assert_uint_eq(warnings("target, metric: utilization, target: 70 %, max_replicas: 9",
                               "fleet.pools[0].step_time={model: rate, prefill_tokens_per_s: 1000, "
                               "decode_tokens_per_s: 100}"),
                      0);
}
END_TEST

/* The forecast in replicas by a stated capacity: 30 /s over 10 /s at 70 % are five, whatever a
 * request's work was. */
START_TEST(predictive_by_capacity)
{
    const char *const sets[] = {
        "fleet.pools[0].autoscaler={policy: predictive, max_replicas: 50, bucket: 1 min, "
        "season: 1 h, capacity: 10 /s}",
        "fleet.pools[0].initial_replicas=5", "fleet.pools[0].engine.max_num_seqs=64",
        "workload[0].arrivals={process: constant, rate: 30 /s}", "horizon=5 min"};
    struct run_text r = run_text_set(SCENARIO, NULL, sets, 5, false);
    const struct metrics_summary *summary = run_text_summary(&r);
    ck_assert_double_eq_tol(summary->gpu_hours.held, 5 * 300 / 3600.0, 1e-9);
    run_text_free(&r);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {as_md1_says,
                                  must_keep_up,
                                  same_whatever_the_chance,
                                  same_whatever_it_comes_from,
                                  echoed,
                                  what_cannot_be_measured_is_said,
                                  measured_once,
                                  utilization_is_doubted,
                                  predictive_by_capacity,
                                  NULL};
    return suite_run("capacity", tests, 120);
}
