/* Rates and scales as exact fractions. A scenario's numbers arrive as doubles, but the user wrote
 * short decimals ("0.1 /s", "10 /min"): taking the decimal back makes the millionth arrival of a
 * constant stream exact instead of 10^6 times a rounding error away. */
#ifndef FLEETSIM_SIM_WORKLOAD_RATIONAL_H
#define FLEETSIM_SIM_WORKLOAD_RATIONAL_H

#include <stdbool.h>
#include <stdint.h>

typedef unsigned __int128 uint128;

struct rational {
    uint128 numerator, denominator; /* in lowest terms, both > 0 */
};

/* The fraction with the shortest decimal that reads back to value, where the decimal may have been
 * written per second, minute, hour or day (divided by 1, 60, 3,600 or 86,400). value: positive and
 * finite, 1e-12 … 1e22. */
struct rational rational_from_real(double value);
/* *product = a · b in lowest terms; false when it does not fit in 128 bits. */
bool rational_multiply(struct rational a, struct rational b, struct rational *product);

#endif
