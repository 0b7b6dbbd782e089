/* Lengths by table (gamma, pareto_lognormal, empirical), uniform ones, and tied lengths: against
 * closed forms, GSL and samples. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <gsl/gsl_cdf.h>

#include "sim/base/rng.h"
#include "sim/workload/lengths.h"
#include "sim/workload/lengths_table.h"
#include "tests/unit/support_traffic.h"

enum { SAMPLES = 200000 };

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

static bool make(struct lengths *lengths, const char *spec)
{
    struct traffic_config *config = traffic_make(&arena, spec);
    struct site site = {.errors = &errors};
    return lengths_init(lengths, &config->output_tokens, 0, &site, "output_tokens");
}

/* Kolmogorov's distance to P(X ≤ k), and the mean within 4.5 standard errors of the stated one. */
static void check_sample(const struct lengths *l, double (*cdf)(double k))
{
    enum { TOP = 1 << 16 };
    static uint32_t seen[TOP + 1];
    for (int k = 0; k <= TOP; k++)
        seen[k] = 0;
    double sum = 0, squares = 0;
    uint64_t key = rng_key(11, 0, RNG_TEST, 0);
    for (uint64_t i = 0; i < SAMPLES; i++) {
        uint32_t x = lengths_draw(l, rng_draw(key, i, 0).a);
        if (x < l->min || x > l->max)
            ck_abort_msg("%u outside %u … %u", x, l->min, l->max);
        sum += x;
        squares += (double)x * x;
        seen[x < TOP ? x : TOP]++;
    }
    double mean = sum / SAMPLES, sd = sqrt(squares / SAMPLES - mean * mean);
    ck_assert_double_eq_tol(mean, l->mean, 4.5 * sd / sqrt(SAMPLES));
    double worst = 0;
    uint64_t below = 0;
    for (int k = 0; k < TOP; k++) {
        below += seen[k];
        worst = fmax(worst, fabs((double)below / SAMPLES - cdf(k)));
    }
    ck_assert_msg(worst * sqrt(SAMPLES) < 1.95, "Kolmogorov %g", worst * sqrt(SAMPLES));
}

START_TEST(uniform)
{
    struct lengths l;
    ck_assert(make(&l, "output_tokens=uniform; output_tokens.min=0; output_tokens.max=4"));
    ck_assert_double_eq(l.mean, 2);
    ck_assert_uint_eq(lengths_draw(&l, 0), 0);
    ck_assert_uint_eq(lengths_draw(&l, UINT64_MAX / 5), 0);
    ck_assert_uint_eq(lengths_draw(&l, UINT64_MAX / 5 + 1), 1);
    ck_assert_uint_eq(lengths_draw(&l, UINT64_MAX), 4);
    ck_assert(!make(&l, "output_tokens=uniform; output_tokens.min=5; output_tokens.max=4"));
    traffic_expect_error(&errors, 0, 0, "min is above max");
}
END_TEST

START_TEST(incomplete_gamma)
{
    static const double shapes[] = {0.01, 0.3, 1, 2.5, 9.99, 40, 2500};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (double q = 0.05; q < 6; q *= 1.17) {
            double x = shapes[i] * q;
            double mine = lengths_table_gamma(shapes[i], x), gsl = gsl_cdf_gamma_P(x, shapes[i], 1);
            ck_assert_msg(fabs(mine - gsl) < 1e-11, "P(%g, %g) = %.17g, GSL %.17g", shapes[i], x,
                          mine, gsl);
        }
}
END_TEST

static double gamma_scale;
static double gamma_shape;
static double gamma_cdf(double k)
{
    return gsl_cdf_gamma_P(k, gamma_shape, gamma_scale);
}

/* The mean is the stated one; the shape that of the gamma distribution. */
START_TEST(gamma_lengths)
{
    static const struct {
        double mean, cv;
    } cases[] = {{300, 1}, {1500, 0.5}, {2000, 0.05}, {40, 2}};
    for (size_t i = 0; i < 4; i++) {
        struct lengths l;
        ck_assert(make(&l, arena_printf(&arena,
                                        "output_tokens=gamma; output_tokens.mean=%g; "
                                        "output_tokens.cv=%g",
                                        cases[i].mean, cases[i].cv)));
        ck_assert_double_eq_tol(l.mean, cases[i].mean, 1e-7 * cases[i].mean);
        gamma_shape = 1 / (cases[i].cv * cases[i].cv);
        /* Rounding up adds about half a token; for 40 tokens at cv 2, where most are below one,
         * 0.55
         */
        gamma_scale = (cases[i].mean - (i == 3 ? 0.55 : 0.5)) / gamma_shape;
        check_sample(&l, gamma_cdf);
        lengths_free(&l);
    }
}
END_TEST

START_TEST(gamma_clipped)
{
    struct lengths l;
    ck_assert(make(&l, "output_tokens=gamma; output_tokens.mean=300; output_tokens.cv=2; "
                       "output_tokens.min=20; output_tokens.max=1000"));
    ck_assert_double_eq_tol(l.mean, 300, 1e-4);
    ck_assert_uint_eq(lengths_draw(&l, 0), 20);
    ck_assert_uint_eq(lengths_draw(&l, UINT64_MAX), 1000);
    lengths_free(&l);
    ck_assert(!make(&l, "output_tokens=gamma; output_tokens.mean=300; output_tokens.cv=2; "
                        "output_tokens.max=200"));
    traffic_expect_error(&errors, 0, 0, "no gamma with this cv has the mean 300");
}
END_TEST

/* 20 % Pareto from 1,000 with shape 2, 80 % log-normal of median 200 and sigma 0.7. */
static double mix_cdf(double k)
{
    double tail = k > 1000 ? pow(1000 / k, 2) : 1;
    double body = k > 0 ? gsl_cdf_ugaussian_P(log(k / 200) / 0.7) : 0;
    return k >= 32768 ? 1 : 0.2 * (1 - tail) + 0.8 * body;
}

START_TEST(pareto_lognormal)
{
    struct lengths l;
    ck_assert(make(&l, "output_tokens=pareto_lognormal; output_tokens.pareto_share=20 %; "
                       "output_tokens.pareto_min=1000; output_tokens.pareto_shape=2; "
                       "output_tokens.median=200; output_tokens.sigma=0.7; "
                       "output_tokens.max=32768"));
    check_sample(&l, mix_cdf);
    /* E = 0.8 · 200 e^(0.245) + 0.2 · (2000 − 1000²/32768) + half a token for rounding up. */
    double exact = 160 * exp(0.245) + 0.2 * (2000 - 1e6 / 32768) + 0.5;
    ck_assert_double_eq_tol(l.mean, exact, 0.02);
    ck_assert_uint_eq(l.max, 32768);
    lengths_free(&l);
}
END_TEST

static const char *write_file(const char *text)
{
    const char *path = traffic_temp("cdf.csv");
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
    return path;
}

static bool make_empirical(struct lengths *l, const char *text, const char *more)
{
    const char *path = write_file(text);
    bool ok = make(
        l, arena_printf(&arena, "output_tokens=empirical; output_tokens.file=%s%s", path, more));
    unlink(path);
    return ok;
}

START_TEST(empirical)
{
    struct lengths l;
    /* a quarter at 0, a quarter even on 1 … 10, half even on 11 … 110 */
    const char *text = "tokens,cdf\n0,0.25\n10,0.5\n110,1\n";
    ck_assert(make_empirical(&l, text, "; output_tokens.min=0"));
    ck_assert_double_eq_tol(l.mean, 0.25 * 0 + 0.25 * 5.5 + 0.5 * 60.5, 1e-12);
    ck_assert_uint_eq(lengths_draw(&l, (UINT64_C(1) << 62) - 2), 0);
    ck_assert_uint_eq(lengths_draw(&l, UINT64_C(1) << 62), 1);
    ck_assert_uint_eq(lengths_draw(&l, UINT64_MAX), 110);
    lengths_free(&l);
    ck_assert(make_empirical(&l, text, "")); /* 0 becomes 1 */
    ck_assert_double_eq_tol(l.mean, 0.25 * 1 + 0.25 * 6 + 0.5 * 60.5, 0.2);
    ck_assert_uint_eq(l.min, 1);
    lengths_free(&l);
    ck_assert(make_empirical(&l, text, "; output_tokens.min=0; output_tokens.max=60"));
    /* up to 60: half of the last half less one token; the rest at 60 */
    ck_assert_double_eq_tol(l.mean, 0.25 * 5.5 + 0.5 * (0.49 * 35 + 0.51 * 60), 1e-9);
    lengths_free(&l);
    ck_assert(
        make_empirical(&l, "tokens,cdf_percent\r\n10,50\r\n20,97\r\n", "; output_tokens.max=120"));
    ck_assert_double_eq_tol(l.mean, 0.5 * 5.5 + 0.47 * 15.5 + 0.03 * 70.5, 1e-9);
    lengths_free(&l);
}
END_TEST

START_TEST(empirical_refuses)
{
    static const struct {
        const char *text, *message;
        uint32_t line;
    } cases[] = {{"a,b\n1,1\n", "the header must be", 1},
                 {"tokens,cdf\n", "no rows", 1},
                 {"tokens,cdf\n5\n9,1\n", "a row is two numbers", 2},
                 {"tokens,cdf\n5,x\n9,1\n", "a row is two numbers", 2},
                 {"tokens,cdf\n5,0.5,3\n9,1\n", "a row is two numbers", 2},
                 {"tokens,cdf\n5,0.5\n5,0.6\n9,1\n", "tokens must rise", 3},
                 {"tokens,cdf\n5,0.5\n6,0.4\n9,1\n", "must not fall", 3},
                 {"tokens,cdf\n5,50\n9,100\n", "within its range", 2},
                 {"tokens,cdf\n-5,0.5\n9,1\n", "within its range", 2},
                 {"tokens,cdf\nnan,0.5\n9,1\n", "within its range", 2},
                 {"tokens,cdf\n5,0.5\n9,0.9\n", "the last share must be 1", 3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lengths l;
        ck_assert_msg(!make_empirical(&l, cases[i].text, ""), "%s", cases[i].text);
        traffic_expect_error(&errors, cases[i].line, 0, cases[i].message);
    }
    struct lengths l;
    ck_assert(!make(&l, "output_tokens=empirical; output_tokens.file=no-such.csv"));
    traffic_expect_error(&errors, 0, 0, "cannot open 'no-such.csv'");
}
END_TEST

/* Normal scores of tied lengths have the stated correlation; each alone is as before. */
static void check_tied(const char *prompt, const char *output, double correlation)
{
    const struct traffic_config *class = traffic_make(
        &arena, arena_printf(&arena,
                             "name=a; arrivals=constant; arrivals.rate=1000 /s; prompt_tokens=%s; "
                             "output_tokens=%s; correlation=%g",
                             prompt, output, correlation));
    struct workload *w = traffic_open(&class, 1, 60 * PS_PER_SECOND, &errors);
    ck_assert_ptr_nonnull(w);
    double n = 0, p = 0, o = 0, pp = 0, oo = 0, po = 0, sum = 0;
    struct request r;
    while (workload_next(w, &r, &errors) == WORKLOAD_OK) {
        double x = log(r.prompt_tokens), y = log(r.output_tokens);
        n++;
        sum += r.output_tokens;
        p += x, o += y, pp += x * x, oo += y * y, po += x * y;
    }
    double seen =
        (po / n - p / n * o / n) / sqrt((pp / n - p / n * p / n) * (oo / n - o / n * o / n));
    ck_assert_double_eq_tol(seen, correlation, 0.02);
    ck_assert_double_eq_tol(sum / n, workload_mean_output(w, 0), 0.03 * workload_mean_output(w, 0));
    workload_close(w);
}

START_TEST(tied_lengths)
{
    static const char longs[] = "lognormal; prompt_tokens.mean=3000; prompt_tokens.sigma=0.8";
    static const char shorts[] = "lognormal; output_tokens.mean=900; output_tokens.sigma=0.6";
    check_tied(longs, shorts, 0.7);
    check_tied(longs, shorts, -0.4);
    check_tied(longs, shorts, 0);
    /* Types that fall with their bits keep the sign; the logarithm of a gamma is nearly normal. */
    check_tied(longs, "gamma; output_tokens.mean=900; output_tokens.cv=0.3", 0.6);
    const struct traffic_config *class =
        traffic_make(&arena, "name=a; arrivals=constant; arrivals.rate=1000 /s; "
                             "prompt_tokens=exponential; prompt_tokens.mean=500; "
                             "output_tokens=lognormal; output_tokens.mean=500; "
                             "output_tokens.sigma=1; correlation=0.99");
    struct workload *w = traffic_open(&class, 1, 10 * PS_PER_SECOND, &errors);
    struct request r;
    int alike = 0;
    while (workload_next(w, &r, &errors) == WORKLOAD_OK)
        alike += (r.prompt_tokens > 347) == (r.output_tokens > 303); /* medians */
    ck_assert_int_gt(alike, 9300);
    workload_close(w);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lengths_table");
    TCase *c = tcase_create("lengths_table");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_set_timeout(c, 60);
    tcase_add_test(c, uniform);
    tcase_add_test(c, incomplete_gamma);
    tcase_add_test(c, gamma_lengths);
    tcase_add_test(c, gamma_clipped);
    tcase_add_test(c, pareto_lognormal);
    tcase_add_test(c, empirical);
    tcase_add_test(c, empirical_refuses);
    tcase_add_test(c, tied_lengths);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
