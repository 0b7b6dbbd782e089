/* Arrival processes: expected counts, exact stamps, independence of draws. */
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include <gsl/gsl_cdf.h>

#include "sim/base/time.h"
#include "sim/workload/rational.h"
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
    "; name=a; prompt_tokens=constant; prompt_tokens.value=10; output_tokens=constant; "           \
    "output_tokens.value=5"

static struct workload *open_spec(const char *spec, int64_t horizon_ps, uint64_t seed,
                                  uint32_t replication, int64_t start)
{
    const struct traffic_config *class = traffic_make(&arena, spec);
    struct workload_config config = {.classes = &class,
                                     .class_count = 1,
                                     .seed = seed,
                                     .replication = replication,
                                     .start_unix_s = start,
                                     .horizon_ps = horizon_ps};
    struct workload *w = workload_open(&config, NULL, &errors);
    if (!w)
        errors_print(&errors, stderr);
    return w;
}

/* Counts per hour; checks order, ids and the horizon on the way. */
static uint64_t count_hours(struct workload *w, uint64_t *hours, size_t hour_count)
{
    struct request r;
    uint64_t count = 0;
    int64_t last_ps = 0;
    while (workload_next(w, &r, &errors) == WORKLOAD_OK) {
        size_t hour = (size_t)time_hour(r.arrival_ps);
        /* One assertion for all: each writes to a pipe. */
        if (r.id != count || r.arrival_ps < last_ps || r.arrival_ps >= workload_horizon(w) ||
            r.session != -1 || hour >= hour_count)
            ck_abort_msg("request %lu at %ld", (unsigned long)r.id, (long)r.arrival_ps);
        last_ps = r.arrival_ps;
        hours[hour]++;
        count++;
    }
    return count;
}

/* Chi-square of hourly counts against the expected ones, and the total within 5 sigma. */
static void check_counts(const char *spec, double total, int64_t start)
{
    enum { HOURS = 48 };
    uint64_t hours[HOURS] = {0};
    struct workload *w = open_spec(spec, HOURS * PS_PER_HOUR, 7, 0, start);
    ck_assert_ptr_nonnull(w);
    double count = (double)count_hours(w, hours, HOURS);
    double expected = workload_expected(w, 0, 0, HOURS * PS_PER_HOUR);
    ck_assert_double_eq_tol(expected, total, 1e-6 * total);
    ck_assert_double_eq_tol(count, expected, 5 * sqrt(expected));
    double chi = 0;
    for (int h = 0; h < HOURS; h++) {
        double e = workload_expected(w, 0, h * PS_PER_HOUR, (h + 1) * PS_PER_HOUR);
        ck_assert(e > 5);
        chi += ((double)hours[h] - e) * ((double)hours[h] - e) / e;
    }
    double p = gsl_cdf_chisq_Q(chi, HOURS);
    ck_assert_msg(p > 1e-4 && p < 1 - 1e-4, "chi-square %g, p %g", chi, p);
    workload_close(w);
}

START_TEST(poisson_counts)
{
    check_counts("arrivals=poisson; arrivals.rate=2 /s" LENGTHS, 2 * 48 * 3600.0, 0);
    check_counts("arrivals=poisson; arrivals.requests_per_day=300000; "
                 "arrivals.curve=evening_peak" LENGTHS,
                 600000, 0);
    check_counts("arrivals=poisson; arrivals.users.daily=1e5; arrivals.users.sessions=3; "
                 "arrivals.users.requests_per_session=1.5; arrivals.curve=evening_peak; "
                 "arrivals.curve.peak_factor=6" LENGTHS,
                 900000, 1772457296 /* 13:14:56 */);
    check_counts(
        "arrivals=poisson; arrivals.rate=1 /s; arrivals.curve=hourly; "
        "arrivals.curve.values=1,2,3,4,5,6,7,8,9,10,11,12,12,11,10,9,8,7,6,5,4,3,2,1" LENGTHS,
        48 * 3600.0, 3600 * 5 + 1234);
}
END_TEST

/* Gaps of a flat Poisson process are exponential: Kolmogorov's distance over 10^5 of them. */
START_TEST(poisson_gaps)
{
    enum { COUNT = 100000, BINS = 1000 };
    static uint32_t bins[BINS];
    struct workload *w =
        open_spec("arrivals=poisson; arrivals.rate=5 /s" LENGTHS, 100 * 24 * PS_PER_HOUR, 3, 0, 0);
    struct request r;
    int64_t last_ps = 0;
    for (int i = 0; i < COUNT; i++) {
        if (workload_next(w, &r, &errors) != WORKLOAD_OK)
            ck_abort_msg("ended after %d", i);
        double u = -expm1(-5 * time_seconds(r.arrival_ps - last_ps));
        bins[(int)(u * BINS)]++;
        last_ps = r.arrival_ps;
    }
    double worst = 0, sum = 0;
    for (int i = 0; i < BINS; i++) {
        sum += bins[i];
        worst = fmax(worst, fabs(sum / COUNT - (i + 1.0) / BINS));
    }
    ck_assert_double_lt(worst, 2.0 / sqrt(COUNT)); /* p = 0.0007 */
    workload_close(w);
}
END_TEST

/* The start's time of day shifts the curve: the busiest hour is at 20:00 UTC. */
START_TEST(start_shifts_the_curve)
{
    struct workload *w = open_spec("arrivals=poisson; arrivals.rate=10 /s; "
                                   "arrivals.curve=evening_peak" LENGTHS,
                                   24 * PS_PER_HOUR, 1, 0, 1772452800 /* 2026-03-02T12:00:00Z */);
    ck_assert_double_eq_tol(workload_rate(w, 0, 8 * PS_PER_HOUR), 30, 1e-9);
    uint64_t hours[24] = {0};
    count_hours(w, hours, 24);
    for (int h = 0; h < 24; h++)
        ck_assert(hours[h] <= hours[8] || hours[h] <= hours[7]);
    workload_close(w);
}
END_TEST

/* Runs 0–4 of two seeds: ten different lists. Same seed and run: the same list. */
START_TEST(runs_differ)
{
    enum { COUNT = 50 };
    int64_t lists[11][COUNT];
    for (int run = 0; run < 11; run++) {
        struct workload *w = open_spec("arrivals=poisson; arrivals.rate=5 /s" LENGTHS, PS_PER_HOUR,
                                       run < 10 ? 1 + run / 5 : 1, (uint32_t)run % 5, 0);
        struct request r;
        for (int i = 0; i < COUNT; i++) {
            ck_assert_int_eq(workload_next(w, &r, &errors), WORKLOAD_OK);
            lists[run][i] = r.arrival_ps;
        }
        workload_close(w);
    }
    for (int i = 0; i < COUNT; i++)
        ck_assert_int_eq(lists[10][i], lists[0][i]);
    for (int a = 0; a < 10; a++)
        for (int b = 0; b < a; b++)
            for (int i = 0; i < COUNT; i++)
                for (int j = 0; j < COUNT; j++)
                    if (lists[a][i] == lists[b][j])
                        ck_abort_msg("runs %d and %d share an arrival", a, b);
}
END_TEST

/* Twice the rate: every arrival at half its time, so the draws are the same. */
START_TEST(rate_stretches_arrivals)
{
    struct workload *one =
        open_spec("arrivals=poisson; arrivals.rate=5 /s" LENGTHS, PS_PER_HOUR, 1, 0, 0);
    struct workload *two =
        open_spec("arrivals=poisson; arrivals.rate=10 /s" LENGTHS, PS_PER_HOUR, 1, 0, 0);
    struct request a, b;
    for (int i = 0; i < 10000; i++) {
        ck_assert_int_eq(workload_next(one, &a, &errors), WORKLOAD_OK);
        ck_assert_int_eq(workload_next(two, &b, &errors), WORKLOAD_OK);
        ck_assert_int_le(llabs(a.arrival_ps - 2 * b.arrival_ps), 4);
    }
    workload_close(one);
    workload_close(two);
}
END_TEST

/* A tick each 0.1 s for 10 days: 8,640,000 ticks at exact multiples, tick 36,000 in hour 1. */
START_TEST(constant_ten_days)
{
    struct workload *w =
        open_spec("arrivals=constant; arrivals.rate=10 /s" LENGTHS, 240 * PS_PER_HOUR + 1, 1, 0, 0);
    struct request r;
    for (int64_t k = 0; k <= 8640000; k++) {
        if (workload_next(w, &r, &errors) != WORKLOAD_OK ||
            r.arrival_ps != k * (PS_PER_SECOND / 10))
            ck_abort_msg("tick %ld at %ld", (long)k, (long)r.arrival_ps);
        if (k == 36000)
            ck_assert_int_eq(time_hour(r.arrival_ps), 1);
    }
    ck_assert_int_eq(workload_next(w, &r, &errors), WORKLOAD_END);
    workload_close(w);
}
END_TEST

/* Every way to write a rate is exact: tick k is round(k · period). */
START_TEST(constant_rates)
{
    static const struct {
        const char *spec;
        int64_t ticks, period_ps; /* ticks arrivals take ticks · period exactly */
    } cases[] = {
        {"arrivals=constant; arrivals.rate=7 /s", 7, PS_PER_SECOND},
        {"arrivals=constant; arrivals.rate=0.1 /s", 1, 10 * PS_PER_SECOND},
        {"arrivals=constant; arrivals.rate=10 /min", 10, 60 * PS_PER_SECOND},
        {"arrivals=constant; arrivals.rate=7 /h", 7, PS_PER_HOUR},
        {"arrivals=constant; arrivals.rate=173.6 /s", 1736, 10 * PS_PER_SECOND},
        {"arrivals=constant; arrivals.requests_per_day=70000", 7, 864 * PS_PER_SECOND / 100},
        {"arrivals=constant; arrivals.users.daily=1e6; arrivals.users.sessions=3; "
         "arrivals.users.requests_per_session=5",
         15000000, 86400 * PS_PER_SECOND},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct workload *w = open_spec(arena_printf(&arena, "%s%s", cases[i].spec, LENGTHS),
                                       100 * 24 * PS_PER_HOUR, 1, 0, 0);
        struct request r;
        for (int64_t k = 0; k < 50000 && workload_next(w, &r, &errors) == WORKLOAD_OK; k++) {
            int128 doubled = (int128)2 * k * cases[i].period_ps;
            int64_t exact = (int64_t)((doubled + cases[i].ticks) / (2 * cases[i].ticks));
            if (r.arrival_ps != exact)
                ck_abort_msg("%s: tick %ld at %ld", cases[i].spec, (long)k, (long)r.arrival_ps);
        }
        workload_close(w);
    }
}
END_TEST

/* Under a curve, arrival k is where the integral reaches k. */
START_TEST(constant_follows_the_curve)
{
    struct workload *w = open_spec("arrivals=constant; arrivals.requests_per_day=86400; "
                                   "arrivals.curve=evening_peak" LENGTHS,
                                   48 * PS_PER_HOUR, 1, 0, 0);
    struct request r;
    int64_t k = 0;
    for (; workload_next(w, &r, &errors) == WORKLOAD_OK; k++)
        if (fabs(workload_expected(w, 0, 0, r.arrival_ps) - (double)k) > 1e-6)
            ck_abort_msg("arrival %ld at %ld", (long)k, (long)r.arrival_ps);
    ck_assert_int_eq(k, 2 * 86400);
    workload_close(w);
}
END_TEST

/* Three disjoint cohorts of 8 h at 10, 20 and 30 requests/s: 1,728,000 in a day. */
START_TEST(three_cohorts)
{
    struct workload *w = open_spec("arrivals=poisson; arrivals.rate=20 /s; arrivals.curve=hourly; "
                                   "arrivals.curve.values=10,10,10,10,10,10,10,10,20,20,20,20,20,"
                                   "20,20,20,30,30,30,30,30,30,30,30" LENGTHS,
                                   24 * PS_PER_HOUR, 1, 0, 0);
    ck_assert_double_eq_tol(workload_expected(w, 0, 0, 24 * PS_PER_HOUR), 1728000, 1e-6);
    static const double rates[] = {10, 20, 30};
    for (int i = 0; i < 3; i++) {
        ck_assert_double_eq_tol(workload_rate(w, 0, (8 * i + 3) * PS_PER_HOUR), rates[i], 1e-9);
        ck_assert_double_eq_tol(
            workload_expected(w, 0, 8 * i * PS_PER_HOUR, 8 * (i + 1) * PS_PER_HOUR),
            rates[i] * 8 * 3600, 1e-6);
    }
    workload_close(w);
}
END_TEST

START_TEST(slow_and_fast_rates)
{
    struct workload *w = open_spec("arrivals=poisson; arrivals.requests_per_day=0.5; "
                                   "arrivals.curve=evening_peak" LENGTHS,
                                   100 * 24 * PS_PER_HOUR, 1, 0, 0);
    struct request r;
    int count = 0;
    while (workload_next(w, &r, &errors) == WORKLOAD_OK)
        count++;
    ck_assert(count > 20 && count < 90);
    workload_close(w);

    w = open_spec("arrivals=poisson; arrivals.rate=1e9 /s; arrivals.curve=evening_peak; "
                  "arrivals.curve.peak_factor=100" LENGTHS,
                  PS_PER_SECOND / 1000, 1, 0, 20 * 3600);
    double expected = workload_expected(w, 0, 0, workload_horizon(w));
    for (count = 0; workload_next(w, &r, &errors) == WORKLOAD_OK && count < 1000000; count++)
        continue;
    ck_assert_int_eq(count, 1000000);
    ck_assert_double_eq_tol(expected, 1e8, 5e5); /* the peak is sharp within a minute */
    ck_assert_double_eq_tol(time_seconds(r.arrival_ps), 1e6 / 1e11, 1e-2 * 1e-5);
    workload_close(w);
}
END_TEST

START_TEST(exactly_one_amount)
{
    static const struct {
        const char *spec, *message;
    } cases[] = {
        {"arrivals=poisson", "one must be given of rate, requests_per_day and users"},
        {"arrivals=poisson; arrivals.rate=1 /s; arrivals.requests_per_day=5", "only one can be"},
        {"arrivals=constant; arrivals.users.daily=5; arrivals.users.sessions=1",
         "requests_per_session is missing"},
        {"arrivals=constant; arrivals.rate=1e-12 /s", "between 1e-9 /s and 1e9 /s"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct traffic_config *class =
            traffic_make(&arena, arena_printf(&arena, "%s%s", cases[i].spec, LENGTHS));
        ck_assert_ptr_null(traffic_open(&class, 1, PS_PER_HOUR, &errors));
        traffic_expect_error(&errors, 0, 0, cases[i].message);
    }
    ck_assert_uint_eq(errors.error_count, sizeof cases / sizeof *cases);
}
END_TEST

START_TEST(rationals)
{
    static const struct {
        double value;
        uint64_t numerator, denominator;
    } cases[] = {
        {10, 10, 1},         {0.1, 1, 10},    {10.0 / 60, 1, 6},       {7.0 / 3600, 7, 3600},
        {15e6, 15000000, 1}, {173.6, 868, 5}, {1.0 / 86400, 1, 86400}, {1e-9, 1, 1000000000}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rational r = rational_from_real(cases[i].value);
        ck_assert_uint_eq((uint64_t)r.numerator, cases[i].numerator);
        ck_assert_uint_eq((uint64_t)r.denominator, cases[i].denominator);
    }
    struct rational odd = rational_from_real(1.0 / 7);
    ck_assert_double_eq((double)odd.numerator / (double)odd.denominator, 1.0 / 7);
    struct rational product;
    ck_assert(rational_multiply((struct rational){6, 35}, (struct rational){14, 9}, &product));
    ck_assert(product.numerator == 4 && product.denominator == 15);
    uint128 huge = (uint128)1 << 100;
    ck_assert(!rational_multiply((struct rational){huge, 1}, (struct rational){huge, 1}, &product));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("arrivals");
    TCase *c = tcase_create("arrivals");
    tcase_set_timeout(c, 120);
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, poisson_counts);
    tcase_add_test(c, poisson_gaps);
    tcase_add_test(c, start_shifts_the_curve);
    tcase_add_test(c, runs_differ);
    tcase_add_test(c, rate_stretches_arrivals);
    tcase_add_test(c, constant_ten_days);
    tcase_add_test(c, constant_rates);
    tcase_add_test(c, constant_follows_the_curve);
    tcase_add_test(c, three_cohorts);
    tcase_add_test(c, slow_and_fast_rates);
    tcase_add_test(c, exactly_one_amount);
    tcase_add_test(c, rationals);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
