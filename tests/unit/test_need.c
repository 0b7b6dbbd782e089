/* Needs by hour: the arithmetic on small cases, and on real demand: a week of Azure's traces and
 * DeepSeek's published day (../shared/data, skipped where it is absent). */
#include <math.h>

#include "sim/run/need.h"
#include "tests/run_text.h"
#include "tests/unit/suite_run.h"

START_TEST(rounding_and_limits)
{
    ck_assert_double_eq(need_plain(10, 5), 2);
    ck_assert_double_eq(need_plain(10.1, 5), 3);
    ck_assert_double_eq(need_plain(3 * 0.1, 0.1), 3); /* 3.0000000000000004 */
    ck_assert_double_eq(need_plain(0, 5), 0);
    ck_assert(isnan(need_plain(NAN, 5)));
    ck_assert(isnan(need_plain(5, NAN)));
    struct need_rule units = {.capacity = 10, .least = 2, .most = 9, .unit = 30, .base = 8};
    ck_assert_double_eq(need_of(&units, 0), 68);
    ck_assert_double_eq(need_of(&units, 25), 98);
    ck_assert_double_eq(need_of(&units, 1000), 278);
    ck_assert(isnan(need_of(&units, NAN)));
}
END_TEST

/* 10, 30, 20 at 10 a replica: the oracle has 1, 3, 2; the last hour's are 1, 1, 3, and 20 of 60
 * are above in one hour. */
START_TEST(two_ways_to_follow)
{
    static const double rates[] = {10, 30, 20};
    struct need_rule rule = {.capacity = 10, .least = 1, .most = 100, .unit = 1};
    struct need_total oracle = need_oracle(&rule, rates, 3);
    ck_assert_double_eq(oracle.replica_hours, 6);
    ck_assert_double_eq(oracle.peak, 3);
    ck_assert_double_eq(oracle.trough, 1);
    ck_assert_uint_eq(oracle.hours_short, 0);
    struct need_total last = need_last_hour(&rule, rates, 3);
    ck_assert_double_eq(last.replica_hours, 5);
    ck_assert_uint_eq(last.hours_short, 1);
    ck_assert_double_eq_tol(last.demand_short, 20.0 / 60, 1e-12);
}
END_TEST

/* Column number `column` of a shared CSV with a header; 0 rows when it is absent. */
static size_t shared_read(const char *name, int column, double *values, size_t room)
{
    const char *shared = getenv("FLEETSIM_SHARED");
    char path[512], line[1024];
    if (shared != NULL) {
        snprintf(path, sizeof path, "%s/data/%s", shared, name);
    } else {
        snprintf(path, sizeof path, "%s/../shared/data/%s", FLEETSIM_SOURCE_DIR, name);
    }
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        printf("SKIP: %s absent\n", name);
        return 0;
    }
    size_t count = 0;
    bool header = true;
    while (fgets(line, sizeof line, file) != NULL) {
        const char *cell = line;
        for (int c = 0; c < column && cell != NULL; c++) {
            cell = strchr(cell, ',') == NULL ? NULL : strchr(cell, ',') + 1;
        }
        if (!header && cell != NULL && *cell != ',' && count < room) {
            values[count++] = strtod(cell, NULL);
        }
        header = false;
    }
    fclose(file);
    return count;
}

START_TEST(azure_2024_week)
{
    static const struct {
        const char *name;
        double capacity, oracle, peak;
        size_t hours_short;
        double percent;
    } cases[] = {{"code", 2, 2418, 7224, 59, 7.2},
                 {"code", 5, 1011, 2856, 43, 5.9},
                 {"conv", 2, 3873, 6384, 71, 3.1},
                 {"conv", 5, 1598, 2688, 45, 2.1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char name[96];
        double rates[168];
        snprintf(name, sizeof name, "azure_llm_2024_digitised/azure_2024_%s_hourly_rate.csv",
                 cases[i].name);
        size_t hours = shared_read(name, 3, rates, 168);
        if (hours == 0) {
            return;
        }
        ck_assert_uint_eq(hours, 168);
        for (size_t h = 0; h < hours; h++) {
            rates[h] /= 3600;
        }
        struct need_rule rule = {.capacity = cases[i].capacity, .least = 1, .most = 1e9, .unit = 1};
        struct need_total oracle = need_oracle(&rule, rates, hours);
        struct need_total last = need_last_hour(&rule, rates, hours);
        ck_assert_double_eq(oracle.replica_hours, cases[i].oracle);
        ck_assert_double_eq(oracle.peak * (double)hours, cases[i].peak);
        ck_assert_uint_eq(oracle.hours_short, 0);
        ck_assert_uint_eq(last.hours_short, cases[i].hours_short);
        ck_assert_double_eq_tol(100 * last.demand_short, cases[i].percent, 0.05);
    }
}
END_TEST

/* Decode units of 18 nodes with prefill in 4s: nodes = 30 k + 8, 2 ≤ k ≤ 9, k by output tokens/s.
 */
START_TEST(deepseek_day_oracle)
{
    static const double capacities[] = {14815, 15500, 15910}, hours[] = {5472, 5382, 5322};
    double tokens[24];
    size_t count = shared_read("deepseek_day/hourly.csv", 7, tokens, 24);
    if (count == 0) {
        return;
    }
    ck_assert_uint_eq(count, 24);
    for (size_t h = 0; h < count; h++) {
        tokens[h] *= 1e9 / 3600;
    }
    for (size_t i = 0; i < 3; i++) {
        struct need_rule rule = {
            .capacity = 18 * capacities[i], .least = 2, .most = 9, .unit = 30, .base = 8};
        struct need_total oracle = need_oracle(&rule, tokens, count);
        ck_assert_double_eq(oracle.replica_hours, hours[i]);
        ck_assert_double_eq(oracle.peak, 278);
        ck_assert_double_eq(oracle.trough, 68);
    }
}
END_TEST

/* The published node steps as a timetable of nodes of 8 GPUs at $2: what a fleet that follows it
 * holds and pays. 12:00 there is 04:00 UTC. */
START_TEST(deepseek_day_as_a_timetable)
{
    static const char *const at[] = {"04:00", "16:00", "17:15", "18:00", "18:45", "19:00",
                                     "19:30", "22:30", "23:00", "23:30", "00:00", "00:30"};
    double nodes[12];
    size_t count = shared_read("deepseek_day/h800_node_count_steps.csv", 1, nodes, 12);
    if (count == 0) {
        return;
    }
    ck_assert_uint_eq(count, 12);
    char times[1024] = "";
    for (size_t i = 0; i < count; i++) { /* in order of the UTC clock: the last two are the first */
        size_t k = (i + 10) % count;
        size_t used = strlen(times);
        snprintf(times + used, sizeof times - used, "%s{at: \"%s\", replicas: %.0f}",
                 i == 0 ? "" : ", ", at[k], nodes[k]);
    }
    char yaml[3000];
    snprintf(yaml, sizeof yaml,
             "name: day\nhorizon: 24 h\nstart: 2025-02-27T04:00:00Z\n"
             "workload: [{name: w, arrivals: {process: trace, file: trace.csv}}]\n"
             "fleet:\n"
             "  pools:\n"
             "    - name: main\n"
             "      step_time: {model: constant, step: 1 s}\n"
             "      parallel: {tensor: 8}\n"
             "      initial_replicas: 278\n"
             "      cold_start: {provision: 0 s, image_pull: 0 s, weights: 0 s, engine_init: 0 s}\n"
             "      price: {usd_per_gpu_hour: 2}\n"
             "      autoscaler: {policy: schedule, times: [%s]}\n",
             times);
    struct run_text r = run_text_do(yaml, "0,1,1\n");
    const struct metrics_summary *s = run_text_summary(&r);
    ck_assert_double_eq_tol(s->gpu_hours.held / 8 / 24, 226.75, 1e-9);
    ck_assert_double_eq_tol(s->usd.total, 87072, 1e-6);
    run_text_free(&r);
    const char *const peak[] = {"fleet.pools[0].autoscaler={policy: static, replicas: 278}"};
    r = run_text_set(yaml, "0,1,1\n", peak, 1, false);
    ck_assert_double_eq_tol(run_text_summary(&r)->usd.total, 106752, 1e-6);
    run_text_free(&r);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {rounding_and_limits, two_ways_to_follow,          azure_2024_week,
                                  deepseek_day_oracle, deepseek_day_as_a_timetable, NULL};
    return suite_run("need", tests, 60);
}
