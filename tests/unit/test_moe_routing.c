/* Routing without replacement, popularity and its drift, exact counts. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "models/moe_popularity.h"
#include "models/moe_routing.h"
#include "models/moe_sample.h"
#include "sim/base/rng.h"

enum { TOKENS = 40000 };

static struct moe_popularity_config config_of(enum moe_popularity_kind kind, double parameter,
                                              size_t experts)
{
    return (struct moe_popularity_config){.kind = kind,
                                          .parameter = parameter,
                                          .experts = experts,
                                          .groups = 1,
                                          .classes = 1,
                                          .class_correlation = 1,
                                          .step_correlation = 1,
                                          .seed = 5};
}

static const struct {
    enum moe_popularity_kind kind;
    double parameter;
    struct moe_routing routing;
} cases[] = {{MOE_LOGNORMAL, 1.15, {256, 8, 1, 1}}, {MOE_ZIPF, 1, {256, 8, 1, 1}},
             {MOE_ZIPF, 3, {16, 4, 1, 1}},          {MOE_LOGNORMAL, 0.7, {256, 8, 8, 4}},
             {MOE_DIRICHLET, 0.2, {128, 1, 1, 1}},  {MOE_UNIFORM, 0, {64, 6, 8, 3}},
             {MOE_LOGNORMAL, 2, {8, 8, 1, 1}},      {MOE_LOGNORMAL, 1, {896, 16, 1, 1}}};

/* The shares against tokens drawn one by one: χ² over the experts, each a binomial count. */
START_TEST(test_shares)
{
    const struct moe_routing *routing = &cases[_i].routing;
    struct moe_popularity_config config =
        config_of(cases[_i].kind, cases[_i].parameter, (size_t)routing->experts);
    struct moe_popularity popularity;
    moe_popularity_init(&popularity, &config);
    const double *weight = moe_popularity_of(&popularity, 0, 0);
    double share[1024], sum = 0;
    moe_routing_shares(routing, weight, share);
    for (int64_t e = 0; e < routing->experts; e++) {
        ck_assert(share[e] > 0 && share[e] <= 1);
        sum += share[e];
    }
    ck_assert_double_eq_tol(sum, (double)routing->top_k, 1e-6);
    double count[1024] = {0};
    int repeats = 0;
    struct moe_routing_draw router;
    moe_routing_begin(&router, routing, weight, rng_key(3, 0, RNG_TEST, 0));
    for (uint64_t t = 0; t < TOKENS; t++) {
        int32_t experts[32];
        moe_routing_token(&router, t, experts);
        for (int64_t i = 0; i < routing->top_k; i++) {
            for (int64_t j = 0; j < i; j++) {
                repeats += experts[i] == experts[j];
            }
            count[experts[i]]++;
        }
    }
    moe_routing_end(&router);
    ck_assert_int_eq(repeats, 0);
    double chi = 0, cells = 0;
    for (int64_t e = 0; e < routing->experts; e++) {
        double expected = TOKENS * share[e], variance = expected * (1 - share[e]);
        if (variance > 5) {
            chi += (count[e] - expected) * (count[e] - expected) / variance;
            cells++;
        } else {
            ck_assert_double_eq_tol(count[e], expected, 20);
        }
    }
    printf("case %d: chi2 %.1f of %.0f\n", _i, chi, cells);
    ck_assert_double_lt(chi, cells + 4 * sqrt(2 * cells) + 4);
    moe_popularity_free(&popularity);
}
END_TEST

/* One expert per token: its share is its popularity. All experts: each share is 1. */
START_TEST(test_shares_at_the_ends)
{
    static const double weight[] = {1, 2, 3, 4};
    double share[4];
    struct moe_routing one = {4, 1, 1, 1}, all = {4, 4, 1, 1};
    moe_routing_shares(&one, weight, share);
    for (int e = 0; e < 4; e++) {
        ck_assert_double_eq_tol(share[e], weight[e] / 10, 1e-4);
    }
    moe_routing_shares(&all, weight, share);
    for (int e = 0; e < 4; e++) {
        ck_assert_double_eq(share[e], 1);
    }
}
END_TEST

static double correlation(const double *a, const double *b, size_t n)
{
    double sa = 0, sb = 0, aa = 0, bb = 0, ab = 0, m = (double)n;
    for (size_t i = 0; i < n; i++) {
        sa += a[i];
        sb += b[i];
        aa += a[i] * a[i];
        bb += b[i] * b[i];
        ab += a[i] * b[i];
    }
    return (ab / m - sa / m * sb / m) /
           sqrt((aa / m - sa / m * sa / m) * (bb / m - sb / m * sb / m));
}

/* Scores correlate as stated after any number of steps and stay standard normal; a Zipf keeps its
 * weights while they change hands. */
START_TEST(test_drift)
{
    struct moe_popularity_config config = config_of(MOE_ZIPF, 1, 4096);
    config.step_correlation = exp(-0.25); /* 4 epochs per drift time */
    struct moe_popularity p;
    moe_popularity_init(&p, &config);
    static double first[4096];
    double hottest = 0, variance = 0;
    for (size_t e = 0; e < 4096; e++) {
        first[e] = p.score[e];
    }
    for (int step = 0; step < 4; step++) {
        moe_popularity_step(&p);
    }
    for (size_t e = 0; e < 4096; e++) {
        hottest = fmax(hottest, moe_popularity_of(&p, 0, 0)[e]);
        variance += p.score[e] * p.score[e] / 4096;
    }
    ck_assert_double_eq_tol(correlation(first, p.score, 4096), exp(-1), 0.05);
    ck_assert_double_eq_tol(variance, 1, 0.1);
    double harmonic = 0;
    for (int r = 1; r <= 4096; r++) {
        harmonic += 1.0 / r;
    }
    ck_assert_double_eq_tol(hottest, 1 / harmonic, 1e-9);
    moe_popularity_free(&p);
}
END_TEST

/* Classes share as much of their scores as stated; at 100 % they are alike. */
START_TEST(test_classes)
{
    struct moe_popularity_config config = config_of(MOE_LOGNORMAL, 1, 4096);
    config.classes = 2;
    config.class_correlation = 0.6;
    struct moe_popularity p;
    moe_popularity_init(&p, &config);
    static double log_weight[2][4096];
    for (size_t c = 0; c < 2; c++) {
        for (size_t e = 0; e < 4096; e++) {
            log_weight[c][e] = log(moe_popularity_of(&p, c, 0)[e]);
        }
    }
    ck_assert_double_eq_tol(correlation(log_weight[0], log_weight[1], 4096), 0.6, 0.04);
    moe_popularity_free(&p);
}
END_TEST

/* A table is followed expert by expert, and another seed does not change that. */
START_TEST(test_table)
{
    static const double values[] = {3, 1, 0, 4, 2, 5};
    struct moe_popularity_config config = config_of(MOE_TABLE, 0, 6);
    config.table = values;
    config.table_count = 6;
    for (config.seed = 1; config.seed < 5; config.seed++) {
        struct moe_popularity p;
        moe_popularity_init(&p, &config);
        for (size_t e = 0; e < 6; e++) {
            ck_assert_double_eq_tol(moe_popularity_of(&p, 0, 0)[e], values[e] / 15, 1e-8);
        }
        moe_popularity_free(&p);
    }
}
END_TEST

/* Mean, variance and a coarse χ² of binomial counts in every branch; multinomials add up. */
START_TEST(test_counts)
{
    static const struct {
        int64_t n;
        double p;
    } draws[] = {{1, 0.3},     {20, 0.1},     {20, 0.9},          {100, 0.5},
                 {1000, 0.02}, {100000, 0.3}, {1000000000, 0.004}};
    enum { ROUNDS = 20000 };
    struct moe_stream stream = {.key = rng_key(9, 0, RNG_TEST, 0), .entity = 1};
    for (size_t i = 0; i < sizeof draws / sizeof *draws; i++) {
        double n = (double)draws[i].n, p = draws[i].p, sum = 0, squares = 0, low = 0;
        double mean = n * p, sd = sqrt(n * p * (1 - p)), least = 0, most = 0;
        for (int r = 0; r < ROUNDS; r++) {
            int64_t k = moe_sample_binomial(&stream, draws[i].n, p);
            least = fmin(least, (double)k);
            most = fmax(most, (double)k);
            double d = (double)k - mean;
            sum += d;
            squares += d * d;
            low += d < -sd;
        }
        ck_assert(least >= 0 && most <= n);
        ck_assert_double_lt(fabs(sum / ROUNDS), 4.5 * sd / sqrt(ROUNDS));
        ck_assert_double_lt(fabs(squares / ROUNDS / (sd * sd) - 1), 4.5 * sqrt(3.0 / ROUNDS));
        if (n * p * (1 - p) > 1000) {
            ck_assert_double_eq_tol(low / ROUNDS, 0.1587, 0.012);
        }
    }
    double weight[] = {0, 1, 2, 3, 0};
    int64_t counts[5], total = 0;
    moe_sample_multinomial(&stream, 600000, weight, 5, counts);
    for (int i = 0; i < 5; i++) {
        total += counts[i];
        ck_assert_double_eq_tol((double)counts[i], weight[i] * 100000, 1500);
    }
    ck_assert_int_eq(total, 600000);
    ck_assert_int_eq(counts[0], 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("moe_routing");
    TCase *core = tcase_create("core");
    tcase_set_timeout(core, 60);
    tcase_add_loop_test(core, test_shares, 0, (int)(sizeof cases / sizeof *cases));
    tcase_add_test(core, test_shares_at_the_ends);
    tcase_add_test(core, test_drift);
    tcase_add_test(core, test_classes);
    tcase_add_test(core, test_table);
    tcase_add_test(core, test_counts);
    suite_add_tcase(suite, core);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
