/* Weekly and harmonic curves, spikes, cohorts, and local clocks with daylight saving. */
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "sim/base/time.h"
#include "sim/run/run.h"
#include "sim/workload/zone.h"
#include "tests/unit/support_traffic.h"

static struct arena arena;
static struct errors errors;

static void setup(void)
{
    arena_init(&arena);
    errors_init(&errors);
}

static void teardown(void)
{
    errors_free(&errors);
    arena_free(&arena);
}

#define LENGTHS                                                                                    \
    "; prompt_tokens=constant; prompt_tokens.value=10; output_tokens=constant; "                   \
    "output_tokens.value=5"

static struct workload *open_many(const char *const *specs, size_t count, int64_t start_unix_s,
                                  int64_t horizon_ps)
{
    const struct traffic_config *classes[4];
    for (size_t i = 0; i < count; i++)
        classes[i] =
            traffic_make(&arena, arena_printf(&arena, "name=c%zu; %s" LENGTHS, i, specs[i]));
    struct workload_config config = {.classes = classes,
                                     .class_count = count,
                                     .seed = 5,
                                     .start_unix_s = start_unix_s,
                                     .horizon_ps = horizon_ps};
    return workload_open(&config, NULL, &errors);
}

static struct workload *open_one(const char *spec, int64_t start_unix_s, int64_t horizon_ps)
{
    return open_many(&spec, 1, start_unix_s, horizon_ps);
}

enum { HOURS_MAX = 400 };
/* Arrivals by hour of UTC; closes the workload. */
static uint64_t count_close(struct workload *w, uint64_t *hours)
{
    ck_assert_ptr_nonnull(w);
    struct request r;
    uint64_t count = 0;
    while (workload_next(w, &r, &errors) == WORKLOAD_OK) {
        if (r.arrival_ps < 0 || r.arrival_ps >= workload_horizon(w))
            ck_abort_msg("arrival at %ld", (long)r.arrival_ps);
        if (hours)
            hours[time_hour(r.arrival_ps)]++;
        count++;
    }
    workload_close(w);
    return count;
}

/* Expected counts by hour, and of the whole: they must add up. */
static void expect_hours(struct workload *w, double *hours, int count)
{
    ck_assert_ptr_nonnull(w);
    double sum = 0;
    for (int h = 0; h < count; h++)
        sum += hours[h] = workload_expected(w, 0, h * PS_PER_HOUR, (h + 1) * PS_PER_HOUR);
    double whole = workload_expected(w, 0, 0, count * PS_PER_HOUR);
    ck_assert_double_eq_tol(whole, sum, 1e-9 * sum);
}

/* One request a second of every local hour: 23 and 25 of them on the days of the change. */
START_TEST(new_york_days)
{
    static const char spec[] = "arrivals=constant; arrivals.rate=1 /s; time_zone=America/New_York";
    int64_t spring = zone_days(2025, 3, 9) * 86400 + 5 * 3600;
    ck_assert_uint_eq(count_close(open_one(spec, spring, 23 * PS_PER_HOUR), NULL), 82800);
    int64_t autumn = zone_days(2025, 11, 2) * 86400 + 4 * 3600;
    uint64_t hours[HOURS_MAX] = {0};
    ck_assert_uint_eq(count_close(open_one(spec, autumn, 25 * PS_PER_HOUR), hours), 90000);
    for (int h = 0; h < 25; h++)
        ck_assert_uint_eq(hours[h], 3600);
}
END_TEST

/* Values 0 … 23 by local hour: 2 is left out in spring, 1 comes twice in autumn. */
START_TEST(local_hours_jump)
{
    static const char spec[] =
        "arrivals=constant; arrivals.rate=0.115 /s; arrivals.curve=hourly; arrivals.curve.values="
        "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23; "
        "time_zone=America/New_York";
    double expected[HOURS_MAX];
    struct workload *w = open_one(spec, zone_days(2025, 3, 9) * 86400 + 5 * 3600, 23 * PS_PER_HOUR);
    expect_hours(w, expected, 23);
    for (int h = 0; h < 23; h++)
        ck_assert_double_eq_tol(expected[h], 36 * (h + (h >= 2)), 1e-6);
    uint64_t hours[HOURS_MAX] = {0};
    count_close(w, hours);
    for (int h = 0; h < 23; h++)
        ck_assert_double_eq_tol((double)hours[h], expected[h], 1.5);

    w = open_one(spec, zone_days(2025, 11, 2) * 86400 + 4 * 3600, 25 * PS_PER_HOUR);
    expect_hours(w, expected, 25);
    for (int h = 0; h < 25; h++) {
        ck_assert_double_eq_tol(expected[h], 36 * (h - (h >= 2)), 1e-6);
        ck_assert_double_eq_tol(workload_rate(w, 0, h * PS_PER_HOUR), expected[h] / 3600, 1e-9);
    }
    workload_close(w);
}
END_TEST

static char *week_values(void)
{
    char *text = arena_copy(&arena, "1");
    for (int i = 1; i < 168; i++)
        text = arena_printf(&arena, "%s,%d", text, i + 1);
    return text;
}

/* Friday 2024-05-10 0:00 UTC is hour 96 of the week; a Berlin clock is two hours ahead. */
START_TEST(weekly_from_monday)
{
    static const struct {
        const char *zone;
        int ahead;
    } cases[] = {{"UTC", 0}, {"Europe/Berlin", 2}, {"-03:00", -3}};
    for (size_t c = 0; c < 3; c++) {
        const char *spec = arena_printf(&arena,
                                        "arrivals=poisson; arrivals.rate=84.5 /s; "
                                        "arrivals.curve=weekly; arrivals.curve.values=%s; "
                                        "time_zone=%s",
                                        week_values(), cases[c].zone);
        double expected[HOURS_MAX];
        struct workload *w = open_one(spec, zone_days(2024, 5, 10) * 86400, 336 * PS_PER_HOUR);
        expect_hours(w, expected, 336);
        for (int h = 0; h < 336; h++) {
            int local = (96 + cases[c].ahead + h) % 168;
            ck_assert_double_eq_tol(expected[h], 3600.0 * (local + 1), 1e-5);
        }
        workload_close(w);
    }
}
END_TEST

START_TEST(weekly_counts)
{
    const char *spec = arena_printf(&arena,
                                    "arrivals=constant; arrivals.rate=0.845 /s; "
                                    "arrivals.curve=weekly; arrivals.curve.values=%s",
                                    week_values());
    uint64_t hours[HOURS_MAX] = {0};
    int64_t monday = zone_days(2024, 5, 13) * 86400;
    ck_assert_uint_eq(count_close(open_one(spec, monday, 168 * PS_PER_HOUR), hours), 511056);
    for (int h = 0; h < 168; h++)
        ck_assert_double_eq_tol((double)hours[h], 36 * (h + 1), 1.5);
}
END_TEST

/* mean 2, a daily wave of 1 that peaks at 20:00 and a weekly one of 0.5 that peaks on Wednesday
 * noon: ∫ by hand over any hour. */
START_TEST(harmonics_follow_their_sum)
{
    static const char spec[] =
        "arrivals=poisson; arrivals.rate=10 /s; arrivals.curve=harmonics; arrivals.curve.mean=2; "
        "arrivals.curve.terms=period:24 h|amplitude:1|phase:20 h,"
        "period:168 h|amplitude:0.5|phase:60 h";
    const double pi = acos(-1);
    double expected[HOURS_MAX];
    struct workload *w = open_one(spec, zone_days(2024, 5, 13) * 86400, 168 * PS_PER_HOUR);
    expect_hours(w, expected, 168);
    double sum = 0;
    for (int h = 0; h < 168; h++) {
        double day =
            24 / (2 * pi) * (sin(2 * pi * (h + 1 - 20) / 24) - sin(2 * pi * (h - 20) / 24.0));
        double week =
            168 / (2 * pi) * (sin(2 * pi * (h + 1 - 60) / 168) - sin(2 * pi * (h - 60) / 168.0));
        ck_assert_double_eq_tol(expected[h], 36000 * (1 + (day + 0.5 * week) / 2), 1e-3);
        double rate =
            10 * (1 + (cos(2 * pi * (h - 20) / 24) + 0.5 * cos(2 * pi * (h - 60) / 168)) / 2);
        ck_assert_double_eq_tol(workload_rate(w, 0, h * PS_PER_HOUR), rate, 1e-9);
        sum += expected[h];
    }
    ck_assert_double_eq_tol(sum, 10 * 168 * 3600.0, 1e-3);
    uint64_t hours[HOURS_MAX] = {0};
    count_close(w, hours);
    double chi = 0;
    for (int h = 0; h < 168; h++)
        chi += pow((double)hours[h] - expected[h], 2) / expected[h];
    ck_assert_msg(chi > 110 && chi < 245, "chi-square %g with 168 degrees", chi);
}
END_TEST

START_TEST(harmonics_refuse)
{
    ck_assert_ptr_null(open_one("arrivals=poisson; arrivals.rate=1 /s; arrivals.curve=harmonics; "
                                "arrivals.curve.terms=period:5 h|amplitude:0.5",
                                0, PS_PER_HOUR));
    traffic_expect_error(&errors, 0, 0, "must go into a week a whole number of times");
    ck_assert_ptr_null(open_one("arrivals=poisson; arrivals.rate=1 /s; arrivals.curve=harmonics; "
                                "arrivals.curve.terms=period:24 h|amplitude:1.1|phase:6 h",
                                0, PS_PER_HOUR));
    traffic_expect_error(&errors, 0, 0, "falls below 0 at 16:");
    /* A wave that just touches 0 is fine. */
    struct workload *w = open_one("arrivals=poisson; arrivals.rate=1 /s; arrivals.curve=harmonics; "
                                  "arrivals.curve.terms=period:24 h|amplitude:1|phase:6 h",
                                  0, 24 * PS_PER_HOUR);
    ck_assert_ptr_nonnull(w);
    ck_assert_double_eq_tol(workload_expected(w, 0, 0, 24 * PS_PER_HOUR), 86400, 1e-6);
    workload_close(w);
}
END_TEST

/* Spikes cut minutes where they fall; two that overlap multiply; 0 is an outage. */
START_TEST(spikes_multiply)
{
    static const char *const specs[] = {
        "arrivals=constant; arrivals.rate=10 /s; arrivals.spikes=at:90.5 s|duration:10 s|factor:4,"
        "at:95.5 s|duration:15 s|factor:3,at:200 s|duration:100 s|factor:0",
        "arrivals=poisson; arrivals.rate=10 /s; arrivals.spikes=at:90.5 s|duration:10 s|factor:4,"
        "at:95.5 s|duration:15 s|factor:3,at:200 s|duration:100 s|factor:0"};
    /* 5 s of 4, 5 s of 12, 10 s of 3, 100 s of 0 instead of 1 */
    const double total = 10 * (600 - 20 - 100 + 20 + 60 + 30);
    for (size_t i = 0; i < 2; i++) {
        struct workload *w = open_one(specs[i], 17 /* s past a minute */, 600 * PS_PER_SECOND);
        ck_assert_ptr_nonnull(w);
        ck_assert_double_eq_tol(workload_expected(w, 0, 0, 600 * PS_PER_SECOND), total, 1e-6);
        ck_assert_double_eq(workload_rate(w, 0, 96 * PS_PER_SECOND), 120);
        ck_assert_double_eq(workload_rate(w, 0, 250 * PS_PER_SECOND), 0);
        struct request r;
        int count = 0, inside = 0;
        while (workload_next(w, &r, &errors) == WORKLOAD_OK) {
            ck_assert(r.arrival_ps < 200 * PS_PER_SECOND || r.arrival_ps >= 300 * PS_PER_SECOND);
            inside += r.arrival_ps >= 95500000000000 && r.arrival_ps < 100500000000000;
            count++;
        }
        ck_assert_double_eq_tol(count, total, i ? 4 * sqrt(total) : 1.5);
        ck_assert_double_eq_tol(inside, 600, i ? 4 * sqrt(600) : 1.5);
        workload_close(w);
    }
}
END_TEST

/* Three disjoint 8-hour cohorts of 10, 20 and 30 requests/s. */
START_TEST(cohorts)
{
    static const char *const processes[] = {"constant", "poisson"};
    for (size_t p = 0; p < 2; p++) {
        const char *specs[3];
        for (int i = 0; i < 3; i++)
            specs[i] =
                arena_printf(&arena, "arrivals=%s; arrivals.rate=%d /s; start=%d h; end=%d h",
                             processes[p], 10 * (i + 1), 8 * i, 8 * i + 8);
        struct workload *w = open_many(specs, 3, 0, 24 * PS_PER_HOUR);
        ck_assert_ptr_nonnull(w);
        double sum = 0;
        for (size_t i = 0; i < 3; i++)
            sum += workload_expected(w, i, 0, 24 * PS_PER_HOUR);
        ck_assert_double_eq_tol(sum, 1728000, 1e-6);
        uint64_t hours[HOURS_MAX] = {0}, count = count_close(w, hours);
        if (p == 0)
            ck_assert_uint_eq(count, 1728000);
        else
            ck_assert_double_eq_tol((double)count, 1728000, 4 * sqrt(1728000));
        for (int h = 0; h < 24 && p == 0; h++)
            ck_assert_uint_eq(hours[h], 36000u * (unsigned)(h / 8 + 1));
    }
}
END_TEST

START_TEST(class_keys_refuse)
{
    ck_assert_ptr_null(
        open_one("arrivals=constant; arrivals.rate=1 /s; start=2 h; end=2 h", 0, PS_PER_HOUR));
    traffic_expect_error(&errors, 0, 0, "ends before it starts");
    ck_assert_ptr_null(
        open_one("arrivals=constant; arrivals.rate=1 /s; time_zone=Europe/Berln", 0, PS_PER_HOUR));
    traffic_expect_error(&errors, 0, 0, "did you mean 'Europe/Berlin'?");
    ck_assert_ptr_null(
        open_one("arrivals=constant; arrivals.rate=1 /s; time_zone=Europe/Berlin", 0, PS_PER_HOUR));
    traffic_expect_error(&errors, 0, 0, "from 2008 to");
}
END_TEST

/* The hourly need of Azure's week from the scenario's own numbers, in whole replicas of 5 and of 2
 * requests/s: replica-hours, and those of the peak held all week. */
START_TEST(azure_week_needs)
{
    struct run_request request = {.scenario =
                                      FLEETSIM_SOURCE_DIR "/scenarios/azure-week/scenario.yaml"};
    struct run *run = run_open(&request, &errors);
    if (!run)
        errors_print(&errors, stderr);
    ck_assert_ptr_nonnull(run);
    const struct workload *w = run_workload(run);
    static const struct {
        double capacity;
        int sum, peak;
    } cases[] = {{5, 1598, 2688}, {2, 3873, 6384}};
    for (size_t i = 0; i < 2; i++) {
        int sum = 0, peak = 0;
        for (int h = 0; h < 168; h++) {
            double rate = workload_rate(w, 0, h * PS_PER_HOUR);
            int need = (int)fmax(1, ceil(rate / cases[i].capacity - 1e-9));
            sum += need;
            peak = need > peak ? need : peak;
        }
        ck_assert_int_eq(sum, cases[i].sum);
        ck_assert_int_eq(peak * 168, cases[i].peak);
    }
    ck_assert_double_eq_tol(workload_expected(w, 0, 0, run_horizon(run)), 27304002, 2);
    run_free(run);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("arrivals_shapes");
    TCase *c = tcase_create("arrivals_shapes");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_set_timeout(c, 60);
    tcase_add_test(c, new_york_days);
    tcase_add_test(c, local_hours_jump);
    tcase_add_test(c, weekly_from_monday);
    tcase_add_test(c, weekly_counts);
    tcase_add_test(c, harmonics_follow_their_sum);
    tcase_add_test(c, harmonics_refuse);
    tcase_add_test(c, spikes_multiply);
    tcase_add_test(c, cohorts);
    tcase_add_test(c, class_keys_refuse);
    tcase_add_test(c, azure_week_needs);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
