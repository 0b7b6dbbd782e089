/* Fleets that scale, at random: GPU time and money add up and nobody is served before a replica is
 * ready; under constant load every policy comes to rest; and pools scale as if each were alone.
 * PROP_SEED and PROP_COUNT as in support_scenario_gen.h. */
#include <inttypes.h>
#include <math.h>

#include "sim/base/rng.h"
#include "tests/run_text.h"

struct draws {
    uint64_t key, number;
};

/* Uniform in [low, high]. */
static int64_t draw(struct draws *d, int64_t low, int64_t high)
{
    uint64_t bits = rng_draw(d->key, d->number++, 0).a;
    return low + (int64_t)(bits % (uint64_t)(high - low + 1));
}

static uint64_t number_of(const char *name, uint64_t fallback)
{
    const char *text = getenv(name);
    return text != NULL ? strtoull(text, NULL, 10) : fallback;
}

enum { POLICIES = 9 };

/* A policy for a pool of replicas that serve about 10 requests/s each, five at a time. */
static void policy_write(char *text, size_t size, struct draws *d, int policy)
{
    char behavior[160];
    snprintf(behavior, sizeof behavior,
             "min_replicas: %" PRId64 ", max_replicas: 60, interval: %" PRId64 " s, "
             "scale_down_window: %" PRId64 " s",
             draw(d, 1, 3), draw(d, 5, 30), draw(d, 0, 300));
    int64_t share = draw(d, 50, 80);
    switch (policy) {
    case 0:
        snprintf(text, size,
                 "{policy: target, metric: concurrency, target: %" PRId64
                 ", scale_down_limit: 80 %%, %s}",
                 draw(d, 2, 5), behavior);
        break;
    case 1:
        snprintf(text, size, "{policy: target, metric: utilization, target: %" PRId64 " %%, %s}",
                 share, behavior);
        break;
    case 2:
        snprintf(text, size, "{policy: queue, waiting: %" PRId64 ", %s}", draw(d, 1, 5), behavior);
        break;
    case 3:
        snprintf(text, size, "{policy: kv, utilization: %" PRId64 " %%, %s}", share, behavior);
        break;
    case 4:
        snprintf(text, size, "{policy: predictive, target: %" PRId64 " %%, %s}", share, behavior);
        break;
    case 5:
        snprintf(text, size,
                 "{policy: warm_pool, metric: utilization, spares: %" PRId64 ", target: %" PRId64
                 " %%, %s}",
                 draw(d, 0, 3), share, behavior);
        break;
    case 6:
        snprintf(text, size, "{policy: slo, ttft: 1 s, %s}", behavior);
        break;
    case 7:
        snprintf(text, size, "{policy: ideal}");
        break;
    default:
        snprintf(text, size, "{policy: static, replicas: %" PRId64 "}", draw(d, 1, 9));
        break;
    }
}

struct pool_text {
    char name[8];
    int policy;
    int64_t cold_s, initial;
    char yaml[1200];
};

static void pool_write(struct pool_text *p, struct draws *d, const char *name, int policy)
{
    char scaling[320], initial[40] = "";
    snprintf(p->name, sizeof p->name, "%s", name);
    p->policy = policy;
    p->cold_s = draw(d, 0, 1) * draw(d, 1, 90);
    p->initial = draw(d, 3, 8);
    policy_write(scaling, sizeof scaling, d, policy);
    if (policy < 8) {
        snprintf(initial, sizeof initial, "      initial_replicas: %" PRId64 "\n", p->initial);
    } else {
        p->initial = strtoll(strstr(scaling, "replicas: ") + 10, NULL, 10);
    }
    snprintf(p->yaml, sizeof p->yaml,
             "    - name: %s\n"
             "      engine: {max_num_seqs: 16, max_num_batched_tokens: 512, "
             "num_gpu_blocks_override: 400}\n"
             "      step_time: {model: rate, prefill_tokens_per_s: 2000, decode_tokens_per_s: "
             "200, min_step: 10 ms}\n"
             "%s"
             "      scale_down_victim: %s\n"
             "      autoscaler: %s\n"
             "      cold_start: {provision: %" PRId64 " s, engine_init: %" PRId64 " s}\n"
             "      price: {usd_per_gpu_hour: 3, billing_increment: %" PRId64
             " s, billing_minimum: %" PRId64 " s}\n",
             name, initial, draw(d, 0, 1) ? "newest" : "least_loaded", scaling, p->cold_s / 2,
             p->cold_s - p->cold_s / 2, draw(d, 0, 2) * 30, draw(d, 0, 1) * 60);
}

static void class_write(char *text, size_t size, struct draws *d, const char *name,
                        const char *process, const char *pool)
{
    snprintf(text, size,
             "  - name: %s\n"
             "    arrivals: {process: %s, rate: %" PRId64 " /s%s}\n"
             "    prompt_tokens: 100\n"
             "    output_tokens: 10\n"
             "    pools: [%s]\n",
             name, process, draw(d, 5, 80), strcmp(process, "gamma") == 0 ? ", cv: 3" : "", pool);
}

static struct run_text run_of(const char *horizon, const char *classes, const char *pools)
{
    char yaml[5000];
    snprintf(yaml, sizeof yaml,
             "name: t\nhorizon: %s\noutput: {trace_interval: 100 s}\nworkload:\n%sfleet:\n  "
             "pools:\n%s",
             horizon, classes, pools);
    return run_text_set(yaml, NULL, NULL, 0, false);
}

/* Without rows of requests, which take longer to write than to simulate. */
static struct run_text quick_run_of(const char *horizon, const char *classes, const char *pools)
{
    char yaml[5000];
    struct run_text r;
    snprintf(yaml, sizeof yaml, "name: t\nhorizon: %s\nworkload:\n%sfleet:\n  pools:\n%s", horizon,
             classes, pools);
    ck_assert(run_text_open(&r, yaml, NULL, NULL, 0));
    ck_assert(run_simulate(r.run, &(struct run_options){0}, &r.errors));
    return r;
}

/* ---- conservation ---- */

/* By launch number, when those that scale events ordered can serve at the earliest. */
static size_t launches_of(const struct run_text *r, const struct pool_text *p, int64_t *ready_ps,
                          size_t most)
{
    size_t count, launches = 0;
    const struct metrics_scale_event *e = metrics_scale_events(run_metrics(r->run), &count);
    for (int64_t i = 0; i < p->initial; i++) {
        ready_ps[launches++] = 0;
    }
    for (size_t k = 0; k < count; k++) {
        for (uint32_t n = e[k].ready + e[k].starting; n < e[k].target; n++) {
            ck_assert_uint_lt(launches, most);
            ready_ps[launches++] = e[k].time_ps + SECONDS(p->cold_s);
        }
    }
    return launches;
}

static void expect_conserved(const struct run_text *r, const struct pool_text *p)
{
    enum { LAUNCHES_MAX = 20000 };
    static int64_t ready_ps[LAUNCHES_MAX];
    const struct metrics_gpu_hours *sum = &run_text_summary(r)->gpu_hours;
    const struct pool_config *config = config_pool(run_config(r->run), 0);
    double starting = 0, ready = 0, draining = 0, billed = 0;
    for (size_t k = 0; k < metrics_interval_count(run_metrics(r->run)); k++) {
        const struct metrics_gpu_hours *h = &run_text_hour(r, k)->gpu_hours;
        starting += h->starting;
        ready += h->ready;
        draining += h->draining;
        billed += h->billed;
    }
    ck_assert_double_eq_tol(starting + ready + draining, sum->held, 1e-9 * sum->held);
    ck_assert_double_eq_tol(sum->starting + sum->ready + sum->draining, sum->held,
                            1e-9 * sum->held);
    ck_assert_double_eq_tol(billed, sum->billed, 1e-9 * sum->billed);
    ck_assert_double_eq_tol(run_text_summary(r)->usd.total, 3 * sum->billed, 1e-9 * sum->billed);
    size_t launches = launches_of(r, p, ready_ps, LAUNCHES_MAX);
    double increment = time_seconds(config->price.billing_increment_ps) / 3600;
    double minimum = time_seconds(config->price.billing_minimum_ps) / 3600;
    ck_assert_double_ge(sum->billed, sum->held * (1 - 1e-12));
    ck_assert_double_le(sum->billed,
                        sum->held * (1 + 1e-12) + (double)launches * (increment + minimum));
    for (size_t i = 0; i < r->row_count; i++) {
        if (r->rows[i].admitted_ps != TIME_NONE) {
            ck_assert_int_lt(r->rows[i].replica, (int64_t)launches);
            ck_assert_int_ge(r->rows[i].admitted_ps, ready_ps[r->rows[i].replica]);
        }
    }
}

START_TEST(conservation_on_random_scenarios)
{
    uint64_t first = number_of("PROP_SEED", 1), cases = number_of("PROP_COUNT", 90);
    size_t events = 0;
    for (uint64_t i = first; i < first + cases; i++) {
        static const char *const processes[] = {"poisson", "gamma", "constant"};
        struct draws d = {.key = rng_key(i, 0, RNG_TEST, 1)};
        struct pool_text pool;
        char class[400];
        size_t count;
        pool_write(&pool, &d, "main", (int)(i % POLICIES));
        class_write(class, sizeof class, &d, "c", processes[draw(&d, 0, 2)], "main");
        struct run_text r = run_of("4 min", class, pool.yaml);
        printf("%s", getenv("PROP_VERBOSE") ? pool.yaml : "");
        expect_conserved(&r, &pool);
        metrics_scale_events(run_metrics(r.run), &count);
        events += count;
        run_text_free(&r);
    }
    ck_assert_msg(cases < 90 || events > 60, "%zu scale events", events);
}
END_TEST

/* ---- rest ---- */

START_TEST(no_policy_oscillates_on_constant_load)
{
    uint64_t first = number_of("PROP_SEED", 1), cases = number_of("PROP_COUNT", 64);
    for (uint64_t i = first; i < first + cases; i++) {
        struct draws d = {.key = rng_key(i, 0, RNG_TEST, 2)};
        struct pool_text pool;
        char class[400];
        size_t count, late = 0;
        pool_write(&pool, &d, "main", (int)(i % (POLICIES - 1)));
        class_write(class, sizeof class, &d, "c", "constant", "main");
        struct run_text r = quick_run_of("80 min", class, pool.yaml);
        const struct metrics_scale_event *e = metrics_scale_events(run_metrics(r.run), &count);
        for (size_t k = 0; k < count; k++) {
            late += e[k].time_ps > SECONDS(2400) && e[k].target != e[k].ready + e[k].starting;
        }
        ck_assert_msg(late == 0,
                      "PROP_SEED=%" PRIu64 " PROP_COUNT=1: %zu changes in the second half of\n%s%s",
                      i, late, class, pool.yaml);
        run_text_free(&r);
    }
}
END_TEST

/* ---- two pools ---- */

/* What a pool's autoscaler did, as text. */
static char *events_text(const struct run_text *r, const char *pool)
{
    char *text = NULL;
    size_t size = 0, count;
    FILE *out = open_memstream(&text, &size);
    const struct metrics_scale_event *e = metrics_scale_events(run_metrics(r->run), &count);
    for (size_t k = 0; k < count; k++) {
        if (strcmp(e[k].pool, pool) == 0) {
            fprintf(out, "%" PRId64 " %u %u %u %u %u %.17g %s\n", e[k].time_ps, e[k].ready,
                    e[k].starting, e[k].draining, e[k].wished, e[k].target, e[k].metric,
                    e[k].reason);
        }
    }
    fclose(out);
    return text;
}

/* The events of two pools in one fleet are those of each alone: no state is shared. Constant
 * arrivals, since chance would depend on a class's place. */
START_TEST(two_pools_autoscaler_state_per_pool)
{
    uint64_t first = number_of("PROP_SEED", 1), cases = number_of("PROP_COUNT", 40);
    size_t lines = 0;
    for (uint64_t i = first; i < first + cases; i++) {
        struct draws d = {.key = rng_key(i, 0, RNG_TEST, 3)};
        struct pool_text pools[2];
        static const char *const names[] = {"left", "right"};
        char classes[2][400], all_classes[800], all_pools[2400];
        for (int k = 0; k < 2; k++) {
            pool_write(&pools[k], &d, names[k], (int)draw(&d, 0, POLICIES - 2));
            class_write(classes[k], sizeof classes[k], &d, names[k], "constant", names[k]);
        }
        snprintf(all_classes, sizeof all_classes, "%s%s", classes[0], classes[1]);
        snprintf(all_pools, sizeof all_pools, "%s%s", pools[0].yaml, pools[1].yaml);
        struct run_text both = quick_run_of("20 min", all_classes, all_pools);
        for (int k = 0; k < 2; k++) {
            struct run_text alone = quick_run_of("20 min", classes[k], pools[k].yaml);
            char *here = events_text(&both, names[k]), *there = events_text(&alone, names[k]);
            ck_assert_str_eq(here, there);
            lines += strlen(here) > 0;
            free(here);
            free(there);
            run_text_free(&alone);
        }
        run_text_free(&both);
    }
    ck_assert(cases < 40 || lines > 40);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("scaling");
    TCase *tests = tcase_create("random");
    tcase_set_timeout(tests, 300);
    tcase_add_test(tests, conservation_on_random_scenarios);
    tcase_add_test(tests, no_policy_oscillates_on_constant_load);
    tcase_add_test(tests, two_pools_autoscaler_state_per_pool);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
