/* Running moments against two-pass sums in long double, merging, Student intervals. */
#include <math.h>

#include "sim/base/moments.h"
#include "sim/base/rng.h"
#include "tests/unit/suite_run.h"

enum { N = 5000 };

/* An offset of 10⁹, whose last place is 1.2e-7, where the sum of squares would lose every digit of
 * the variance. */
static double value_at(uint64_t i)
{
    return 1e9 + rng_unit(rng_draw(1, 0, i).a);
}

START_TEST(against_two_passes)
{
    struct moments m;
    moments_init(&m);
    long double sum = 0, squares = 0, min = INFINITY, max = -INFINITY;
    for (uint64_t i = 0; i < N; i++) {
        double value = value_at(i);
        moments_add(&m, value);
        sum += value;
        min = value < min ? value : min;
        max = value > max ? value : max;
    }
    for (uint64_t i = 0; i < N; i++) {
        squares += (value_at(i) - sum / N) * (value_at(i) - sum / N);
    }
    ck_assert_uint_eq(m.count, N);
    ck_assert_double_eq_tol(m.mean, (double)(sum / N), 2e-5);
    ck_assert_double_eq_tol(moments_variance(&m), (double)(squares / (N - 1)), 1e-6);
    ck_assert(m.min == (double)min);
    ck_assert(m.max == (double)max);
}
END_TEST

START_TEST(merging_equals_adding)
{
    struct moments whole, parts[7], merged;
    moments_init(&whole);
    moments_init(&merged);
    for (int i = 0; i < 7; i++) {
        moments_init(&parts[i]);
    }
    for (uint64_t i = 0; i < N; i++) {
        moments_add(&whole, value_at(i));
        moments_add(&parts[i < 3 ? i : 3 + i % 3], value_at(i)); /* the last one stays empty */
    }
    for (int i = 0; i < 7; i++) {
        moments_merge(&merged, &parts[i]);
    }
    ck_assert_uint_eq(merged.count, whole.count);
    ck_assert_double_eq_tol(merged.mean, whole.mean, 2e-5);
    ck_assert_double_eq_tol(moments_variance(&merged), moments_variance(&whole), 1e-6);
    ck_assert(merged.min == whole.min && merged.max == whole.max);
}
END_TEST

START_TEST(few_values_are_undefined)
{
    struct moments m;
    moments_init(&m);
    ck_assert(isnan(moments_variance(&m)));
    ck_assert(isnan(moments_interval(&m, 0.99).mid));
    ck_assert_double_gt(m.min, m.max);
    moments_add(&m, 3);
    ck_assert(isnan(moments_variance(&m)));
    struct moments_interval one = moments_interval(&m, 0.99);
    ck_assert(isnan(one.low) && one.mid == 3 && isnan(one.high));
    moments_add(&m, 3);
    ck_assert(moments_variance(&m) == 0);
    struct moments_interval two = moments_interval(&m, 0.99);
    ck_assert(two.low == 3 && two.high == 3);
}
END_TEST

START_TEST(student_interval)
{
    /* 1 … 20: mean 10.5, variance 35; t(0.995, 19) = 2.860935 and t(0.975, 19) = 2.093024 from
     * printed tables. */
    struct moments m;
    moments_init(&m);
    for (int i = 1; i <= 20; i++) {
        moments_add(&m, i);
    }
    ck_assert_double_eq_tol(moments_variance(&m), 35, 1e-12);
    double error = sqrt(35.0 / 20);
    struct moments_interval wide = moments_interval(&m, 0.99), narrow = moments_interval(&m, 0.95);
    ck_assert_double_eq_tol(wide.high - 10.5, 2.860935 * error, 1e-5);
    ck_assert_double_eq_tol(10.5 - wide.low, 2.860935 * error, 1e-5);
    ck_assert_double_eq_tol(narrow.high - 10.5, 2.093024 * error, 1e-5);
    ck_assert_double_eq_tol(wide.mid, 10.5, 1e-12);
}
END_TEST

/* The interval holds the true mean as often as it says. */
START_TEST(coverage)
{
    enum { ROUNDS = 4000 };
    int held = 0;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        struct moments m;
        moments_init(&m);
        for (uint64_t i = 0; i < 10; i++) {
            double x = 0; /* a sum of twelve: close to normal */
            for (uint64_t j = 0; j < 6; j++) {
                struct rng_pair bits = rng_draw(2, round, i * 6 + j);
                x += rng_unit(bits.a) + rng_unit(bits.b);
            }
            moments_add(&m, x);
        }
        struct moments_interval interval = moments_interval(&m, 0.9);
        held += interval.low <= 6 && 6 <= interval.high;
    }
    ck_assert_double_lt(fabs(held / (double)ROUNDS - 0.9), 5 * sqrt(0.09 / ROUNDS));
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {against_two_passes,
                                  merging_equals_adding,
                                  few_values_are_undefined,
                                  student_interval,
                                  coverage,
                                  NULL};
    return suite_run("moments", tests, 30);
}
