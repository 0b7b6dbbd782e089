/* -ffp-contract=off is in force: a product is rounded before it is added, also where the machine
 * has a fused multiply-add and the compiler may use it. Without the flag the digest of a run would
 * depend on compiler and -march. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "tests/unit/suite_run.h"

/* This file is built with the flags of every other one; only the target is widened, as
 * -march=native would, and gcc is told to optimise, since at -O0 it never fuses. */
#if defined(__x86_64__)
#define TARGET_FMA __attribute__((target("fma"), noinline))
#else
#define TARGET_FMA __attribute__((noinline))
#endif
#if defined(__clang__)
#define OPTIMIZED
#else
#define OPTIMIZED __attribute__((optimize("O2")))
#endif

TARGET_FMA OPTIMIZED static double product_and_sum(double a, double b, double c)
{
    return a * b + c;
}

TARGET_FMA OPTIMIZED static double difference_of_products(double a, double b, double c, double d)
{
    return a * b - c * d;
}

TARGET_FMA OPTIMIZED static double polynomial(double x, const double *p, int degree)
{
    double y = p[degree];
    for (int i = degree - 1; i >= 0; i--) {
        y = y * x + p[i];
    }
    return y;
}

/* The control: the same expression where fusing is asked for. If this does not differ, the test
 * above could not fail, and says so. */
#if defined(__clang__)
TARGET_FMA static double fused_control(double a, double b, double c)
{
#pragma clang fp contract(on)
    return a * b + c;
}
#else
__attribute__((optimize("O2", "fp-contract=fast"))) TARGET_FMA static double
fused_control(double a, double b, double c)
{
    return a * b + c;
}
#endif

static bool machine_fuses(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("fma");
#elif defined(__aarch64__)
    return true;
#else
    return false;
#endif
}

/* Read at run time, or the compiler would work the calls out while it builds, without fusing. */
static volatile double run_time[] = {1 + 0x1p-30, 1 - 0x1p-30, -1, 0.1};

/* (1 + ε)(1 - ε) = 1 - ε²: 1 when the product is rounded, so the sum with -1 is 0, not -ε². */
START_TEST(products_are_rounded)
{
    double above = run_time[0], below = run_time[1], minus = run_time[2], tenth = run_time[3];
    ck_assert(product_and_sum(above, below, minus) == 0);
    /* x·x - x·x is 0 only if both products are rounded alike. */
    ck_assert(difference_of_products(tenth, tenth, tenth, tenth) == 0);
    ck_assert(difference_of_products(above, below, minus, minus) == 0);
    const double p[] = {minus, above};
    ck_assert(polynomial(below, p, 1) == 0);
}
END_TEST

START_TEST(the_control_fuses)
{
    double above = run_time[0], below = run_time[1], minus = run_time[2];
    double fused = fused_control(above, below, minus);
    ck_assert_msg(fused == -0x1p-60, "asked to fuse, the compiler gave %a", fused);
    ck_assert(fma(above, below, minus) == -0x1p-60);
}
END_TEST

int main(void)
{
    if (!machine_fuses()) {
        printf("SKIP: this machine has no fused multiply-add: nothing to prove\n");
        return 77;
    }
    const TTest *const tests[] = {products_are_rounded, the_control_fuses, NULL};
    return suite_run("contract", tests, 30);
}
