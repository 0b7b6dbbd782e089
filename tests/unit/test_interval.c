/* The interval of a mean, against a case worked by hand: 1, 2, 3 have mean 2, deviation 1, and
 * t(0.975, 2) = 4.302653: 2.484138. */
#include <math.h>

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

int main(void)
{
    const TTest *const tests[] = {three_values, too_few, NULL};
    return suite_run("interval", tests, 10);
}
