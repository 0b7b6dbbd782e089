#include "sim/workload/rational.h"

#include <stdio.h>
#include <stdlib.h>

#include "sim/base/check.h"

enum { DIGITS_SHORT = 15, DIGITS_ALL = 17 }; /* every decimal of 15 digits survives a double */

static uint128 divisor_common(uint128 a, uint128 b)
{
    while (b) {
        uint128 rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static struct rational reduced(uint128 numerator, uint128 denominator)
{
    uint128 common = divisor_common(numerator, denominator);
    return (struct rational){numerator / common, denominator / common};
}

/* The decimal d.ddde±x as (mantissa, exponent of ten). */
static void decimal_split(const char *text, uint64_t *mantissa, int *exponent)
{
    uint64_t m = 0;
    int decimals = 0;
    bool point = false;
    const char *p = text;
    for (; *p && *p != 'e'; p++) {
        if (*p < '0' || *p > '9') {
            point = true;
            continue;
        }
        m = m * 10 + (uint64_t)(*p - '0');
        decimals += point;
    }
    *mantissa = m;
    *exponent = (*p ? (int)strtol(p + 1, NULL, 10) : 0) - decimals;
}

/* mantissa · 10^exponent / per, or false when 128 bits do not hold it. */
static bool decimal_rational(const char *text, uint64_t per, struct rational *out)
{
    uint64_t mantissa;
    int exponent;
    decimal_split(text, &mantissa, &exponent);
    uint128 numerator = mantissa, denominator = per;
    for (; exponent > 0; exponent--)
        if (__builtin_mul_overflow(numerator, (uint128)10, &numerator))
            return false;
    for (; exponent < 0; exponent++)
        if (__builtin_mul_overflow(denominator, (uint128)10, &denominator))
            return false;
    *out = reduced(numerator, denominator);
    return true;
}

struct rational rational_from_real(double value)
{
    static const int per_seconds[] = {1, 60, 3600, 86400};
    check(value >= 1e-12 && value <= 1e22);
    char text[40];
    struct rational out;
    for (int digits = 1; digits <= DIGITS_SHORT; digits++) {
        for (size_t i = 0; i < sizeof per_seconds / sizeof *per_seconds; i++) {
            double per = per_seconds[i];
            snprintf(text, sizeof text, "%.*e", digits - 1, value * per);
            double back = strtod(text, NULL);
            /* Division and multiplication by the reciprocal are both ways to read "/min". */
            if (back / per != value && back * (1.0 / per) != value)
                continue;
            if (decimal_rational(text, (uint64_t)per_seconds[i], &out))
                return out;
        }
    }
    for (int digits = DIGITS_ALL;; digits--) {
        snprintf(text, sizeof text, "%.*e", digits - 1, value);
        if (decimal_rational(text, 1, &out))
            return out;
    }
}

bool rational_multiply(struct rational a, struct rational b, struct rational *product)
{
    /* Crosswise first, so that the products stay as small as they can. */
    struct rational left = reduced(a.numerator, b.denominator);
    struct rational right = reduced(b.numerator, a.denominator);
    return !__builtin_mul_overflow(left.numerator, right.numerator, &product->numerator) &&
           !__builtin_mul_overflow(left.denominator, right.denominator, &product->denominator);
}
