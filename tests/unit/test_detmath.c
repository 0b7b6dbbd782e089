/* Deterministic math against libm, GSL and long double. */
#include <gsl/gsl_cdf.h>
#include <math.h>
#include <string.h>

#include "sim/base/detmath.h"
#include "sim/base/rng.h"
#include "tests/unit/suite_run.h"

enum { POINTS = 1500000 };

static double from_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

/* Doubles as integers in their own order: neighbours differ by one. */
static int64_t ordinal(double x)
{
    int64_t i;
    memcpy(&i, &x, sizeof(i));
    return i < 0 ? INT64_MIN - i : i;
}

static uint64_t ulps(double x, double y)
{
    int64_t a = ordinal(x), b = ordinal(y);
    return a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a;
}

static void ck_log(double x)
{
    ck_assert_msg(ulps(detmath_log(x), log(x)) <= 1, "log(%a) = %a, libm %a", x, detmath_log(x),
                  log(x));
}

static void ck_exp(double x)
{
    ck_assert_msg(ulps(detmath_exp(x), exp(x)) <= 1, "exp(%a) = %a, libm %a", x, detmath_exp(x),
                  exp(x));
}

START_TEST(log_within_one_ulp)
{
    for (uint64_t i = 0; i < POINTS; i++) {
        struct rng_pair bits = rng_draw(1, 0, i);
        double x;
        switch (i % 4) {
        case 0: /* every exponent, subnormals too */
            x = from_bits(bits.a % UINT64_C(0x7FF0000000000000));
            break;
        case 1: /* what the samplers ask */
            x = rng_unit_open(bits.a);
            break;
        case 2: /* about 1, where the result is small */
            x = 1 + (rng_unit(bits.a) - 0.5) * exp2(-(double)(bits.b % 52));
            break;
        default:
            x = 0.5 + 1.5 * rng_unit(bits.a);
        }
        if (x > 0) {
            ck_log(x);
        }
    }
}
END_TEST

START_TEST(log_edges)
{
    static const double edges[] = {0x1p-1074,
                                   0x1p-1023,
                                   0x1p-1022,
                                   0x1.fffffffffffffp1023,
                                   0x1.6a09e667f3bccp-1,
                                   0x1.6a09e667f3bcdp-1,
                                   0x1.6a09e667f3bcdp+0,
                                   0x1.6a09e667f3bccp+0,
                                   0x1.fffffffffffffp-1,
                                   0x1.0000000000001p0,
                                   2.0,
                                   0.5,
                                   2.718281828459045};
    for (size_t i = 0; i < sizeof(edges) / sizeof(edges[0]); i++) {
        ck_log(edges[i]);
    }
    ck_assert(detmath_log(1.0) == 0.0);
    ck_assert(!signbit(detmath_log(1.0)));
    for (int k = -1074; k <= 1023; k++) {
        ck_log(ldexp(1.0, k));
    }
}
END_TEST

START_TEST(exp_within_one_ulp)
{
    for (uint64_t i = 0; i < POINTS; i++) {
        struct rng_pair bits = rng_draw(2, 0, i);
        double unit = 2 * rng_unit(bits.a) - 1;
        double x = i % 4 == 0   ? unit * 750 /* the whole range and beyond */
                   : i % 4 == 1 ? unit * exp2(-(double)(bits.b % 60))
                   : i % 4 == 2 ? -708 - 38 * fabs(unit) /* subnormal results */
                                : unit * 5;
        ck_exp(x);
    }
}
END_TEST

START_TEST(exp_edges)
{
    static const double edges[] = {0.0,
                                   -0.0,
                                   1.0,
                                   -1.0,
                                   709.782712893384,
                                   709.7827128933841,
                                   -708.3964185322641,
                                   -745.1332191019411,
                                   -745.1332191019412,
                                   0x1.62e42fefa39efp-2,
                                   -0x1.62e42fefa39efp-2,
                                   0x1p-1074,
                                   1e-20};
    for (size_t i = 0; i < sizeof(edges) / sizeof(edges[0]); i++) {
        ck_exp(edges[i]);
    }
    ck_assert(detmath_exp(0.0) == 1.0);
    ck_assert(isinf(detmath_exp(710)));
    ck_assert(isinf(detmath_exp(INFINITY)));
    ck_assert(detmath_exp(-800) == 0);
    ck_assert(detmath_exp(-INFINITY) == 0);
    for (int k = -1075; k <= 1024; k++) {
        ck_exp(k * 0.6931471805599453);
    }
}
END_TEST

START_TEST(quantile_against_gsl)
{
    for (uint64_t i = 0; i < 1000000; i++) {
        struct rng_pair bits = rng_draw(3, 0, i);
        double p = rng_unit_open(bits.a);
        if (i % 2 == 0) { /* deep tails on both sides */
            p *= exp2(-(double)(bits.b % 900));
            p = i % 4 == 0 && p > 1e-10 ? 1 - p : p;
        }
        double mine = detmath_normal_quantile(p), theirs = gsl_cdf_ugaussian_Pinv(p);
        ck_assert_msg(fabs(mine - theirs) <= 4e-15 * fabs(theirs) + 1e-300, "%a: %.17g and %.17g",
                      p, mine, theirs);
    }
}
END_TEST

/* GSL uses the same algorithm: what would be wrong in both shows against the distribution itself.
 * An error of x shifts ln Φ by about x·dx in the tail. */
START_TEST(quantile_inverts_the_distribution)
{
    for (uint64_t i = 0; i < 200000; i++) {
        struct rng_pair bits = rng_draw(4, 0, i);
        double p = rng_unit_open(bits.a) * exp2(-(double)(bits.b % 500));
        if (p > 0.5) {
            continue;
        }
        long double x = detmath_normal_quantile(p);
        long double back = 0.5L * erfcl(-x / sqrtl(2));
        long double allowed = 2e-15L * (1 + x * x);
        ck_assert_msg(fabsl(back - p) <= allowed * p, "p %a: x %.17Lg gives back %.17Lg", p, x,
                      back);
    }
    ck_assert(detmath_normal_quantile(0.5) == 0);
    ck_assert_double_eq_tol(detmath_normal_quantile(0.975), 1.959963984540054, 1e-15);
    ck_assert_double_eq_tol(detmath_normal_quantile(0.025), -1.959963984540054, 1e-15);
}
END_TEST

/* Side by side means to the same bits: in the usual range, in the tails, at the ends. */
START_TEST(pairs_are_their_halves)
{
    static const double ends[] = {-1e300, -746.5, -745.9, -708.4, -0.0,     0,
                                  1e-300, 709.7,  710.5,  1e300,  INFINITY, -INFINITY};
    enum { ENDS = sizeof ends / sizeof ends[0] };
    for (uint64_t i = 0; i < POINTS / 3; i++) {
        struct rng_pair bits = rng_draw(11, i, 0);
        double x[2], p[2] = {rng_unit_open(bits.a), rng_unit_open(bits.b)};
        double q[2] = {p[0], p[1]};
        detmath_normal_quantile_pair(q);
        for (int k = 0; k < 2; k++) {
            ck_assert(ordinal(q[k]) == ordinal(detmath_normal_quantile(p[k])));
            x[k] = i % 50 == 0 ? ends[(i / 50 + (uint64_t)k * (1 + i / 600)) % ENDS]
                               : 1500 * (p[k] - 0.5);
        }
        double l[2] = {i % 50 == 1 ? 5e-324 : p[0],
                       i % 50 == 2 ? 0x1.fffffffffffffp1023 : 1 / p[1]};
        double log[2] = {l[0], l[1]};
        detmath_log_pair(log);
        for (int k = 0; k < 2; k++) {
            ck_assert(ordinal(log[k]) == ordinal(detmath_log(l[k])));
        }
        double y[2] = {x[0], x[1]};
        detmath_exp_pair(y);
        for (int k = 0; k < 2; k++) {
            ck_assert(ordinal(y[k]) == ordinal(detmath_exp(x[k])));
        }
    }
}
END_TEST

START_TEST(cos_of_turns)
{
    const long double two_pi = 6.283185307179586476925286766559L;
    for (uint64_t i = 0; i < 1000000; i++) {
        struct rng_pair bits = rng_draw(5, 0, i);
        double x = (rng_unit(bits.a) - 0.5) * (i % 2 == 0 ? 2 : 2000);
        /* The turn is reduced exactly before the multiplication, as the definition asks. */
        long double exact = cosl(two_pi * (long double)(x - nearbyint(x)));
        ck_assert_msg(fabsl(detmath_cos_turns(x) - exact) < 1e-15L, "%a", x);
    }
    static const struct {
        double turns, cosine;
    } exact[] = {{0, 1},  {-0.0, 1}, {0.25, 0},  {0.5, -1},   {0.75, 0},     {1, 1},
                 {-7, 1}, {7.5, -1}, {-0.25, 0}, {0x1p52, 1}, {0x1.8p60, 1}, {1e300, 1}};
    for (size_t i = 0; i < sizeof(exact) / sizeof(exact[0]); i++) {
        ck_assert_msg(detmath_cos_turns(exact[i].turns) == exact[i].cosine, "%g", exact[i].turns);
    }
    ck_assert_double_eq_tol(detmath_cos_turns(1.0 / 6), 0.5, 1e-15);
    ck_assert_double_eq_tol(detmath_cos_turns(0.125), sqrt(0.5), 1e-15);
    ck_assert_double_eq_tol(detmath_cos_turns(nextafter(0.125, 1)), sqrt(0.5), 1e-15);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {log_within_one_ulp,
                                  log_edges,
                                  exp_within_one_ulp,
                                  exp_edges,
                                  quantile_against_gsl,
                                  quantile_inverts_the_distribution,
                                  pairs_are_their_halves,
                                  cos_of_turns,
                                  NULL};
    return suite_run("detmath", tests, 120);
}
