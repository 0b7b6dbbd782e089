/* MSER: a series worked by hand, transients of known length, noise, and series that do not settle.
 */
#include <math.h>
#include <stdlib.h>

#include "sim/metrics/warmup_mser.h"
#include "tests/unit/suite_run.h"

enum { LENGTH = 400 };

/* Uniform in (-1, 1), the same everywhere: a linear congruential generator. */
static double noise(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (double)(*state >> 8) / (1 << 23) - 1;
}

/* The rule as it is stated, over values themselves: batches of one. */
static size_t least_error(const double *values, size_t n)
{
    double least = INFINITY;
    size_t best = 0;
    for (size_t d = 0; d + 5 <= n; d++) {
        double mean = 0, squares = 0, rest = (double)(n - d);
        for (size_t i = d; i < n; i++)
            mean += values[i] / rest;
        for (size_t i = d; i < n; i++)
            squares += (values[i] - mean) * (values[i] - mean);
        if (squares / (rest * rest) < least) {
            least = squares / (rest * rest);
            best = d;
        }
    }
    return best;
}

START_TEST(by_definition)
{
    double values[60];
    for (uint32_t seed = 1; seed <= 200; seed++) {
        uint32_t state = seed * 7919;
        for (size_t i = 0; i < 60; i++)
            values[i] = noise(&state) + (i < seed % 30 ? 3.0 : 0.0);
        struct warmup_mser w = warmup_mser_find(values, 60);
        ck_assert(w.known);
        ck_assert_uint_eq(w.batch, 1);
        ck_assert_uint_eq(w.drop, least_error(values, 60));
    }
}
END_TEST

START_TEST(a_transient_of_known_length)
{
    double values[LENGTH];
    size_t late = 0;
    for (uint32_t seed = 1; seed <= 50; seed++) {
        uint32_t state = seed;
        for (size_t i = 0; i < LENGTH; i++)
            values[i] = 10 + noise(&state) - (i < 60 ? 8.0 * (60 - (double)i) / 60 : 0);
        struct warmup_mser w = warmup_mser_find(values, LENGTH);
        ck_assert_uint_eq(w.batch, 5);
        ck_assert(w.settled && w.differs);
        ck_assert_msg(w.drop >= 40, "seed %u: %zu", seed, w.drop);
        late += w.drop > 100;
        ck_assert_uint_eq(w.drop % 5, 0);
    }
    ck_assert_msg(late <= 5, "%zu of 50 drop much more", late); /* the rule is known to, at times */
}
END_TEST

/* Of 1,000 series without a transient few are said to have one, correlated ones too. */
START_TEST(noise_is_no_transient)
{
    static const double correlation[] = {0, 0.5, 0.9};
    double values[LENGTH];
    for (size_t c = 0; c < 3; c++) {
        unsigned alarms = 0;
        for (uint32_t seed = 1; seed <= 1000; seed++) {
            uint32_t state = seed * 31;
            double value = 0;
            for (size_t i = 0; i < 100; i++) /* to where it is stationary */
                value = correlation[c] * value + noise(&state);
            for (size_t i = 0; i < LENGTH; i++)
                values[i] = value = correlation[c] * value + noise(&state);
            alarms += warmup_mser_find(values, LENGTH).differs;
        }
        printf("correlation %.1f: %u false alarms of 1,000\n", correlation[c], alarms);
        ck_assert_msg(alarms <= 10, "correlation %g: %u alarms", correlation[c], alarms);
    }
}
END_TEST

START_TEST(a_series_that_grows_does_not_settle)
{
    double values[LENGTH];
    uint32_t state = 5;
    for (size_t i = 0; i < LENGTH; i++)
        values[i] = 0.1 * (double)i + noise(&state);
    struct warmup_mser w = warmup_mser_find(values, LENGTH);
    ck_assert(w.known && !w.settled && w.differs);
}
END_TEST

START_TEST(constants_and_short_series)
{
    double values[LENGTH];
    for (size_t i = 0; i < LENGTH; i++)
        values[i] = 0.1;
    struct warmup_mser w = warmup_mser_find(values, LENGTH);
    ck_assert(w.known && w.settled && !w.differs);
    ck_assert_uint_eq(w.drop, 0);
    ck_assert(!warmup_mser_find(values, 19).known);
    ck_assert(!warmup_mser_find(values, 0).known);
    ck_assert_uint_eq(warmup_mser_find(values, 99).batch, 1);
    ck_assert_uint_eq(warmup_mser_find(values, 100).batch, 5);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {by_definition,
                                  a_transient_of_known_length,
                                  noise_is_no_transient,
                                  a_series_that_grows_does_not_settle,
                                  constants_and_short_series,
                                  NULL};
    return suite_run("warmup_mser", tests, 10);
}
