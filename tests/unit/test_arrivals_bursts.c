/* gamma and mmpp against theory: moments of gaps, counts by hour, variance of counts. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <gsl/gsl_cdf.h>

#include "sim/base/time.h"
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

static struct workload *open_spec(const char *spec, int64_t horizon_ps, uint32_t replication)
{
    const struct traffic_config *class = traffic_make(&arena, spec);
    struct workload_config config = {.classes = &class,
                                     .class_count = 1,
                                     .seed = 11,
                                     .replication = replication,
                                     .horizon_ps = horizon_ps};
    return workload_open(&config, NULL, &errors);
}

/* Gaps in units of their mean: Kolmogorov's distance to the gamma distribution, mean and cv. */
static void check_gaps(double cv)
{
    enum { COUNT = 60000, BINS = 2000 };
    static uint32_t bins[BINS];
    memset(bins, 0, sizeof bins);
    struct workload *w = open_spec(
        arena_printf(&arena, "arrivals=gamma; arrivals.rate=50 /s; arrivals.cv=%.17g" LENGTHS, cv),
        100 * 24 * PS_PER_HOUR, 0);
    ck_assert_ptr_nonnull(w);
    double shape = 1 / (cv * cv), sum = 0, squares = 0;
    struct request r;
    int64_t last_ps = -1;
    for (int i = 0; i <= COUNT; i++) {
        ck_assert_int_eq(workload_next(w, &r, &errors), WORKLOAD_OK);
        double gap = 50 * time_seconds(r.arrival_ps - last_ps);
        last_ps = r.arrival_ps;
        if (i == 0)
            continue; /* a residual gap */
        sum += gap;
        squares += gap * gap;
        int bin = (int)(gsl_cdf_gamma_P(gap, shape, 1 / shape) * BINS);
        bins[bin < BINS ? bin : BINS - 1]++;
    }
    workload_close(w);
    double worst = 0;
    uint64_t below = 0;
    /* Gaps under a whole ps are 0: bursts of a large cv have many. */
    double smallest = gsl_cdf_gamma_P(1e-6, shape, 1 / shape);
    for (int b = 0; b < BINS; b++) {
        below += bins[b];
        double reached = (b + 1.0) / BINS;
        if (reached > smallest)
            worst = fmax(worst, fabs((double)below / COUNT - reached));
    }
    ck_assert_msg(worst * sqrt(COUNT) < 1.95, "cv %g: Kolmogorov %g", cv, worst * sqrt(COUNT));
    double mean = sum / COUNT;
    ck_assert_double_eq_tol(mean, 1, 4 * cv / sqrt(COUNT));
    /* Var of the sample variance is about (m4 − σ⁴)/n, m4 = σ⁴(3 + 6 cv²). */
    double variance = squares / COUNT - mean * mean;
    double error = cv * cv * sqrt((2 + 6 * cv * cv) / COUNT);
    ck_assert_double_eq_tol(variance, cv * cv, 4 * error);
}

START_TEST(gamma_gaps)
{
    static const double cvs[] = {0.1, 0.5, 1, 2, 5};
    for (size_t i = 0; i < sizeof cvs / sizeof *cvs; i++)
        check_gaps(cvs[i]);
}
END_TEST

/* Total of many replications, and of the first minute alone: no start-up bias. */
START_TEST(gamma_is_stationary)
{
    enum { RUNS = 2000 };
    static const double cvs[] = {0.3, 4};
    for (size_t i = 0; i < 2; i++) {
        double sum = 0, squares = 0;
        for (uint32_t r = 0; r < RUNS; r++) {
            struct workload *w = open_spec(
                arena_printf(&arena, "arrivals=gamma; arrivals.rate=0.1 /s; arrivals.cv=%g" LENGTHS,
                             cvs[i]),
                60 * PS_PER_SECOND, r);
            struct request request;
            double count = 0;
            while (workload_next(w, &request, &errors) == WORKLOAD_OK)
                count++;
            workload_close(w);
            sum += count;
            squares += count * count;
        }
        double mean = sum / RUNS, sd = sqrt(squares / RUNS - mean * mean);
        ck_assert_msg(fabs(mean - 6) < 4 * sd / sqrt(RUNS), "cv %g: mean %g ± %g", cvs[i], mean,
                      sd / sqrt(RUNS));
    }
}
END_TEST

/* By hour under a curve: a renewal process of cv c has counts of variance c²·mean, nearly. */
START_TEST(gamma_counts_follow_the_curve)
{
    static const double cvs[] = {0.5, 3};
    for (size_t i = 0; i < 2; i++) {
        struct workload *w = open_spec(
            arena_printf(&arena,
                         "arrivals=gamma; arrivals.rate=3 /s; arrivals.curve=evening_peak; "
                         "arrivals.cv=%g" LENGTHS,
                         cvs[i]),
            240 * PS_PER_HOUR, 0);
        uint64_t hours[240] = {0};
        struct request r;
        while (workload_next(w, &r, &errors) == WORKLOAD_OK)
            hours[time_hour(r.arrival_ps)]++;
        double chi = 0;
        for (int h = 0; h < 240; h++) {
            double e = workload_expected(w, 0, h * PS_PER_HOUR, (h + 1) * PS_PER_HOUR);
            chi += pow((double)hours[h] - e, 2) / e;
        }
        workload_close(w);
        double p = gsl_cdf_chisq_Q(chi / (cvs[i] * cvs[i]), 240);
        ck_assert_msg(p > 1e-4 && p < 1 - 1e-4, "cv %g: chi-square over cv² %g, p %g", cvs[i],
                      chi / (cvs[i] * cvs[i]), p);
    }
}
END_TEST

/* Two states with rates a, b and mean stays x, y: the rate's autocovariance is C e^(−s u) with
 * C = (a − b)² πₐ π_b, s = 1/x + 1/y, so Var N(t) = m t + 2C (t/s − (1 − e^(−s t))/s²). */
START_TEST(mmpp_moments)
{
    static const char spec[] = "arrivals=mmpp; arrivals.states=rate:2 /s|mean_holding:40 s,"
                               "rate:20 /s|mean_holding:10 s" LENGTHS;
    enum { WINDOWS = 40000 };
    const double t = 30;
    struct workload *w = open_spec(spec, WINDOWS * (int64_t)t * PS_PER_SECOND, 0);
    ck_assert_ptr_nonnull(w);
    ck_assert_double_eq_tol(workload_rate(w, 0, 0), 5.6, 1e-9);
    static uint32_t counts[WINDOWS];
    struct request r;
    while (workload_next(w, &r, &errors) == WORKLOAD_OK)
        counts[r.arrival_ps / (30 * PS_PER_SECOND)]++;
    workload_close(w);
    double sum = 0, squares = 0;
    for (int i = 0; i < WINDOWS; i++) {
        sum += counts[i];
        squares += (double)counts[i] * counts[i];
    }
    double mean = sum / WINDOWS, variance = squares / WINDOWS - mean * mean;
    double c = 18 * 18 * 0.8 * 0.2, s = 1.0 / 40 + 1.0 / 10;
    double theory = 5.6 * t + 2 * c * (t / s - (1 - exp(-s * t)) / (s * s));
    /* Windows hang together a little: the total's variance is that of N(whole). */
    double total = WINDOWS * t;
    double deviation = sqrt(5.6 * total + 2 * c * (total / s)) / WINDOWS;
    ck_assert_double_eq_tol(mean, 5.6 * t, 4 * deviation);
    ck_assert_double_eq_tol(variance, theory, 0.05 * theory);
}
END_TEST

/* The first window of many replications has the mean of all others. */
START_TEST(mmpp_is_stationary)
{
    enum { RUNS = 2000 };
    double sum = 0, squares = 0;
    for (uint32_t i = 0; i < RUNS; i++) {
        struct workload *w = open_spec("arrivals=mmpp; arrivals.states=rate:0 /s|mean_holding:30 s,"
                                       "rate:8 /s|mean_holding:10 s,"
                                       "rate:1 /s|mean_holding:20 s" LENGTHS,
                                       5 * PS_PER_SECOND, i);
        struct request request;
        double count = 0;
        while (workload_next(w, &request, &errors) == WORKLOAD_OK)
            count++;
        workload_close(w);
        sum += count;
        squares += count * count;
    }
    double mean = sum / RUNS, sd = sqrt(squares / RUNS - mean * mean);
    double expected = 5 * (8 * 10 + 20) / 60.0;
    ck_assert_msg(fabs(mean - expected) < 4 * sd / sqrt(RUNS), "mean %g ± %g, not %g", mean,
                  sd / sqrt(RUNS), expected);
}
END_TEST

START_TEST(mmpp_refuses)
{
    ck_assert_ptr_null(open_spec("arrivals=mmpp; arrivals.states=rate:0 /s|mean_holding:1 s,"
                                 "rate:0 /s|mean_holding:1 s" LENGTHS,
                                 PS_PER_HOUR, 0));
    traffic_expect_error(&errors, 0, 0, "mean rate must be at least");
}
END_TEST

/* A draw hangs on its number only: a longer horizon or another rate moves none. */
START_TEST(draws_are_keyed)
{
    static const char *const pairs[][2] = {
        {"arrivals=gamma; arrivals.rate=4 /s; arrivals.cv=2" LENGTHS,
         "arrivals=gamma; arrivals.rate=8 /s; arrivals.cv=2" LENGTHS},
        {"arrivals=poisson; arrivals.rate=4 /s" LENGTHS,
         "arrivals=poisson; arrivals.rate=8 /s" LENGTHS}};
    for (size_t i = 0; i < 2; i++) {
        struct workload *slow = open_spec(pairs[i][0], PS_PER_HOUR, 0);
        struct workload *fast = open_spec(pairs[i][1], PS_PER_HOUR, 0);
        for (int n = 0; n < 5000; n++) {
            struct request a, b;
            workload_next(slow, &a, &errors);
            workload_next(fast, &b, &errors);
            if (llabs((long long)(a.arrival_ps - 2 * b.arrival_ps)) > 1000)
                ck_abort_msg("arrival %d: %ld, %ld", n, (long)a.arrival_ps, (long)b.arrival_ps);
        }
        workload_close(slow);
        workload_close(fast);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("arrivals_bursts");
    TCase *c = tcase_create("arrivals_bursts");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_set_timeout(c, 120);
    tcase_add_test(c, gamma_gaps);
    tcase_add_test(c, gamma_is_stationary);
    tcase_add_test(c, gamma_counts_follow_the_curve);
    tcase_add_test(c, mmpp_moments);
    tcase_add_test(c, mmpp_is_stationary);
    tcase_add_test(c, mmpp_refuses);
    tcase_add_test(c, draws_are_keyed);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
