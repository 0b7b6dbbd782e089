/* Lengths by a table: a distribution function known at whole numbers of tokens, linear between two
 * of them, drawn from 64 bits with integer arithmetic only. Behind `gamma`, `pareto_lognormal` and
 * `empirical`. */
#ifndef FLEETSIM_SIM_WORKLOAD_LENGTHS_TABLE_H
#define FLEETSIM_SIM_WORKLOAD_LENGTHS_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "sim/base/field.h"

enum { LENGTHS_TABLE_GUIDES = 1024 };

struct lengths_table {
    size_t count;    /* intervals */
    int64_t *knots;  /* owned; [count + 1], rising: a length in interval i is above knots[i] and at
                        most knots[i + 1] */
    uint64_t *below; /* owned; [count + 1], 2^63 · P(X ≤ knots[i]): from 0 to 2^63 */
    uint32_t guide[LENGTHS_TABLE_GUIDES]; /* interval of the first draw with these top bits */
};

/* Takes `count + 1` knots and P(X ≤ knot), which rise from 0 to 1. */
struct lengths_table *lengths_table_create(const int64_t *knots, const double *below, size_t count);
void lengths_table_free(struct lengths_table *table);
uint32_t lengths_table_draw(const struct lengths_table *table, uint64_t bits);
/* Of what is drawn. */
double lengths_table_mean(const struct lengths_table *table);

/* The table of ⌈Y⌉ clipped to [min, max], Y with this distribution function: exact at every whole
 * number up to min + 256, then at steps of 1/128. */
struct lengths_table *lengths_table_sample(double (*cdf)(const void *self, double x),
                                           const void *self, uint32_t min, uint32_t max);

/* P(a, x), the regularised lower incomplete gamma function, a > 0, from detmath: the series, or the
 * continued fraction by Lentz above a + 1 (Abramowitz & Stegun 6.5.29, 6.5.31). Absolute error
 * below 1e-11 for a ≤ 10⁴. */
double lengths_table_gamma(double a, double x);

extern const struct variant lengths_table_gamma_variant;
extern const struct variant lengths_table_pareto_lognormal_variant;
extern const struct variant lengths_table_empirical_variant;

#endif
