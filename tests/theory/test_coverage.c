/* Intervals hold what they claim to hold as often as they claim. On M/M/1 at 50 % load, whose mean
 * time in system is 1 / (μ − λ) = 0.2 s: 1,000 experiments of 10 replications of 1,000 requests.
 * A replication starts empty; its first 50 arrivals are dropped, 100 mean service times, in which
 * what is left of the start falls below e⁻⁸ (relaxation time 1 / (√μ − √λ)² = 1.17 s), a
 * five-hundredth of an interval's half width. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/base/rng.h"
#include "sim/run/interval.h"
#include "tests/theory/support_queue.h"

enum { EXPERIMENTS = 1000, REPLICATIONS = 10, REQUESTS = 1000, SETS = 20 };

static const struct queue_case mm1 = {.name = "M/M/1",
                                      .rate = "5 /s",
                                      .prompt = "exponential mean=100000",
                                      .output = "constant value=1",
                                      .step = "affine base=0 s,per_token=1 us",
                                      .router = "least_loaded",
                                      .replicas = 1,
                                      .seats = 1};

static int by_value(const void *a_, const void *b_)
{
    double a = *(const double *)a_, b = *(const double *)b_;
    return (a > b) - (a < b);
}

static double median(const double *values, size_t n)
{
    double *sorted = malloc(n * sizeof *sorted);
    for (size_t i = 0; i < n; i++)
        sorted[i] = values[i];
    qsort(sorted, n, sizeof *sorted, by_value);
    double middle = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
    free(sorted);
    return middle;
}

static double *means, *p99s; /* [experiments · REPLICATIONS] */

static void simulate_all(int experiments)
{
    means = malloc((size_t)experiments * REPLICATIONS * sizeof *means);
    p99s = malloc((size_t)experiments * REPLICATIONS * sizeof *p99s);
    for (int i = 0; i < experiments * REPLICATIONS; i++) {
        struct queue_sample s;
        queue_simulate(&mm1, (uint32_t)i, REQUESTS, &s);
        means[i] = s.time_mean_s;
        p99s[i] = s.time_p99_s;
    }
}

static void expect_coverage(const char *what, int covered, int of, double low, double high)
{
    double share = (double)covered / of;
    /* With fewer experiments, wider by the root. */
    double slack = of < EXPERIMENTS ? 0.02 * (sqrt((double)EXPERIMENTS / of) - 1) : 0;
    printf("%-52s %5.1f %% of %d\n", what, 100 * share, of);
    fflush(stdout);
    ck_assert_msg(share >= low - slack && share <= fmin(high + slack, 1), "%s: %g", what, share);
}

START_TEST(replications_of_mm1)
{
    const double theory = 0.2;
    int experiments = EXPERIMENTS / (int)queue_scale(), mean_covered = 0, median_covered = 0;
    double width = 0;
    simulate_all(experiments);
    double middle = median(p99s, (size_t)experiments * REPLICATIONS);
    for (int e = 0; e < experiments; e++) {
        struct interval mean = interval_of(means + e * REPLICATIONS, REPLICATIONS);
        struct interval_range p99 = interval_median(p99s + e * REPLICATIONS, REPLICATIONS);
        mean_covered += fabs(mean.mean - theory) <= mean.half;
        median_covered += p99.low <= middle && middle <= p99.high;
        width += mean.half / theory / experiments;
    }
    printf("half width of a mean: %.1f %% of it\n", 100 * width);
    expect_coverage("mean over replications, Student", mean_covered, experiments, 0.93, 0.97);
    /* Ranks 2 and 9 of 10 hold the median in 1 − 22/1024 = 97.9 %. */
    expect_coverage("median of p99 over replications, order statistics", median_covered,
                    experiments, 0.96, 0.995);
    free(means);
    free(p99s);
}
END_TEST

/* Draw i of experiment e, uniform. */
static double uniform(uint32_t e, size_t i)
{
    return rng_unit(rng_draw(rng_key(1, e, RNG_TEST, 0), 0, i).a);
}

/* Independent values, of any distribution: uniform ones say it all. */
START_TEST(quantile_of_independent_values)
{
    enum { VALUES = 2000 };
    static const double quantiles[] = {0.5, 0.99};
    for (int q = 0; q < 2; q++) {
        int covered = 0;
        for (uint32_t e = 0; e < EXPERIMENTS; e++) {
            double values[VALUES];
            for (size_t i = 0; i < VALUES; i++)
                values[i] = uniform(e, i);
            qsort(values, VALUES, sizeof *values, by_value);
            uint64_t low, high;
            ck_assert(interval_ranks(VALUES, quantiles[q], &low, &high));
            covered += values[low - 1] <= quantiles[q] && quantiles[q] <= values[high - 1];
        }
        expect_coverage(q == 0 ? "p50 of 2,000 independent values, order statistics"
                               : "p99 of 2,000 independent values, order statistics",
                        covered, EXPERIMENTS, 0.93, 0.98);
    }
}
END_TEST

/* A series with correlation 0.5 between neighbours and mean 0: the batch means know its error.
 * Where batches are found to be correlated there is no interval. */
START_TEST(batches_of_a_correlated_series)
{
    enum { VALUES = 400 };
    int covered = 0, given = 0;
    for (uint32_t e = 0; e < EXPERIMENTS; e++) {
        double values[VALUES], value = 0;
        for (size_t i = 0; i < VALUES + 50; i++) { /* the first 50 are not kept */
            value = 0.5 * value + uniform(e, i) - 0.5;
            values[i < 50 ? 0 : i - 50] = value;
        }
        struct interval i = interval_batches(values, VALUES);
        if (isnan(i.half))
            continue;
        given++;
        covered += fabs(i.mean) <= i.half;
    }
    ck_assert_int_ge(given, EXPERIMENTS * 9 / 10);
    expect_coverage("mean of a correlated series, batch means", covered, given, 0.92, 0.97);
}
END_TEST

/* Two routers over two replicas at 70 % load, under the same arrivals and lengths: the interval of
 * their paired difference is narrower than the one that takes them for independent, in every one of
 * 20 fixed sets of replications. */
START_TEST(common_random_numbers_pay)
{
    struct queue_case one = mm1, other = mm1;
    one.rate = other.rate = "14 /s";
    one.replicas = other.replicas = 2;
    other.router = "round_robin";
    double least = INFINITY, sum = 0;
    int sets = SETS / (queue_scale() > 1 ? 4 : 1);
    for (int set = 0; set < sets; set++) {
        double a[REPLICATIONS], b[REPLICATIONS];
        for (int r = 0; r < REPLICATIONS; r++) {
            struct queue_sample s;
            queue_simulate(&one, (uint32_t)(set * REPLICATIONS + r), REQUESTS, &s);
            a[r] = s.time_mean_s;
            queue_simulate(&other, (uint32_t)(set * REPLICATIONS + r), REQUESTS, &s);
            b[r] = s.time_mean_s;
        }
        struct interval_pair pair = interval_paired(a, b, REPLICATIONS);
        double gain = interval_pair_gain(&pair);
        least = fmin(least, gain);
        sum += gain / sets;
        ck_assert_msg(gain > 1, "set %d: %g", set, gain);
    }
    printf("least_loaded and round_robin, unpaired / paired half width: %.2f on average, %.2f at "
           "least, of %d sets\n",
           sum, least, sets);
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("coverage");
    tcase_set_timeout(tcase, 300);
    tcase_add_test(tcase, replications_of_mm1);
    tcase_add_test(tcase, quantile_of_independent_values);
    tcase_add_test(tcase, batches_of_a_correlated_series);
    tcase_add_test(tcase, common_random_numbers_pay);
    Suite *suite = suite_create("coverage");
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
