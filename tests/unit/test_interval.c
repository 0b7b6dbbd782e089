/* Intervals against cases worked by hand and tables: 1, 2, 3 have mean 2, deviation 1, and
 * t(0.975, 2) = 4.302653: 2.484138. Coverage is in tests/theory/test_coverage.c. */
#include <math.h>

#include <gsl/gsl_cdf.h>

#include "sim/run/interval.h"
#include "tests/unit/suite_run.h"

START_TEST(three_values)
{
    static const double values[] = {1, 2, 3};
    struct interval i = interval_of(values, 3);
    ck_assert_double_eq(i.mean, 2);
    ck_assert_double_eq_tol(i.half, 2.4841377, 1e-6);
}
END_TEST

START_TEST(too_few)
{
    static const double values[] = {7};
    ck_assert_double_eq(interval_of(values, 1).mean, 7);
    ck_assert(isnan(interval_of(values, 1).half));
    ck_assert(isnan(interval_of(values, 0).mean));
}
END_TEST

/* Conover's tables: the median of 6 lies between the extremes (98.4 % ), of 8 too (99.2 %), of 9
 * between the second and the eighth (96.1 %), of 20 between the sixth and the fifteenth (95.9 %).
 */
START_TEST(ranks_of_a_median)
{
    static const uint64_t table[][3] = {{6, 1, 6}, {8, 1, 8}, {9, 2, 8}, {20, 6, 15}};
    uint64_t low, high;
    for (size_t i = 0; i < 4; i++) {
        ck_assert(interval_ranks(table[i][0], 0.5, &low, &high));
        ck_assert_uint_eq(low, table[i][1]);
        ck_assert_uint_eq(high, table[i][2]);
    }
    ck_assert(!interval_ranks(5, 0.5, &low, &high));
    ck_assert(!interval_ranks(0, 0.5, &low, &high));
    ck_assert(!interval_ranks(300, 0.99, &low, &high)); /* 0.99^300 = 4.9 % above 2.5 % */
    ck_assert(interval_ranks(368, 0.99, &low, &high));  /* 0.99^368 = 2.48 % */
    ck_assert_uint_eq(high, 368);
}
END_TEST

/* Each pair of ranks covers 95 %, and no rank nearer does on its side. */
START_TEST(ranks_are_the_nearest)
{
    static const uint64_t counts[] = {6, 7, 30, 100, 999, 5000, 1000000};
    static const double quantiles[] = {0.1, 0.5, 0.9, 0.99};
    for (size_t c = 0; c < 7; c++) {
        for (size_t k = 0; k < 4; k++) {
            unsigned n = (unsigned)counts[c];
            uint64_t low, high;
            if (!interval_ranks(n, quantiles[k], &low, &high))
                continue;
            double below = gsl_cdf_binomial_P((unsigned)low - 1, quantiles[k], n);
            double above = gsl_cdf_binomial_Q((unsigned)high - 1, quantiles[k], n);
            ck_assert_double_le(below, 0.025 + 1e-9);
            ck_assert_double_le(above, 0.025 + 1e-9);
            ck_assert_double_gt(gsl_cdf_binomial_P((unsigned)low, quantiles[k], n), 0.025);
            ck_assert_double_gt(gsl_cdf_binomial_Q((unsigned)high - 2, quantiles[k], n), 0.025);
        }
    }
}
END_TEST

/* Beyond a million values the normal limit takes over without a step. */
START_TEST(ranks_of_many)
{
    uint64_t low, high, next_low, next_high;
    ck_assert(interval_ranks(1000000, 0.99, &low, &high));
    ck_assert(interval_ranks(1000001, 0.99, &next_low, &next_high));
    ck_assert_double_le(fabs((double)next_low - (double)low), 2);
    ck_assert_double_le(fabs((double)next_high - (double)high), 2);
    ck_assert(interval_ranks(6000000000, 0.99, &low, &high));
    ck_assert_double_eq_tol((double)(high - low), 2 * 1.959964 * sqrt(6e9 * 0.0099), 4);
}
END_TEST

START_TEST(a_median)
{
    static const double values[] = {5, 1, 9, 3, 7, 2, 8, 4, 6};
    struct interval_range range = interval_median(values, 9);
    ck_assert_double_eq(range.mid, 5);
    ck_assert_double_eq(range.low, 2);
    ck_assert_double_eq(range.high, 8);
    range = interval_median(values, 4);
    ck_assert_double_eq(range.mid, 4);
    ck_assert(isnan(range.low) && isnan(range.high));
    static const double with_nan[] = {1, NAN, 3};
    ck_assert(isnan(interval_median(with_nan, 3).mid));
    ck_assert(isnan(interval_of(with_nan, 3).mean));
}
END_TEST

/* b − a is 1, 2, 3: 2 ± 2.484138. Of a and b apart: variances 100 and 121, errors 33.33 and 40.33;
 * (73.67)² · 2 / (33.33² + 40.33²) = 3.9643 degrees; t = 2.78587: 23.911. */
START_TEST(a_pair)
{
    static const double a[] = {0, 10, 20}, b[] = {1, 12, 23};
    struct interval_pair pair = interval_paired(a, b, 3);
    ck_assert_double_eq_tol(pair.mean, 2, 1e-12);
    ck_assert_double_eq_tol(pair.half, 2.4841377, 1e-6);
    double e = 100.0 / 3 + 121.0 / 3;
    double degrees = e * e * 2 / (100.0 * 100 / 9 + 121.0 * 121 / 9);
    ck_assert_double_eq_tol(degrees, 3.9643, 1e-4);
    ck_assert_double_eq_tol(pair.unpaired, gsl_cdf_tdist_Pinv(0.975, degrees) * sqrt(e), 1e-9);
    ck_assert_double_eq_tol(interval_pair_gain(&pair), pair.unpaired / pair.half, 1e-12);
    pair = interval_paired(a, a, 3);
    ck_assert_double_eq(pair.mean, 0);
    ck_assert_double_eq(pair.half, 0);
    ck_assert(isnan(interval_pair_gain(&pair)));
}
END_TEST

START_TEST(batches)
{
    double values[100];
    for (size_t i = 0; i < 100; i++)
        values[i] = i % 2 ? 1.5 : 2.5;
    ck_assert_double_eq_tol(interval_batches(values, 100).mean, 2, 0.1);
    ck_assert(!isnan(interval_batches(values, 100).half));
    ck_assert(isnan(interval_batches(values, 9).half));
    ck_assert(!isnan(interval_batches(values, 10).half));
    for (size_t i = 0; i < 100; i++)
        values[i] = (double)i; /* batches that follow from one another say nothing of an error */
    ck_assert(isnan(interval_batches(values, 100).half));
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {three_values,
                                  too_few,
                                  ranks_of_a_median,
                                  ranks_are_the_nearest,
                                  ranks_of_many,
                                  a_median,
                                  a_pair,
                                  batches,
                                  NULL};
    return suite_run("interval", tests, 10);
}
