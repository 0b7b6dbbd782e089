/* Length distributions: means of what is drawn, against closed forms, sums and samples. */
#include <check.h>
#include <math.h>

#include <gsl/gsl_cdf.h>

#include "sim/base/rng.h"
#include "sim/workload/lengths.h"
#include "tests/unit/suite_run.h"
#include "tests/unit/support_traffic.h"

enum { SAMPLES = 200000 };

struct bench {
    struct arena arena;
    struct errors errors;
};

static void bench_init(struct bench *b)
{
    arena_init(&b->arena);
    errors_init(&b->errors);
}

static void bench_free(struct bench *b)
{
    errors_free(&b->errors);
    arena_free(&b->arena);
}

static bool make(struct bench *b, const char *spec, struct lengths *lengths)
{
    struct traffic_config *config = traffic_make(&b->arena, spec);
    struct site site = {.errors = &b->errors};
    return lengths_init(lengths, &config->prompt_tokens, 1, &site, "prompt_tokens");
}

struct moments_seen {
    double mean, sigma;
    uint32_t least, most;
};

static struct moments_seen sample(const struct lengths *lengths)
{
    struct moments_seen seen = {.least = UINT32_MAX};
    uint64_t key = rng_key(11, 0, RNG_TEST, 0);
    double sum = 0, squares = 0;
    for (uint64_t i = 0; i < SAMPLES; i++) {
        uint32_t x = lengths_draw(lengths, rng_draw(key, i, 0).a);
        sum += x;
        squares += (double)x * x;
        seen.least = x < seen.least ? x : seen.least;
        seen.most = x > seen.most ? x : seen.most;
    }
    seen.mean = sum / SAMPLES;
    seen.sigma = sqrt(squares / SAMPLES - seen.mean * seen.mean);
    return seen;
}

/* The sample's mean is within 4.5 standard errors of the stated one. */
static struct moments_seen check_mean(const struct lengths *lengths)
{
    struct moments_seen seen = sample(lengths);
    ck_assert_double_eq_tol(seen.mean, lengths->mean, 4.5 * seen.sigma / sqrt(SAMPLES) + 1e-12);
    ck_assert_uint_ge(seen.least, lengths->min);
    ck_assert_uint_le(seen.most, lengths->max);
    return seen;
}

START_TEST(constant)
{
    struct bench b;
    bench_init(&b);
    struct lengths l;
    ck_assert(make(&b, "prompt_tokens=constant; prompt_tokens.value=1500", &l));
    ck_assert_uint_eq(lengths_draw(&l, 0), 1500);
    ck_assert_uint_eq(lengths_draw(&l, UINT64_MAX), 1500);
    ck_assert_double_eq(l.mean, 1500);
    ck_assert(!make(&b, "prompt_tokens=constant; prompt_tokens.value=0", &l));
    traffic_expect_error(&b.errors, 0, 0, "at least 1 token");
    struct site site = {.errors = &b.errors};
    struct traffic_config *config =
        traffic_make(&b.arena, "output_tokens=constant; output_tokens.value=0");
    ck_assert(lengths_init(&l, &config->output_tokens, 0, &site, "output_tokens"));
    ck_assert_uint_eq(lengths_draw(&l, 12345), 0);
    bench_free(&b);
}
END_TEST

START_TEST(exponential)
{
    static const double means[] = {0.5, 1, 20, 1e5};
    struct bench b;
    bench_init(&b);
    struct lengths l;
    for (size_t i = 0; i < sizeof means / sizeof *means; i++) {
        ck_assert(make(
            &b,
            arena_printf(&b.arena, "prompt_tokens=exponential; prompt_tokens.mean=%g", means[i]),
            &l));
        check_mean(&l);
        ck_assert_double_eq_tol(l.mean, 1 / (1 - exp(-1 / means[i])), 1e-10 * l.mean + 1e-9);
    }
    bench_free(&b);
}
END_TEST

/* Mean 100: second moment of the M/G/1 case, and the share of ones. */
START_TEST(geometric)
{
    struct bench b;
    bench_init(&b);
    struct lengths l;
    ck_assert(make(&b, "prompt_tokens=geometric; prompt_tokens.mean=100", &l));
    ck_assert_double_eq(l.mean, 100);
    struct moments_seen seen = check_mean(&l);
    ck_assert_double_eq_tol(seen.sigma * seen.sigma + seen.mean * seen.mean, 19900, 250);
    ck_assert(make(&b, "prompt_tokens=geometric; prompt_tokens.mean=4", &l));
    int counts[4] = {0};
    uint64_t key = rng_key(5, 0, RNG_TEST, 0);
    for (uint64_t i = 0; i < SAMPLES; i++) {
        uint32_t x = lengths_draw(&l, rng_draw(key, i, 0).a);
        counts[x < 4 ? x : 0]++;
    }
    double p[4] = {27.0 / 64, 1.0 / 4, 3.0 / 16, 9.0 / 64}, chi = 0;
    for (int k = 0; k < 4; k++)
        chi += pow(counts[k] - p[k] * SAMPLES, 2) / (p[k] * SAMPLES);
    ck_assert_double_lt(chi, 20);
    ck_assert(make(&b, "prompt_tokens=geometric; prompt_tokens.mean=1", &l));
    ck_assert_uint_eq(sample(&l).most, 1);
    bench_free(&b);
}
END_TEST

/* The plain sum of all terms, with GSL's normal distribution. */
static double mean_by_sum(double mu, double sigma, uint32_t min, uint32_t max)
{
    double mean = min;
    for (uint32_t k = min; k < max; k++) {
        double term = gsl_cdf_ugaussian_Q((log(k) - mu) / sigma);
        mean += term;
        if (k > exp(mu + 10 * sigma))
            break;
    }
    return mean;
}

START_TEST(lognormal_mean_is_the_sum)
{
    static const struct {
        double mu, sigma;
        uint32_t min, max;
    } cases[] = {{5, 1, 1, 1000},     {7, 0.5, 100, 4000}, {0.2, 0.3, 1, 100},
                 {9, 0.01, 1, 20000}, {3, 2, 1, 2000000},  {6, 1.0, 1, LENGTHS_TOKENS_MAX},
                 {10, 0.3, 1, 60000}, {8, 1.5, 50, 51},    {-3, 1, 1, 50}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double got =
            lengths_lognormal_mean(cases[i].mu, cases[i].sigma, cases[i].min, cases[i].max);
        double sum = mean_by_sum(cases[i].mu, cases[i].sigma, cases[i].min, cases[i].max);
        ck_assert_msg(fabs(got - sum) < 1e-9 * sum, "case %zu: %.15g, not %.15g", i, got, sum);
    }
}
END_TEST

START_TEST(lognormal_keeps_its_mean)
{
    static const char *const specs[] = {
        "prompt_tokens.mean=1500; prompt_tokens.sigma=1",
        "prompt_tokens.mean=1500; prompt_tokens.cv=1.5; prompt_tokens.min=16; "
        "prompt_tokens.max=4096",
        "prompt_tokens.mean=3.5; prompt_tokens.sigma=0.8",
        "prompt_tokens.mean=400; prompt_tokens.cv=0.05",
        "prompt_tokens.mean=950; prompt_tokens.sigma=2; prompt_tokens.max=1000",
        "prompt_tokens.mean=30; prompt_tokens.sigma=2; prompt_tokens.min=29",
        "prompt_tokens.mean=64; prompt_tokens.sigma=1; prompt_tokens.min=64; prompt_tokens.max=64",
        "prompt_tokens.mean=100000; prompt_tokens.sigma=0.4; prompt_tokens.max=131072",
    };
    struct bench b;
    bench_init(&b);
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        struct traffic_config *config =
            traffic_make(&b.arena, arena_printf(&b.arena, "prompt_tokens=lognormal; %s", specs[i]));
        struct site site = {.errors = &b.errors};
        struct lengths l;
        ck_assert_msg(lengths_init(&l, &config->prompt_tokens, 1, &site, "prompt_tokens"), "%s",
                      b.errors.count ? b.errors.items[0].message : "");
        ck_assert_double_eq_tol(l.mean, *(const double *)config->prompt_tokens.config,
                                1e-9 * l.mean);
        check_mean(&l);
    }
    bench_free(&b);
}
END_TEST

/* Quantiles of the drawn lengths are those of the log-normal, rounded up. */
START_TEST(lognormal_shape)
{
    struct bench b;
    bench_init(&b);
    struct lengths l;
    ck_assert(
        make(&b, "prompt_tokens=lognormal; prompt_tokens.mean=1000; prompt_tokens.sigma=0.7", &l));
    ck_assert_double_eq_tol(l.a, log(999.5) - 0.245, 1e-4);
    for (int i = 1; i < 100; i++) {
        double u = i / 100.0;
        double exact = exp(l.a + 0.7 * gsl_cdf_ugaussian_Pinv(u));
        ck_assert_double_eq_tol(lengths_draw(&l, (uint64_t)(u * 0x1p64)), exact, 1);
    }
    ck_assert_uint_ge(lengths_draw(&l, 0), 1);
    ck_assert_uint_le(lengths_draw(&l, UINT64_MAX), LENGTHS_TOKENS_MAX);
    bench_free(&b);
}
END_TEST

START_TEST(lognormal_refuses)
{
    static const struct {
        const char *spec, *message;
    } cases[] = {
        {"prompt_tokens.mean=10", "needs one of sigma and cv"},
        {"prompt_tokens.mean=10; prompt_tokens.sigma=1; prompt_tokens.cv=1", "needs only one"},
        {"prompt_tokens.mean=10; prompt_tokens.sigma=1; prompt_tokens.min=5; prompt_tokens.max=4",
         "min is above max"},
        {"prompt_tokens.mean=10; prompt_tokens.sigma=1; prompt_tokens.max=10", "lie between"},
        {"prompt_tokens.mean=10; prompt_tokens.sigma=1; prompt_tokens.min=10", "lie between"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bench b;
        bench_init(&b);
        struct lengths l;
        ck_assert(
            !make(&b, arena_printf(&b.arena, "prompt_tokens=lognormal; %s", cases[i].spec), &l));
        ck_assert_uint_eq(b.errors.error_count, 1);
        traffic_expect_error(&b.errors, 0, 0, cases[i].message);
        bench_free(&b);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {constant,
                                  exponential,
                                  geometric,
                                  lognormal_mean_is_the_sum,
                                  lognormal_keeps_its_mean,
                                  lognormal_shape,
                                  lognormal_refuses,
                                  NULL};
    return suite_run("lengths", tests, 60);
}
