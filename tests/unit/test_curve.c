/* Rate curves: published shape, exact integrals, and the hourly GPU needs of the capstone day. */
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "sim/base/time.h"
#include "sim/workload/curve.h"
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

/* Only what curve_init reads of a class's config: its curve. */
static struct curve *curve_make(const char *spec)
{
    struct traffic_config *config = traffic_make(&arena, spec);
    const struct field *f = config->arrivals.type->fields;
    while (f->kind != FIELD_VARIANT)
        f++;
    struct site site = {.errors = &errors};
    struct curve *curve = arena_alloc(&arena, sizeof *curve);
    if (!curve_init(curve, (void *)((char *)config->arrivals.config + f->offset), &site))
        return NULL;
    return curve;
}

static struct curve *evening(double factor)
{
    return curve_make(arena_printf(&arena,
                                   "arrivals=poisson; arrivals.curve=evening_peak; "
                                   "arrivals.curve.peak_factor=%.17g",
                                   factor));
}

static int need(const struct curve *curve, int hour, double scale)
{
    return (int)ceil(scale * curve_value(curve, hour * PS_PER_HOUR) - 1e-9);
}

static int need_sum(double factor, double scale)
{
    struct curve *curve = evening(factor);
    int sum = 0;
    for (int hour = 0; hour < 24; hour++)
        sum += need(curve, hour, scale);
    return sum;
}

START_TEST(capstone_hours)
{
    static const int listed[24] = {102, 62, 39, 28, 24,  23,  23,  23,  23,  23,  23,  23,
                                   24,  28, 39, 62, 102, 156, 213, 257, 273, 257, 213, 156};
    struct curve *curve = evening(3);
    for (int hour = 0; hour < 24; hour++)
        ck_assert_int_eq(need(curve, hour, 90.93915), listed[hour]);
    ck_assert_int_eq(need_sum(3, 90.93915), 2196);
    ck_assert_double_eq(curve_value(curve, 20 * PS_PER_HOUR), 3);
}
END_TEST

/* The same formula with other assumptions: replicas per mean rate from users, outputs, utilisation
 * and prefill speed. */
START_TEST(capstone_variants)
{
    double rate = 15e6 / 86400;
    double per = 1500.0 / 15000 + 400.0 / 1500;
    ck_assert_int_eq(need_sum(3, rate * per / 0.7), 2196);
    ck_assert_int_eq(need_sum(3, 2 * rate * per / 0.7), 4375);
    ck_assert_int_eq(need_sum(3, rate * (0.1 + 800.0 / 1500) / 0.7), 3781);
    ck_assert_int_eq(need_sum(3, rate * per / 0.85), 1806);
    ck_assert_int_eq(need_sum(3, rate * (1500.0 / 7000 + 400.0 / 1500) / 0.7), 2876);
    ck_assert_int_eq(need_sum(2, rate * per / 0.7), 2195);
}
END_TEST

START_TEST(power_grows_with_the_peak)
{
    static const struct {
        double factor;
        unsigned power;
    } cases[] = {{1, 4}, {3, 4}, {3.65, 4}, {3.66, 5}, {4.06, 5}, {4.07, 6}, {4.43, 6}, {4.44, 7}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct curve *curve = evening(cases[i].factor);
        ck_assert_uint_eq(curve->power, cases[i].power);
        ck_assert_double_eq_tol(curve_value(curve, 20 * PS_PER_HOUR), cases[i].factor, 1e-11);
    }
}
END_TEST

/* Simpson's rule on f itself, against the closed form at the knots. */
START_TEST(integral_is_exact)
{
    static const double factors[] = {1, 2, 3, 3.65, 10, 100};
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++) {
        struct curve *curve = evening(factors[i]);
        double sum = 0;
        for (int k = 0; k < CURVE_SEGMENTS; k++) {
            int64_t at = k * CURVE_SEGMENT_PS;
            double share =
                (curve_value(curve, at) + 4 * curve_value(curve, at + CURVE_SEGMENT_PS / 2) +
                 curve_value(curve, at + CURVE_SEGMENT_PS)) /
                6 / CURVE_SEGMENTS;
            sum += share;
            ck_assert_double_eq_tol(curve->knots[k + 1], sum, factors[i] > 10 ? 1e-6 : 1e-9);
            ck_assert(curve->lean[k] >= 0 && curve->lean[k] <= 2);
            ck_assert(curve->knots[k + 1] >= curve->knots[k]);
        }
        ck_assert_double_eq(curve_integral(curve, 3 * CURVE_DAY_PS), 3);
    }
}
END_TEST

/* The piecewise form follows f within a minute as well. */
START_TEST(segments_follow_the_curve)
{
    struct curve *curve = evening(3);
    for (int64_t at = 0; at < CURVE_DAY_PS; at += 37 * PS_PER_SECOND) {
        double step = 5 * (double)PS_PER_SECOND / (double)CURVE_DAY_PS;
        double rate =
            (curve_integral(curve, at + 5 * PS_PER_SECOND) - curve_integral(curve, at)) / step;
        ck_assert_double_eq_tol(rate, curve_value(curve, at + 5 * PS_PER_SECOND / 2), 2e-5);
    }
}
END_TEST

START_TEST(peak_hour_moves)
{
    struct curve *curve = curve_make("arrivals=poisson; arrivals.curve=evening_peak; "
                                     "arrivals.curve.peak_hour=9.5");
    ck_assert_double_eq(curve_value(curve, 19 * PS_PER_HOUR / 2), 3);
    ck_assert_double_eq_tol(curve_value(curve, 9 * PS_PER_HOUR),
                            curve_value(curve, 10 * PS_PER_HOUR), 1e-12);
}
END_TEST

START_TEST(hourly_is_normalised)
{
    struct curve *curve = curve_make("arrivals=constant; arrivals.curve=hourly; "
                                     "arrivals.curve.values=10,20,30,10,20,30,10,20,30,10,20,30,"
                                     "10,20,30,10,20,30,10,20,30,10,20,30");
    ck_assert_double_eq(curve_value(curve, 0), 0.5);
    ck_assert_double_eq(curve_value(curve, PS_PER_HOUR - 1), 0.5);
    ck_assert_double_eq(curve_value(curve, PS_PER_HOUR), 1);
    ck_assert_double_eq_tol(curve_integral(curve, 2 * PS_PER_HOUR), 1.5 / 24, 1e-12);
    ck_assert_double_eq_tol(curve_integral(curve, 5 * PS_PER_HOUR / 2), 2.25 / 24, 1e-12);
    ck_assert_double_eq(curve_integral(curve, CURVE_DAY_PS), 1);
}
END_TEST

START_TEST(hourly_refuses)
{
    ck_assert_ptr_null(curve_make("arrivals=poisson; arrivals.curve=hourly; "
                                  "arrivals.curve.values=1,2,3"));
    traffic_expect_error(&errors, 0, 0, "24 values, not 3");
    ck_assert_ptr_null(curve_make("arrivals=poisson; arrivals.curve=hourly; "
                                  "arrivals.curve.values=0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,"
                                  "0,0,0,0"));
    traffic_expect_error(&errors, 0, 0, "all 24 values are 0");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("curve");
    TCase *c = tcase_create("curve");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, capstone_hours);
    tcase_add_test(c, capstone_variants);
    tcase_add_test(c, power_grows_with_the_peak);
    tcase_add_test(c, integral_is_exact);
    tcase_add_test(c, segments_follow_the_curve);
    tcase_add_test(c, peak_hour_moves);
    tcase_add_test(c, hourly_is_normalised);
    tcase_add_test(c, hourly_refuses);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
